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
