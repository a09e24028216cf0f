/* Rows of the norms, for REAL. Included by norm_portable.c through instantiate.h.
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
static void NAME(forward_block)(const norm_job *j, int64_t first, int64_t rows, const REAL *weight, const REAL *bias,
                                REAL *loaded, REAL *squares) {
    const int64_t n = j->width;
    const int axis = j->dst->ndims - 1;
    const REAL epsilon = (REAL)((const an_norm_attributes *)j->call->attributes)->epsilon;
    const REAL *x[AN_SUM_ROWS] = {NULL}, *terms[AN_SUM_ROWS] = {NULL};
    REAL mean[AN_SUM_ROWS] = {0}, inverse[AN_SUM_ROWS];
    for (int64_t r = 0; r < rows; r++) x[r] = NAME(load_row)(j, j->src, first + r, loaded + r * n);
    if (j->mean) NAME(an_row_sums)(rows, x, n, mean);
    for (int64_t r = 0; r < rows; r++) mean[r] = mean[r] / (REAL)n;
    for (int64_t r = 0; r < rows; r++) {
        REAL *restrict to = squares + r * n;
        for (int64_t i = 0; i < n; i++) to[i] = (x[r][i] - mean[r]) * (x[r][i] - mean[r]);
        terms[r] = to;
    }
    NAME(an_row_sums)(rows, terms, n, inverse);
    for (int64_t r = 0; r < rows; r++) inverse[r] = 1 / NAME(square_root)(inverse[r] / (REAL)n + epsilon);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t offset = an_row_offset(j->dst, axis, first + r), stride = j->dst->strides[axis];
        REAL *dst = NAME(an_row_target)(j->dst, offset, stride, squares);
        NAME(store_statistic)(j->mean, first + r, mean[r]);
        NAME(store_statistic)(j->inverse, first + r, inverse[r]);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) dst[i] = (x[r][i] - mean[r]) * inverse[r] * weight[i] + bias[i];
        NAME(an_row_store)(j->dst, offset, stride, n, dst);
    }
}

static void NAME(forward_task)(void *user, int64_t index, int thread) {
    const norm_job *j = user;
    const int64_t n = j->width, end = task_end(j, index), some = j->rows_a_block;
    REAL *buffer = thread_buffer(j, thread), *rows = buffer + VECTOR_BUFFERS * n;
    const REAL *weight = NAME(load_vector)(j->weight, n, buffer);
    const REAL *bias = NAME(load_vector)(j->bias, n, buffer + n);
    for (int64_t row = index * j->rows_a_task; row < end; row += some)
        NAME(forward_block)(j, row, an_smaller(some, end - row), weight, bias, rows, rows + some * n);
}

/* With y = (src - mean)·inverse and d = diff_dst·weight: diff_src = inverse·(d - mean(d) - y·mean(d·y)), the middle
 * term only where the mean was subtracted. diff_src may be diff_dst or src. */
static void NAME(diff_src_block)(const norm_job *j, int64_t first, int64_t rows, const REAL *weight, REAL *buffer) {
    const int64_t n = j->width, block = j->rows_a_block * n;
    const int axis = j->dst->ndims - 1;
    const REAL *d_rows[AN_SUM_ROWS] = {NULL}, *product_rows[AN_SUM_ROWS] = {NULL};
    REAL inverse[AN_SUM_ROWS], mean_d[AN_SUM_ROWS] = {0}, mean_dy[AN_SUM_ROWS];
    for (int64_t r = 0; r < rows; r++) {
        REAL *d = buffer + r * n, *y = d + block, *products = y + block;
        const REAL *diff_dst = NAME(load_row)(j, j->diff_dst, first + r, d);
        const REAL *x = NAME(load_row)(j, j->src, first + r, y);
        const REAL mean = NAME(load_statistic)(j->mean, first + r), scale = NAME(load_statistic)(j->inverse, first + r);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            d[i] = diff_dst[i] * weight[i];
            y[i] = (x[i] - mean) * scale;
            products[i] = d[i] * y[i];
        }
        inverse[r] = scale;
        d_rows[r] = d;
        product_rows[r] = products;
    }
    if (j->mean) NAME(an_row_sums)(rows, d_rows, n, mean_d);
    NAME(an_row_sums)(rows, product_rows, n, mean_dy);
    for (int64_t r = 0; r < rows; r++) {
        const REAL *d = d_rows[r], *y = d + block, by_d = mean_d[r] / (REAL)n, by_dy = mean_dy[r] / (REAL)n;
        const int64_t offset = an_row_offset(j->dst, axis, first + r), stride = j->dst->strides[axis];
        REAL *restrict diff_src = NAME(an_row_target)(j->dst, offset, stride, buffer + 2 * block);
        for (int64_t i = 0; i < n; i++) diff_src[i] = inverse[r] * (d[i] - by_d - y[i] * by_dy);
        NAME(an_row_store)(j->dst, offset, stride, n, diff_src);
    }
}

static void NAME(diff_src_task)(void *user, int64_t index, int thread) {
    const norm_job *j = user;
    const int64_t n = j->width, end = task_end(j, index), some = j->rows_a_block;
    REAL *buffer = thread_buffer(j, thread);
    const REAL *weight = NAME(load_vector)(j->weight, n, buffer);
    for (int64_t row = index * j->rows_a_task; row < end; row += some)
        NAME(diff_src_block)(j, row, an_smaller(some, end - row), weight, buffer + VECTOR_BUFFERS * n);
}

/* The sums over rows begin … end - 1, in the order of the rows, which become row `index` of the sums in scratch. */
static void NAME(sum_rows)(const norm_job *j, int64_t index, int64_t begin, int64_t end, int thread) {
    const int64_t n = j->width;
    REAL *buffer = thread_buffer(j, thread);
    REAL *restrict weight_sums = (REAL *)j->call->scratch + index * j->call->dst_count * n;
    REAL *bias_sums = weight_sums + n;
    const bool has_bias = j->call->dst_count > 1;
    for (int64_t i = 0; i < j->call->dst_count * n; i++) weight_sums[i] = 0;
    for (int64_t row = begin; row < end; row++) {
        const REAL *diff_dst = NAME(load_row)(j, j->diff_dst, row, buffer);
        const REAL *x = NAME(load_row)(j, j->src, row, buffer + n);
        const REAL mean = NAME(load_statistic)(j->mean, row), inverse = NAME(load_statistic)(j->inverse, row);
        for (int64_t i = 0; i < n; i++) weight_sums[i] += diff_dst[i] * ((x[i] - mean) * inverse);
        if (has_bias)
            for (int64_t i = 0; i < n; i++) bias_sums[i] += diff_dst[i];
    }
}

static void NAME(diff_weights_chunk)(void *user, int64_t index, int thread) {
    const norm_job *j = user;
    NAME(sum_rows)(j, index, index * j->rows_a_task, task_end(j, index), thread);
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

/* ---- by leaves ---- */

static void NAME(leaf_chunks_task)(void *user, int64_t index, int thread) {
    const norm_job *j = user;
    const int64_t end = an_smaller((index + 1) * j->chunks_a_task, j->chunk_count);
    for (int64_t i = index * j->chunks_a_task; i < end; i++)
        NAME(sum_rows)(j, i, j->chunks[i].begin, j->chunks[i].end, thread);
}

static REAL *NAME(slot_of)(const norm_job *j, int64_t slot, int64_t output) {
    REAL *slots = (REAL *)(void *)((char *)j->call->scratch + j->slots_at);
    return slots + (slot * j->call->dst_count + output) * j->width;
}

/* Adds the chunks of a wave to the slots of their leaves, and leaves in their tree, for a range of columns of one
 * output. */
static void NAME(leaf_slots_task)(void *user, int64_t index, int thread) {
    const norm_job *j = user;
    const int64_t n = j->width, ranges = (n + COLUMNS - 1) / COLUMNS;
    const int64_t output = index / ranges, begin = index % ranges * COLUMNS, count = an_smaller(n - begin, COLUMNS);
    (void)thread;
    for (int64_t chunk = 0; chunk < j->chunk_count; chunk++) {
        const leaf_chunk *c = &j->chunks[chunk];
        const REAL *sums = (const REAL *)j->call->scratch + (chunk * j->call->dst_count + output) * n + begin;
        REAL *restrict total = NAME(slot_of)(j, c->slot, output) + begin;
        if (!c->is_first)
            for (int64_t i = 0; i < count; i++) total[i] += sums[i];
        else if (c->joins == 0) /* no sum is -0, so beginning with 0 would change nothing */
            memcpy(total, sums, (size_t)count * sizeof *total);
        for (int k = 0; k < c->joins; k++) {
            REAL *restrict left = NAME(slot_of)(j, c->slot - k - 1, output) + begin;
            const REAL *right = k == 0 && c->is_first ? sums : NAME(slot_of)(j, c->slot - k, output) + begin;
            for (int64_t i = 0; i < count; i++) left[i] = left[i] + right[i];
        }
    }
}

static void NAME(leaf_total_task)(void *user, int64_t output, int thread) {
    const norm_job *j = user;
    const an_tensor *dst = &j->call->dst[output];
    (void)thread;
    NAME(an_row_store)(dst, 0, dst->strides[0], j->width, NAME(slot_of)(j, 0, output));
}
