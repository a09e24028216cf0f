#include "data/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "data/structs.def"
#undef AN_STRUCT
