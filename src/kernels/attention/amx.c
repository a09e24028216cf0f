/* Attention in bf16 on the tiles of AMX.
 *
 * q, k, v and the gradient of dst are bf16 as they come; products accumulate in f32; the softmax is computed in f32.
 * What it gives is rounded to bf16 where it is an operand again: the probabilities for the product with v, and in the
 * gradient these and the gradients of the scores. PyTorch and FlashAttention round in the same places. Work is cut as
 * in tiled.c, and what is hidden is treated as there.
 */
#include "kernels/attention/job.h"

#ifdef __AVX512F__
#include "base/context.h"
#include "base/parallel.h"
#include "kernels/attention/amx.h"

/* One query's products with a tile of keys become probabilities, but for the divisor that the softmax will know at the
 * end. Returns what earlier tiles' results are to be multiplied with. */
AN_TILES static float round_forward(const an_attention_job *j, const an_key_tile *tile, int64_t query,
                                    an_tokens columns, softmax_f32 *softmax, float *row, bf16 *probabilities) {
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
        const __m512i both = an_round_32_to_bf16(upper, lower);
        memcpy(probabilities + columns.begin + i, &both, sizeof both);
    }
    softmax->sum += _mm512_reduce_add_ps(lower_sum + upper_sum);
    return terms.shrink;
}

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
    const int64_t width = width_of(j->size), tiles = an_next_multiple(tile->keys.count, SIDE) / HALF;
    float *sums = s->sums + first * width;
    an_tokens columns = {0};
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

/* ---- few queries, as when tokens are generated ----
 *
 * What takes time then is to bring keys and values into the shape of tiles. Keys are the left side of their products,
 * as they lie, and queries the right one: the sums have the same products in the same order, with the factors
 * exchanged, and so the same bits. Rows of tiles that belong to no query have what scratch held before: a row's sums
 * come from that row alone, and nobody reads these. */

/* Products of at most HALF queries, which `packed` has as columns, with keys. */
AN_TILES static void few_scores(const an_attention_job *j, const an_key_tile *tile, an_tokens columns,
                                const bf16 *packed, const forward_scratch *s) {
    enum { PACKED_ROW = SIDE * (int)sizeof *packed, SUMS_ROW = HALF * (int)sizeof(float) };
    const an_head at = an_key_head(j, tile->at);
    const int64_t steps = width_of(j->size) / SIDE;
    for (int64_t c = columns.begin; c < columns.begin + columns.count; c += SIDE) {
        const an_tokens some = {tile->keys.begin + c, an_smaller(SIDE, tile->keys.count - c)};
        _Alignas(AN_ALIGNMENT) float turned[2][HALF * HALF];
        int64_t row;
        const bf16 *keys = find_rows(j->k, at, some, s->rows, &row);
        for (int64_t i = 0; i < some.count; i++) an_prefetch_token(j->v, at, some.begin + i, false);
        const int64_t row_bytes = row * (int64_t)sizeof *keys;
        __asm__ volatile("" : : : "memory"); /* gcc's intrinsics do not say that they read memory */
        an_tile_zero(0);
        an_tile_zero(1);
        for (int64_t i = 0; i < steps; i++) {
            an_tile_load(4, keys + i * SIDE, row_bytes);
            an_tile_load(5, keys + HALF * row + i * SIDE, row_bytes);
            an_tile_load(6, packed + i * PACKED, PACKED_ROW);
            an_tile_multiply_bf16(0, 4, 6);
            an_tile_multiply_bf16(1, 5, 6);
        }
        an_tile_store(0, turned[0], SUMS_ROW);
        an_tile_store(1, turned[1], SUMS_ROW);
        __asm__ volatile("" : : : "memory");
        for (int i = 0; i < 2; i++)
            transpose_words(turned[i], SUMS_ROW, s->scores + c + i * HALF, AN_ATTENTION_TILE * sizeof *s->scores);
    }
}

/* Adds products of at most HALF rows of probabilities with values. */
AN_TILES static void few_values(const an_attention_job *j, const an_key_tile *tile, an_tokens columns,
                                const forward_scratch *s) {
    enum { PACKED_ROW = SIDE * (int)sizeof(bf16), LEFT_ROW = AN_ATTENTION_TILE * (int)sizeof(bf16) };
    const an_head at = an_key_head(j, tile->at);
    const int64_t width = width_of(j->size), step = width / HALF * PACKED, sums_row = width * (int64_t)sizeof *s->sums;
    for (int64_t c = 0; c < columns.count; c += SIDE) {
        const int64_t first = columns.begin + c;
        const an_tokens some = {tile->keys.begin + first, an_smaller(SIDE, tile->keys.count - first)};
        int64_t row;
        const bf16 *values = find_rows(j->v, at, some, s->rows, &row);
        pack_pairs_of(SIDE, width, values, row, s->values + c / SIDE * step);
    }
    __asm__ volatile("" : : : "memory");
    for (int64_t d = 0; d < width; d += SIDE) {
        const bf16 *right = s->values + d / HALF * PACKED;
        an_tile_load(0, s->sums + d, sums_row);
        an_tile_load(1, s->sums + d + HALF, sums_row);
        for (int64_t c = 0; c < columns.count; c += SIDE, right += step) {
            an_tile_load(4, s->probabilities + columns.begin + c, LEFT_ROW);
            an_tile_load(6, right, PACKED_ROW);
            an_tile_load(7, right + PACKED, PACKED_ROW);
            an_tile_multiply_bf16(0, 4, 6);
            an_tile_multiply_bf16(1, 4, 7);
        }
        an_tile_store(0, s->sums + d, sums_row);
        an_tile_store(1, s->sums + d + HALF, sums_row);
    }
    __asm__ volatile("" : : : "memory");
}

static void few_queries(const an_attention_job *j, an_tokens queries, an_key_tile *tile, const forward_scratch *s) {
    const an_key_range visible = an_visible_keys(j, queries);
    const int64_t width = width_of(j->size);
    bf16 *packed = s->keys; /* which hold no keys here */
    pack_columns(HALF, width, s->q, packed);
    for (int64_t begin = visible.begin / AN_ATTENTION_TILE * AN_ATTENTION_TILE; begin < visible.end;
         begin += AN_ATTENTION_TILE) {
        an_tokens columns = {0};
        an_set_tile(j, tile, (an_tokens){begin, an_smaller(AN_ATTENTION_TILE, visible.end - begin)});
        an_set_columns(j, tile, queries, SIDE, SIDE, &columns);
        if (columns.count <= 0) continue;
        few_scores(j, tile, columns, packed, s);
        for (int64_t i = 0; i < queries.count; i++) {
            const int64_t at = i * AN_ATTENTION_TILE;
            const float shrink = round_forward(j, tile, queries.begin + i, columns, &s->softmax[i], s->scores + at,
                                               s->probabilities + at);
            for (int64_t d = 0; d < width && shrink != 1; d++) s->sums[i * width + d] *= shrink;
        }
        few_values(j, tile, columns, s);
    }
}

/* ---- a task ---- */

static void many_queries(const an_attention_job *j, an_tokens queries, an_key_tile *tile, const forward_scratch *s) {
    const an_key_range visible = an_visible_keys(j, queries);
    const int64_t width = width_of(j->size);
    const an_head at = an_key_head(j, tile->at);
    memset(s->probabilities, 0, SIDE * AN_ATTENTION_TILE * sizeof *s->probabilities);
    for (int64_t begin = visible.begin / AN_ATTENTION_TILE * AN_ATTENTION_TILE; begin < visible.end;
         begin += AN_ATTENTION_TILE) {
        an_set_tile(j, tile, (an_tokens){begin, an_smaller(AN_ATTENTION_TILE, visible.end - begin)});
        const int64_t keys = an_next_multiple(tile->keys.count, SIDE);
        load_rows(j->k, at, tile->keys, s->rows);
        pack_columns(keys, width, s->rows, s->keys);
        load_rows(j->v, at, tile->keys, s->rows);
        pack_pairs(keys, width, s->rows, s->values);
        for (int64_t first = 0; first < queries.count; first += SIDE) {
            const an_tokens block = {queries.begin + first, an_smaller(SIDE, queries.count - first)};
            forward_block(j, tile, block, first, s);
        }
    }
}

static void forward_task(void *user, int64_t index, int thread) {
    const an_attention_job *j = user;
    const an_head at = {index / j->query_tiles / j->heads, index / j->query_tiles % j->heads};
    const an_tokens queries = an_tile_tokens(index % j->query_tiles, TASK, j->queries);
    const int64_t width = width_of(j->size);
    an_key_tile tile = {.at = at};
    forward_scratch s;

    tiles_enter();
    forward_layout(an_thread_scratch(j, thread), j->size, &s);
    load_rows(j->q, at, queries, s.q);
    memset(s.sums, 0, (size_t)(an_next_multiple(queries.count, SIDE) * width) * sizeof *s.sums);
    for (int64_t i = 0; i < queries.count; i++) s.softmax[i] = (softmax_f32){-infinity_f32(), 0};
    if (queries.count <= HALF)
        few_queries(j, queries, &tile, &s);
    else
        many_queries(j, queries, &tile, &s);
    tiles_leave();
    for (int64_t i = 0; i < queries.count; i++) {
        const float log_sum = softmax_log_sum_f32(&s.softmax[i]);
        const int64_t token = queries.begin + i;
        store_token(j->dst, at, token, softmax_factor_f32(&s.softmax[i]), s.sums + i * width);
        an_row_store_f32(j->log_sum, an_token_offset(j->log_sum, at, token), 1, 1, &log_sum);
    }
}

/* ---- the kernel ---- */

/* An output of a graph stays f32, also where its inputs are bf16. */
bool an_attention_amx_applies(const an_call *call) {
    return call->ctx->isa >= AN_ISA_AMX && are_bf16(call->src, AN_ATTENTION_V + 1) && are_bf16(call->dst, 1);
}

static size_t forward_bytes(const an_call *call) {
    forward_scratch s;
    return forward_layout(NULL, call->src[AN_ATTENTION_Q].dims[3], &s);
}

size_t an_attention_amx_scratch(const an_call *call) {
    return (size_t)an_context_threads(call->ctx) * forward_bytes(call);
}

an_attention_forward an_attention_amx_forward(const an_call *call) {
    return (an_attention_forward){forward_task, TASK, forward_bytes(call)};
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
#endif
