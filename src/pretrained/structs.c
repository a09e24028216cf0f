#include "pretrained/structs.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "pretrained/structs.def"
#undef AN_STRUCT
