/* Public structs that this layer reads and writes. */
#ifndef AN_INTERCHANGE_STRUCTS_H
#define AN_INTERCHANGE_STRUCTS_H

#include "anneal/checkpoint.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "interchange/structs.def"
#undef AN_STRUCT

#endif
