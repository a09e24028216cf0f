/* max_pool and its gradient against the definition, bit for bit: ties, NaN, padding, windows that overlap, odd
 * sizes. */
#include "anneal/experimental.h"
#include "kernels/pool/pool.h"
#include "support/support.h"

enum { PLANES = 3, MOST = 23, MOST_SCRATCH = 1 << 20 };

typedef struct {
    int64_t image[2], window[2], stride[2], padding[2];
} pool_case;

static int64_t pooled_size(const pool_case *c, int i) {
    return (c->image[i] + 2 * c->padding[i] - c->window[i]) / c->stride[i] + 1;
}

/* Where the largest of a window is: the first of equal ones, and the first NaN before all others. */
static int64_t largest(const pool_case *c, const float *image, int64_t row, int64_t column) {
    int64_t at = -1;
    for (int64_t y = 0; y < c->window[0]; y++)
        for (int64_t x = 0; x < c->window[1]; x++) {
            const int64_t i = row * c->stride[0] - c->padding[0] + y, j = column * c->stride[1] - c->padding[1] + x;
            const int64_t here = i * c->image[1] + j;
            if (i < 0 || j < 0 || i >= c->image[0] || j >= c->image[1]) continue;
            if (at < 0 || (!(image[here] <= image[at]) && image[at] == image[at])) at = here;
        }
    return at;
}

static an_tensor planes(float *data, int64_t height, int64_t width) {
    return (an_tensor){.data = data,
                       .dtype = AN_DTYPE_F32,
                       .ndims = 4,
                       .dims = {1, PLANES, height, width},
                       .strides = {PLANES * height * width, height * width, width, 1}};
}

static void check(an_context *ctx, const pool_case *c, const an_kernel *forward, const an_kernel *diff) {
    static float image[PLANES * MOST * MOST], pooled[PLANES * MOST * MOST], diff_image[PLANES * MOST * MOST];
    static float diff_pooled[PLANES * MOST * MOST], want[MOST * MOST];
    static _Alignas(64) char scratch[MOST_SCRATCH];
    const int64_t rows = pooled_size(c, 0), columns = pooled_size(c, 1), elements = c->image[0] * c->image[1];
    const an_pool_attributes attributes = {.window = {2, {c->window[0], c->window[1]}},
                                           .stride = {2, {c->stride[0], c->stride[1]}},
                                           .padding = {2, {c->padding[0], c->padding[1]}}};
    for (int64_t i = 0; i < PLANES * elements; i++) {
        const int64_t number = i * 7919 % 11; /* few values, so that many are equal */
        image[i] = i % 53 == 52 ? (float)NAN : number < 2 ? -0.0f : (float)(number - 2);
    }
    for (int64_t i = 0; i < PLANES * rows * columns; i++) diff_pooled[i] = (float)(i % 13) - 6;
    const an_tensor x = planes(image, c->image[0], c->image[1]), y = planes(pooled, rows, columns);
    const an_tensor diffs[] = {planes(diff_pooled, rows, columns), x},
                    dx = planes(diff_image, c->image[0], c->image[1]);
    an_call call = {.ctx = ctx,
                    .attributes = &attributes,
                    .scratch = scratch,
                    .src_count = 1,
                    .dst_count = 1,
                    .src = &x,
                    .dst = &y};
    assert_true(forward->scratch(&call) <= sizeof scratch);
    OK(ctx, forward->run(&call));
    call.src_count = 2;
    call.src = diffs;
    call.dst = &dx;
    assert_true(diff->scratch(&call) <= sizeof scratch);
    OK(ctx, diff->run(&call));
    for (int64_t plane = 0; plane < PLANES; plane++) {
        const float *from = image + plane * elements;
        memset(want, 0, sizeof want);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                const int64_t at = largest(c, from, i, j), output = (plane * rows + i) * columns + j;
                assert_memory_equal(&pooled[output], &from[at], sizeof *from);
                want[at] += diff_pooled[output];
            }
        assert_memory_equal(diff_image + plane * elements, want, (size_t)elements * sizeof *want);
    }
}

static void test_max_pool(void **state) {
    (void)state;
    static const pool_case cases[] = {
        {{1, 1}, {1, 1}, {1, 1}, {0, 0}},   {{14, 14}, {2, 2}, {2, 2}, {0, 0}}, {{23, 23}, {3, 3}, {2, 2}, {1, 1}},
        {{17, 9}, {2, 3}, {1, 2}, {1, 1}},  {{5, 21}, {5, 4}, {3, 1}, {2, 2}},  {{9, 8}, {3, 2}, {3, 2}, {1, 0}},
        {{23, 23}, {5, 5}, {1, 1}, {2, 2}}, {{7, 7}, {7, 7}, {7, 7}, {0, 0}},   {{11, 10}, {2, 2}, {3, 3}, {0, 1}},
    };
    an_context *ctx = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(ctx, &cases[i], an_kernels_max_pool, an_kernels_max_pool_diff);
#if defined(__x86_64__)
        if (an_context_isa(ctx) >= AN_ISA_AVX512)
            check(ctx, &cases[i], an_kernels_max_pool_avx512, an_kernels_max_pool_diff_avx512);
#endif
    }
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_max_pool)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
