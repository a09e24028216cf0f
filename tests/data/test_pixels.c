/* Every byte gives the same number at every level of instructions, in every channel and for any count of pixels. */
#include "base/isa.h"
#include "data/pictures/pixels.h"
#include "support/support.h"

enum { MOST = 300, BEYOND = 3 }; /* what lies behind the numbers stays as it was */

static void check(an_isa isa, int pixel_channels, size_t count, float divisor) {
    unsigned char pixels[3 * MOST];
    float numbers[3 * MOST + BEYOND];
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (unsigned char)(i * 7 + count);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) numbers[i] = -1;
    an_pixels_for_isa(isa)(pixels, pixel_channels, count, divisor, 3, numbers);
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < count; i++) {
            const unsigned char byte = pixels[pixel_channels == 3 ? 3 * i + c : i];
            const float number = numbers[c * count + i];
            if (number != (float)byte / divisor)
                fail_msg("level %d, %zu pixels: byte %d gives %a in channel %zu", (int)isa, count, byte, (double)number,
                         c);
        }
    for (size_t i = 0; i < BEYOND; i++) assert_true(numbers[3 * count + i] == -1);
}

static void test_every_level(void **state) {
    (void)state;
    for (int isa = AN_ISA_BASE; isa <= (int)an_isa_highest(); isa++)
        for (size_t count = 0; count <= MOST; count++)
            for (int channels = 1; channels <= 3; channels += 2) {
                check((an_isa)isa, channels, count, 255);
                check((an_isa)isa, channels, count, 1);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_level)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
