/* A block of 32 × 32 sums: how tiles compute it and how it is stored. For amx_core.c and amx_few.c. */
#ifndef AN_KERNELS_PRODUCT_AMX_BLOCK_H
#define AN_KERNELS_PRODUCT_AMX_BLOCK_H

#include "base/float16.h"
#include "kernels/common/tiles.h"
#include "kernels/product/amx.h"
#include "kernels/product/amx_pack.h"

enum {
    SIDE = AN_AMX_SIDE,
    HALF = SIDE / 2,
    SUMS = SIDE * SIDE,
    SUMS_BYTES = SUMS * (int)sizeof(float),
    BLOCK_BYTES = AN_AMX_BLOCK_BYTES,
    LINE = 64,         /* bytes of a cache line, and of a row of a tile */
    STAYING_STEPS = 20 /* of 32 k: two tiles for each are 40 KiB of a first-level cache's 48 */
};

/* ---- multiplication ---- */

/* All eight tiles are whole. */
static const an_tile_sizes whole_tiles = {.palette = 1,
                                          .row_bytes = {LINE, LINE, LINE, LINE, LINE, LINE, LINE, LINE},
                                          .rows = {HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF}};

/* What the next block needs, to be fetched meanwhile. Addresses run on past the ends, where fetching does nothing. */
typedef struct {
    const char *lines; /* of its sums or of its dst */
    int64_t stride;
    const char *inner; /* a part of the next inner panel */
} block_ahead;

/* A tile that stays in the first-level cache, or passes it by. */
#define LOAD_TILE(tile, from, stays)                   \
    do {                                               \
        if (stays)                                     \
            an_tile_load(tile, from, LINE);            \
        else                                           \
            an_tile_load_past_cache(tile, from, LINE); \
    } while (0)

/* Few lines are fetched at a time, as loads of tiles need the same buffers. Those of the inner panel come in pairs. */
static inline void fetch_ahead(block_ahead *ahead) {
    _mm_prefetch(ahead->lines, _MM_HINT_T0);
    _mm_prefetch(ahead->lines + ahead->stride, _MM_HINT_T0);
    _mm_prefetch(ahead->inner, _MM_HINT_T1);
    ahead->lines += 2 * ahead->stride;
    ahead->inner += 2 * LINE;
}

/* 32 × 32 sums over 32 k. */
AN_TILES_INLINE void multiply_step(const char *a, const char *b, bool a_stays, bool b_stays, block_ahead *ahead) {
    LOAD_TILE(6, b, b_stays);
    LOAD_TILE(4, a, a_stays);
    an_tile_multiply_bf16(0, 4, 6);
    LOAD_TILE(7, b + AN_AMX_TILE_BYTES, b_stays);
    an_tile_multiply_bf16(1, 4, 7);
    LOAD_TILE(5, a + AN_AMX_TILE_BYTES, a_stays);
    an_tile_multiply_bf16(2, 5, 6);
    an_tile_multiply_bf16(3, 5, 7);
    fetch_ahead(ahead);
}

/* gcc's intrinsics do not say that they read and write memory. */
#define TILES_FENCE() __asm__ volatile("" : : : "memory")

enum { SUMS_ROW = SIDE * (int)sizeof(float) };

/* From memory, or with NULL zeros. */
AN_TILES_INLINE void begin_sums(const float *from) {
    TILES_FENCE();
    if (from) {
        an_tile_load(0, from, SUMS_ROW);
        an_tile_load(1, from + HALF, SUMS_ROW);
        an_tile_load(2, from + SUMS / 2, SUMS_ROW);
        an_tile_load(3, from + SUMS / 2 + HALF, SUMS_ROW);
    } else {
        an_tile_zero(0);
        an_tile_zero(1);
        an_tile_zero(2);
        an_tile_zero(3);
    }
}

AN_TILES_INLINE void end_sums(float *to) {
    an_tile_store(0, to, SUMS_ROW);
    an_tile_store(1, to + HALF, SUMS_ROW);
    an_tile_store(2, to + SUMS / 2, SUMS_ROW);
    an_tile_store(3, to + SUMS / 2 + HALF, SUMS_ROW);
    TILES_FENCE();
}

/* Stores sums and begins others with zeros and a step. Each tile is stored just before it is used again: stores of all
 * four would wait for the last step, and the new step for them, which takes as long as a step does. */
AN_TILES_INLINE void exchange_sums(float *to, const char *a, const char *b, bool a_stays, bool b_stays,
                                   block_ahead *ahead) {
    TILES_FENCE();
    LOAD_TILE(6, b, b_stays);
    LOAD_TILE(4, a, a_stays);
    an_tile_store(0, to, SUMS_ROW);
    an_tile_zero(0);
    an_tile_multiply_bf16(0, 4, 6);
    LOAD_TILE(7, b + AN_AMX_TILE_BYTES, b_stays);
    an_tile_store(1, to + HALF, SUMS_ROW);
    an_tile_zero(1);
    an_tile_multiply_bf16(1, 4, 7);
    LOAD_TILE(5, a + AN_AMX_TILE_BYTES, a_stays);
    an_tile_store(2, to + SUMS / 2, SUMS_ROW);
    an_tile_zero(2);
    an_tile_multiply_bf16(2, 5, 6);
    an_tile_store(3, to + SUMS / 2 + HALF, SUMS_ROW);
    an_tile_zero(3);
    an_tile_multiply_bf16(3, 5, 7);
    fetch_ahead(ahead);
    TILES_FENCE();
}

/* sums += a·b over some steps of 32 k. One of the operands stays in the first-level cache for so many steps, as far as
 * it fits. */
AN_TILES_INLINE void multiply_steps(const char *a, const char *b, int64_t steps, int64_t staying, bool a_stays,
                                    block_ahead *ahead) {
    int64_t step = 0;
    for (; step < steps && step < staying; step++, a += BLOCK_BYTES, b += BLOCK_BYTES)
        multiply_step(a, b, a_stays, !a_stays, ahead);
    for (; step < steps; step++, a += BLOCK_BYTES, b += BLOCK_BYTES) multiply_step(a, b, false, false, ahead);
}

/* The same from memory, and to it. */
AN_TILES_INLINE void multiply_block(const char *a, const char *b, int64_t steps, bool a_stays, bool add, float *sums,
                                    block_ahead ahead) {
    begin_sums(add ? sums : NULL);
    multiply_steps(a, b, steps, STAYING_STEPS, a_stays, &ahead);
    end_sums(sums);
}

/* ---- dst ---- */

/* Where a block lies; `rows` and `columns` are how many of the 32 are there. */
typedef struct {
    int64_t item, row, column, rows, columns, offset;
} dst_block;

static inline __mmask16 half_mask(int64_t columns) {
    return (__mmask16)(columns <= 0 ? 0 : columns >= HALF ? 0xffff : (1u << columns) - 1);
}

static inline void load_sums(const an_amx_job *job, dst_block d, float *sums) {
    const __mmask16 left = half_mask(d.columns), right = half_mask(d.columns - HALF);
    const float *from = (const float *)job->dst + d.offset;
    for (int64_t row = 0; row < d.rows; row++, from += job->row_stride, sums += SIDE) {
        _mm512_store_ps(sums, _mm512_maskz_loadu_ps(left, from));
        _mm512_store_ps(sums + HALF, _mm512_maskz_loadu_ps(right, from + HALF));
    }
}

/* Where rows of dst go. With `streams`, whole lines go to memory past the caches, without being read first. */
typedef struct {
    __mmask16 left, right;
    bool streams;
} row_store;

static inline row_store row_store_of(dst_block d, bool streams) {
    return (row_store){half_mask(d.columns), half_mask(d.columns - HALF), streams && d.columns == SIDE};
}

static inline void store_row(row_store s, __m512 x, __m512 y, float *to) {
    if (s.streams) {
        _mm512_stream_ps(to, x);
        _mm512_stream_ps(to + HALF, y);
    } else {
        _mm512_mask_storeu_ps(to, s.left, x);
        _mm512_mask_storeu_ps(to + HALF, s.right, y);
    }
}

static void store_f32(const an_amx_job *job, dst_block d, bool streams, const float *sums) {
    const row_store store = row_store_of(d, streams);
    float *to = (float *)job->dst + d.offset;
    for (int64_t row = 0; row < d.rows; row++, to += job->row_stride, sums += SIDE)
        store_row(store, _mm512_load_ps(sums), _mm512_load_ps(sums + HALF), to);
}

/* The same after additions: of `count` blocks, nearest first, and then of what the job adds. */
static void store_with_below(const an_amx_job *job, dst_block d, bool streams, const float *const *below, int count,
                             const float *sums) {
    const row_store store = row_store_of(d, streams);
    float *to = (float *)job->dst + d.offset;
    int64_t at = (d.item * job->rows + d.row) * job->columns + d.column;
    for (int64_t row = 0; row < d.rows; row++, to += job->row_stride, at += job->columns) {
        __m512 x = _mm512_load_ps(sums + row * SIDE), y = _mm512_load_ps(sums + row * SIDE + HALF);
        for (int i = 0; i < count; i++) {
            x = _mm512_add_ps(_mm512_load_ps(below[i] + row * SIDE), x);
            y = _mm512_add_ps(_mm512_load_ps(below[i] + row * SIDE + HALF), y);
        }
        for (int i = job->add_count - 1; i >= 0; i--) {
            const float *from = (const float *)job->add_to[i] + at;
            x = _mm512_add_ps(_mm512_maskz_loadu_ps(store.left, from), x);
            y = _mm512_add_ps(_mm512_maskz_loadu_ps(store.right, from + HALF), y);
        }
        store_row(store, x, y, to);
    }
}

/* The instruction makes zeros of denormals. Sums are none, but what `finish` made of them may be. */
AN_TILES static void store_bf16(const an_amx_job *job, dst_block d, const float *sums) {
    const __mmask32 mask = (__mmask32)half_mask(d.columns) | (__mmask32)half_mask(d.columns - HALF) << HALF;
    uint16_t *to = (uint16_t *)job->dst + d.offset;
    for (int64_t row = 0; row < d.rows; row++, to += job->row_stride, sums += SIDE) {
        if (job->finish) {
            for (int64_t column = 0; column < d.columns; column++) to[column] = an_f32_to_bf16(sums[column]);
        } else {
            const __m512i rounded = an_round_32_to_bf16(_mm512_load_ps(sums + HALF), _mm512_load_ps(sums));
            _mm512_mask_storeu_epi16(to, mask, rounded);
        }
    }
}

AN_TILES static void store_block(const an_amx_job *job, dst_block d, bool streams, float *sums) {
    if (job->finish) {
        const an_product_block block = {d.item, d.row, d.column, d.rows, d.columns, SIDE};
        job->finish->f32(job->finish->user, &block, sums);
    }
    if (job->add_count)
        store_with_below(job, d, streams, NULL, 0, sums);
    else if (job->dtype == AN_DTYPE_F32)
        store_f32(job, d, streams, sums);
    else
        store_bf16(job, d, sums);
}

/* For products with few rows, whose sums lie column by column: 64 columns from `column` on are stored row by row. */
static inline void store_columns(const an_amx_job *job, int64_t column, const float *turned) {
    _Alignas(LINE) float sums[HALF * SIDE];
    for (int half = 0; half < 2 && column < job->columns; half++, column += SIDE, turned += SIDE * HALF) {
        const dst_block d = {
            .column = column, .rows = job->rows, .columns = an_smaller(SIDE, job->columns - column), .offset = column};
        for (int64_t row = 0; row < job->rows; row++)
            for (int64_t i = 0; i < SIDE; i++) sums[row * SIDE + i] = turned[i * HALF + row];
        store_block(job, d, false, sums);
    }
}

/* For products with few columns, whose sums lie row by row, 16 of each: 64 rows from `row` on. */
static inline void store_rows(const an_amx_job *job, int64_t row, const float *from) {
    _Alignas(LINE) float sums[SUMS] = {0};
    for (int half = 0; half < 2 && row < job->rows; half++, row += SIDE, from += SIDE * HALF) {
        const dst_block d = {.row = row,
                             .rows = an_smaller(SIDE, job->rows - row),
                             .columns = job->columns,
                             .offset = row * job->row_stride};
        for (int64_t i = 0; i < SIDE; i++) _mm512_store_ps(sums + i * SIDE, _mm512_load_ps(from + i * HALF));
        store_block(job, d, false, sums);
    }
}

#endif
