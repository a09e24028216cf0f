/* Public structs that this layer reads and writes. */
#ifndef AN_PASS_STRUCTS_H
#define AN_PASS_STRUCTS_H

#include "anneal/adapter.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "pass/structs.def"
#undef AN_STRUCT

#endif
