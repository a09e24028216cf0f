/* Tiles of attention, for REAL. Included by portable.c through instantiate.h. */

/* sum[i] += Σ factors[r]·rows[r][i] for i < n, r from 0 up. Every element is its own chain of additions, so that the
 * width of vectors does not matter. Four r at a time save loads and stores of the sum and leave the chain as it is. */
static void NAME(add_products)(int64_t n, int64_t count, const REAL *factors, int64_t factor_stride, const REAL *rows,
                               int64_t row_stride, REAL *restrict sum) {
    enum { AT_ONCE = 4 };
    int64_t r = 0;
    for (; r + AT_ONCE <= count; r += AT_ONCE) {
        const REAL *factor = factors + r * factor_stride, f0 = factor[0], f1 = factor[factor_stride];
        const REAL f2 = factor[2 * factor_stride], f3 = factor[3 * factor_stride];
        const REAL *row0 = rows + r * row_stride, *row1 = row0 + row_stride, *row2 = row1 + row_stride;
        const REAL *row3 = row2 + row_stride;
        for (int64_t i = 0; i < n; i++)
            sum[i] = (((sum[i] + f0 * row0[i]) + f1 * row1[i]) + f2 * row2[i]) + f3 * row3[i];
    }
    for (; r < count; r++) {
        const REAL factor = factors[r * factor_stride], *row = rows + r * row_stride;
        for (int64_t i = 0; i < n; i++) sum[i] += factor * row[i];
    }
}

/* ---- loading and storing rows of (batch, heads, tokens, size) ---- */

static const REAL *NAME(load_token)(const an_attention_job *j, const an_tensor *t, an_head at, int64_t token,
                                    REAL *buffer) {
    return NAME(an_row_load)(t, an_token_offset(t, at, token), t->strides[3], j->size, buffer);
}

static void NAME(load_tokens)(const an_attention_job *j, const an_tensor *t, an_head at, an_tokens tokens, REAL *rows) {
    for (int64_t i = 0; i < tokens.count; i++) {
        REAL *to = rows + i * j->size;
        const REAL *row = NAME(load_token)(j, t, at, tokens.begin + i, to);
        if (row != to) memcpy(to, row, (size_t)j->size * sizeof *to);
    }
}

/* Element d of token i goes to columns[d][i]. */
static void NAME(load_transposed)(const an_attention_job *j, const an_tensor *t, an_head at, an_tokens tokens,
                                  REAL *columns) {
    REAL buffer[AN_ATTENTION_HEAD];
    for (int64_t i = 0; i < tokens.count; i++) {
        const REAL *row = NAME(load_token)(j, t, at, tokens.begin + i, buffer);
        for (int64_t d = 0; d < j->size; d++) columns[d * AN_ATTENTION_KEYS + i] = row[d];
    }
}

static void NAME(store_tokens)(const an_attention_job *j, const an_tensor *t, an_head at, an_tokens tokens,
                               const REAL *rows) {
    for (int64_t i = 0; i < tokens.count; i++)
        NAME(an_row_store)(t, an_token_offset(t, at, tokens.begin + i), t->strides[3], j->size, rows + i * j->size);
}

/* ---- scores ---- */

/* Scores of one query with the keys of a tile that it sees by causality and window (`seen`, counted in the tile):
 * scaled, with the mask added, -inf for other documents. */
static void NAME(score_row)(const an_attention_job *j, const tile_of *tile, int64_t query, an_tokens seen,
                            const REAL *q, const REAL *keys, REAL *row) {
    const REAL infinity = NAME(infinity)();
    for (int64_t i = 0; i < seen.count; i++) row[i] = 0;
    NAME(add_products)(seen.count, j->size, q, 1, keys + seen.begin, AN_ATTENTION_KEYS, row);
    for (int64_t i = 0; i < seen.count; i++) row[i] *= (REAL)j->attributes->scale;
    if (j->mask) {
        const int64_t stride = j->mask_strides[3], first = tile->keys.begin + seen.begin;
        REAL buffer[AN_ATTENTION_KEYS];
        const int64_t offset = an_mask_offset(j, tile->at, query) + first * stride;
        const REAL *mask = NAME(an_row_load)(j->mask, offset, stride, seen.count, buffer);
        for (int64_t i = 0; i < seen.count; i++) row[i] += mask[i];
    }
    if (j->documents) {
        const int64_t own = an_document_at(j, tile->at.batch, query);
        for (int64_t i = 0; i < seen.count; i++) row[i] = tile->documents[seen.begin + i] == own ? row[i] : -infinity;
    }
}

/* What dropout makes of the probabilities of one query: 0 or 1 / (1 - rate). */
static void NAME(dropout_row)(const an_attention_job *j, const tile_of *tile, int64_t query, an_tokens seen,
                              REAL *factors) {
    const REAL factor = (REAL)(1 / (1 - j->attributes->dropout));
    uint32_t words[AN_ATTENTION_KEYS];
    an_dropout_words(j, tile->at, query, tile->keys.begin + seen.begin, seen.count, words);
    for (int64_t i = 0; i < seen.count; i++) factors[i] = words[i] >= j->threshold ? factor : 0;
}

/* ---- forward ---- */

/* A query's softmax so far (Milakov and Gimelshein 2018): the largest score, and the sum of exp(score - largest). */
typedef struct {
    REAL largest, sum;
} NAME(softmax);

/* Adds a tile's keys to one query's softmax and to its weighted sum of values. `row` has the scores of the keys seen,
 * and is used up. */
static void NAME(forward_row)(const an_attention_job *j, const tile_of *tile, int64_t query, an_tokens seen,
                              const REAL *values, REAL *row, NAME(softmax) * softmax, REAL *sum) {
    const REAL infinity = NAME(infinity)(), before = softmax->largest;
    const REAL largest = NAME(an_larger)(before, NAME(an_chunk_max)(row, seen.count));
    if (largest == -infinity) return; /* nothing seen yet */
    const REAL shrink = NAME(an_exp)(before - largest);
    for (int64_t i = 0; i < seen.count; i++) row[i] -= largest;
    NAME(an_vector_exp)(seen.count, row, row);
    softmax->largest = largest;
    softmax->sum = softmax->sum * shrink + NAME(an_chunk_sum)(row, seen.count);
    if (j->has_dropout) {
        REAL factors[AN_ATTENTION_KEYS];
        NAME(dropout_row)(j, tile, query, seen, factors);
        for (int64_t i = 0; i < seen.count; i++) row[i] *= factors[i];
    }
    for (int64_t d = 0; d < j->size; d++) sum[d] *= shrink;
    NAME(add_products)(j->size, seen.count, row, 1, values + seen.begin * j->size, j->size, sum);
}

/* One tile of queries of one head, over all tiles of keys that they see. */
static void NAME(forward_task)(void *user, int64_t index, int thread) {
    const an_attention_job *j = user;
    const an_head at = {index / j->query_tiles / j->heads, index / j->query_tiles % j->heads},
                  key_at = an_key_head(j, at);
    const an_tokens queries = an_tile_tokens(index % j->query_tiles, AN_ATTENTION_QUERIES, j->queries);
    const int64_t size = j->size;
    const REAL infinity = NAME(infinity)();
    REAL *q = an_thread_scratch(j, thread), *sums = q + AN_ATTENTION_QUERIES * size;
    REAL *keys = sums + AN_ATTENTION_QUERIES * size, *values = keys + AN_ATTENTION_KEYS * size;
    NAME(softmax) softmax[AN_ATTENTION_QUERIES];
    REAL scores[AN_ATTENTION_KEYS];
    tile_of tile = {.at = at};

    NAME(load_tokens)(j, j->q, at, queries, q);
    memset(sums, 0, (size_t)(queries.count * size) * sizeof *sums);
    for (int64_t i = 0; i < queries.count; i++) softmax[i] = (NAME(softmax)){-infinity, 0};
    const an_key_range visible = an_visible_keys(j, queries);
    for (int64_t begin = tile_floor(visible.begin); begin < visible.end; begin += AN_ATTENTION_KEYS) {
        tile_set_keys(j, &tile, begin, visible.end);
        NAME(load_transposed)(j, j->k, key_at, tile.keys, keys);
        NAME(load_tokens)(j, j->v, key_at, tile.keys, values);
        for (int64_t i = 0; i < queries.count; i++) {
            const int64_t query = queries.begin + i;
            const an_tokens seen = an_seen_in_tile(j, tile.keys, query);
            if (seen.count == 0) continue;
            NAME(score_row)(j, &tile, query, seen, q + i * size, keys, scores);
            NAME(forward_row)(j, &tile, query, seen, values, scores, &softmax[i], sums + i * size);
        }
    }
    for (int64_t i = 0; i < queries.count; i++) { /* a query that sees nothing has a sum of 0 and gives zeros */
        const REAL divisor = softmax[i].sum == 0 ? 1 : softmax[i].sum;
        const REAL log_sum = softmax[i].sum == 0 ? -infinity : softmax[i].largest + NAME(an_log)(softmax[i].sum);
        for (int64_t d = 0; d < size; d++) sums[i * size + d] /= divisor;
        NAME(an_row_store)(j->log_sum, an_token_offset(j->log_sum, at, queries.begin + i), 1, 1, &log_sum);
    }
    NAME(store_tokens)(j, j->dst, at, queries, sums);
}

/* ---- backward ---- */

/* What the gradient needs of a tile of queries. */
typedef struct {
    REAL *q, *diff_dst;
    REAL log_sum[AN_ATTENTION_QUERIES], delta[AN_ATTENTION_QUERIES]; /* delta: diff_dst · dst */
} NAME(query_tile);

static void NAME(load_queries)(const an_attention_job *j, an_head at, an_tokens queries, NAME(query_tile) * t) {
    REAL buffer[AN_ATTENTION_HEAD], products[AN_ATTENTION_HEAD];
    NAME(load_tokens)(j, j->q, at, queries, t->q);
    NAME(load_tokens)(j, j->diff_dst, at, queries, t->diff_dst);
    for (int64_t i = 0; i < queries.count; i++) {
        const REAL *dst = NAME(load_token)(j, j->dst, at, queries.begin + i, buffer);
        for (int64_t d = 0; d < j->size; d++) products[d] = t->diff_dst[i * j->size + d] * dst[d];
        t->delta[i] = NAME(an_row_sum)(products, j->size);
        t->log_sum[i] =
            *NAME(an_row_load)(j->log_sum, an_token_offset(j->log_sum, at, queries.begin + i), 1, 1, buffer);
    }
}

/* For query i of a tile and the keys of another: the probabilities as the forward op used them, after dropout, and the
 * gradient of the products q·k, p·(dropout(diff_dst · v) - delta)·scale. Zero where nothing is seen. */
static void NAME(diff_row)(const an_attention_job *j, const tile_of *tile, int64_t query, const NAME(query_tile) * t,
                           int64_t i, const REAL *keys, const REAL *values, REAL *probabilities, REAL *diff_scores) {
    const REAL scale = (REAL)j->attributes->scale, log_sum = t->log_sum[i], delta = t->delta[i];
    const REAL *q = t->q + i * j->size, *diff_dst = t->diff_dst + i * j->size;
    const an_tokens seen = an_seen_in_tile(j, tile->keys, query);
    REAL factors[AN_ATTENTION_KEYS];
    for (int64_t k = 0; k < AN_ATTENTION_KEYS; k++) probabilities[k] = diff_scores[k] = 0;
    if (seen.count == 0 || log_sum == -NAME(infinity)()) return;
    REAL *p = probabilities + seen.begin, *d = diff_scores + seen.begin;
    NAME(score_row)(j, tile, query, seen, q, keys, p);
    for (int64_t k = 0; k < seen.count; k++) p[k] -= log_sum;
    NAME(an_vector_exp)(seen.count, p, p);
    NAME(add_products)(seen.count, j->size, diff_dst, 1, values + seen.begin, AN_ATTENTION_KEYS, d);
    if (!j->has_dropout) {
        for (int64_t k = 0; k < seen.count; k++) d[k] = p[k] * (d[k] - delta) * scale;
        return;
    }
    NAME(dropout_row)(j, tile, query, seen, factors);
    for (int64_t k = 0; k < seen.count; k++) {
        d[k] = p[k] * (d[k] * factors[k] - delta) * scale;
        p[k] *= factors[k];
    }
}

/* The gradient of one tile of queries, over the tiles of keys in order. */
static void NAME(diff_q_task)(void *user, int64_t index, int thread) {
    const an_attention_job *j = user;
    const an_head at = {index / j->query_tiles / j->heads, index / j->query_tiles % j->heads},
                  key_at = an_key_head(j, at);
    const an_tokens queries = an_tile_tokens(index % j->query_tiles, AN_ATTENTION_QUERIES, j->queries);
    const int64_t size = j->size, query_elements = AN_ATTENTION_QUERIES * size, key_elements = AN_ATTENTION_KEYS * size;
    REAL *q = an_thread_scratch(j, thread), *diff_dst = q + query_elements, *diff_q = diff_dst + query_elements;
    REAL *keys = diff_q + query_elements, *values = keys + key_elements, *key_rows = values + key_elements;
    REAL probabilities[AN_ATTENTION_KEYS], diff_scores[AN_ATTENTION_KEYS];
    NAME(query_tile) t = {.q = q, .diff_dst = diff_dst};
    tile_of tile = {.at = at};

    NAME(load_queries)(j, at, queries, &t);
    memset(diff_q, 0, (size_t)(queries.count * size) * sizeof *diff_q);
    const an_key_range visible = an_visible_keys(j, queries);
    for (int64_t begin = tile_floor(visible.begin); begin < visible.end; begin += AN_ATTENTION_KEYS) {
        tile_set_keys(j, &tile, begin, visible.end);
        NAME(load_transposed)(j, j->k, key_at, tile.keys, keys);
        NAME(load_transposed)(j, j->v, key_at, tile.keys, values);
        NAME(load_tokens)(j, j->k, key_at, tile.keys, key_rows);
        for (int64_t i = 0; i < queries.count; i++) {
            const an_tokens seen = an_seen_in_tile(j, tile.keys, queries.begin + i);
            if (seen.count == 0) continue;
            const REAL *d = diff_scores + seen.begin, *rows = key_rows + seen.begin * size;
            NAME(diff_row)(j, &tile, queries.begin + i, &t, i, keys, values, probabilities, diff_scores);
            NAME(add_products)(size, seen.count, d, 1, rows, size, diff_q + i * size);
        }
    }
    NAME(store_tokens)(j, j->diff_q, at, queries, diff_q);
}

/* The gradients of one tile of keys and values, over the heads of the group and their tiles of queries in order. */
static void NAME(diff_kv_task)(void *user, int64_t index, int thread) {
    const an_attention_job *j = user;
    const an_head key_at = {index / j->key_tiles / j->kv_heads, index / j->key_tiles % j->kv_heads};
    const int64_t size = j->size, query_elements = AN_ATTENTION_QUERIES * size, key_elements = AN_ATTENTION_KEYS * size;
    const int64_t begin = index % j->key_tiles * AN_ATTENTION_KEYS, group = j->heads / j->kv_heads;
    REAL *q = an_thread_scratch(j, thread), *diff_dst = q + query_elements;
    REAL *keys = diff_dst + query_elements, *values = keys + key_elements;
    REAL *diff_k = values + key_elements, *diff_v = diff_k + key_elements;
    REAL *probabilities = diff_v + key_elements;
    REAL *diff_scores = probabilities + AN_ATTENTION_QUERIES * AN_ATTENTION_KEYS;
    NAME(query_tile) t = {.q = q, .diff_dst = diff_dst};
    tile_of tile = {.at = key_at};

    tile_set_keys(j, &tile, begin, j->keys);
    NAME(load_transposed)(j, j->k, key_at, tile.keys, keys);
    NAME(load_transposed)(j, j->v, key_at, tile.keys, values);
    memset(diff_k, 0, (size_t)(2 * key_elements) * sizeof *diff_k);
    for (int64_t head = key_at.head * group; head < (key_at.head + 1) * group; head++) {
        tile.at.head = head;
        for (int64_t query_tile = 0; query_tile < j->query_tiles; query_tile++) {
            const an_tokens queries = an_tile_tokens(query_tile, AN_ATTENTION_QUERIES, j->queries);
            const an_key_range visible = an_visible_keys(j, queries);
            if (visible.end <= begin || visible.begin >= begin + tile.keys.count) continue;
            NAME(load_queries)(j, tile.at, queries, &t);
            for (int64_t i = 0; i < queries.count; i++) {
                REAL *p = probabilities + i * AN_ATTENTION_KEYS, *d = diff_scores + i * AN_ATTENTION_KEYS;
                NAME(diff_row)(j, &tile, queries.begin + i, &t, i, keys, values, p, d);
            }
            for (int64_t k = 0; k < tile.keys.count; k++) {
                const REAL *p = probabilities + k, *d = diff_scores + k; /* columns */
                NAME(add_products)(size, queries.count, d, AN_ATTENTION_KEYS, q, size, diff_k + k * size);
                NAME(add_products)(size, queries.count, p, AN_ATTENTION_KEYS, diff_dst, size, diff_v + k * size);
            }
        }
    }
    NAME(store_tokens)(j, j->diff_k, key_at, tile.keys, diff_k);
    NAME(store_tokens)(j, j->diff_v, key_at, tile.keys, diff_v);
}
