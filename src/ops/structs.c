#include "ops/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "ops/structs.def"
#undef AN_STRUCT
