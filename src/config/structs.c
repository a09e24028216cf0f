#include "config/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "config/structs.def"
#undef AN_STRUCT
