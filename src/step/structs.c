#include "step/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "step/structs.def"
#undef AN_STRUCT
