/* Losses of one element and their slopes, for REAL. Included by portable.c through instantiate.h. */

/* `x` is src, `t` the target, `e` their difference, `d` diff_dst, `w` a weight */
#define LOSS(name, loss, slope)                                                                           \
    static void NAME(name)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {        \
        const REAL *x_row = src[0], *t_row = src[1];                                                      \
        (void)attributes;                                                                                 \
        AN_EACH_ELEMENT(i, n) {                                                                           \
            REAL x = x_row[i], t = t_row[i], e = x - t;                                                   \
            (void)e;                                                                                      \
            dst[i] = (loss);                                                                              \
        }                                                                                                 \
    }                                                                                                     \
    static void NAME(name##_diff)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) { \
        const REAL *d_row = src[0], *x_row = src[1], *t_row = src[2], *w_row = src[3];                    \
        (void)attributes;                                                                                 \
        if (w_row)                                                                                        \
            SLOPES(d_row[i] * w_row[i], slope)                                                            \
        else                                                                                              \
            SLOPES(d_row[i], slope)                                                                       \
    }
#define SLOPES(factor, slope)                                     \
    AN_EACH_ELEMENT(i, n) {                                       \
        REAL d = (factor), x = x_row[i], t = t_row[i], e = x - t; \
        (void)e;                                                  \
        dst[i] = d * (slope);                                     \
    }

/* A square up to delta, a line of slope delta beyond: with c the smaller of |e| and delta, c (|e| - c/2). */
static inline REAL NAME(huber)(REAL e, REAL delta) {
    REAL size = NAME(an_absolute)(e), c = size > delta ? delta : size;
    return c * (size - (REAL)0.5 * c);
}

static inline REAL NAME(clamped)(REAL e, REAL maximum) {
    REAL upper = e > maximum ? maximum : e;
    return upper < -maximum ? -maximum : upper;
}

/* -t log s(x) - (1 - t) log(1 - s(x)) with s the sigmoid, in the form that neither overflows nor cancels. */
static inline REAL NAME(logistic)(REAL x, REAL t) {
    return (x > 0 ? x : 0) - x * t + NAME(an_log1p)(NAME(an_exp)(-NAME(an_absolute)(x)));
}

#define DELTA ((REAL)((const an_huber_error_attributes *)attributes)->delta)
LOSS(squared_error, e *e, 2 * e)
LOSS(absolute_error, NAME(an_absolute)(e), (REAL)((e > 0) - (e < 0)))
LOSS(huber_error, NAME(huber)(e, DELTA), NAME(clamped)(e, DELTA))
LOSS(binary_cross_entropy, NAME(logistic)(x, t), 1 / (1 + NAME(an_exp)(-x)) - t)
#undef DELTA
#undef SLOPES
#undef LOSS

/* Elements from `begin` on, times their weights. */
static void NAME(weigh)(const job *j, int64_t begin, int64_t n, REAL *terms) {
    for (int64_t i = 0; i < n;) {
        const int64_t at = (begin + i) / j->each, end = an_smaller((at + 1) * j->each - begin, n);
        REAL load, w = *NAME(an_row_load)(j->weights, an_row_offset(j->weights, NO_AXIS, at), 1, 1, &load);
        for (; i < end; i++) terms[i] *= w;
    }
}

static void NAME(sum_chunk)(const job *j, int64_t chunk) {
    REAL buffers[2][AN_SUM_CHUNK], terms[AN_SUM_CHUNK];
    int64_t begin = chunk * AN_SUM_CHUNK, n = an_smaller(j->count - begin, AN_SUM_CHUNK);
    if (j->leaves) {
        const an_leaf_chunk part = an_leaf_chunk_find(j->leaves, j->count / j->leaves->samples, chunk);
        if (part.count == 0) return;
        begin = part.begin;
        n = part.count;
    }
    const REAL *src[] = {NAME(an_range_load)(&j->src, 0, begin, n, buffers[0]),
                         NAME(an_range_load)(&j->targets, 0, begin, n, buffers[1])};
    j->NAME(loss)(n, src, terms, j->call->attributes);
    if (j->weights) NAME(weigh)(j, begin, n, terms);
    ((REAL *)j->call->scratch)[chunk] = NAME(an_chunk_sum)(terms, n);
}

static REAL NAME(sum_partials)(const job *j, int64_t first, int64_t chunks) {
    const REAL *partials = (const REAL *)j->call->scratch + first;
    NAME(an_sum_tree) tree;
    tree.chunks = 0;
    for (int64_t i = 0; i < chunks; i++) NAME(an_sum_tree_push)(&tree, partials[i]);
    return NAME(an_sum_tree_total)(&tree);
}

static REAL NAME(sum_leaves)(const job *j) {
    REAL sums[AN_TREE_DEPTH];
    sums[0] = 0;
    an_leaf_walk w = an_leaf_walk_begin(j->leaves, j->count);
    while (an_leaf_walk_next(&w)) {
        const int64_t first = an_leaf_chunk_number(w.leaf, w.begin);
        sums[w.slot] = NAME(sum_partials)(j, first, an_chunks_of(w.end - w.begin));
        for (int i = 0; i < w.joins; i++) sums[w.slot - i - 1] = sums[w.slot - i - 1] + sums[w.slot - i];
    }
    return sums[0];
}

static void NAME(sum_chunks)(const job *j) {
    const REAL total = j->leaves ? NAME(sum_leaves)(j) : NAME(sum_partials)(j, 0, j->chunks);
    NAME(an_row_store)(&j->call->dst[0], 0, 1, 1, &total);
}
