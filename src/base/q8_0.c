#include "base/q8_0.h"

/* Halves away from zero; |x| ≤ 127.5. */
static int8_t round_number(float x) {
    const float size = x < 0 ? -x : x;
    const int whole = (int)size, up = size - (float)whole >= 0.5F;
    return (int8_t)(x < 0 ? -(whole + up) : whole + up);
}

static void make_block(const float *values, unsigned char *block) {
    float maximum = 0;
    for (int i = 0; i < AN_Q8_0_ELEMENTS; i++) {
        const float size = values[i] < 0 ? -values[i] : values[i];
        if (!(size <= maximum)) maximum = size; /* also what is no number */
        if (maximum != maximum) break;
    }
    const float scale = maximum / 127, factor = scale > 0 ? 1 / scale : 0;
    const uint16_t stored = an_f32_to_f16(scale);
    memcpy(block, &stored, sizeof stored);
    const float limit = an_f32_of_bits(0x7f800000);
    const int finite = factor < limit && scale < limit;
    for (int i = 0; i < AN_Q8_0_ELEMENTS; i++)
        block[AN_Q8_0_SCALE_BYTES + i] = finite ? (unsigned char)round_number(values[i] * factor) : 1;
}

void an_q8_0_from_f32(const float *values, int64_t count, void *blocks) {
    unsigned char *block = blocks;
    for (int64_t i = 0; i < count; i += AN_Q8_0_ELEMENTS, block += AN_Q8_0_BYTES) make_block(values + i, block);
}

void an_q8_0_to_f32(const void *blocks, int64_t count, float *values) {
    for (int64_t i = 0; i < count; i++) values[i] = an_q8_0_value(blocks, i);
}
