#include "interchange/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "interchange/structs.def"
#undef AN_STRUCT
