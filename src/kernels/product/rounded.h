/* Products of rows that are rounded to integers with weights of q8_0, for generation: node attribute rounds_a.
 *
 * 32 elements of a row become integers of 15 bits and a scale, so that their products with the 32 numbers of a block
 * are added as integers, without any error. An element of dst is
 *
 *     sum = fma(total, scale of the block · scale of the row's 32, sum)        for each 32 of k, in order
 *
 * in f32. Nothing else is rounded, so every kernel and level of instructions gives the same bits, whatever the other
 * rows are. 15 bits of the largest of 32 are more exact than bf16, which has 8 for each.
 */
#ifndef AN_KERNELS_PRODUCT_ROUNDED_H
#define AN_KERNELS_PRODUCT_ROUNDED_H

#include <stdbool.h>

#include "base/q8_0.h"
#include "kernels/product/product.h"

/* Compiled once a level. */
#define an_rounded_job_make AN_LEVELED(an_rounded_job_make)
#define an_rounded_row AN_LEVELED(an_rounded_row)
#define an_rounded_load AN_LEVELED(an_rounded_load)
#define an_rounded_store AN_LEVELED(an_rounded_store)
#define an_product_rounded_scratch AN_LEVELED(an_product_rounded_scratch)
#define an_product_rounded_run AN_LEVELED(an_product_rounded_run)
#define an_product_amx_rounded_applies AN_LEVELED(an_product_amx_rounded_applies)
#define an_product_amx_rounded_scratch AN_LEVELED(an_product_amx_rounded_scratch)
#define an_product_amx_rounded_run AN_LEVELED(an_product_amx_rounded_run)

enum {
    AN_ROUNDED_MOST = 127 << 7, /* the largest number: 7 bits and a sign, times 128 */
    AN_ROUNDED_COLUMNS = 64,    /* of dst, that are stored at once, */
    AN_ROUNDED_ROWS = 16        /* and rows */
};

typedef struct an_rounded_job {
    const an_call *call;
    int64_t rows, columns, blocks; /* blocks: of a row, so k ÷ 32 */
    const unsigned char *b;        /* a row of blocks for each column of dst, */
    int64_t row_bytes;             /* this far apart */
} an_rounded_job;

an_rounded_job an_rounded_job_make(const an_call *call);

/* Where a row of a begins, and 32 elements of it: its own memory, or `buffer`. */
int64_t an_rounded_row(const an_rounded_job *job, int64_t row);
const float *an_rounded_load(const an_rounded_job *job, int64_t offset, int64_t block, float *buffer);

/* At most AN_ROUNDED_ROWS × AN_ROUNDED_COLUMNS sums, whose rows are AN_ROUNDED_COLUMNS apart. */
void an_rounded_store(const an_rounded_job *job, int64_t row, int64_t rows, int64_t column, int64_t columns,
                      float *sums);

/* Rounds 32 elements, to the nearest and halves to even, and returns their scale. Elements that are all smaller than
 * 2⁻⁸⁰ count as zero; so no scale times that of a block is a denormal. Where one is not finite, the scale is no
 * number, and nothing that is computed with it. */
static inline float an_round_block(const float *values, int16_t *numbers) {
    const uint32_t infinity = 0x7f800000, sign = 0x80000000;
    const float minimum = 0x1p-80F, whole = 0x1.8p23F; /* where neighbours are 1 apart */
    uint32_t bits = 0;
    for (int i = 0; i < AN_Q8_0_ELEMENTS; i++) {
        const uint32_t size = an_bits_of_f32(values[i]) & ~sign; /* in the order of the numbers */
        bits = size > bits ? size : bits;
    }
    const float maximum = an_f32_of_bits(bits);
    const bool counts = bits < infinity && maximum >= minimum;
    const float factor = counts ? (float)AN_ROUNDED_MOST / maximum : 0;
    for (int i = 0; i < AN_Q8_0_ELEMENTS; i++)
        numbers[i] = (int16_t)(an_bits_of_f32(values[i] * factor + whole) - an_bits_of_f32(whole));
    return counts ? maximum / (float)AN_ROUNDED_MOST : bits < infinity ? 0 : an_f32_of_bits(infinity | 1U << 22);
}

/* a·b + c, rounded once. Where there is no instruction for it: the product is exact in f64, and a sum there that is not
 * exact gets an odd last bit, so that its rounding to f32 is as if it were the only one (Boldo and Melquiond 2008). */
static inline float an_multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    const double product = (double)a * (double)b, sum = product + (double)c;
    const double back = sum - product, error = (product - (sum - back)) + ((double)c - back); /* Knuth's */
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if ((error < 0 || error > 0) && bits % 2 == 0) bits += (error > 0) == (sum > 0) ? 1 : UINT64_MAX;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return (float)odd;
#endif
}

/* Whether a call of the op asks for it. */
static inline bool an_product_rounds(const an_call *call) {
    return ((const an_product_attributes *)call->attributes)->rounds_a;
}

/* For such calls: parts of the op's kernels. */
size_t an_product_rounded_scratch(const an_call *call);
an_status an_product_rounded_run(const an_call *call);

/* On the tiles of AMX. */
bool an_product_amx_rounded_applies(const an_call *call);
size_t an_product_amx_rounded_scratch(const an_call *call);
an_status an_product_amx_rounded_run(const an_call *call);

#endif
