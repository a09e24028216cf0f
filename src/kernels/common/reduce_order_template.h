/* The order of sums, for REAL. Included by reduce_order.c through instantiate.h. */

void NAME(an_sum_tree_push)(NAME(an_sum_tree) * tree, REAL chunk) {
    int level = 0;
    for (uint64_t full = tree->chunks; full & 1; full >>= 1) chunk = tree->levels[level++] + chunk;
    tree->levels[level] = chunk;
    tree->chunks++;
}

REAL NAME(an_sum_tree_total)(const NAME(an_sum_tree) * tree) {
    REAL total = 0;
    bool some = false;
    for (int level = 0; level < AN_SUM_LEVELS; level++) {
        if (!(tree->chunks >> level & 1)) continue;
        total = some ? tree->levels[level] + total : tree->levels[level];
        some = true;
    }
    return total;
}

static inline void NAME(add_lanes)(const REAL *src, int64_t n, REAL *lanes) {
    int64_t whole = n - n % AN_SUM_LANES;
    for (int l = 0; l < AN_SUM_LANES; l++) lanes[l] = 0;
    for (int64_t i = 0; i < whole; i += AN_SUM_LANES)
        for (int l = 0; l < AN_SUM_LANES; l++) lanes[l] += src[i + l];
    for (int64_t i = whole; i < n; i++) lanes[i - whole] += src[i];
}

static inline REAL NAME(lanes_sum)(const REAL *lanes) {
    REAL sum = lanes[0];
    for (int l = 1; l < AN_SUM_LANES; l++) sum += lanes[l];
    return sum;
}

REAL NAME(an_chunk_sum)(const REAL *src, int64_t n) {
    REAL lanes[AN_SUM_LANES];
    NAME(add_lanes)(src, n, lanes);
    return NAME(lanes_sum)(lanes);
}

REAL NAME(an_chunk_max)(const REAL *src, int64_t n) {
    REAL lanes[AN_SUM_LANES], largest;
    int64_t whole = n - n % AN_SUM_LANES;
    for (int l = 0; l < AN_SUM_LANES; l++) lanes[l] = src[0];
    for (int64_t i = 0; i < whole; i += AN_SUM_LANES)
        for (int l = 0; l < AN_SUM_LANES; l++) lanes[l] = NAME(an_larger)(lanes[l], src[i + l]);
    for (int64_t i = whole; i < n; i++) lanes[i - whole] = NAME(an_larger)(lanes[i - whole], src[i]);
    largest = lanes[0];
    for (int l = 1; l < AN_SUM_LANES; l++) largest = NAME(an_larger)(largest, lanes[l]);
    return largest;
}

REAL NAME(an_row_sum)(const REAL *src, int64_t n) {
    NAME(an_sum_tree) tree;
    tree.chunks = 0;
    for (int64_t i = 0; i < n; i += AN_SUM_CHUNK)
        NAME(an_sum_tree_push)(&tree, NAME(an_chunk_sum)(src + i, an_smaller(n - i, AN_SUM_CHUNK)));
    return NAME(an_sum_tree_total)(&tree);
}

void NAME(an_row_sums)(int64_t rows, const REAL *const *src, int64_t n, REAL *sums) {
    REAL lanes[AN_SUM_ROWS][AN_SUM_LANES];
    if (n > AN_SUM_CHUNK) {
        for (int64_t r = 0; r < rows; r++) sums[r] = NAME(an_row_sum)(src[r], n);
        return;
    }
    for (int64_t r = 0; r < rows; r++) NAME(add_lanes)(src[r], n, lanes[r]);
    for (int64_t r = 0; r < rows; r++) sums[r] = NAME(lanes_sum)(lanes[r]);
}

REAL NAME(an_row_max)(const REAL *src, int64_t n) {
    REAL largest = src[0];
    for (int64_t i = 0; i < n; i += AN_SUM_CHUNK)
        largest = NAME(an_larger)(largest, NAME(an_chunk_max)(src + i, an_smaller(n - i, AN_SUM_CHUNK)));
    return largest;
}

const REAL *NAME(an_range_load)(const an_tensor *merged, int64_t base, int64_t begin, int64_t n, REAL *buffer) {
    int last = merged->ndims - 1;
    if (last < 0) return NAME(an_row_load)(merged, base, 1, 1, buffer); /* one element */
    int64_t size = merged->dims[last], stride = merged->strides[last], row = begin / size, column = begin % size;
    int64_t offset = base + an_row_offset(merged, last, row) + column * stride;
    if (column + n <= size) return NAME(an_row_load)(merged, offset, stride, n, buffer);
    for (int64_t done = 0; done < n;) {
        int64_t part = an_smaller(size - column, n - done);
        const REAL *loaded = NAME(an_row_load)(merged, offset, stride, part, buffer + done);
        if (loaded != buffer + done) memcpy(buffer + done, loaded, (size_t)part * sizeof *buffer);
        done += part;
        column = 0;
        offset = base + (done < n ? an_row_offset(merged, last, ++row) : 0);
    }
    return buffer;
}
