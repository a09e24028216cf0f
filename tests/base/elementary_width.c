/* Loops over the inline functions. CMake compiles this file several times, with flags for different vector widths and
 * another WIDTH_RUN, and test_elementary_width.c compares their results. */
#include "base/elementary_width.h"

#include "base/philox.h"

void WIDTH_RUN(const width_arguments *restrict arguments, width_results *restrict results) {
    int row = 0;
#define RUN_1(name)                                                                                    \
    for (int i = 0; i < WIDTH_COUNT; i++) results->f32[row][i] = an_##name##_f32(arguments->x_f32[i]); \
    for (int i = 0; i < WIDTH_COUNT; i++) results->f64[row][i] = an_##name##_f64(arguments->x_f64[i]); \
    row++;
    AN_ELEMENTARY_1(RUN_1)
#define RUN_2(name)                                                                       \
    for (int i = 0; i < WIDTH_COUNT; i++)                                                 \
        results->f32[row][i] = an_##name##_f32(arguments->x_f32[i], arguments->y_f32[i]); \
    for (int i = 0; i < WIDTH_COUNT; i++)                                                 \
        results->f64[row][i] = an_##name##_f64(arguments->x_f64[i], arguments->y_f64[i]); \
    row++;
    AN_ELEMENTARY_2(RUN_2)

    /* f64 only: the vector parts of sin and cos. Huge arguments give nonsense, but the same everywhere. */
#define RUN_MODERATE(name)                                                                                      \
    for (int i = 0; i < WIDTH_COUNT; i++) results->f64[row][i] = an_##name##_moderate_f64(arguments->x_f64[i]); \
    row++;
    AN_ELEMENTARY_TRIG(RUN_MODERATE)

    const an_philox_stream stream = an_philox_fold((an_philox_key){1, 2, 3, 4});
    for (int i = 0; i < WIDTH_COUNT; i += 2) {
        uint32_t words[4];
        an_philox_block(stream, (uint64_t)i, words);
        const an_normals_f32 normals_f32 = an_normals_of_words_f32(words[0], words[1]);
        const an_normals_f64 normals_f64 = an_normals_of_words_f64(words);
        results->f32[row][i] = an_uniform_of_word_f32(words[0]);
        results->f32[row][i + 1] = an_uniform_of_word_f32(words[1]);
        results->f64[row][i] = an_uniform_of_words_f64(words[0], words[1]);
        results->f64[row][i + 1] = an_uniform_of_words_f64(words[2], words[3]);
        results->f32[row + 1][i] = normals_f32.cosine;
        results->f32[row + 1][i + 1] = normals_f32.sine;
        results->f64[row + 1][i] = normals_f64.cosine;
        results->f64[row + 1][i + 1] = normals_f64.sine;
    }
}
