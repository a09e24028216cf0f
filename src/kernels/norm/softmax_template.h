/* Softmax and its kin for REAL, row by row. Included by softmax_portable.c through instantiate.h.
 *
 * In place dst is one of the sources, so an element of a source is not read after its element of dst was written. */

static void NAME(softmax_row)(int64_t n, const REAL *const *src, REAL *dst) {
    const REAL *x = src[0];
    REAL largest = NAME(an_row_max)(x, n), sum;
    AN_EACH_ELEMENT(i, n) dst[i] = NAME(an_exp)(x[i] - largest);
    sum = NAME(an_row_sum)(dst, n);
    AN_EACH_ELEMENT(i, n) dst[i] = dst[i] / sum;
}

static void NAME(log_softmax_row)(int64_t n, const REAL *const *src, REAL *dst) {
    const REAL *x = src[0];
    REAL largest = NAME(an_row_max)(x, n), sum, log_sum;
    AN_SUM_TERMS(sum, i, n, NAME(an_exp)(x[i] - largest));
    log_sum = NAME(an_log)(sum);
    AN_EACH_ELEMENT(i, n) dst[i] = x[i] - largest - log_sum; /* in this order: the first difference is exact or small */
}

/* y (d - Σ d y) */
static void NAME(softmax_diff_row)(int64_t n, const REAL *const *src, REAL *dst) {
    const REAL *diff = src[0], *y = src[1];
    REAL sum;
    AN_SUM_TERMS(sum, i, n, diff[i] * y[i]);
    AN_EACH_ELEMENT(i, n) dst[i] = y[i] * (diff[i] - sum);
}

/* d - exp(y) Σ d */
static void NAME(log_softmax_diff_row)(int64_t n, const REAL *const *src, REAL *dst) {
    const REAL *diff = src[0], *y = src[1];
    REAL sum = NAME(an_row_sum)(diff, n);
    AN_EACH_ELEMENT(i, n) dst[i] = diff[i] - NAME(an_exp)(y[i]) * sum;
}

static void NAME(run_row)(const job *j, int64_t row, REAL *buffer) {
    const an_call *call = j->call;
    const an_tensor *dst = &call->dst[0];
    const REAL *src[MOST_INPUTS];
    for (int i = 0; i < call->src_count; i++) {
        const an_tensor *t = &call->src[i];
        src[i] = NAME(an_row_load)(t, an_row_offset(t, j->axis, row), t->strides[j->axis], j->n, buffer);
        if (needs_buffer(j, t)) buffer += j->n;
    }
    int64_t offset = an_row_offset(dst, j->axis, row), stride = dst->strides[j->axis];
    REAL *target = NAME(an_row_target)(dst, offset, stride, buffer);
    j->NAME(row)(j->n, src, target);
    NAME(an_row_store)(dst, offset, stride, j->n, target);
}
