/* A model of tiles in plain C: what the instructions of level amx do, bit for bit, on any machine.
 *
 * Programs with AN_TILE_MODEL="tiles/model.h" run the kernels for AMX on it: kernels/common/tiles.h. What it computes
 * was compared with a processor: test_model.c. A kernel that the processor would stop, because a tile is not configured
 * or sizes do not fit, is stopped here with a message and abort(). What tiles load and store, sanitizers see here.
 */
#ifndef TESTS_TILES_MODEL_H
#define TESTS_TILES_MODEL_H

#include <stdint.h>

enum { TILE_MODEL_TILES = 8, TILE_MODEL_ROWS = 16, TILE_MODEL_ROW_BYTES = 64 };

/* `sizes` are those of an_tile_sizes. A thread has tiles of its own. */
void tile_model_configure(const void *sizes);
void tile_model_release(void);
void tile_model_zero(int number);
void tile_model_load(int number, const void *from, int64_t stride);
/* The same: the model has no cache. */
static inline void tile_model_load_past_cache(int number, const void *from, int64_t stride) {
    tile_model_load(number, from, stride);
}
void tile_model_store(int number, void *to, int64_t stride);
void tile_model_multiply_bf16(int sums, int a, int b);
void tile_model_multiply_int8(int sums, int a, int b);

void tile_model_round(int count, const float *numbers, uint16_t *rounded);
void tile_model_multiply_pairs(int count, float *sums, const uint16_t *a, const uint16_t *b);

#ifdef AN_TILE_MODEL
#include <immintrin.h>

#define AN_TILES
#define an_tile_configure(sizes) tile_model_configure(sizes)
#define an_tile_release() tile_model_release()
#define an_tile_zero(tile) tile_model_zero(tile)
#define an_tile_load(tile, from, stride) tile_model_load(tile, from, stride)
#define an_tile_load_past_cache(tile, from, stride) tile_model_load_past_cache(tile, from, stride)
#define an_tile_store(tile, to, stride) tile_model_store(tile, to, stride)
#define an_tile_multiply_bf16(sums, a, b) tile_model_multiply_bf16(sums, a, b)
#define an_tile_multiply_int8(sums, a, b) tile_model_multiply_int8(sums, a, b)

static inline __m512i an_round_32_to_bf16(__m512 upper, __m512 lower) {
    float numbers[32];
    uint16_t rounded[32];
    _mm512_storeu_ps(numbers, lower);
    _mm512_storeu_ps(numbers + 16, upper);
    tile_model_round(32, numbers, rounded);
    return _mm512_loadu_si512(rounded);
}

static inline __m256i an_round_16_to_bf16(__m512 numbers) {
    return _mm512_castsi512_si256(an_round_32_to_bf16(numbers, numbers));
}

static inline __m512 an_multiply_pairs_bf16(__m512 sums, __m512i a, __m512i b) {
    float to[16];
    uint16_t left[32], right[32];
    _mm512_storeu_ps(to, sums);
    _mm512_storeu_si512(left, a);
    _mm512_storeu_si512(right, b);
    tile_model_multiply_pairs(16, to, left, right);
    return _mm512_loadu_ps(to);
}
#endif

#endif
