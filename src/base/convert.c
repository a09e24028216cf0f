#include "base/convert.h"

#include <string.h>

#include "base/dtype.h"
#include "base/float16.h"
#include "base/q8_0.h"

/* In place as well: a block is shorter than what it is made of. */
static void make_blocks(int64_t n, double *values) {
    for (int64_t i = 0; i < n; i += AN_Q8_0_ELEMENTS) {
        float from[AN_Q8_0_ELEMENTS];
        for (int k = 0; k < AN_Q8_0_ELEMENTS; k++) from[k] = (float)values[i + k];
        an_q8_0_from_f32(from, AN_Q8_0_ELEMENTS, (char *)values + an_dtype_bytes(AN_DTYPE_Q8_0, i));
    }
}

void an_convert_from_f64(an_dtype dtype, int64_t n, double *values) {
    if (dtype == AN_DTYPE_Q8_0) {
        make_blocks(n, values);
        return;
    }
    char *to = (char *)values; /* narrower types fill the memory from its front, behind what is still to be read */
    for (int64_t i = 0; i < n && dtype != AN_DTYPE_F64; i++) {
        float x = (float)values[i];
        uint16_t low = dtype == AN_DTYPE_BF16 ? an_f32_to_bf16(x) : an_f32_to_f16(x);
        if (dtype == AN_DTYPE_F32)
            memcpy(to + (size_t)i * sizeof x, &x, sizeof x);
        else
            memcpy(to + (size_t)i * sizeof low, &low, sizeof low);
    }
}

void an_convert_to_f64(an_dtype dtype, int64_t n, double *values) {
    const char *from = (const char *)values; /* from the back, so that nothing is overwritten before it is read */
    for (int64_t i = n - 1; i >= 0 && dtype != AN_DTYPE_F64; i--) {
        float x = 0;
        uint16_t low = 0;
        if (dtype == AN_DTYPE_F32) {
            memcpy(&x, from + (size_t)i * sizeof x, sizeof x);
        } else {
            memcpy(&low, from + (size_t)i * sizeof low, sizeof low);
            x = dtype == AN_DTYPE_BF16 ? an_bf16_to_f32(low) : an_f16_to_f32(low);
        }
        values[i] = (double)x;
    }
}
