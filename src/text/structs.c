#include "text/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "text/structs.def"
#undef AN_STRUCT
