/* Products of bf16 on the tiles of AMX, and packing for them: what amx.c and amx_diff.c share.
 *
 * A product computes blocks of 32 × 32, from two tiles of either side for each 32 of its depth. Its left side lies in
 * rows, 32 of its depth side by side. Its right side is packed into tiles of 16 rows × 16 columns of pairs: a pair is
 * two neighbours along the depth.
 */
#ifndef AN_KERNELS_ATTENTION_AMX_H
#define AN_KERNELS_ATTENTION_AMX_H

#include <string.h>

#include "kernels/attention/rows.h"
#include "kernels/common/tiles.h"

typedef uint16_t bf16;

enum {
    SIDE = 32,            /* of a block, and of a step of its depth */
    HALF = SIDE / 2,      /* rows of a tile, and columns of pairs */
    PACKED = HALF * SIDE, /* elements of a tile */
    TASK = 256            /* queries of a task */
};

/* ---- tiles ---- */

/* All eight tiles are whole: what is smaller is padded with zeros in scratch. */
static const an_tile_sizes whole_tiles = {.palette = 1,
                                          .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                          .rows = {HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF}};

AN_TILES static inline void tiles_enter(void) {
    an_tile_configure(&whole_tiles);
}

AN_TILES static inline void tiles_leave(void) {
    an_tile_release();
}

/* c (+)= a·b for a block. Rows of a and c are a_row and c_row elements apart; of b, the tiles of its two halves lie one
 * after the other, b_step elements from those of the next step. */
AN_TILES static inline void multiply(int64_t steps, const bf16 *a, int64_t a_row, const bf16 *b, int64_t b_step,
                                     float *c, int64_t c_row, bool add) {
    enum { PACKED_ROW = SIDE * (int)sizeof *b };
    const int64_t a_bytes = a_row * (int64_t)sizeof *a, c_bytes = c_row * (int64_t)sizeof *c;
    float *lower = c + HALF * c_row;
    __asm__ volatile("" : : : "memory"); /* gcc's intrinsics do not say that they read memory */
    if (add) {
        an_tile_load(0, c, c_bytes);
        an_tile_load(1, c + HALF, c_bytes);
        an_tile_load(2, lower, c_bytes);
        an_tile_load(3, lower + HALF, c_bytes);
    } else {
        an_tile_zero(0);
        an_tile_zero(1);
        an_tile_zero(2);
        an_tile_zero(3);
    }
    for (int64_t s = 0; s < steps; s++, a += SIDE, b += b_step) {
        an_tile_load(4, a, a_bytes);
        an_tile_load(5, a + HALF * a_row, a_bytes);
        an_tile_load(6, b, PACKED_ROW);
        an_tile_load(7, b + PACKED, PACKED_ROW);
        an_tile_multiply_bf16(0, 4, 6);
        an_tile_multiply_bf16(1, 4, 7);
        an_tile_multiply_bf16(2, 5, 6);
        an_tile_multiply_bf16(3, 5, 7);
    }
    an_tile_store(0, c, c_bytes);
    an_tile_store(1, c + HALF, c_bytes);
    an_tile_store(2, lower, c_bytes);
    an_tile_store(3, lower + HALF, c_bytes);
}

/* ---- packing ---- */

/* 16 × 16 words. */
static inline void transpose_words(const void *from, int64_t from_bytes, void *to, int64_t to_bytes) {
    enum { EVEN = 0x88, ODD = 0xdd }; /* quarters 0 and 2, 1 and 3, of both operands */
    __m512i a[HALF], b[HALF];
    for (int i = 0; i < HALF; i++) a[i] = _mm512_loadu_si512((const char *)from + i * from_bytes);
    for (int i = 0; i < HALF; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < HALF; i += 4) {
        for (int k = 0; k < 2; k++) {
            a[i + 2 * k] = _mm512_unpacklo_epi64(b[i + k], b[i + k + 2]);
            a[i + 2 * k + 1] = _mm512_unpackhi_epi64(b[i + k], b[i + k + 2]);
        }
    }
    /* Vector 4g + k has column k of quarter q in its quarter q, for rows 4g to 4g + 3. */
    for (int k = 0; k < 4; k++) {
        const __m512i even0 = _mm512_shuffle_i32x4(a[k], a[4 + k], EVEN);
        const __m512i odd0 = _mm512_shuffle_i32x4(a[k], a[4 + k], ODD);
        const __m512i even1 = _mm512_shuffle_i32x4(a[8 + k], a[12 + k], EVEN);
        const __m512i odd1 = _mm512_shuffle_i32x4(a[8 + k], a[12 + k], ODD);
        b[k] = _mm512_shuffle_i32x4(even0, even1, EVEN);
        b[4 + k] = _mm512_shuffle_i32x4(odd0, odd1, EVEN);
        b[8 + k] = _mm512_shuffle_i32x4(even0, even1, ODD);
        b[12 + k] = _mm512_shuffle_i32x4(odd0, odd1, ODD);
    }
    for (int i = 0; i < HALF; i++) _mm512_storeu_si512((char *)to + i * to_bytes, b[i]);
}

/* Two rows of 16 as pairs. */
static inline __m512i pairs_of(__m256i even, __m256i odd) {
    const int upper = 16; /* bits */
    return _mm512_or_si512(_mm512_cvtepu16_epi32(even), _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), upper));
}

/* Rows as the columns of a right side, whose depth is the rows' own: step, then column, in tiles. */
static inline void pack_columns(int64_t count, int64_t width, const bf16 *rows, bf16 *packed) {
    for (int64_t d = 0; d < width; d += SIDE)
        for (int64_t i = 0; i < count; i += HALF, packed += PACKED)
            transpose_words(rows + i * width + d, width * (int64_t)sizeof *rows, packed, SIDE * sizeof *packed);
}

/* Rows as the depth of a right side, whose columns are the rows' own. Rows are `row` elements apart. */
static inline void pack_pairs_of(int64_t count, int64_t width, const bf16 *rows, int64_t row, bf16 *packed) {
    for (int64_t i = 0; i < count; i += SIDE)
        for (int64_t d = 0; d < width; d += HALF, packed += PACKED)
            for (int64_t p = 0; p < HALF; p++) {
                const bf16 *at = rows + (i + 2 * p) * row + d;
                const __m256i even = _mm256_loadu_si256((const __m256i *)(const void *)at);
                const __m256i odd = _mm256_loadu_si256((const __m256i *)(const void *)(at + row));
                _mm512_storeu_si512(packed + p * SIDE, pairs_of(even, odd));
            }
}
static inline void pack_pairs(int64_t count, int64_t width, const bf16 *rows, bf16 *packed) {
    pack_pairs_of(count, width, rows, width, packed);
}

/* Pairs as rows, each of which has all `count` elements of one column: a left side whose depth is that of the pairs. */
static inline void unpack_rows(int64_t count, int64_t width, const bf16 *packed, bf16 *rows, int64_t row) {
    for (int64_t i = 0; i < count; i += SIDE)
        for (int64_t d = 0; d < width; d += HALF, packed += PACKED)
            transpose_words(packed, SIDE * sizeof *packed, rows + d * row + i, row * (int64_t)sizeof *rows);
}

/* ---- loading and storing rows of (batch, heads, tokens, size) ---- */

/* Elements of a row in scratch. */
static inline int64_t width_of(int64_t size) {
    return an_next_multiple(size, SIDE);
}

/* Rows of `width` elements, with zeros after those of the tensor, and rows of zeros up to a multiple of SIDE. */
static inline void load_rows(const an_tensor *t, an_head at, an_tokens tokens, bf16 *rows) {
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
    const int64_t empty = an_next_multiple(tokens.count, SIDE) - tokens.count;
    memset(rows + tokens.count * width, 0, (size_t)(empty * width) * sizeof *rows);
}

/* At most SIDE rows where they lie, if there are so many and nothing is missing in them; else a copy.
 * `row`: how far they are apart. */
static inline const bf16 *find_rows(const an_tensor *t, an_head at, an_tokens tokens, bf16 *copy, int64_t *row) {
    *row = t->strides[2];
    if (tokens.count == SIDE && t->strides[3] == 1 && t->dims[3] % SIDE == 0)
        return (const bf16 *)t->data + an_token_offset(t, at, tokens.begin);
    load_rows(t, at, tokens, copy);
    *row = width_of(t->dims[3]);
    return copy;
}

/* Stores a row times a factor. */
AN_TILES static inline void store_token(const an_tensor *t, an_head at, int64_t token, float factor, const float *row) {
    const int64_t size = t->dims[3], stride = t->strides[3];
    bf16 *to = (bf16 *)t->data + an_token_offset(t, at, token), buffer[AN_ATTENTION_HEAD];
    bf16 *rounded = stride == 1 && size % SIDE == 0 ? to : buffer;
    for (int64_t d = 0; d < size; d += SIDE) {
        const __m512 lower = load_f32(row + d) * broadcast_f32(factor);
        const __m512 upper = load_f32(row + d + HALF) * broadcast_f32(factor);
        const __m512i both = an_round_32_to_bf16(upper, lower);
        memcpy(rounded + d, &both, sizeof both);
    }
    for (int64_t d = 0; d < size && rounded != to; d++) to[d * stride] = rounded[d];
}

/* Whether all of these are bf16. */
static inline bool are_bf16(const an_tensor *tensors, int count) {
    for (int i = 0; i < count; i++)
        if (tensors[i].dtype != AN_DTYPE_BF16) return false;
    return true;
}

#endif
