/* Public structs that this layer reads and writes. */
#ifndef AN_OPS_STRUCTS_H
#define AN_OPS_STRUCTS_H

#include "anneal/data.h"
#include "anneal/graph.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "ops/structs.def"
#undef AN_STRUCT

#endif
