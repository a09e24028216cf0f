/* Blocks of quantised elements, as ggml defines them. Scales are f16, little endian; products and sums are those of f32
 * in the order written here, which is that of the gguf package for Python, so that both have the same bits. */
#include "formats/gguf_types.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/float16.h"

enum { SMALL = 32, HALF = SMALL / 2 };

static float half_at(const unsigned char *bytes) {
    return an_f16_to_f32((uint16_t)(bytes[0] | bytes[1] << 8));
}

static uint32_t word_at(const unsigned char *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* ---- 32 elements ---- The low halves of 16 bytes are the first 16 elements, the high ones the others. */

static void widen_q4_0(const unsigned char *block, float *to) {
    const float scale = half_at(block);
    for (int i = 0; i < HALF; i++) {
        to[i] = scale * (float)((block[2 + i] & 15) - 8);
        to[i + HALF] = scale * (float)((block[2 + i] >> 4) - 8);
    }
}

static void widen_q4_1(const unsigned char *block, float *to) {
    const float scale = half_at(block), minimum = half_at(block + 2);
    for (int i = 0; i < HALF; i++) {
        to[i] = scale * (float)(block[4 + i] & 15) + minimum;
        to[i + HALF] = scale * (float)(block[4 + i] >> 4) + minimum;
    }
}

/* The fifth bits are in a word of their own, one for each element. */
static int fifth(uint32_t bits, int element) {
    return (int)(bits >> element & 1) << 4;
}

static void widen_q5_0(const unsigned char *block, float *to) {
    const float scale = half_at(block);
    const uint32_t bits = word_at(block + 2);
    for (int i = 0; i < HALF; i++) {
        to[i] = scale * (float)(((block[6 + i] & 15) | fifth(bits, i)) - 16);
        to[i + HALF] = scale * (float)((block[6 + i] >> 4 | fifth(bits, i + HALF)) - 16);
    }
}

static void widen_q5_1(const unsigned char *block, float *to) {
    const float scale = half_at(block), minimum = half_at(block + 2);
    const uint32_t bits = word_at(block + 4);
    for (int i = 0; i < HALF; i++) {
        to[i] = scale * (float)((block[8 + i] & 15) | fifth(bits, i)) + minimum;
        to[i + HALF] = scale * (float)(block[8 + i] >> 4 | fifth(bits, i + HALF)) + minimum;
    }
}

static void widen_q8_0(const unsigned char *block, float *to) {
    const float scale = half_at(block);
    for (int i = 0; i < SMALL; i++) to[i] = scale * (float)(int8_t)block[2 + i];
}

/* ---- 256 elements ---- */

/* Eight runs of 32 elements, each with a scale and a least value of 6 bits: those of the first four lie in the
 * low bits of bytes 0 to 3 and 4 to 7, those of the others in the halves of bytes 8 to 11, with their two
 * high bits above the first. */
static void widen_q4_k(const unsigned char *block, float *to) {
    enum { RUNS = 8 };
    const float scale = half_at(block), minimum = half_at(block + 2);
    const unsigned char *packed = block + 4, *quants = block + 16;
    for (int run = 0; run < RUNS; run++) {
        const int i = run & 3;
        const int scales = run < 4 ? packed[i] & 63 : (packed[i + 8] & 15) | (packed[i] >> 6) << 4;
        const int leasts = run < 4 ? packed[i + 4] & 63 : packed[i + 8] >> 4 | (packed[i + 4] >> 6) << 4;
        const float own = scale * (float)scales, low = minimum * (float)leasts;
        const unsigned char *four = quants + run / 2 * SMALL;
        const int shift = run % 2 * 4;
        for (int k = 0; k < SMALL; k++) to[run * SMALL + k] = own * (float)(four[k] >> shift & 15) - low;
    }
}

/* Two parts of 128 elements: four bits of each in 64 bytes, two bits in 32; a scale of 8 bits for every 16. */
static void widen_q6_k(const unsigned char *block, float *to) {
    enum { PART = 128 };
    const float scale = half_at(block + 208);
    for (int part = 0; part < 2; part++) {
        const unsigned char *low = block + part * 64, *high = block + 128 + part * SMALL,
                            *scales = block + 192 + part * 8;
        for (int i = 0; i < PART; i++) {
            const int run = i / SMALL, k = i % SMALL;
            const int four = low[(run & 1) * SMALL + k] >> (run / 2 * 4) & 15, two = high[k] >> (run * 2) & 3;
            to[part * PART + i] = scale * (float)(int8_t)scales[i / 16] * (float)((four | two << 4) - 32);
        }
    }
}

/* ---- the table ---- */

static const an_gguf_type types[] = {
    {0, 1, 4, {"F32", 4, AN_DTYPE_F32}, NULL},
    {1, 1, 2, {"F16", 2, AN_DTYPE_F16}, NULL},
    {2, SMALL, 18, {"Q4_0", 4, AN_DTYPE_F32}, widen_q4_0},
    {3, SMALL, 20, {"Q4_1", 4, AN_DTYPE_F32}, widen_q4_1},
    {6, SMALL, 22, {"Q5_0", 4, AN_DTYPE_F32}, widen_q5_0},
    {7, SMALL, 24, {"Q5_1", 4, AN_DTYPE_F32}, widen_q5_1},
    {8, SMALL, 34, {"Q8_0", 4, AN_DTYPE_F32}, widen_q8_0},
    {12, AN_GGUF_MOST_BLOCK, 144, {"Q4_K", 4, AN_DTYPE_F32}, widen_q4_k},
    {14, AN_GGUF_MOST_BLOCK, 210, {"Q6_K", 4, AN_DTYPE_F32}, widen_q6_k},
    {30, 1, 2, {"BF16", 2, AN_DTYPE_BF16}, NULL},
};

const an_gguf_type *an_gguf_type_of(uint32_t number) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number) return &types[i];
    return NULL;
}

const an_gguf_type *an_gguf_type_named(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].shown.name, name)) return &types[i];
    return NULL;
}

/* ---- writing ---- */

/* To the nearest, halves away from zero. The quotient of a block's scale may be infinite where its numbers are
 * below what f32 can divide by. */
static signed char round_away(float x) {
    const float size = x < 0 ? -x : x;
    if (!(size < 127)) return x < 0 ? -127 : 127;
    const int whole = (int)size, rounded = whole + (int)(2 * (size - (float)whole));
    return (signed char)(x < 0 ? -rounded : rounded);
}

static void narrow_q8_0(const float *from, unsigned char *block) {
    float maximum = 0;
    for (int i = 0; i < SMALL; i++) {
        const float size = from[i] < 0 ? -from[i] : from[i];
        if (size > maximum) maximum = size;
    }
    const float scale = maximum / 127, inverse = scale == 0 ? 0 : 1 / scale;
    const uint16_t stored = an_f32_to_f16(scale);
    block[0] = (unsigned char)(stored & 0xff);
    block[1] = (unsigned char)(stored >> 8);
    for (int i = 0; i < SMALL; i++) block[2 + i] = (unsigned char)round_away(from[i] * inverse);
}

void an_gguf_narrow(const an_gguf_type *type, const float *from, int64_t count, unsigned char *to) {
    const bool brain = type->shown.dtype == AN_DTYPE_BF16;
    if (type->widen) {
        for (int64_t i = 0; i < count / SMALL; i++) narrow_q8_0(from + i * SMALL, to + i * type->bytes);
        return;
    }
    if (type->shown.dtype == AN_DTYPE_F32) memcpy(to, from, (size_t)count * sizeof *from);
    for (int64_t i = 0; i < count && type->shown.dtype != AN_DTYPE_F32; i++) {
        const uint16_t low = brain ? an_f32_to_bf16(from[i]) : an_f32_to_f16(from[i]);
        to[2 * i] = (unsigned char)(low & 0xff);
        to[2 * i + 1] = (unsigned char)(low >> 8);
    }
}

const char *an_gguf_unread_type(uint32_t number) {
    static const char *const others[] = {
        [9] = "Q8_1",    [10] = "Q2_K",    [11] = "Q3_K",  [13] = "Q5_K",   [15] = "Q8_K",  [16] = "IQ2_XXS",
        [17] = "IQ2_XS", [18] = "IQ3_XXS", [19] = "IQ1_S", [20] = "IQ4_NL", [21] = "IQ3_S", [22] = "IQ2_S",
        [23] = "IQ4_XS", [24] = "I8",      [25] = "I16",   [26] = "I32",    [27] = "I64",   [28] = "F64",
        [29] = "IQ1_M",  [34] = "TQ1_0",   [35] = "TQ2_0",
    };
    return number < sizeof others / sizeof *others ? others[number] : NULL;
}
