/* Public structs that this layer reads and writes. */
#ifndef AN_TRAIN_STRUCTS_H
#define AN_TRAIN_STRUCTS_H

#include "anneal/details.h"
#include "anneal/metric.h"
#include "anneal/train.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "train/structs.def"
#undef AN_STRUCT

#endif
