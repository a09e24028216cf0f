#include "comm/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "comm/structs.def"
#undef AN_STRUCT
