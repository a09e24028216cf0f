/* Reductions for REAL. Included by portable.c through instantiate.h. */

static void NAME(put_output)(const job *j, int64_t output, REAL value) {
    if (j->kind == MEAN) value /= (REAL)j->count;
    NAME(an_row_store)(j->dst, an_row_offset(j->dst, NO_AXIS, output), 1, 1, &value);
}

static void NAME(put_chunk)(const job *j, int64_t output, int64_t chunk, REAL value) {
    if (j->chunks > 1)
        ((REAL *)j->partials)[output * j->chunks + chunk] = value;
    else
        NAME(put_output)(j, output, value);
}

/* One chunk of one output. */
static void NAME(reduce_row)(const job *j, int64_t output, int64_t chunk) {
    REAL buffer[AN_SUM_CHUNK];
    int64_t begin = chunk * AN_SUM_CHUNK, n = an_smaller(j->count - begin, AN_SUM_CHUNK);
    int64_t base = an_row_offset(&j->kept, NO_AXIS, output);
    const REAL *row = NAME(an_range_load)(&j->reduced, base, begin, n, buffer);
    NAME(put_chunk)(j, output, chunk, j->kind == MAX ? NAME(an_chunk_max)(row, n) : NAME(an_chunk_sum)(row, n));
}

/* One chunk of neighbouring outputs: what an_chunk_sum and an_chunk_max do for one, in a walk over rows of them. */
static void NAME(reduce_columns)(const job *j, int64_t block, int64_t chunk) {
    REAL lanes[AN_SUM_LANES][COLUMNS] = {0}, buffer[COLUMNS];
    int last = j->kept.ndims - 1;
    int64_t width = j->kept.dims[last], stride = j->kept.strides[last];
    int64_t row = block / j->blocks, column = block % j->blocks * COLUMNS,
            columns = an_smaller(width - column, COLUMNS);
    int64_t base = an_row_offset(&j->kept, last, row) + column * stride;
    int64_t begin = chunk * AN_SUM_CHUNK, n = an_smaller(j->count - begin, AN_SUM_CHUNK);
    for (int64_t i = 0; i < n; i++) {
        int64_t offset = base + an_row_offset(&j->reduced, NO_AXIS, begin + i);
        const REAL *values = NAME(an_row_load)(&j->reduced, offset, stride, columns, buffer);
        REAL *lane = lanes[i % AN_SUM_LANES];
        if (j->kind != MAX) {
            for (int64_t c = 0; c < columns; c++) lane[c] += values[c];
            continue;
        }
        if (i == 0) /* no number is below all others and a NaN besides: every lane begins with element 0 */
            for (int l = 0; l < AN_SUM_LANES; l++) memcpy(lanes[l], values, (size_t)columns * sizeof *values);
        for (int64_t c = 0; c < columns; c++) lane[c] = NAME(an_larger)(lane[c], values[c]);
    }
    for (int l = 1; l < AN_SUM_LANES; l++) {
        if (j->kind == MAX)
            for (int64_t c = 0; c < columns; c++) lanes[0][c] = NAME(an_larger)(lanes[0][c], lanes[l][c]);
        else
            for (int64_t c = 0; c < columns; c++) lanes[0][c] += lanes[l][c];
    }
    for (int64_t c = 0; c < columns; c++) NAME(put_chunk)(j, row * width + column + c, chunk, lanes[0][c]);
}

static void NAME(reduce_unit)(const job *j, int64_t unit) {
    if (j->by_columns)
        NAME(reduce_columns)(j, unit / j->chunks, unit % j->chunks);
    else
        NAME(reduce_row)(j, unit / j->chunks, unit % j->chunks);
}

/* ---- by leaves ---- */

/* At most a chunk of rows, each `distance` from the one before, that lie dense in the compute type. What
 * reduce_columns does, but lane after lane, so that only one lane is in use at a time and stays in registers.
 * `columns` is a constant where this is inlined. */
static inline __attribute__((always_inline)) void NAME(add_strip)(const REAL *restrict rows, int64_t distance,
                                                                  int64_t n, int64_t columns, REAL *restrict sums) {
    REAL total[COLUMNS], lane[COLUMNS];
    for (int64_t c = 0; c < columns; c++) total[c] = 0; /* no lane is -0, so beginning with 0 changes nothing */
    if (n <= AN_SUM_LANES) {                            /* a row is a lane */
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < columns; c++) total[c] += rows[i * distance + c];
    } else {
        for (int64_t l = 0; l < AN_SUM_LANES; l++) {
            for (int64_t c = 0; c < columns; c++) lane[c] = 0;
            for (int64_t i = l; i < n; i += AN_SUM_LANES)
                for (int64_t c = 0; c < columns; c++) lane[c] += rows[i * distance + c];
            for (int64_t c = 0; c < columns; c++) total[c] += lane[c];
        }
    }
    for (int64_t c = 0; c < columns; c++) sums[c] = total[c];
}

static void NAME(add_dense_rows)(const REAL *rows, int64_t distance, int64_t n, int64_t columns, REAL *sums) {
    int64_t c = 0;
    for (; c + STRIP <= columns; c += STRIP) NAME(add_strip)(rows + c, distance, n, STRIP, sums + c);
    if (c < columns) NAME(add_strip)(rows + c, distance, n, columns - c, sums + c);
}

/* Elements begin … begin + n - 1, at most a chunk, of the outputs of a block. */
static void NAME(add_chunk)(const job *j, const output_block *b, int64_t begin, int64_t n, REAL *sums) {
    REAL buffer[AN_SUM_CHUNK];
    if (!j->by_columns) {
        sums[0] = NAME(an_chunk_sum)(NAME(an_range_load)(&j->reduced, b->base, begin, n, buffer), n);
        return;
    }
    const int64_t stride = j->kept.strides[j->kept.ndims - 1];
    REAL lanes[AN_SUM_LANES][BLOCK_BYTES / sizeof(REAL)];
    if (j->reduced.ndims == 1 && stride == 1 && j->reduced.dtype == (j->f64 ? AN_DTYPE_F64 : AN_DTYPE_F32)) {
        const int64_t distance = j->reduced.strides[0];
        NAME(add_dense_rows)((const REAL *)j->reduced.data + b->base + begin * distance, distance, n, b->columns, sums);
        return;
    }
    const int64_t used = an_smaller(n, AN_SUM_LANES);
    memset(lanes, 0, (size_t)used * sizeof lanes[0]);
    for (int64_t i = 0; i < n; i++) {
        const int64_t offset = b->base + an_row_offset(&j->reduced, NO_AXIS, begin + i);
        const REAL *values = NAME(an_row_load)(&j->reduced, offset, stride, b->columns, buffer);
        REAL *lane = lanes[i % AN_SUM_LANES];
        for (int64_t c = 0; c < b->columns; c++) lane[c] += values[c];
    }
    memcpy(sums, lanes[0], (size_t)b->columns * sizeof *sums);
    for (int64_t l = 1; l < used; l++)
        for (int64_t c = 0; c < b->columns; c++) sums[c] += lanes[l][c];
}

/* Adds the upper of the two sums on top of a stack to the lower, `joins` times. What the top is then. */
static int NAME(join)(REAL (*stack)[BLOCK_BYTES / sizeof(REAL)], int top, int joins, int64_t columns) {
    for (; joins > 0; joins--, top--)
        for (int64_t c = 0; c < columns; c++) stack[top - 1][c] = stack[top - 1][c] + stack[top][c];
    return top;
}

static void NAME(put_piece)(const job *j, const output_block *b, int64_t piece, const REAL *sums) {
    if (j->pieces > 1)
        memcpy((REAL *)j->partials + piece * j->outputs + b->first, sums, (size_t)b->columns * sizeof *sums);
    else
        for (int64_t c = 0; c < b->columns; c++) NAME(put_output)(j, b->first + c, sums[c]);
}

/* A chunk of a leaf, or a group of leaves; the chunks of a leaf lie on the stack above the sums of the leaves
 * before it. */
static void NAME(add_piece)(const job *j, int64_t unit) {
    const int64_t piece = unit % j->pieces, samples = j->leaves->samples, *ends = j->leaves->ends;
    const output_block b = block_of(j, unit / j->pieces);
    REAL stack[AN_TREE_DEPTH][BLOCK_BYTES / sizeof(REAL)];
    if (j->groups == j->leaves) {
        const an_leaf_chunk chunk = an_leaf_chunk_find(j->leaves, j->count / samples, piece);
        if (chunk.count == 0) return;
        NAME(add_chunk)(j, &b, chunk.begin, chunk.count, stack[0]);
        NAME(put_piece)(j, &b, piece, stack[0]);
        return;
    }
    const int64_t first = piece << j->group_level;
    const an_leaf_cut group = {an_smaller((piece + 1) << j->group_level, j->leaves->count), samples, ends};
    an_leaf_walk w = an_leaf_walk_from(&group, j->count, first);
    while (an_leaf_walk_next(&w)) {
        const int64_t chunks = an_chunks_of(w.end - w.begin);
        int top = w.slot;
        for (int64_t i = 0; i < chunks; i++, top++) {
            const int64_t begin = w.begin + i * AN_SUM_CHUNK;
            NAME(add_chunk)(j, &b, begin, an_smaller(w.end - begin, AN_SUM_CHUNK), stack[top]);
            top = NAME(join)(stack, top, an_chunk_joins(i, chunks), b.columns);
        }
        NAME(join)(stack, w.slot, w.joins, b.columns);
    }
    if (w.tree.count > 0) NAME(put_piece)(j, &b, piece, stack[0]);
}

/* The pieces of up to block_columns outputs. */
static void NAME(combine_pieces)(const job *j, int64_t unit) {
    const output_block b = {.first = unit * j->block_columns,
                            .columns = an_smaller(j->outputs - unit * j->block_columns, j->block_columns)};
    REAL stack[AN_TREE_DEPTH][BLOCK_BYTES / sizeof(REAL)];
    memset(stack[0], 0, sizeof stack[0]);
    an_leaf_walk w = an_leaf_walk_begin(j->groups, j->count);
    while (an_leaf_walk_next(&w)) {
        const bool by_chunks = j->groups == j->leaves;
        const int64_t chunks = by_chunks ? an_chunks_of(w.end - w.begin) : 1;
        const int64_t piece = by_chunks ? an_leaf_chunk_number(w.leaf, w.begin) : w.leaf;
        int top = w.slot;
        for (int64_t i = 0; i < chunks; i++, top++) {
            const REAL *sums = (const REAL *)j->partials + (piece + i) * j->outputs + b.first;
            memcpy(stack[top], sums, (size_t)b.columns * sizeof *sums);
            top = NAME(join)(stack, top, an_chunk_joins(i, chunks), b.columns);
        }
        NAME(join)(stack, w.slot, w.joins, b.columns);
    }
    for (int64_t c = 0; c < b.columns; c++) NAME(put_output)(j, b.first + c, stack[0][c]);
}

/* The chunks of one output. */
static void NAME(combine_chunks)(const job *j, int64_t output) {
    const REAL *partials = (const REAL *)j->partials + output * j->chunks;
    NAME(an_sum_tree) tree;
    tree.chunks = 0;
    if (j->kind == MAX) {
        NAME(put_output)(j, output, NAME(an_row_max)(partials, j->chunks));
        return;
    }
    for (int64_t i = 0; i < j->chunks; i++) NAME(an_sum_tree_push)(&tree, partials[i]);
    NAME(put_output)(j, output, NAME(an_sum_tree_total)(&tree));
}

static void NAME(mean_diff)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {
    REAL count = (REAL) * (const int64_t *)attributes;
    const REAL *diff_dst = src[0];
    AN_EACH_ELEMENT(i, n) dst[i] = diff_dst[i] / count;
}

/* What each of the elements that are the maximum of an output gets. */
static void NAME(max_share)(const job *j, int64_t output) {
    const an_tensor *diff_dst = &j->call->src[0], *dst = &j->call->src[2];
    REAL buffer[AN_SUM_CHUNK], diff, largest;
    int64_t base = an_row_offset(&j->kept, NO_AXIS, output), ties = 0;
    diff = *NAME(an_row_load)(diff_dst, an_row_offset(diff_dst, NO_AXIS, output), 1, 1, buffer);
    largest = *NAME(an_row_load)(dst, an_row_offset(dst, NO_AXIS, output), 1, 1, buffer);
    for (int64_t begin = 0; begin < j->count; begin += AN_SUM_CHUNK) {
        int64_t n = an_smaller(j->count - begin, AN_SUM_CHUNK);
        const REAL *row = NAME(an_range_load)(&j->reduced, base, begin, n, buffer);
        for (int64_t i = 0; i < n; i++) ties += row[i] == largest;
    }
    ((REAL *)j->partials)[output] = diff / (REAL)ties;
}

/* share, src, dst → diff_src */
static void NAME(max_diff)(int64_t n, const REAL *const *src, REAL *diff_src, const void *attributes) {
    const REAL *share = src[0], *value = src[1], *largest = src[2];
    (void)attributes;
    AN_EACH_ELEMENT(i, n) diff_src[i] = value[i] == largest[i] ? share[i] : 0;
}
