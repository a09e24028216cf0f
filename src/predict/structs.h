/* Public structs that this layer reads and writes. */
#ifndef AN_PREDICT_STRUCTS_H
#define AN_PREDICT_STRUCTS_H

#include "anneal/generate.h"
#include "anneal/predict.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "predict/structs.def"
#undef AN_STRUCT

#endif
