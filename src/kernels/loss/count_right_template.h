/* One row of count_right for REAL. Included by count_right.c through instantiate.h. */

/* Whether none of n logits is at least x, or greater than x if equal ones may be there. A NaN is not less than
 * anything. */
static bool NAME(are_below)(const REAL *logits, int64_t n, REAL x, bool or_equal) {
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t end = an_smaller(begin + BLOCK, n);
        int below = 1;
        if (or_equal)
            for (int64_t i = begin; i < end; i++) below &= logits[i] <= x;
        else
            for (int64_t i = begin; i < end; i++) below &= logits[i] < x;
        if (!below) return false;
    }
    return true;
}

/* Most labels that are not right are decided by the first logits. */
static bool NAME(is_right)(const job *j, int64_t row, int64_t label, REAL *buffer) {
    const an_tensor *logits = j->logits;
    const int last = logits->ndims - 1;
    const REAL *x =
        NAME(an_row_load)(logits, an_row_offset(logits, last, row), logits->strides[last], j->classes, buffer);
    return NAME(are_below)(x, label, x[label], false) && NAME(are_below)(x + label, j->classes - label, x[label], true);
}
