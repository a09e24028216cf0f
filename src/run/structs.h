/* Public structs that this layer reads and writes. */
#ifndef AN_RUN_STRUCTS_H
#define AN_RUN_STRUCTS_H

#include "anneal/run.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "run/structs.def"
#undef AN_STRUCT

#endif
