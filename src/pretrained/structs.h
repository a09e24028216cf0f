/* Public structs that this layer reads and writes. */
#ifndef AN_PRETRAINED_STRUCTS_H
#define AN_PRETRAINED_STRUCTS_H

#include "anneal/pretrained.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "pretrained/structs.def"
#undef AN_STRUCT

#endif
