/* Rows of a weight with the change of an adapter, for REAL. Included by row_factors.c through instantiate.h. */

/* What columns `begin` and following of a row are with the change. The terms of an element are added one after the
 * other, however many are taken at once. */
static void NAME(change)(const factors_job *j, int64_t row, int64_t begin, int64_t count, REAL *changed) {
    const an_tensor *weight = &j->src[WEIGHT], *first = &j->src[FIRST], *second = &j->src[SECOND];
    const int64_t rank = first->dims[0], from = row * weight->strides[0] + begin * weight->strides[1];
    const REAL scale = (REAL)j->scale;
    REAL buffers[AT_ONCE][AN_SUM_CHUNK], one;
    const REAL *loaded = NAME(an_row_load)(weight, from, weight->strides[1], count, changed);
    if (loaded != changed) memcpy(changed, loaded, (size_t)count * sizeof *changed);
    for (int64_t k = 0; k < rank; k += AT_ONCE) {
        const int64_t some = an_smaller(rank - k, AT_ONCE);
        const REAL *a[AT_ONCE];
        REAL b[AT_ONCE];
        for (int64_t i = 0; i < some; i++) {
            const int64_t at = (k + i) * first->strides[0] + begin * first->strides[1];
            a[i] = NAME(an_row_load)(first, at, first->strides[1], count, buffers[i]);
            b[i] = *NAME(an_row_load)(second, row * second->strides[0] + (k + i) * second->strides[1], 1, 1, &one);
            b[i] *= scale;
        }
        if (some == AT_ONCE) {
#pragma omp simd
            for (int64_t c = 0; c < count; c++)
                changed[c] = (((changed[c] + b[0] * a[0][c]) + b[1] * a[1][c]) + b[2] * a[2][c]) + b[3] * a[3][c];
            continue;
        }
        for (int64_t i = 0; i < some; i++)
#pragma omp simd
            for (int64_t c = 0; c < count; c++) changed[c] = changed[c] + b[i] * a[i][c];
    }
}

static REAL NAME(norm)(const factors_job *j, int64_t row) {
    const int64_t columns = j->src[WEIGHT].dims[1];
    REAL changed[AN_SUM_CHUNK];
    NAME(an_sum_tree) tree;
    tree.chunks = 0;
    for (int64_t begin = 0; begin < columns; begin += AN_SUM_CHUNK) {
        const int64_t count = an_smaller(columns - begin, AN_SUM_CHUNK);
        NAME(change)(j, row, begin, count, changed);
#pragma omp simd
        for (int64_t c = 0; c < count; c++) changed[c] *= changed[c];
        NAME(an_sum_tree_push)(&tree, NAME(an_chunk_sum)(changed, count));
    }
    return NAME(root)(NAME(an_sum_tree_total)(&tree));
}

static void NAME(rows_task)(void *user, int64_t index, int thread) {
    const factors_job *j = user;
    const an_tensor *magnitude = &j->src[MAGNITUDE];
    const int64_t begin = index * j->rows_a_task, end = an_smaller(begin + j->rows_a_task, j->rows);
    (void)thread;
    for (int64_t row = begin; row < end; row++) {
        REAL own;
        const REAL *m = NAME(an_row_load)(magnitude, row * magnitude->strides[0], 1, 1, &own);
        const REAL found = NAME(norm)(j, row), norm = found == 0 ? 1 : found, factor = found == 0 ? 1 : *m / found;
        NAME(an_row_store)(&j->dst[0], row * j->dst[0].strides[0], 1, 1, &factor);
        NAME(an_row_store)(&j->dst[1], row * j->dst[1].strides[0], 1, 1, &norm);
    }
}
