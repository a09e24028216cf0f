/* Numbers of one floating type as those of another, in place. */
#ifndef AN_BASE_CONVERT_H
#define AN_BASE_CONVERT_H

#include "anneal/core.h"

/* n doubles become n elements of a floating type, in the same memory. */
void an_convert_from_f64(an_dtype dtype, int64_t n, double *values);
/* … and back. */
void an_convert_to_f64(an_dtype dtype, int64_t n, double *values);

#endif
