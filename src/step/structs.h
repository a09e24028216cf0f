/* Public structs that this layer reads and writes. */
#ifndef AN_STEP_STRUCTS_H
#define AN_STEP_STRUCTS_H

#include "anneal/anneal.h"
#include "anneal/optimizer.h"
#include "anneal/step.h"
#include "base/structs.h"

#define AN_STRUCT AN_STRUCT_DECLARE
#include "step/structs.def"
#undef AN_STRUCT

#endif
