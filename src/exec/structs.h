/* Public structs that this layer reads and writes. */
#ifndef AN_EXEC_STRUCTS_H
#define AN_EXEC_STRUCTS_H

#include "anneal/plan.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "exec/structs.def"
#undef AN_STRUCT

#endif
