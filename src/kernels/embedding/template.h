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

static void NAME(begin_sum)(int64_t n, const REAL *diff, REAL *sum) {
#pragma omp simd
    for (int64_t k = 0; k < n; k++) sum[k] = (REAL)0 + diff[k];
}

static void NAME(add)(int64_t n, const REAL *diff, REAL *sum) {
#pragma omp simd
    for (int64_t k = 0; k < n; k++) sum[k] = sum[k] + diff[k];
}

/* begin_sum and add, with a sum that is nowhere but in registers; add and add, the same. */
static void NAME(add_begun)(int64_t n, const REAL *diff, REAL *lower) {
#pragma omp simd
    for (int64_t k = 0; k < n; k++) lower[k] = lower[k] + ((REAL)0 + diff[k]);
}

static void NAME(add_both)(int64_t n, const REAL *diff, const REAL *sum, REAL *lower) {
#pragma omp simd
    for (int64_t k = 0; k < n; k++) lower[k] = lower[k] + (sum[k] + diff[k]);
}

/* sum = the addends begin … end - 1, from zero; n columns from `column` on. With `lower`, lower += sum at once, and
 * what is in sum means nothing. */
static void NAME(add_up)(const embedding_job *j, int64_t begin, int64_t end, int64_t column, int64_t n, REAL *sum,
                         REAL *lower) {
    const an_tensor *diff_dst = &j->call->src[0];
    const int64_t stride = diff_dst->strides[diff_dst->ndims - 1];
    REAL buffer[COLUMNS];
    const REAL *const dense = NAME(an_row_target)(diff_dst, column, stride, NULL); /* not to ask for each addend */
    for (int64_t i = begin; i < end; i++) {
        const int64_t from = j->addends[i].from;
        const REAL *diff =
            dense ? dense + from : NAME(an_row_load)(diff_dst, from + column * stride, stride, n, buffer);
        const bool is_first = i == begin, is_last = lower && i + 1 == end;
        if (is_first && is_last)
            NAME(add_begun)(n, diff, lower);
        else if (is_last)
            NAME(add_both)(n, diff, sum, lower);
        else if (is_first)
            NAME(begin_sum)(n, diff, sum);
        else
            NAME(add)(n, diff, sum);
    }
}

/* sum = the addends of one row from `begin` on: leaf by leaf, then the leaves in their tree. Returns where they end. */
static int64_t NAME(add_row)(const embedding_job *j, int64_t begin, int64_t column, int64_t n, REAL *sum) {
    const addend *a = j->addends;
    REAL slots[MOST_SLOTS][COLUMNS], *upper; /* slot 0 is sum */
    an_tree tree;
    tree.count = 0;
    for (int64_t i = begin, end;; i = end) {
        end = addends_end(j, i);
        const bool is_last = end == j->positions || a[end].row != a[begin].row;
        const int64_t next = is_last ? INT64_MAX : a[end].leaf;
        REAL *const slot = tree.count ? slots[tree.count] : sum, *lower = tree.count > 1 ? slots[tree.count - 1] : sum;
        an_tree_push(&tree, a[i].leaf);
        if (!an_tree_must_add(&tree, next)) lower = NULL;
        NAME(add_up)(j, i, end, column, n, slot, lower);
        if (lower) an_tree_added(&tree);
        for (upper = lower; an_tree_must_add(&tree, next); upper = lower) {
            an_tree_added(&tree);
            lower = tree.count > 1 ? slots[tree.count - 1] : sum;
            NAME(add)(n, upper, lower);
        }
        if (is_last) return end;
    }
}

/* One range of columns of all rows that a position names. */
static void NAME(embedding_diff_task)(void *user, int64_t index, int thread) {
    const embedding_job *j = user;
    const an_tensor *diff_table = &j->call->dst[0];
    const int64_t column = index * COLUMNS, width = diff_table->dims[1], stride = diff_table->strides[1];
    const int64_t n = width - column < COLUMNS ? width - column : COLUMNS;
    REAL buffer[COLUMNS];
    (void)thread;
    for (int64_t i = 0; i < j->positions;) {
        const int64_t to = j->addends[i].row * diff_table->strides[0] + column * stride;
        REAL *const sum = NAME(an_row_target)(diff_table, to, stride, buffer);
        i = NAME(add_row)(j, i, column, n, sum);
        NAME(an_row_store)(diff_table, to, stride, n, sum);
    }
}
