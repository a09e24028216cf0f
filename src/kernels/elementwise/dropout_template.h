/* Rows of dropout, for REAL. Included by dropout_portable.c through instantiate.h. */

/* Elements begin … begin + n - 1 of a row, counted through all samples. dst may be src. */
static void NAME(dropout_piece)(const dropout_job *j, int64_t row, int64_t begin, int64_t n) {
    const an_tensor *src = &j->call->src[0], *dst = &j->call->dst[0];
    const int axis = j->axis;
    const int64_t src_stride = axis < 0 ? 1 : src->strides[axis], dst_stride = axis < 0 ? 1 : dst->strides[axis];
    const int64_t src_offset = an_row_offset(src, axis, row) + begin * src_stride;
    const int64_t dst_offset = an_row_offset(dst, axis, row) + begin * dst_stride;
    const REAL factor = (REAL)(1 / (1 - j->rate));
    REAL src_buffer[PIECE], dst_buffer[PIECE];
    uint32_t words[PIECE];
    an_random_block_u32(key_of(j, row / j->rows), (uint64_t)(row % j->rows * j->width + begin), n, words);
    const REAL *from = NAME(an_row_load)(src, src_offset, src_stride, n, src_buffer);
    REAL *to = NAME(an_row_target)(dst, dst_offset, dst_stride, dst_buffer);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) to[i] = from[i] * (words[i] >= j->threshold ? factor : 0);
    NAME(an_row_store)(dst, dst_offset, dst_stride, n, to);
}

static void NAME(dropout_task)(void *user, int64_t index, int thread) {
    const dropout_job *j = user;
    const int64_t first = index * j->rows_a_task;
    const int64_t end = first + j->rows_a_task < j->all_rows ? first + j->rows_a_task : j->all_rows;
    (void)thread;
    for (int64_t row = first; row < end; row++)
        for (int64_t begin = 0; begin < j->width; begin += PIECE)
            NAME(dropout_piece)(j, row, begin, j->width - begin < PIECE ? j->width - begin : PIECE);
}
