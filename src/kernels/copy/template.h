/* gather_diff for REAL. Included by portable.c through instantiate.h. */

/* Adds what elements begin … end - 1 of the indices gathered to `sums`, which it sets to zero first. False: an
 * index is wrong. */
static bool NAME(add_gathered)(gather_job *j, const int64_t *at, int64_t begin, int64_t end, REAL *sums) {
    const an_tensor *diff_dst = &j->call->src[0], *indices = &j->call->src[1];
    const int64_t diff_at = offset_of(diff_dst, at), index_at = offset_of(indices, at);
    const int axis = j->axis;
    REAL term;
    for (int64_t i = 0; i < j->entries; i++) sums[i] = 0;
    for (int64_t i = begin; i < end; i++) {
        int64_t index = an_load_index(indices, index_at + i * indices->strides[axis]);
        if (!check_index(j, index, at, i)) return false;
        sums[index] += *NAME(an_row_load)(diff_dst, diff_at + i * diff_dst->strides[axis], 1, 1, &term);
    }
    return true;
}

/* The same for all indices, by leaves: `buffer` has a row for each sum that waits in the tree, and the first gets
 * the total. */
static bool NAME(add_gathered_leaves)(gather_job *j, const int64_t *at, const an_leaf_cut *leaves, REAL *buffer) {
    const int64_t size = j->entries;
    an_leaf_walk w = an_leaf_walk_begin(leaves, j->call->src[1].dims[j->axis]);
    while (an_leaf_walk_next(&w)) {
        REAL *top = buffer + w.slot * size;
        if (!NAME(add_gathered)(j, at, w.begin, w.end, top)) return false;
        for (int k = 0; k < w.joins; k++, top -= size)
            for (int64_t i = 0; i < size; i++) top[i - size] = top[i - size] + top[i];
    }
    return true;
}

/* One row of diff_src: what its elements were gathered to, added in the order of the indices. */
static void NAME(gather_diff_row)(gather_job *j, int64_t row, REAL *buffer) {
    const an_tensor *indices = &j->call->src[1], *diff_src = &j->call->dst[0];
    const an_leaf_cut *leaves = an_call_leaves(j->call);
    const int axis = j->axis;
    int64_t at[AN_MAX_DIMS] = {0}, size = diff_src->dims[axis], stride = diff_src->strides[axis];
    row_coordinates(diff_src, axis, row, at);
    int64_t offset = offset_of(diff_src, at);
    REAL *sums = leaves ? buffer : NAME(an_row_target)(diff_src, offset, stride, buffer);
    if (!is_inside(indices, axis, at)) /* indices may have fewer rows than src */
        for (int64_t i = 0; i < size; i++) sums[i] = 0;
    else if (leaves ? !NAME(add_gathered_leaves)(j, at, leaves, sums)
                    : !NAME(add_gathered)(j, at, 0, indices->dims[axis], sums))
        return;
    NAME(an_row_store)(diff_src, offset, stride, size, sums);
}
