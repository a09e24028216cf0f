/* Public structs that this layer reads and writes. */
#ifndef AN_DATA_STRUCTS_H
#define AN_DATA_STRUCTS_H

#include "anneal/data.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "data/structs.def"
#undef AN_STRUCT

#endif
