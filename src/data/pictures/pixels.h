/* From the bytes of a picture to the numbers of a sample. */
#ifndef AN_DATA_PICTURES_PIXELS_H
#define AN_DATA_PICTURES_PIXELS_H

#include <stddef.h>

#include "base/level.h"

/* Writes byte ÷ divisor of each channel, channel by channel; the bytes of a picture have its channels beside each
 * other. A picture with one channel gives all `channels` of the sample the same. `count` is its pixels. */
typedef void an_pixels_function(const unsigned char *pixels, int pixel_channels, size_t count, float divisor,
                                int channels, float *restrict to);

an_pixels_function AN_LEVELED(an_pixels_to_numbers);
an_pixels_function *an_pixels_for_isa(an_isa isa);

#endif
