/* The gradient of attention in bf16 on the tiles of AMX: amx.c says what is rounded.
 *
 * The gradients of keys and values are computed as columns. Then what is summed over queries is the right side of a
 * product, whose pairs are made of the scores of two neighbouring queries as they are computed; and its left side, the
 * columns of q and diff_dst, is the same for all keys.
 */
#include "kernels/attention/job.h"

#ifdef __AVX512F__
#include "base/context.h"
#include "base/parallel.h"
#include "kernels/attention/amx.h"
#include "kernels/attention/diff.h"

/* Of a tile. Products of SIDE queries with its keys stay in a first-level cache with what they are made of. */
enum { KEYS = 64, QUERIES = 128 };

/* What a task's scratch holds. */
typedef struct {
    bf16 *rows; /* of a tile, before they are packed: */
    bf16 *key_columns, *value_columns, *key_pairs;
    float *diff_k, *diff_v;      /* columns, of a tile or, if several heads share them, of all keys */
    float *scores, *diff_scores; /* products of SIDE queries with a tile of keys, */
    bf16 *probability_pairs, *diff_score_pairs, *diff_score_rows; /* and what becomes of those of a tile of queries */
    bf16 *q, *diff_dst;                                           /* rows of all queries of the part, */
    bf16 *q_columns, *diff_dst_columns; /* and columns of each tile of them: lines of QUERIES */
    float *diff_q;                      /* rows */
    query_sums_f32 *sums;
} diff_scratch;

static size_t diff_layout(void *memory, int64_t size, int64_t held, int64_t queries, diff_scratch *s) {
    const size_t width = (size_t)width_of(size), tile = KEYS * width, scores = QUERIES * KEYS;
    const size_t all_queries = (size_t)an_next_multiple(queries, QUERIES) * width;
    const size_t all_keys = (size_t)an_next_multiple(held, KEYS) * width;
    size_t at = 0;
    s->rows = an_scratch_take(memory, &at, QUERIES * width * sizeof *s->rows);
    s->key_columns = an_scratch_take(memory, &at, tile * sizeof *s->key_columns);
    s->value_columns = an_scratch_take(memory, &at, tile * sizeof *s->value_columns);
    s->key_pairs = an_scratch_take(memory, &at, tile * sizeof *s->key_pairs);
    s->diff_k = an_scratch_take(memory, &at, all_keys * sizeof *s->diff_k);
    s->diff_v = an_scratch_take(memory, &at, all_keys * sizeof *s->diff_v);
    s->scores = an_scratch_take(memory, &at, SIDE * KEYS * sizeof *s->scores);
    s->diff_scores = an_scratch_take(memory, &at, SIDE * KEYS * sizeof *s->diff_scores);
    s->probability_pairs = an_scratch_take(memory, &at, scores * sizeof *s->probability_pairs);
    s->diff_score_pairs = an_scratch_take(memory, &at, scores * sizeof *s->diff_score_pairs);
    s->diff_score_rows = an_scratch_take(memory, &at, scores * sizeof *s->diff_score_rows);
    s->q = an_scratch_take(memory, &at, all_queries * sizeof *s->q);
    s->diff_dst = an_scratch_take(memory, &at, all_queries * sizeof *s->diff_dst);
    s->q_columns = an_scratch_take(memory, &at, all_queries * sizeof *s->q_columns);
    s->diff_dst_columns = an_scratch_take(memory, &at, all_queries * sizeof *s->diff_dst_columns);
    s->diff_q = an_scratch_take(memory, &at, all_queries * sizeof *s->diff_q);
    s->sums = an_scratch_take(memory, &at, (size_t)queries * sizeof *s->sums);
    return at;
}

static size_t diff_bytes(int64_t size, int64_t held, int64_t queries) {
    diff_scratch s;
    return diff_layout(NULL, size, held, queries, &s);
}

/* Rows of all queries of a part, and their columns tile by tile. */
static void load_queries(const an_tensor *t, an_head at, an_tokens queries, bf16 *pairs, bf16 *rows, bf16 *columns) {
    const int64_t width = width_of(t->dims[3]);
    load_rows(t, at, queries, rows);
    for (int64_t i = 0; i < queries.count; i += QUERIES) {
        const int64_t count = an_smaller(QUERIES, an_next_multiple(queries.count - i, SIDE));
        pack_pairs(count, width, rows + i * width, pairs);
        unpack_rows(count, width, pairs, columns + i * width, QUERIES);
    }
}

/* What the gradient knows of each query of a part, whose gradients of dst are loaded. */
AN_TILES static void load_sums(const an_attention_job *j, an_head at, an_tokens queries, const diff_scratch *s) {
    const int64_t width = width_of(j->size);
    for (int64_t i = 0; i < queries.count; i++) {
        const int64_t token = queries.begin + i;
        const bf16 *dst = s->rows + i % QUERIES * width, *diff_dst = s->diff_dst + i * width;
        __m512 sum = _mm512_setzero_ps();
        if (i % QUERIES == 0)
            load_rows(j->dst, at, (an_tokens){token, an_smaller(QUERIES, queries.count - i)}, s->rows);
        for (int64_t d = 0; d < width; d += SIDE) {
            const __m512i a = _mm512_loadu_si512(dst + d), b = _mm512_loadu_si512(diff_dst + d);
            sum = an_multiply_pairs_bf16(sum, a, b);
        }
        s->sums[i].delta = _mm512_reduce_add_ps(sum);
        s->sums[i].log_sum = ((const float *)j->log_sum->data)[an_token_offset(j->log_sum, at, token)];
    }
}

/* A query in the gradient. */
typedef struct {
    row_terms_f32 terms;
    float delta;
    const float *row, *diff_row;   /* products q·k and diff_dst·v */
    float kept[AN_ATTENTION_TILE]; /* with dropout */
    bf16 *diff_scores;             /* as a row */
} diff_query;

typedef struct {
    __m512 probability, diff_score;
} diff_pair;

AN_TILES static inline diff_pair diff_of(const diff_query *q, int64_t i, bool has_dropout) {
    const __m512 probability = powers_f32(q->terms, q->row + i), products = load_f32(q->diff_row + i);
    const __m512 delta = broadcast_f32(q->delta);
    if (!has_dropout) return (diff_pair){probability, probability * (products - delta)};
    const __m512 keep = load_f32(q->kept + i);
    return (diff_pair){probability * keep, probability * (products * keep - delta)};
}

/* Two queries: their probabilities as pairs, the gradients of their scores as pairs and as rows. */
AN_TILES static inline void round_diff(const diff_query *even, const diff_query *odd, an_tokens columns,
                                       bool has_dropout, bf16 *probabilities, bf16 *diff_scores) {
    for (int64_t i = columns.begin; i < columns.begin + columns.count; i += HALF) {
        const diff_pair a = diff_of(even, i, has_dropout), b = diff_of(odd, i, has_dropout);
        const __m256i p_even = an_round_16_to_bf16(a.probability);
        const __m256i p_odd = an_round_16_to_bf16(b.probability);
        const __m256i d_even = an_round_16_to_bf16(a.diff_score);
        const __m256i d_odd = an_round_16_to_bf16(b.diff_score);
        _mm512_storeu_si512(probabilities + i / HALF * PACKED, pairs_of(p_even, p_odd));
        _mm512_storeu_si512(diff_scores + i / HALF * PACKED, pairs_of(d_even, d_odd));
        _mm256_storeu_si256((__m256i *)(void *)(even->diff_scores + i), d_even);
        _mm256_storeu_si256((__m256i *)(void *)(odd->diff_scores + i), d_odd);
    }
}

/* What becomes of the products of SIDE queries, from query `row` of the tile on. */
static void diff_rows(const an_attention_job *j, const an_key_tile *tile, an_tokens queries, int64_t row,
                      an_tokens columns, const query_sums_f32 *sums, const diff_scratch *s) {
    bf16 *probabilities = s->probability_pairs + row * KEYS, *diff_scores = s->diff_score_pairs + row * KEYS;
    diff_query pair[2];
    for (int64_t i = 0; i < SIDE; i++) {
        diff_query *q = &pair[i % 2];
        float *products = s->scores + i * KEYS;
        q->row = products;
        q->diff_row = s->diff_scores + i * KEYS;
        q->diff_scores = s->diff_score_rows + (row + i) * KEYS;
        if (row + i < queries.count) {
            const int64_t query = queries.begin + row + i;
            q->terms = diff_terms_f32(j, tile, query, columns, sums[row + i].log_sum, products);
            q->delta = sums[row + i].delta;
            if (j->has_dropout) dropout_factors_f32(j, tile, query, columns, q->kept + columns.begin);
        } else { /* after the last query: products of zeros, probabilities of 0 */
            q->terms = (row_terms_f32){.factor = 1, .base = infinity_f32()};
            q->delta = 0;
            memset(q->kept, 0, sizeof q->kept);
        }
        if (i % 2 == 0) continue;
        if (j->has_dropout)
            round_diff(&pair[0], &pair[1], columns, true, probabilities + i / 2 * SIDE, diff_scores + i / 2 * SIDE);
        else
            round_diff(&pair[0], &pair[1], columns, false, probabilities + i / 2 * SIDE, diff_scores + i / 2 * SIDE);
    }
}

/* One tile of queries with one of keys: adds to the gradients that the part is for. */
static void diff_tile(const an_attention_job *j, const an_diff_part *part, const an_key_tile *tile, an_tokens queries,
                      const diff_scratch *s, float *diff_k, float *diff_v) {
    const int64_t width = width_of(j->size), first = queries.begin - part->queries.begin;
    const int64_t step = an_next_multiple(tile->keys.count, SIDE) / HALF * PACKED;
    const bf16 *q = s->q + first * width, *diff_dst = s->diff_dst + first * width;
    const bf16 *q_columns = s->q_columns + first * width, *diff_dst_columns = s->diff_dst_columns + first * width;
    an_tokens columns[QUERIES / SIDE];
    const int64_t groups = an_set_columns(j, tile, queries, SIDE, SIDE, columns);
    for (int64_t g = 0; g < groups; g++) {
        const int64_t row = g * SIDE;
        const an_tokens c = columns[g];
        if (c.count <= 0) continue;
        for (int64_t k = c.begin; k < c.begin + c.count; k += SIDE) {
            multiply(width / SIDE, q + row * width, width, s->key_columns + k / HALF * PACKED, step, s->scores + k,
                     KEYS, false);
            multiply(width / SIDE, diff_dst + row * width, width, s->value_columns + k / HALF * PACKED, step,
                     s->diff_scores + k, KEYS, false);
        }
        an_prefetch_diff(j, part, tile->at, queries, tile->keys, row, SIDE);
        diff_rows(j, tile, queries, row, c, s->sums + first, s);
    }
    for (int64_t k = 0; k < tile->keys.count && part->of_keys; k += SIDE) {
        const an_tokens rows = an_seeing_rows(columns, groups, k, SIDE);
        const int64_t steps = rows.count / SIDE, at = (rows.begin / SIDE * KEYS + k) / HALF * PACKED;
        for (int64_t d = 0; d < width && steps > 0; d += SIDE) {
            multiply(steps, diff_dst_columns + d * QUERIES + rows.begin, QUERIES, s->probability_pairs + at,
                     KEYS / HALF * PACKED, diff_v + d * KEYS + k, KEYS, true);
            multiply(steps, q_columns + d * QUERIES + rows.begin, QUERIES, s->diff_score_pairs + at,
                     KEYS / HALF * PACKED, diff_k + d * KEYS + k, KEYS, true);
        }
    }
    for (int64_t g = 0; g < groups && part->of_queries; g++) {
        const an_tokens c = columns[g];
        for (int64_t d = 0; d < width && c.count > 0; d += SIDE)
            multiply(c.count / SIDE, s->diff_score_rows + g * SIDE * KEYS + c.begin, KEYS,
                     s->key_pairs + (c.begin / SIDE * width + d) / HALF * PACKED, width / HALF * PACKED,
                     s->diff_q + (first + g * SIDE) * width + d, width, true);
    }
}

/* All that one head of queries adds to a tile of keys, and what it gets from there. The tile has those that are
 * seen. */
static void diff_keys(const an_attention_job *j, const an_diff_part *part, const an_key_tile *tile,
                      const diff_scratch *s, float *diff_k, float *diff_v) {
    const int64_t width = width_of(j->size), keys = an_next_multiple(tile->keys.count, SIDE);
    const an_head at = an_key_head(j, tile->at);
    const an_tokens seeing = an_seeing_queries(j, part->queries, tile->keys);
    if (tile->keys.count <= 0 || seeing.count <= 0) return;
    load_rows(j->v, at, tile->keys, s->rows);
    pack_columns(keys, width, s->rows, s->value_columns);
    load_rows(j->k, at, tile->keys, s->rows);
    pack_columns(keys, width, s->rows, s->key_columns);
    pack_pairs(keys, width, s->rows, s->key_pairs);
    for (int64_t q = seeing.begin / QUERIES * QUERIES; q < seeing.begin + seeing.count; q += QUERIES) {
        const int64_t rest = part->queries.begin + part->queries.count - q;
        diff_tile(j, part, tile, (an_tokens){q, an_smaller(QUERIES, rest)}, s, diff_k, diff_v);
    }
}

/* Stores columns of a tile of keys: lines of KEYS. */
static void store_columns(const an_tensor *t, an_head at, an_tokens keys, float factor, const float *columns) {
    float rows[HALF][AN_ATTENTION_HEAD];
    const int64_t width = width_of(t->dims[3]);
    for (int64_t i = 0; i < keys.count; i += HALF) {
        for (int64_t d = 0; d < width; d += HALF)
            transpose_words(columns + d * KEYS + i, KEYS * sizeof *columns, rows[0] + d, sizeof rows[0]);
        for (int64_t k = i; k < i + HALF && k < keys.count; k++)
            store_token(t, at, keys.begin + k, factor, rows[k - i]);
    }
}

static void diff_part(const an_attention_job *j, const an_diff_part *part, void *memory) {
    const int64_t width = width_of(j->size), last = part->heads.begin + part->heads.count - 1;
    const float scale = (float)j->attributes->scale;
    const size_t tile_bytes = (size_t)(KEYS * width) * sizeof(float);
    const an_key_range visible = an_visible_keys(j, part->queries);
    diff_scratch s;
    diff_layout(memory, j->size, an_diff_held(part, KEYS), part->queries.count, &s);
    tiles_enter();
    for (int64_t head = part->heads.begin; head <= last; head++) {
        const an_head at = {part->batch, head}, key_at = an_key_head(j, at);
        an_key_tile tile = {.at = at};
        load_queries(j->q, at, part->queries, s.rows, s.q, s.q_columns);
        load_queries(j->diff_dst, at, part->queries, s.rows, s.diff_dst, s.diff_dst_columns);
        load_sums(j, at, part->queries, &s);
        memset(s.diff_q, 0, (size_t)(an_next_multiple(part->queries.count, SIDE) * width) * sizeof *s.diff_q);
        for (int64_t done = 0; done < part->keys.count; done += KEYS) {
            const int64_t begin = part->keys.begin + done, held = part->heads.count > 1 ? done * width : 0;
            const an_tokens keys = {begin, an_smaller(KEYS, part->keys.count - done)};
            float *diff_k = s.diff_k + held, *diff_v = s.diff_v + held;
            if (head == part->heads.begin) {
                memset(diff_k, 0, tile_bytes);
                memset(diff_v, 0, tile_bytes);
            }
            an_set_tile(j, &tile, (an_tokens){begin, an_smaller(keys.count, visible.end - begin)});
            diff_keys(j, part, &tile, &s, diff_k, diff_v);
            if (!part->of_keys || head != last) continue;
            store_columns(j->diff_k, key_at, keys, scale, diff_k);
            store_columns(j->diff_v, key_at, keys, 1, diff_v);
        }
        for (int64_t i = 0; i < part->queries.count && part->of_queries; i++)
            store_token(j->diff_q, at, part->queries.begin + i, scale, s.diff_q + i * width);
    }
    tiles_leave();
}

/* ---- the kernel ---- */

bool an_attention_diff_amx_applies(const an_call *call) {
    return call->ctx->isa >= AN_ISA_AMX && are_bf16(call->src, AN_ATTENTION_DIFF_OF_DST + 1) &&
           are_bf16(call->dst, call->dst_count) && call->src[AN_ATTENTION_DIFF_OF_SUM].dtype == AN_DTYPE_F32;
}

static const an_diff_kernel diff = {TASK, KEYS, diff_part, diff_bytes};

size_t an_attention_diff_amx_scratch(const an_call *call) {
    return an_attention_diff_scratch(call, &diff);
}

an_status an_attention_diff_amx_run(const an_call *call) {
    return an_attention_diff_run(call, &diff);
}
#endif
