#include "ir/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "ir/structs.def"
#undef AN_STRUCT
