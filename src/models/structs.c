#include "models/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "models/structs.def"
#undef AN_STRUCT
