/* Public structs that this layer reads and writes. */
#ifndef AN_MODELS_STRUCTS_H
#define AN_MODELS_STRUCTS_H

#include "anneal/models.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "models/structs.def"
#undef AN_STRUCT

#endif
