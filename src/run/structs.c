#include "run/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "run/structs.def"
#undef AN_STRUCT
