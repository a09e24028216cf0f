/* The instructions that level amx adds to avx512: tiles, and vectors of bf16. Kernels call them by these names alone.
 *
 * A test program that is compiled with AN_TILE_MODEL, the name of a header, gets the functions of that header instead,
 * which do the same in plain C (tests/tiles/model.h). So kernels for AMX run on every machine with AVX-512. The library
 * never has the model in it.
 */
#ifndef AN_KERNELS_COMMON_TILES_H
#define AN_KERNELS_COMMON_TILES_H

#include <immintrin.h>
#include <stdint.h>

/* What the processor reads: of each tile its bytes in a row, at most 64, and its rows, at most 16. */
typedef struct an_tile_sizes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} an_tile_sizes;

#ifdef AN_TILE_MODEL
#include AN_TILE_MODEL
#else

/* Stands before every function that uses one of these. */
#define AN_TILES __attribute__((target("amx-tile,amx-bf16,amx-int8,avx512bf16")))

/* Tiles are numbers from 0 to 7. gcc's intrinsics do not say that they read and write memory. */
#define an_tile_configure(sizes) _tile_loadconfig(sizes)
#define an_tile_release() _tile_release()
#define an_tile_zero(tile) _tile_zero(tile)
#define an_tile_load(tile, from, stride) _tile_loadd(tile, from, stride)
#define an_tile_load_past_cache(tile, from, stride) _tile_stream_loadd(tile, from, stride)
#define an_tile_store(tile, to, stride) _tile_stored(tile, to, stride)

/* sums += a·b, of bf16 or of signed bytes. */
#define an_tile_multiply_bf16(sums, a, b) _tile_dpbf16ps(sums, a, b)
#define an_tile_multiply_int8(sums, a, b) _tile_dpbssd(sums, a, b)

/* Rounds to the nearest bf16, 32 numbers or 16. Denormals become zeros. */
#define an_round_32_to_bf16(upper, lower) ((__m512i)_mm512_cvtne2ps_pbh(upper, lower))
#define an_round_16_to_bf16(numbers) ((__m256i)_mm512_cvtneps_pbh(numbers))

/* sums + a·b for each of 16 pairs of bf16. */
#define an_multiply_pairs_bf16(sums, a, b) _mm512_dpbf16_ps(sums, (__m512bh)(a), (__m512bh)(b))

#endif

#define AN_TILES_INLINE AN_TILES static inline __attribute__((always_inline))

#endif
