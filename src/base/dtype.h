/* Element types, for use inside the library. */
#ifndef AN_BASE_DTYPE_H
#define AN_BASE_DTYPE_H

#include "anneal/core.h"

bool an_dtype_is_float(an_dtype dtype);
bool an_dtype_is_index(an_dtype dtype);

#endif
