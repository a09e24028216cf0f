/* Public structs that this layer reads and writes. */
#ifndef AN_STORE_STRUCTS_H
#define AN_STORE_STRUCTS_H

#include "anneal/checkpoint.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "store/structs.def"
#undef AN_STRUCT

#endif
