/* Blocks of q8_0: the bytes that the gguf package makes of the same numbers, and their numbers again.
 * tests/golden/make-q8_0 makes the file. */
#include "base/q8_0.h"
#include "support/support.h"

#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/q8_0/blocks.bin"

typedef struct {
    float values[AN_Q8_0_ELEMENTS];
    unsigned char block[AN_Q8_0_BYTES];
} golden;

static void test_bytes_of_gguf(void **state) {
    (void)state;
    golden g;
    int count = 0;
    FILE *file = fopen(GOLDEN, "rb");
    assert_non_null(file);
    while (fread(g.values, sizeof g.values, 1, file) == 1) {
        unsigned char made[AN_Q8_0_BYTES];
        assert_int_equal(fread(g.block, sizeof g.block, 1, file), 1);
        an_q8_0_from_f32(g.values, AN_Q8_0_ELEMENTS, made);
        for (int i = 0; i < AN_Q8_0_BYTES; i++)
            if (made[i] != g.block[i]) fail_msg("block %d, byte %d: %d, not %d", count, i, made[i], g.block[i]);
        count++;
    }
    fclose(file);
    assert_int_equal(count, 13);
}

/* Scale times number, of every element of several blocks. */
static void test_numbers(void **state) {
    (void)state;
    float values[4 * AN_Q8_0_ELEMENTS], widened[4 * AN_Q8_0_ELEMENTS];
    unsigned char blocks[4 * AN_Q8_0_BYTES];
    for (int i = 0; i < 4 * AN_Q8_0_ELEMENTS; i++) {
        const int block = i / AN_Q8_0_ELEMENTS;
        values[i] = (float)((i * 37 % 101 - 50) * (block + 1));
    }
    an_q8_0_from_f32(values, 4 * AN_Q8_0_ELEMENTS, blocks);
    an_q8_0_to_f32(blocks, 4 * AN_Q8_0_ELEMENTS, widened);
    for (int i = 0; i < 4 * AN_Q8_0_ELEMENTS; i++) {
        const float scale = an_q8_0_scale(blocks + i / AN_Q8_0_ELEMENTS * AN_Q8_0_BYTES), off = widened[i] - values[i];
        assert_true((off < 0 ? -off : off) <= scale * 0.6F); /* half a step, and what the scale lost in f16 */
        assert_true(widened[i] == an_q8_0_value(blocks, i));
    }
}

/* What is not finite, or too large for a scale in f16, does not become a number. */
static void test_not_finite(void **state) {
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY, 1e7F};
    for (int i = 0; i < 4; i++) {
        float values[AN_Q8_0_ELEMENTS] = {1, 2, 3}, widened[AN_Q8_0_ELEMENTS];
        unsigned char block[AN_Q8_0_BYTES];
        values[17] = bad[i];
        an_q8_0_from_f32(values, AN_Q8_0_ELEMENTS, block);
        an_q8_0_to_f32(block, AN_Q8_0_ELEMENTS, widened);
        assert_true(!isfinite(widened[17]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_of_gguf),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
