#include "exec/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "exec/structs.def"
#undef AN_STRUCT
