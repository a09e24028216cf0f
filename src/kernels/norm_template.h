/* Rows of the norms, for REAL. Included by norm_reference.c through instantiate.h.
 *
 * rms norm is layer norm with a mean of 0 and no bias, so one body does both: `mean` is NULL for it. */

/* A vector of the width of a row, dense; zeros if it is absent. */
static const REAL *NAME(load_vector)(const an_tensor *vector, int64_t width, REAL *buffer) {
    if (vector && vector->data) return NAME(an_row_load)(vector, 0, vector->strides[0], width, buffer);
    for (int64_t i = 0; i < width; i++) buffer[i] = 0;
    return buffer;
}

/* One number for each row: a statistic. */
static REAL NAME(load_statistic)(const an_tensor *statistic, int64_t row) {
    REAL buffer;
    return statistic ? *NAME(an_row_load)(statistic, an_row_offset(statistic, -1, row), 1, 1, &buffer) : 0;
}

static void NAME(store_statistic)(const an_tensor *statistic, int64_t row, REAL value) {
    if (statistic) NAME(an_row_store)(statistic, an_row_offset(statistic, -1, row), 1, 1, &value);
}

static const REAL *NAME(load_row)(const norm_job *j, const an_tensor *tensor, int64_t row, REAL *buffer) {
    const int axis = tensor->ndims - 1;
    return NAME(an_row_load)(tensor, an_row_offset(tensor, axis, row), tensor->strides[axis], j->width, buffer);
}

/* dst may be src: all of a row is read before the pass that writes it, and that pass goes element by element. */
static void NAME(forward_task)(void *user, int64_t index, int thread) {
    const norm_job *j = user;
    const int64_t n = j->width, end = task_end(j, index);
    const int axis = j->dst->ndims - 1;
    const REAL epsilon = (REAL)((const an_norm_attributes *)j->call->attributes)->epsilon;
    REAL *buffer = thread_buffer(j, thread), *restrict squares = buffer + 3 * n;
    const REAL *weight = NAME(load_vector)(j->weight, n, buffer);
    const REAL *bias = NAME(load_vector)(j->bias, n, buffer + n);
    for (int64_t row = index * j->rows_a_task; row < end; row++) {
        const REAL *x = NAME(load_row)(j, j->src, row, buffer + 2 * n);
        const int64_t offset = an_row_offset(j->dst, axis, row), stride = j->dst->strides[axis];
        REAL *dst = NAME(an_row_target)(j->dst, offset, stride, squares);
        const REAL mean = j->mean ? NAME(an_row_sum)(x, n) / (REAL)n : 0;
        for (int64_t i = 0; i < n; i++) squares[i] = (x[i] - mean) * (x[i] - mean);
        const REAL variance = NAME(an_row_sum)(squares, n) / (REAL)n;
        const REAL inverse = 1 / NAME(square_root)(variance + epsilon);
        NAME(store_statistic)(j->mean, row, mean);
        NAME(store_statistic)(j->inverse, row, inverse);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) dst[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
        NAME(an_row_store)(j->dst, offset, stride, n, dst);
    }
}

/* With y = (src - mean)·inverse and d = diff_dst·weight: diff_src = inverse·(d - mean(d) - y·mean(d·y)), the middle term
 * only where the mean was subtracted. diff_src may be diff_dst or src. */
static void NAME(diff_src_task)(void *user, int64_t index, int thread) {
    const norm_job *j = user;
    const int64_t n = j->width, end = task_end(j, index);
    const int axis = j->dst->ndims - 1;
    REAL *buffer = thread_buffer(j, thread), *d = buffer + n, *y = buffer + 2 * n, *products = buffer + 3 * n;
    const REAL *weight = NAME(load_vector)(j->weight, n, buffer);
    for (int64_t row = index * j->rows_a_task; row < end; row++) {
        const REAL *diff_dst = NAME(load_row)(j, j->diff_dst, row, d), *x = NAME(load_row)(j, j->src, row, y);
        const REAL mean = NAME(load_statistic)(j->mean, row), inverse = NAME(load_statistic)(j->inverse, row);
        const int64_t offset = an_row_offset(j->dst, axis, row), stride = j->dst->strides[axis];
        REAL *diff_src = NAME(an_row_target)(j->dst, offset, stride, products);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            d[i] = diff_dst[i] * weight[i];
            y[i] = (x[i] - mean) * inverse;
            products[i] = d[i] * y[i];
        }
        const REAL mean_d = j->mean ? NAME(an_row_sum)(d, n) / (REAL)n : 0;
        const REAL mean_dy = NAME(an_row_sum)(products, n) / (REAL)n;
        for (int64_t i = 0; i < n; i++) diff_src[i] = inverse * (d[i] - mean_d - y[i] * mean_dy);
        NAME(an_row_store)(j->dst, offset, stride, n, diff_src);
    }
}

/* The sums over one chunk of rows, in the order of the rows. */
static void NAME(diff_weights_chunk)(void *user, int64_t index, int thread) {
    const norm_job *j = user;
    const int64_t n = j->width, end = task_end(j, index);
    REAL *buffer = thread_buffer(j, thread);
    REAL *restrict weight_sums = (REAL *)j->call->scratch + index * j->call->dst_count * n;
    REAL *bias_sums = weight_sums + n;
    const bool has_bias = j->call->dst_count > 1;
    for (int64_t i = 0; i < j->call->dst_count * n; i++) weight_sums[i] = 0;
    for (int64_t row = index * j->rows_a_task; row < end; row++) {
        const REAL *diff_dst = NAME(load_row)(j, j->diff_dst, row, buffer);
        const REAL *x = NAME(load_row)(j, j->src, row, buffer + n);
        const REAL mean = NAME(load_statistic)(j->mean, row), inverse = NAME(load_statistic)(j->inverse, row);
        for (int64_t i = 0; i < n; i++) weight_sums[i] += diff_dst[i] * ((x[i] - mean) * inverse);
        if (has_bias)
            for (int64_t i = 0; i < n; i++) bias_sums[i] += diff_dst[i];
    }
}

/* Adds the chunks in their order, for a range of columns of one output. */
static void NAME(diff_weights_total)(void *user, int64_t index, int thread) {
    const norm_job *j = user;
    const int64_t n = j->width, ranges = (n + COLUMNS - 1) / COLUMNS;
    const int64_t output = index / ranges, begin = index % ranges * COLUMNS;
    const int64_t count = n - begin < COLUMNS ? n - begin : COLUMNS;
    const an_tensor *dst = &j->call->dst[output];
    REAL total[COLUMNS] = {0};
    (void)thread;
    for (int64_t chunk = 0; chunk < j->tasks; chunk++) {
        const REAL *sums = (const REAL *)j->call->scratch + (chunk * j->call->dst_count + output) * n + begin;
        for (int64_t i = 0; i < count; i++) total[i] += sums[i];
    }
    NAME(an_row_store)(dst, begin * dst->strides[0], dst->strides[0], count, total);
}
