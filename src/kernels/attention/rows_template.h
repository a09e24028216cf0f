/* Rows of scores, for REAL. Included by rows.h through instantiate.h. */

/* Hides the keys of a row's LANES columns from column i on that are not seen. */
static inline void NAME(hide)(REAL *row, int64_t i, an_tokens seen) {
    const int64_t begin = seen.begin - i, end = begin + seen.count;
    NAME(store)(row + i, NAME(only_lanes)(NAME(load)(row + i), begin, end, -NAME(infinity)()));
}

/* Turns products q·k into scores but for a factor that it returns: -inf where a key is hidden. */
static inline REAL NAME(finish_scores)(const an_attention_job *j, const an_key_tile *tile, int64_t query,
                                       an_tokens columns, REAL *row) {
    const REAL scale = (REAL)j->attributes->scale;
    const an_tokens seen = an_seen_in_tile(j, tile->keys, query);
    const int64_t end = columns.begin + columns.count, rest = (seen.begin + seen.count) / NAME(LANES) * NAME(LANES);
    for (int64_t i = columns.begin; i < seen.begin; i += NAME(LANES)) NAME(hide)(row, i, seen);
    for (int64_t i = rest > columns.begin ? rest : columns.begin; i < end; i += NAME(LANES)) NAME(hide)(row, i, seen);
    row += seen.begin;
    if (j->documents) {
        const int64_t own = an_document_at(j, tile->at.batch, query), *documents = tile->documents + seen.begin;
        for (int64_t i = 0; i < seen.count; i++) row[i] = documents[i] == own ? row[i] : -NAME(infinity)();
    }
    if (!j->mask) return scale;
    REAL buffer[AN_ATTENTION_TILE];
    const int64_t stride = j->mask_strides[3], first = tile->keys.begin + seen.begin;
    const int64_t offset = an_mask_offset(j, tile->at, query) + first * stride;
    const REAL *mask = NAME(an_row_load)(j->mask, offset, stride, seen.count, buffer);
    for (int64_t i = 0; i < seen.count; i++) row[i] = row[i] * scale + mask[i];
    return 1;
}

/* What dropout makes of the probabilities in columns: 0 or 1 / (1 - rate). */
static inline void NAME(dropout_factors)(const an_attention_job *j, const an_key_tile *tile, int64_t query,
                                         an_tokens columns, REAL *factors) {
    const REAL factor = (REAL)(1 / (1 - j->attributes->dropout));
    uint32_t words[AN_ATTENTION_TILE];
    an_dropout_words(j, tile->at, query, tile->keys.begin + columns.begin, columns.count, words);
    for (int64_t i = 0; i < columns.count; i++) factors[i] = words[i] >= j->threshold ? factor : 0;
}

/* The largest of n scores, a multiple of AN_SUM_LANES. NaN is left out: it shows in the sum. */
static inline REAL NAME(largest_of)(const REAL *row, int64_t n) {
    NAME(vector)
    even = NAME(broadcast)(-NAME(infinity)()), odd = even; /* two, so that one need not wait for the other */
    int64_t i = 0;
    for (; i + 2 * NAME(LANES) <= n; i += 2 * NAME(LANES)) {
        even = NAME(larger)(NAME(load)(row + i), even);
        odd = NAME(larger)(NAME(load)(row + i + NAME(LANES)), odd);
    }
    if (i < n) even = NAME(larger)(NAME(load)(row + i), even);
    return NAME(largest_lane)(NAME(larger)(even, odd));
}

/* A query's softmax so far (Milakov and Gimelshein 2018): the largest score, in units of power_unit, and the sum of the
 * powers of score - largest. */
typedef struct {
    REAL largest, sum;
} NAME(softmax);

/* How a row of products becomes probabilities: the powers of product·factor - base. */
typedef struct {
    REAL factor, base;
    REAL shrink; /* forward: what earlier tiles' results are to be multiplied with */
} NAME(row_terms);

/* The terms of one query with a tile of keys, by the largest of its scores so far; the softmax lacks this tile's
 * sum. */
static inline NAME(row_terms) NAME(forward_terms)(const an_attention_job *j, const an_key_tile *tile, int64_t query,
                                                  an_tokens columns, NAME(softmax) * softmax, REAL *row) {
    NAME(row_terms) terms = {.shrink = 1};
    const REAL before = softmax->largest;
    terms.factor = NAME(finish_scores)(j, tile, query, columns, row) * NAME(power_unit);
    const REAL here = NAME(largest_of)(row + columns.begin, columns.count) * terms.factor;
    const REAL largest = here > before ? here : before;
    terms.base = largest == -NAME(infinity)() ? 0 : largest; /* nothing seen yet: all are -inf */
    if (before != largest) {
        terms.shrink = NAME(first_lane)(NAME(power)(NAME(broadcast)(before - terms.base)));
        softmax->sum *= terms.shrink;
        softmax->largest = largest;
    }
    return terms;
}

/* The powers of LANES products. */
static inline NAME(vector) NAME(powers)(NAME(row_terms) terms, const REAL *products) {
    const NAME(vector) factor = NAME(broadcast)(terms.factor), base = NAME(broadcast)(-terms.base);
    return NAME(power)(NAME(multiply_add)(NAME(load)(products), factor, base));
}

/* Turns one query's products with a tile of keys into probabilities, but for the divisor that the softmax will know at
 * the end. Returns what earlier tiles' results are to be multiplied with. */
static inline REAL NAME(forward_row)(const an_attention_job *j, const an_key_tile *tile, int64_t query,
                                     an_tokens columns, NAME(softmax) * softmax, REAL *row) {
    const NAME(row_terms) terms = NAME(forward_terms)(j, tile, query, columns, softmax, row);
    REAL *p = row + columns.begin, kept[AN_ATTENTION_TILE];
    for (int64_t i = 0; i < columns.count; i += NAME(LANES)) NAME(store)(p + i, NAME(powers)(terms, p + i));
    softmax->sum += NAME(an_chunk_sum)(p, columns.count);
    if (!j->has_dropout) return terms.shrink;
    NAME(dropout_factors)(j, tile, query, columns, kept);
    for (int64_t i = 0; i < columns.count; i++) p[i] *= kept[i];
    return terms.shrink;
}

/* What a query's softmax ends with: the factor of its sum of values, and its log-sum-exp. One that sees nothing has a
 * sum of 0 and gives zeros. */
static inline REAL NAME(softmax_factor)(const NAME(softmax) * softmax) {
    return softmax->sum == 0 ? 1 : 1 / softmax->sum;
}
static inline REAL NAME(softmax_log_sum)(const NAME(softmax) * softmax) {
    const REAL largest = softmax->largest / NAME(power_unit);
    return softmax->sum == 0 ? -NAME(infinity)() : largest + NAME(an_log)(softmax->sum);
}

/* What the gradient knows of a query. */
typedef struct {
    REAL log_sum, delta; /* delta: diff_dst · dst */
} NAME(query_sums);

static inline NAME(row_terms) NAME(diff_terms)(const an_attention_job *j, const an_key_tile *tile, int64_t query,
                                               an_tokens columns, REAL log_sum, REAL *row) {
    NAME(row_terms) terms = {.factor = NAME(finish_scores)(j, tile, query, columns, row) * NAME(power_unit)};
    if (log_sum != -NAME(infinity)()) terms.base = log_sum * NAME(power_unit); /* else nothing is seen: all are -inf */
    return terms;
}

/* Turns one query's products q·k into the probabilities as the forward op used them, after dropout, and its products
 * diff_dst·v into the gradient of the scores, p·(dropout(diff_dst·v) - delta). */
static inline void NAME(diff_row)(const an_attention_job *j, const an_key_tile *tile, int64_t query, an_tokens columns,
                                  NAME(query_sums) sums, REAL *row, REAL *diff_row) {
    const NAME(row_terms) terms = NAME(diff_terms)(j, tile, query, columns, sums.log_sum, row);
    const NAME(vector) delta = NAME(broadcast)(sums.delta);
    REAL *p = row + columns.begin, *d = diff_row + columns.begin, kept[AN_ATTENTION_TILE];
    if (!j->has_dropout) {
        for (int64_t i = 0; i < columns.count; i += NAME(LANES)) {
            const NAME(vector) probability = NAME(powers)(terms, p + i);
            NAME(store)(p + i, probability);
            NAME(store)(d + i, probability * (NAME(load)(d + i) - delta));
        }
        return;
    }
    NAME(dropout_factors)(j, tile, query, columns, kept);
    for (int64_t i = 0; i < columns.count; i += NAME(LANES)) {
        const NAME(vector) probability = NAME(powers)(terms, p + i), keep = NAME(load)(kept + i);
        NAME(store)(p + i, probability * keep);
        NAME(store)(d + i, probability * (NAME(load)(d + i) * keep - delta));
    }
}

/* The sums of queries first to first + count - 1. */
static inline void NAME(load_sums)(const an_attention_job *j, an_head at, an_tokens queries, NAME(query_sums) * sums) {
    REAL buffer[2][AN_ATTENTION_HEAD], products[AN_ATTENTION_HEAD];
    for (int64_t i = 0; i < queries.count; i++) {
        const int64_t token = queries.begin + i, size = j->size;
        const an_tensor *dst = j->dst, *diff_dst = j->diff_dst, *log_sum = j->log_sum;
        const REAL *a = NAME(an_row_load)(dst, an_token_offset(dst, at, token), dst->strides[3], size, buffer[0]);
        const REAL *b =
            NAME(an_row_load)(diff_dst, an_token_offset(diff_dst, at, token), diff_dst->strides[3], size, buffer[1]);
        an_prefetch_token(dst, at, token + AN_PREFETCH_AHEAD, false);
        an_prefetch_token(diff_dst, at, token + AN_PREFETCH_AHEAD, false);
        for (int64_t d = 0; d < size; d++) products[d] = a[d] * b[d];
        sums[i].delta = NAME(an_chunk_sum)(products, size);
        sums[i].log_sum = *NAME(an_row_load)(log_sum, an_token_offset(log_sum, at, token), 1, 1, buffer[0]);
    }
}
