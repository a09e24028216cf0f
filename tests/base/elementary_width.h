/* The loops of elementary_width.c, compiled once for each vector width. */
#ifndef AN_TESTS_BASE_ELEMENTARY_WIDTH_H
#define AN_TESTS_BASE_ELEMENTARY_WIDTH_H

#include <stdint.h>

enum {
    WIDTH_COUNT = 1 << 16, /* arguments */
    WIDTH_RESULTS = 13,    /* rows of each precision: one for each name in test_elementary_width.c */
};

typedef struct width_arguments {
    float x_f32[WIDTH_COUNT], y_f32[WIDTH_COUNT];
    double x_f64[WIDTH_COUNT], y_f64[WIDTH_COUNT];
} width_arguments;

typedef struct width_results {
    float f32[WIDTH_RESULTS][WIDTH_COUNT];
    double f64[WIDTH_RESULTS][WIDTH_COUNT];
} width_results;

typedef void width_run(const width_arguments *arguments, width_results *results);
width_run width_run_scalar, width_run_baseline, width_run_avx2, width_run_avx512;

#endif
