#include "store/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "store/structs.def"
#undef AN_STRUCT
