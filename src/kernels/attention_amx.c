/* Attention in bf16 on the tiles of AMX.
 *
 * q, k, v and the gradient of dst are bf16 as they come; products accumulate in f32; the softmax is computed in f32. What
 * it gives is rounded to bf16 where it is an operand again: the probabilities for the product with v, and in the gradient
 * these and the gradients of the scores. PyTorch and FlashAttention round in the same places. Work is cut as in
 * attention_tiled.c, and what is hidden is treated as there.
 */
#include "kernels/attention_job.h"

#ifdef __AVX512F__
#include <string.h>

#include "base/context.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/attention_amx_tiles.h"
#include "kernels/attention_diff.h"
#include "kernels/attention_rows.h"

enum {
    TASK = 256, /* queries of a task */
    TILE = 128  /* queries, and keys, of the gradient's tile: what they become of stays in a second-level cache */
};

/* Elements of a row in scratch. */
static int64_t width_of(int64_t size) {
    return an_attention_round_up(size, SIDE);
}

/* Rows of `width` elements, with zeros after those of the tensor, and rows of zeros up to a multiple of SIDE. */
static void load_rows(const an_tensor *t, an_head at, an_tokens tokens, bf16 *rows) {
    const int64_t size = t->dims[3], width = width_of(size), stride = t->strides[3];
    for (int64_t i = 0; i < tokens.count; i++) {
        const bf16 *from = (const bf16 *)t->data + an_token_offset(t, at, tokens.begin + i);
        bf16 *to = rows + i * width;
        an_prefetch_token(t, at, tokens.begin + i + AN_PREFETCH_AHEAD, false);
        if (stride == 1 && size == width) {
            for (int64_t d = 0; d < width; d += SIDE) _mm512_storeu_si512(to + d, _mm512_loadu_si512(from + d));
            continue;
        }
        for (int64_t d = 0; d < width; d++) to[d] = d < size ? from[d * stride] : 0;
    }
    const int64_t empty = an_attention_round_up(tokens.count, SIDE) - tokens.count;
    memset(rows + tokens.count * width, 0, (size_t)(empty * width) * sizeof *rows);
}

/* ---- rows ---- */

/* One query's products with a tile of keys become probabilities, but for the divisor that the softmax will know at the end.
 * Returns what earlier tiles' results are to be multiplied with. */
AMX static float round_forward(const an_attention_job *j, const an_key_tile *tile, int64_t query, an_tokens columns,
                               softmax_f32 *softmax, float *row, bf16 *probabilities) {
    const row_terms_f32 terms = forward_terms_f32(j, tile, query, columns, softmax, row);
    __m512 lower_sum = _mm512_setzero_ps(), upper_sum = lower_sum;
    float kept[AN_ATTENTION_TILE];
    if (j->has_dropout) dropout_factors_f32(j, tile, query, columns, kept);
    for (int64_t i = 0; i < columns.count; i += SIDE) {
        __m512 lower = powers_f32(terms, row + columns.begin + i);
        __m512 upper = powers_f32(terms, row + columns.begin + i + HALF);
        lower_sum += lower;
        upper_sum += upper;
        if (j->has_dropout) {
            lower *= load_f32(kept + i);
            upper *= load_f32(kept + i + HALF);
        }
        const __m512bh both = _mm512_cvtne2ps_pbh(upper, lower);
        memcpy(probabilities + columns.begin + i, &both, sizeof both);
    }
    softmax->sum += _mm512_reduce_add_ps(lower_sum + upper_sum);
    return terms.shrink;
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

AMX static inline diff_pair diff_of(const diff_query *q, int64_t i, bool has_dropout) {
    const __m512 probability = powers_f32(q->terms, q->row + i), products = load_f32(q->diff_row + i);
    const __m512 delta = broadcast_f32(q->delta);
    if (!has_dropout) return (diff_pair){probability, probability * (products - delta)};
    const __m512 keep = load_f32(q->kept + i);
    return (diff_pair){probability * keep, probability * (products * keep - delta)};
}

/* Two queries: their probabilities as pairs, the gradients of their scores as pairs and as rows. */
AMX static inline void round_diff(const diff_query *even, const diff_query *odd, an_tokens columns, bool has_dropout,
                                  bf16 *probabilities, bf16 *diff_scores) {
    for (int64_t i = columns.begin; i < columns.begin + columns.count; i += HALF) {
        const diff_pair a = diff_of(even, i, has_dropout), b = diff_of(odd, i, has_dropout);
        const __m256i p_even = (__m256i)_mm512_cvtneps_pbh(a.probability);
        const __m256i p_odd = (__m256i)_mm512_cvtneps_pbh(b.probability);
        const __m256i d_even = (__m256i)_mm512_cvtneps_pbh(a.diff_score);
        const __m256i d_odd = (__m256i)_mm512_cvtneps_pbh(b.diff_score);
        _mm512_storeu_si512(probabilities + i / HALF * PACKED, pairs_of(p_even, p_odd));
        _mm512_storeu_si512(diff_scores + i / HALF * PACKED, pairs_of(d_even, d_odd));
        _mm256_storeu_si256((__m256i *)(void *)(even->diff_scores + i), d_even);
        _mm256_storeu_si256((__m256i *)(void *)(odd->diff_scores + i), d_odd);
    }
}

AMX static void store_token(const an_tensor *t, an_head at, int64_t token, float factor, const float *row) {
    const int64_t size = t->dims[3], stride = t->strides[3];
    bf16 *to = (bf16 *)t->data + an_token_offset(t, at, token), buffer[AN_ATTENTION_HEAD];
    bf16 *rounded = stride == 1 && size % SIDE == 0 ? to : buffer;
    for (int64_t d = 0; d < size; d += SIDE) {
        const __m512 lower = load_f32(row + d) * broadcast_f32(factor);
        const __m512 upper = load_f32(row + d + HALF) * broadcast_f32(factor);
        const __m512bh both = _mm512_cvtne2ps_pbh(upper, lower);
        memcpy(rounded + d, &both, sizeof both);
    }
    for (int64_t d = 0; d < size && rounded != to; d++) to[d * stride] = rounded[d];
}

/* ---- forward ---- */

/* What a thread's scratch holds for a task. */
typedef struct {
    bf16 *q;              /* TASK rows */
    float *sums;          /* TASK rows */
    bf16 *rows;           /* of a tile of keys, or values, before they are packed: */
    bf16 *keys, *values;  /* keys as columns, values as depth */
    float *scores;        /* SIDE rows of a tile's keys */
    bf16 *probabilities;  /* the same */
    softmax_f32 *softmax; /* TASK */
} forward_scratch;

static size_t forward_layout(void *memory, int64_t size, forward_scratch *s) {
    const size_t width = (size_t)width_of(size);
    size_t at = 0;
    s->q = an_scratch_take(memory, &at, TASK * width * sizeof *s->q);
    s->sums = an_scratch_take(memory, &at, TASK * width * sizeof *s->sums);
    s->rows = an_scratch_take(memory, &at, AN_ATTENTION_TILE * width * sizeof *s->rows);
    s->keys = an_scratch_take(memory, &at, AN_ATTENTION_TILE * width * sizeof *s->keys);
    s->values = an_scratch_take(memory, &at, AN_ATTENTION_TILE * width * sizeof *s->values);
    s->scores = an_scratch_take(memory, &at, SIDE * AN_ATTENTION_TILE * sizeof *s->scores);
    s->probabilities = an_scratch_take(memory, &at, SIDE * AN_ATTENTION_TILE * sizeof *s->probabilities);
    s->softmax = an_scratch_take(memory, &at, TASK * sizeof *s->softmax);
    return at;
}

/* A block of queries with a tile of keys: adds to their sums of values. `first` is the block's place in the task. */
static void forward_block(const an_attention_job *j, const an_key_tile *tile, an_tokens queries, int64_t first,
                          const forward_scratch *s) {
    const int64_t width = width_of(j->size), tiles = an_attention_round_up(tile->keys.count, SIDE) / HALF;
    float *sums = s->sums + first * width;
    an_tokens columns;
    an_set_columns(j, tile, queries, SIDE, SIDE, &columns);
    if (columns.count <= 0) return;
    for (int64_t c = columns.begin; c < columns.begin + columns.count; c += SIDE)
        multiply(width / SIDE, s->q + first * width, width, s->keys + c / HALF * PACKED, tiles * PACKED, s->scores + c,
                 AN_ATTENTION_TILE, false);
    for (int64_t i = 0; i < queries.count; i++) {
        const int64_t at = i * AN_ATTENTION_TILE;
        an_prefetch_token(j->dst, tile->at, queries.begin + i, true);
        const float shrink = round_forward(j, tile, queries.begin + i, columns, &s->softmax[first + i], s->scores + at,
                                           s->probabilities + at);
        for (int64_t d = 0; d < width && shrink != 1; d++) sums[i * width + d] *= shrink;
    }
    for (int64_t d = 0; d < width; d += SIDE)
        multiply(columns.count / SIDE, s->probabilities + columns.begin, AN_ATTENTION_TILE,
                 s->values + (columns.begin / SIDE * width + d) / HALF * PACKED, width / HALF * PACKED, sums + d, width,
                 true);
}

static void forward_task(void *user, int64_t index, int thread) {
    const an_attention_job *j = user;
    const an_head at = {index / j->query_tiles / j->heads, index / j->query_tiles % j->heads};
    const an_tokens queries = an_tile_tokens(index % j->query_tiles, TASK, j->queries);
    const int64_t width = width_of(j->size);
    const an_key_range visible = an_visible_keys(j, queries);
    an_key_tile tile = {.at = at};
    forward_scratch s;

    tiles_enter();
    forward_layout(an_thread_scratch(j, thread), j->size, &s);
    load_rows(j->q, at, queries, s.q);
    memset(s.sums, 0, (size_t)(an_attention_round_up(queries.count, SIDE) * width) * sizeof *s.sums);
    memset(s.probabilities, 0, SIDE * AN_ATTENTION_TILE * sizeof *s.probabilities);
    for (int64_t i = 0; i < queries.count; i++) s.softmax[i] = (softmax_f32){-infinity_f32(), 0};
    for (int64_t begin = visible.begin / AN_ATTENTION_TILE * AN_ATTENTION_TILE; begin < visible.end;
         begin += AN_ATTENTION_TILE) {
        an_set_tile(j, &tile, (an_tokens){begin, an_attention_smaller(AN_ATTENTION_TILE, visible.end - begin)});
        const int64_t keys = an_attention_round_up(tile.keys.count, SIDE);
        load_rows(j->k, an_key_head(j, at), tile.keys, s.rows);
        pack_columns(keys, width, s.rows, s.keys);
        load_rows(j->v, an_key_head(j, at), tile.keys, s.rows);
        pack_pairs(keys, width, s.rows, s.values);
        for (int64_t first = 0; first < queries.count; first += SIDE) {
            const an_tokens block = {queries.begin + first, an_attention_smaller(SIDE, queries.count - first)};
            forward_block(j, &tile, block, first, &s);
        }
    }
    tiles_leave();
    for (int64_t i = 0; i < queries.count; i++) {
        const float log_sum = softmax_log_sum_f32(&s.softmax[i]);
        const int64_t token = queries.begin + i;
        store_token(j->dst, at, token, softmax_factor_f32(&s.softmax[i]), s.sums + i * width);
        an_row_store_f32(j->log_sum, an_token_offset(j->log_sum, at, token), 1, 1, &log_sum);
    }
}

/* ---- backward ---- */

/* What a task's scratch holds. */
typedef struct {
    bf16 *rows; /* of a tile, before they are packed: */
    bf16 *key_columns, *value_columns, *key_pairs;
    float *diff_k, *diff_v;      /* columns, of a tile or, if several heads share them, of all keys */
    float *scores, *diff_scores; /* products of SIDE queries with a tile of keys, */
    bf16 *probability_pairs, *diff_score_pairs, *diff_score_rows; /* and what becomes of those of a tile of queries */
    bf16 *q, *diff_dst;                                           /* rows of all queries of the part, */
    bf16 *q_columns, *diff_dst_columns;                           /* and columns of each tile of them: lines of TILE */
    float *diff_q;                                                /* rows */
    query_sums_f32 *sums;
} diff_scratch;

static size_t diff_layout(void *memory, int64_t size, int64_t held, int64_t queries, diff_scratch *s) {
    const size_t width = (size_t)width_of(size), tile = TILE * width, squares = TILE * TILE;
    const size_t all_queries = (size_t)an_attention_round_up(queries, TILE) * width,
                 all_keys = (size_t)an_attention_round_up(held, TILE) * width;
    size_t at = 0;
    s->rows = an_scratch_take(memory, &at, tile * sizeof *s->rows);
    s->key_columns = an_scratch_take(memory, &at, tile * sizeof *s->key_columns);
    s->value_columns = an_scratch_take(memory, &at, tile * sizeof *s->value_columns);
    s->key_pairs = an_scratch_take(memory, &at, tile * sizeof *s->key_pairs);
    s->diff_k = an_scratch_take(memory, &at, all_keys * sizeof *s->diff_k);
    s->diff_v = an_scratch_take(memory, &at, all_keys * sizeof *s->diff_v);
    s->scores = an_scratch_take(memory, &at, SIDE * TILE * sizeof *s->scores);
    s->diff_scores = an_scratch_take(memory, &at, SIDE * TILE * sizeof *s->diff_scores);
    s->probability_pairs = an_scratch_take(memory, &at, squares * sizeof *s->probability_pairs);
    s->diff_score_pairs = an_scratch_take(memory, &at, squares * sizeof *s->diff_score_pairs);
    s->diff_score_rows = an_scratch_take(memory, &at, squares * sizeof *s->diff_score_rows);
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
    for (int64_t i = 0; i < queries.count; i += TILE) {
        const int64_t count = an_attention_smaller(TILE, an_attention_round_up(queries.count - i, SIDE));
        pack_pairs(count, width, rows + i * width, pairs);
        unpack_rows(count, width, pairs, columns + i * width, TILE);
    }
}

/* What the gradient knows of each query of a part, whose gradients of dst are loaded. */
AMX static void load_sums(const an_attention_job *j, an_head at, an_tokens queries, const diff_scratch *s) {
    const int64_t width = width_of(j->size);
    for (int64_t i = 0; i < queries.count; i++) {
        const int64_t token = queries.begin + i;
        const bf16 *dst = s->rows + i % TILE * width, *diff_dst = s->diff_dst + i * width;
        __m512 sum = _mm512_setzero_ps();
        if (i % TILE == 0)
            load_rows(j->dst, at, (an_tokens){token, an_attention_smaller(TILE, queries.count - i)}, s->rows);
        for (int64_t d = 0; d < width; d += SIDE) {
            const __m512i a = _mm512_loadu_si512(dst + d), b = _mm512_loadu_si512(diff_dst + d);
            sum = _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
        }
        s->sums[i].delta = _mm512_reduce_add_ps(sum);
        s->sums[i].log_sum = ((const float *)j->log_sum->data)[an_token_offset(j->log_sum, at, token)];
    }
}

/* What becomes of the products of SIDE queries, from query `row` of the tile on. */
static void diff_rows(const an_attention_job *j, const an_key_tile *tile, an_tokens queries, int64_t row,
                      an_tokens columns, const query_sums_f32 *sums, const diff_scratch *s) {
    bf16 *probabilities = s->probability_pairs + row * TILE, *diff_scores = s->diff_score_pairs + row * TILE;
    diff_query pair[2];
    for (int64_t i = 0; i < SIDE; i++) {
        diff_query *q = &pair[i % 2];
        float *products = s->scores + i * TILE;
        q->row = products;
        q->diff_row = s->diff_scores + i * TILE;
        q->diff_scores = s->diff_score_rows + (row + i) * TILE;
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
    const int64_t step = an_attention_round_up(tile->keys.count, SIDE) / HALF * PACKED;
    const bf16 *q = s->q + first * width, *diff_dst = s->diff_dst + first * width;
    const bf16 *q_columns = s->q_columns + first * width, *diff_dst_columns = s->diff_dst_columns + first * width;
    an_tokens columns[TILE / SIDE];
    const int64_t groups = an_set_columns(j, tile, queries, SIDE, SIDE, columns);
    for (int64_t g = 0; g < groups; g++) {
        const int64_t row = g * SIDE;
        const an_tokens c = columns[g];
        if (c.count <= 0) continue;
        for (int64_t k = c.begin; k < c.begin + c.count; k += SIDE) {
            multiply(width / SIDE, q + row * width, width, s->key_columns + k / HALF * PACKED, step, s->scores + k,
                     TILE, false);
            multiply(width / SIDE, diff_dst + row * width, width, s->value_columns + k / HALF * PACKED, step,
                     s->diff_scores + k, TILE, false);
        }
        an_prefetch_diff(j, part, tile->at, queries.begin + row, tile->keys.begin + row, SIDE);
        diff_rows(j, tile, queries, row, c, s->sums + first, s);
    }
    for (int64_t k = 0; k < tile->keys.count && part->of_keys; k += SIDE) {
        const an_tokens rows = an_seeing_rows(columns, groups, k, SIDE);
        const int64_t steps = rows.count / SIDE, at = (rows.begin / SIDE * TILE + k) / HALF * PACKED;
        for (int64_t d = 0; d < width && steps > 0; d += SIDE) {
            multiply(steps, diff_dst_columns + d * TILE + rows.begin, TILE, s->probability_pairs + at,
                     TILE / HALF * PACKED, diff_v + d * TILE + k, TILE, true);
            multiply(steps, q_columns + d * TILE + rows.begin, TILE, s->diff_score_pairs + at, TILE / HALF * PACKED,
                     diff_k + d * TILE + k, TILE, true);
        }
    }
    for (int64_t g = 0; g < groups && part->of_queries; g++) {
        const an_tokens c = columns[g];
        for (int64_t d = 0; d < width && c.count > 0; d += SIDE)
            multiply(c.count / SIDE, s->diff_score_rows + g * SIDE * TILE + c.begin, TILE,
                     s->key_pairs + (c.begin / SIDE * width + d) / HALF * PACKED, width / HALF * PACKED,
                     s->diff_q + (first + g * SIDE) * width + d, width, true);
    }
}

/* All that one head of queries adds to a tile of keys, and what it gets from there. The tile has those that are seen. */
static void diff_keys(const an_attention_job *j, const an_diff_part *part, const an_key_tile *tile,
                      const diff_scratch *s, float *diff_k, float *diff_v) {
    const int64_t width = width_of(j->size), keys = an_attention_round_up(tile->keys.count, SIDE);
    const an_head at = an_key_head(j, tile->at);
    const an_tokens seeing = an_seeing_queries(j, part->queries, tile->keys);
    if (tile->keys.count <= 0 || seeing.count <= 0) return;
    load_rows(j->v, at, tile->keys, s->rows);
    pack_columns(keys, width, s->rows, s->value_columns);
    load_rows(j->k, at, tile->keys, s->rows);
    pack_columns(keys, width, s->rows, s->key_columns);
    pack_pairs(keys, width, s->rows, s->key_pairs);
    for (int64_t q = seeing.begin / TILE * TILE; q < seeing.begin + seeing.count; q += TILE) {
        const int64_t rest = part->queries.begin + part->queries.count - q;
        diff_tile(j, part, tile, (an_tokens){q, an_attention_smaller(TILE, rest)}, s, diff_k, diff_v);
    }
}

/* Stores columns of a tile of keys: lines of TILE. */
static void store_columns(const an_tensor *t, an_head at, an_tokens keys, float factor, const float *columns) {
    float rows[HALF][AN_ATTENTION_HEAD];
    const int64_t width = width_of(t->dims[3]);
    for (int64_t i = 0; i < keys.count; i += HALF) {
        for (int64_t d = 0; d < width; d += HALF)
            transpose_words(columns + d * TILE + i, TILE * sizeof *columns, rows[0] + d, sizeof rows[0]);
        for (int64_t k = i; k < i + HALF && k < keys.count; k++)
            store_token(t, at, keys.begin + k, factor, rows[k - i]);
    }
}

static void diff_part(const an_attention_job *j, const an_diff_part *part, void *memory) {
    const int64_t width = width_of(j->size), last = part->heads.begin + part->heads.count - 1;
    const float scale = (float)j->attributes->scale;
    const size_t tile_bytes = (size_t)(TILE * width) * sizeof(float);
    const an_key_range visible = an_visible_keys(j, part->queries);
    diff_scratch s;
    diff_layout(memory, j->size, an_diff_held(part, TILE), part->queries.count, &s);
    tiles_enter();
    for (int64_t head = part->heads.begin; head <= last; head++) {
        const an_head at = {part->batch, head}, key_at = an_key_head(j, at);
        an_key_tile tile = {.at = at};
        load_queries(j->q, at, part->queries, s.rows, s.q, s.q_columns);
        load_queries(j->diff_dst, at, part->queries, s.rows, s.diff_dst, s.diff_dst_columns);
        load_sums(j, at, part->queries, &s);
        memset(s.diff_q, 0, (size_t)(an_attention_round_up(part->queries.count, SIDE) * width) * sizeof *s.diff_q);
        for (int64_t done = 0; done < part->keys.count; done += TILE) {
            const int64_t begin = part->keys.begin + done, held = part->heads.count > 1 ? done * width : 0;
            const an_tokens keys = {begin, an_attention_smaller(TILE, part->keys.count - done)};
            float *diff_k = s.diff_k + held, *diff_v = s.diff_v + held;
            if (head == part->heads.begin) {
                memset(diff_k, 0, tile_bytes);
                memset(diff_v, 0, tile_bytes);
            }
            an_set_tile(j, &tile, (an_tokens){begin, an_attention_smaller(keys.count, visible.end - begin)});
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

/* ---- kernels ---- */

/* Floating-point operands are bf16, but for the mask and the log-sum-exp. */
static bool are_bf16(const an_tensor *tensors, int count) {
    for (int i = 0; i < count; i++)
        if (tensors[i].dtype != AN_DTYPE_BF16) return false;
    return true;
}

bool an_attention_amx_applies(const an_call *call) {
    return call->ctx->isa >= AN_ISA_AMX && are_bf16(call->src, AN_ATTENTION_V + 1);
}

bool an_attention_diff_amx_applies(const an_call *call) {
    return call->ctx->isa >= AN_ISA_AMX && are_bf16(call->src, AN_ATTENTION_DIFF_OF_DST + 1) &&
           call->src[AN_ATTENTION_DIFF_OF_SUM].dtype == AN_DTYPE_F32;
}

static size_t forward_bytes(const an_call *call) {
    forward_scratch s;
    return forward_layout(NULL, call->src[AN_ATTENTION_Q].dims[3], &s);
}

size_t an_attention_amx_scratch(const an_call *call) {
    return (size_t)an_context_threads(call->ctx) * forward_bytes(call);
}

an_status an_attention_amx_run(const an_call *call) {
    an_attention_job j;
    const an_status status = an_attention_job_make(&j, call);
    if (status != AN_OK) return status;
    j.query_tiles = an_tiles(j.queries, TASK);
    j.thread_bytes = forward_bytes(call);
    an_parallel(call->ctx, j.batch * j.heads * j.query_tiles, forward_task, &j);
    return AN_OK;
}

static const an_diff_kernel diff = {TASK, TILE, diff_part, diff_bytes};

size_t an_attention_diff_amx_scratch(const an_call *call) {
    return an_attention_diff_scratch(call, &diff);
}

an_status an_attention_diff_amx_run(const an_call *call) {
    return an_attention_diff_run(call, &diff);
}
#endif
