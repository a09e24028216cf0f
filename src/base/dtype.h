/* Element types, for use inside the library. */
#ifndef AN_BASE_DTYPE_H
#define AN_BASE_DTYPE_H

#include "anneal/core.h"

bool an_dtype_is_float(an_dtype dtype);
bool an_dtype_is_index(an_dtype dtype);
/* What so many elements take: of q8_0, a multiple of a block. */
int64_t an_dtype_bytes(an_dtype dtype, int64_t elements);

#endif
