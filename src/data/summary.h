/* What is known of the features of some samples: means, squares around them and ranges, in f64. */
#ifndef AN_DATA_SUMMARY_H
#define AN_DATA_SUMMARY_H

#include <stdint.h>

#include "anneal/core.h"

enum { AN_SUMMARY_ARRAYS = 4 };

typedef struct an_summary {
    int64_t count; /* numbers of a feature; 0: none */
    double *mean, *squares, *minimum, *maximum;
} an_summary;

/* In the caller's AN_SUMMARY_ARRAYS × features numbers. */
an_summary an_summary_in(double *numbers, int64_t features);

/* Of n samples, 1 or more, in f32 or f64; each is `features` equal parts of `each` numbers. Goes through them twice:
 * the means, then the squares around these. -1, or the index of the first number that is not finite. */
int64_t an_summary_make(an_summary *s, int64_t features, int64_t each, an_dtype dtype, const void *values, int64_t n);

/* Chan, Golub and LeVeque (1979): no digits are lost where a mean is large and a deviation small. Neither is empty. */
void an_summary_combine(an_summary *to, const an_summary *with, int64_t features);

#endif
