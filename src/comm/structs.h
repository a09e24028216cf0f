/* Public structs that this layer reads and writes. */
#ifndef AN_COMM_STRUCTS_H
#define AN_COMM_STRUCTS_H

#include "anneal/ranks.h"
#include "anneal/watch.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "comm/structs.def"
#undef AN_STRUCT

#endif
