/* contiguous in tiles: a kernel is chosen at the largest sizes and then given every smaller one, down to 1. */
#include "anneal/experimental.h"
#include "kernels/copy/copy.h"
#include "support/support.h"

enum { MOST = 40, BATCHES = 3 };

/* (batches, rows, columns) seen as (batches, columns, rows), and as it is after the copy. */
static void run(an_context *ctx, const an_kernel *kernel, int32_t *src, int32_t *dst, int64_t batches, int64_t rows,
                int64_t columns) {
    an_tensor view = {
        .dtype = AN_DTYPE_I32, .ndims = 3, .dims = {batches, columns, rows}, .strides = {rows * columns, 1, columns}};
    an_tensor copy = {
        .dtype = AN_DTYPE_I32, .ndims = 3, .dims = {batches, columns, rows}, .strides = {rows * columns, rows, 1}};
    an_call call = {.ctx = ctx, .src_count = 1, .src = &view, .dst_count = 1, .dst = &copy};
    if (rows == MOST && columns == MOST) assert_true(kernel->applies(&call));
    view.data = src;
    copy.data = dst;
    OK(ctx, kernel->run(&call));
}

static void test_every_smaller_size(void **state) {
    (void)state;
    static const int64_t sizes[] = {MOST, 33, 32, 17, 16, 15, 2, 1};
    static int32_t src[BATCHES * MOST * MOST], dst[BATCHES * MOST * MOST];
    const an_kernel *tiled = an_kernels_contiguous;
    an_context *ctx = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    assert_string_equal(tiled->name, "tiled");
    for (int32_t i = 0; i < BATCHES * MOST * MOST; i++) src[i] = i;
    for (int64_t b = 1; b <= BATCHES; b += 2)
        for (size_t r = 0; r < sizeof sizes / sizeof sizes[0]; r++)
            for (size_t c = 0; c < sizeof sizes / sizeof sizes[0]; c++) {
                int64_t rows = sizes[r], columns = sizes[c];
                memset(dst, 0xff, sizeof dst);
                run(ctx, tiled, src, dst, b, rows, columns);
                for (int64_t i = 0; i < b * rows * columns; i++) {
                    int64_t row = i % rows, column = i / rows % columns, batch = i / rows / columns;
                    assert_int_equal(dst[i], src[(batch * rows + row) * columns + column]);
                }
            }
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_smaller_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
