/* Public structs that this layer reads and writes. */
#ifndef AN_TEXT_STRUCTS_H
#define AN_TEXT_STRUCTS_H

#include "anneal/chat.h"
#include "anneal/text.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "text/structs.def"
#undef AN_STRUCT

#endif
