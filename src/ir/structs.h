/* Public structs that this layer reads and writes. */
#ifndef AN_IR_STRUCTS_H
#define AN_IR_STRUCTS_H

#include "anneal/graph.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "ir/structs.def"
#undef AN_STRUCT

#endif
