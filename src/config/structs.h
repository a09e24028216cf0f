/* Public structs that this layer reads and writes. */
#ifndef AN_CONFIG_STRUCTS_H
#define AN_CONFIG_STRUCTS_H

#include "anneal/config.h"
#include "anneal/open.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "config/structs.def"
#undef AN_STRUCT

#endif
