/* Compiled once per instruction set (base/level.h): of a large JPEG, this loop takes a fifth of the time that decoding
 * takes. A division costs less than a table of 256 numbers, which the compiler cannot vectorise. */
#include "data/pictures/pixels.h"

#include <string.h>

void AN_LEVELED(an_pixels_to_numbers)(const unsigned char *pixels, int pixel_channels, size_t count, float divisor,
                                      int channels, float *restrict to) {
    if (pixel_channels == 3) { /* one pass over the pixels */
        float *restrict red = to, *restrict green = to + count, *restrict blue = to + 2 * count;
        for (size_t i = 0; i < count; i++) {
            red[i] = (float)pixels[3 * i] / divisor;
            green[i] = (float)pixels[3 * i + 1] / divisor;
            blue[i] = (float)pixels[3 * i + 2] / divisor;
        }
        return;
    }
    for (size_t i = 0; i < count; i++) to[i] = (float)pixels[i] / divisor;
    for (int c = 1; c < channels; c++) memcpy(to + (size_t)c * count, to, count * sizeof *to);
}

#ifndef AN_LEVEL
#if defined(__x86_64__)
an_pixels_function an_pixels_to_numbers_avx2, an_pixels_to_numbers_avx512;
#endif

an_pixels_function *an_pixels_for_isa(an_isa isa) {
    static an_pixels_function *const levels[AN_LEVELS] = {
        an_pixels_to_numbers,
#if defined(__x86_64__)
        an_pixels_to_numbers_avx2,
        an_pixels_to_numbers_avx512,
#endif
    };
    return levels[an_level_of(isa)];
}
#endif
