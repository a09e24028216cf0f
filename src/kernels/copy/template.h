/* gather_diff for REAL. Included by portable.c through instantiate.h. */

/* One row of diff_src: what its elements were gathered to, added in the order of the indices. */
static void NAME(gather_diff_row)(gather_job *j, int64_t row, REAL *buffer) {
    const an_tensor *diff_dst = &j->call->src[0], *indices = &j->call->src[1], *diff_src = &j->call->dst[0];
    int axis = j->axis;
    int64_t at[AN_MAX_DIMS] = {0}, size = diff_src->dims[axis], stride = diff_src->strides[axis];
    row_coordinates(diff_src, axis, row, at);
    int64_t offset = offset_of(diff_src, at);
    REAL *sums = NAME(an_row_target)(diff_src, offset, stride, buffer), term;
    for (int64_t i = 0; i < size; i++) sums[i] = 0;
    if (is_inside(indices, axis, at)) { /* indices may have fewer rows than src */
        int64_t diff_at = offset_of(diff_dst, at), index_at = offset_of(indices, at);
        for (int64_t i = 0; i < indices->dims[axis]; i++) {
            int64_t index = an_load_index(indices, index_at + i * indices->strides[axis]);
            if (!check_index(j, index, at, i)) return;
            sums[index] += *NAME(an_row_load)(diff_dst, diff_at + i * diff_dst->strides[axis], 1, 1, &term);
        }
    }
    NAME(an_row_store)(diff_src, offset, stride, size, sums);
}
