/* Rows of a table, for REAL. Included by portable.c through instantiate.h. */

static void NAME(embedding_task)(void *user, int64_t index, int thread) {
    const embedding_job *j = user;
    const an_tensor *table = &j->call->src[1], *dst = &j->call->dst[0];
    const int axis = dst->ndims - 1;
    const int64_t width = dst->dims[axis], end = task_end(j, index);
    REAL buffer[COLUMNS];
    (void)thread;
    for (int64_t position = index * j->positions_a_task; position < end; position++) {
        const int64_t from = index_at(j, position) * table->strides[0], to = an_row_offset(dst, axis, position);
        for (int64_t begin = 0; begin < width; begin += COLUMNS) {
            const int64_t n = width - begin < COLUMNS ? width - begin : COLUMNS;
            const REAL *row = NAME(an_row_load)(table, from + begin * table->strides[1], table->strides[1], n, buffer);
            NAME(an_row_store)(dst, to + begin * dst->strides[axis], dst->strides[axis], n, row);
        }
    }
}

/* One range of columns of the whole table: every row is summed in the order in which its index occurs. */
static void NAME(embedding_diff_task)(void *user, int64_t index, int thread) {
    const embedding_job *j = user;
    const an_tensor *diff_dst = &j->call->src[0], *diff_table = &j->call->dst[0];
    const int axis = diff_dst->ndims - 1;
    const int64_t begin = index * COLUMNS, width = diff_table->dims[1], stride = diff_table->strides[1];
    const int64_t n = width - begin < COLUMNS ? width - begin : COLUMNS;
    REAL diff_buffer[COLUMNS], sum_buffer[COLUMNS];
    (void)thread;
    for (int64_t position = 0; position < j->positions; position++) {
        const int64_t from = an_row_offset(diff_dst, axis, position) + begin * diff_dst->strides[axis];
        const int64_t to = index_at(j, position) * diff_table->strides[0] + begin * stride;
        const REAL *diff = NAME(an_row_load)(diff_dst, from, diff_dst->strides[axis], n, diff_buffer);
        const REAL *before = NAME(an_row_load)(diff_table, to, stride, n, sum_buffer);
        REAL *after = NAME(an_row_target)(diff_table, to, stride, sum_buffer);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) after[i] = before[i] + diff[i];
        NAME(an_row_store)(diff_table, to, stride, n, after);
    }
}
