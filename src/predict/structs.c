#include "predict/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "predict/structs.def"
#undef AN_STRUCT
