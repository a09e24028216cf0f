#include "pass/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "pass/structs.def"
#undef AN_STRUCT
