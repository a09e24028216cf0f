#include "train/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "train/structs.def"
#undef AN_STRUCT
