/* Products on tiles: right at every tail, and the same bits whatever surrounds an element: threads, rows, cuts of k.
 * Jobs are run with no more scratch than their largest sizes need. */
#include "support/support.h"

#if defined(__x86_64__)
#define AN_LEVEL _avx512 /* tiles lie beside it */
#include "base/float16.h"
#include "kernels/product/amx.h"
#include "kernels/product/product.h"

enum { GUARD = 64, GUARD_BYTE = 0x5a };

typedef struct {
    int64_t items, rows, columns, depth;
} sizes;

/* Everything that a job needs, and what it gives. Operands are the same numbers whichever way they lie. */
typedef struct {
    an_context *ctx;
    sizes maximum;
    uint16_t *a, *b; /* rows × depth, columns × depth */
    uint16_t *turned_a, *turned_b;
    char *scratch;
    size_t scratch_bytes;
    float *f32;
    uint16_t *bf16;
} bench;

static an_context *context_of(int threads) {
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = threads;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    return ctx;
}

static void *allocate(int64_t count, size_t size) {
    void *memory = aligned_alloc(64, ((size_t)count * size + GUARD) / 64 * 64 + 64);
    assert_non_null(memory);
    return memory;
}

/* Numbers around 1, of either sign. */
static void fill(uint16_t *to, int64_t count, uint32_t seed) {
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        to[i] = an_f32_to_bf16((float)((int)(seed >> 9 & 0xffff) - 0x8000) * 0x1p-15f);
    }
}

static void turn(const uint16_t *from, int64_t items, int64_t lanes, int64_t depth, uint16_t *to) {
    for (int64_t i = 0; i < items; i++)
        for (int64_t l = 0; l < lanes; l++)
            for (int64_t k = 0; k < depth; k++) to[(i * depth + k) * lanes + l] = from[(i * lanes + l) * depth + k];
}

static bench make_bench(int threads, sizes maximum) {
    bench t = {.ctx = context_of(threads), .maximum = maximum};
    const int64_t a = maximum.items * maximum.rows * maximum.depth, b = maximum.items * maximum.columns * maximum.depth;
    t.a = allocate(a, sizeof *t.a);
    t.b = allocate(b, sizeof *t.b);
    t.turned_a = allocate(a, sizeof *t.a);
    t.turned_b = allocate(b, sizeof *t.b);
    fill(t.a, a, 1);
    fill(t.b, b, 2);
    t.f32 = allocate(maximum.items * maximum.rows * maximum.columns, sizeof *t.f32);
    t.bf16 = allocate(maximum.items * maximum.rows * maximum.columns, sizeof *t.bf16);
    t.scratch_bytes = an_amx_scratch(t.ctx, maximum.items, maximum.rows, maximum.columns, maximum.depth);
    t.scratch = allocate((int64_t)t.scratch_bytes, 1);
    memset(t.scratch + t.scratch_bytes, GUARD_BYTE, GUARD);
    return t;
}

static void free_bench(bench *t) {
    an_context_destroy(&t->ctx);
    free(t->a);
    free(t->b);
    free(t->turned_a);
    free(t->turned_b);
    free(t->f32);
    free(t->bf16);
    free(t->scratch);
}

static an_grid one_dimension(int64_t count, int64_t stride) {
    an_grid grid = {0};
    if (count > 1) grid = (an_grid){.ndims = 1, .dims = {count}, .strides = {stride}};
    return grid;
}

/* a as rows of depth, b as columns of depth; dst is f32. */
static an_amx_job job_of(const bench *t, sizes s) {
    return (an_amx_job){.ctx = t->ctx,
                        .scratch = t->scratch,
                        .items = s.items,
                        .rows = s.rows,
                        .columns = s.columns,
                        .depth = s.depth,
                        .a = {.data = t->a,
                              .lane_stride = s.depth,
                              .depth_stride = 1,
                              .items = one_dimension(s.items, s.rows * s.depth)},
                        .b = {.data = t->b,
                              .lane_stride = s.depth,
                              .depth_stride = 1,
                              .items = one_dimension(s.items, s.columns * s.depth)},
                        .dst = t->f32,
                        .dtype = AN_DTYPE_F32,
                        .row_stride = s.columns,
                        .dst_items = one_dimension(s.items, s.rows * s.columns)};
}

static void run(const bench *t, const an_amx_job *job) {
    an_amx_run(job);
    for (int i = 0; i < GUARD; i++) assert_int_equal(t->scratch[t->scratch_bytes + (size_t)i], GUARD_BYTE);
}

/* Products of numbers below 1 are summed in f32: the error is some ulp of the largest sum on the way. */
static void check(const bench *t, sizes s, const float *f32, const uint16_t *bf16) {
    for (int64_t i = 0; i < s.items * s.rows * s.columns; i++) {
        const int64_t item = i / s.columns / s.rows, row = i / s.columns % s.rows, column = i % s.columns;
        const uint16_t *a = t->a + (item * s.rows + row) * s.depth, *b = t->b + (item * s.columns + column) * s.depth;
        double want = 0;
        for (int64_t k = 0; k < s.depth; k++) want += (double)an_bf16_to_f32(a[k]) * (double)an_bf16_to_f32(b[k]);
        const double tolerance = 1e-6 * sqrt((double)s.depth);
        if (f32) assert_true(fabs((double)f32[i] - want) <= tolerance);
        if (bf16) assert_true(fabs((double)an_bf16_to_f32(bf16[i]) - want) <= tolerance + 0x1p-8 * fabs(want));
    }
}

/* Both operands lie both ways; dst is f32 and bf16: each way gives the same bits. */
static void check_layouts(bench *t, sizes s) {
    const int64_t count = s.items * s.rows * s.columns;
    float *first = allocate(count, sizeof *first);
    turn(t->a, s.items, s.rows, s.depth, t->turned_a);
    turn(t->b, s.items, s.columns, s.depth, t->turned_b);
    for (int way = 0; way < 4; way++) {
        an_amx_job job = job_of(t, s);
        if (way & 1)
            job.a =
                (an_amx_operand){.data = t->turned_a, .lane_stride = 1, .depth_stride = s.rows, .items = job.a.items};
        if (way & 2)
            job.b = (an_amx_operand){
                .data = t->turned_b, .lane_stride = 1, .depth_stride = s.columns, .items = job.b.items};
        memset(t->f32, 0xff, (size_t)count * sizeof *t->f32);
        memset(t->bf16, 0xff, (size_t)count * sizeof *t->bf16);
        run(t, &job);
        job.dst = t->bf16;
        job.dtype = AN_DTYPE_BF16;
        run(t, &job);
        if (way == 0) {
            memcpy(first, t->f32, (size_t)count * sizeof *first);
            check(t, s, t->f32, t->bf16);
        }
        assert_memory_equal(first, t->f32, (size_t)count * sizeof *first);
        for (int64_t i = 0; i < count; i++) assert_int_equal(t->bf16[i], an_f32_to_bf16(first[i]));
    }
    free(first);
}

static void test_tails(void **state) {
    (void)state;
    bench t = make_bench(2, (sizes){3, 70, 70, 70});
    for (int64_t n = 1; n <= 70; n++) {
        check_layouts(&t, (sizes){1, n, 33, 40});
        check_layouts(&t, (sizes){1, 40, n, 33});
        check_layouts(&t, (sizes){1, 33, 40, n});
        check_layouts(&t, (sizes){n % 3 + 1, n, (n * 7) % 70 + 1, (n * 31) % 70 + 1});
    }
    free_bench(&t);
}

/* More than one piece of k, more than one chunk in all directions. */
static void test_cuts(void **state) {
    (void)state;
    static const sizes cases[] = {{1, 100, 300, 1100}, {1, 300, 100, 4200}, {1, 1400, 800, 4200}, {40, 20, 30, 4200},
                                  {3, 800, 40, 1025},  {50, 64, 64, 1024},  {1100, 3, 2, 33}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench t = make_bench(2, cases[i]);
        const sizes s = cases[i];
        const an_amx_job job = job_of(&t, s);
        run(&t, &job);
        /* some elements of each */
        for (int64_t e = 0; e < 200; e++) {
            const int64_t count = s.items * s.rows * s.columns, at = (e * 7919 * 7919 + 13) % count;
            const int64_t item = at / s.columns / s.rows, row = at / s.columns % s.rows, column = at % s.columns;
            double want = 0;
            for (int64_t k = 0; k < s.depth; k++)
                want += (double)an_bf16_to_f32(t.a[(item * s.rows + row) * s.depth + k]) *
                        (double)an_bf16_to_f32(t.b[(item * s.columns + column) * s.depth + k]);
            assert_true(fabs((double)t.f32[at] - want) <= 1e-6 * sqrt((double)s.depth));
        }
        free_bench(&t);
    }
}

static void test_threads(void **state) {
    (void)state;
    static const sizes cases[] = {{1, 200, 300, 768}, {1, 400, 700, 4200}, {20, 64, 40, 100}};
    static const int threads[] = {2, 3, 4, 8, 16, 32, 64, 128};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t bytes = (size_t)(cases[i].items * cases[i].rows * cases[i].columns) * sizeof(float);
        bench alone = make_bench(1, cases[i]);
        an_amx_job job = job_of(&alone, cases[i]);
        run(&alone, &job);
        for (size_t n = 0; n < sizeof threads / sizeof threads[0]; n++) {
            bench t = make_bench(threads[n], cases[i]);
            job = job_of(&t, cases[i]);
            run(&t, &job);
            assert_memory_equal(alone.f32, t.f32, bytes);
            free_bench(&t);
        }
        free_bench(&alone);
    }
}

/* A row alone, and in any number of rows, columns and items. */
static void test_rows(void **state) {
    (void)state;
    enum { ROWS = 64, COLUMNS = 96 };
    static const int64_t depths[] = {40, 768, 1500, 4200}, rows[] = {1, 2, 3, 7, ROWS};
    for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++) {
        const sizes all = {1, ROWS, COLUMNS, depths[d]};
        bench t = make_bench(2, all);
        float *want = allocate(ROWS * COLUMNS, sizeof *want);
        an_amx_job job = job_of(&t, all);
        run(&t, &job);
        memcpy(want, t.f32, ROWS * COLUMNS * sizeof *want);
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            for (int64_t begin = 0; begin + rows[r] <= ROWS; begin += rows[r]) {
                job = job_of(&t, (sizes){1, rows[r], COLUMNS, depths[d]});
                job.a.data += begin * depths[d];
                run(&t, &job);
                assert_memory_equal(t.f32, want + begin * COLUMNS, (size_t)(rows[r] * COLUMNS) * sizeof *want);
            }
        const sizes pairs = {ROWS / 2, 2, COLUMNS, depths[d]}; /* the same rows as items of two, with one b */
        bench u = make_bench(2, pairs);
        job = job_of(&u, pairs);
        job.b.items = (an_grid){0};
        run(&u, &job);
        assert_memory_equal(u.f32, want, ROWS * COLUMNS * sizeof *want);
        free_bench(&u);
        free(want);
        free_bench(&t);
    }
}

static void test_accumulate(void **state) {
    (void)state;
    static const int64_t cuts[] = {AN_AMX_DEPTH, AN_PRODUCT_CUT, 1024};
    const sizes s = {2, 50, 70, 2100};
    const size_t bytes = (size_t)(s.items * s.rows * s.columns) * sizeof(float);
    bench t = make_bench(2, s);
    float *want = allocate(s.items * s.rows * s.columns, sizeof *want);
    an_amx_job job = job_of(&t, s);
    run(&t, &job);
    memcpy(want, t.f32, bytes);
    for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
        memset(t.f32, 0, bytes);
        job.accumulate = true;
        for (int64_t k = 0; k < s.depth; k += cuts[c]) {
            job.a.data = t.a + k;
            job.b.data = t.b + k;
            job.depth = s.depth - k < cuts[c] ? s.depth - k : cuts[c];
            run(&t, &job);
        }
        assert_memory_equal(t.f32, want, bytes);
    }
    free(want);
    free_bench(&t);
}

typedef struct {
    sizes s;
    float *seen; /* the sums that finish got */
} finish_user;

/* Small enough that some results are denormal in bf16. */
static float finished(float x, int64_t row, int64_t column) {
    return (x + (float)column) * (row % 2 ? 0x1p-130f : 1);
}

static void finish(void *user, const an_product_block *b, float *values) {
    const finish_user *u = user;
    for (int64_t row = b->row; row < b->row + b->rows; row++, values += b->stride)
        for (int64_t i = 0; i < b->columns; i++) {
            float *seen = &u->seen[(b->item * u->s.rows + row) * u->s.columns + b->column + i];
            assert_true(isnan(*seen)); /* once only */
            *seen = values[i];
            values[i] = finished(values[i], row, b->column + i);
        }
}

/* finish gets every sum once and what it leaves is stored, rounded as anything else is. */
static void test_finish(void **state) {
    (void)state;
    static const sizes cases[] = {{2, 45, 70, 100}, {1, 33, 64, 2100}, {1, 40, 40, 4200}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const sizes s = cases[i];
        const int64_t count = s.items * s.rows * s.columns;
        bench t = make_bench(2, s);
        finish_user user = {s, allocate(count, sizeof *user.seen)};
        an_amx_job job = job_of(&t, s);
        run(&t, &job);
        const an_product_finish how = {.f32 = finish, .user = &user};
        job.finish = &how;
        job.dst = t.bf16;
        job.dtype = AN_DTYPE_BF16;
        memset(user.seen, 0xff, (size_t)count * sizeof *user.seen);
        run(&t, &job);
        assert_memory_equal(user.seen, t.f32, (size_t)count * sizeof *user.seen);
        for (int64_t e = 0; e < count; e++)
            assert_int_equal(t.bf16[e], an_f32_to_bf16(finished(t.f32[e], e / s.columns % s.rows, e % s.columns)));
        free(user.seen);
        free_bench(&t);
    }
}

static void test_no_depth(void **state) {
    (void)state;
    const sizes s = {1, 40, 50, 1};
    bench t = make_bench(2, s);
    an_amx_job job = job_of(&t, s);
    job.depth = 0;
    memset(t.f32, 0xff, (size_t)(s.rows * s.columns) * sizeof *t.f32);
    run(&t, &job);
    for (int64_t i = 0; i < s.rows * s.columns; i++) assert_true(t.f32[i] == 0);
    free_bench(&t);
}

/* An infinity or NaN stays in its row and column: what pads a tile does not spread it. */
static void test_not_finite(void **state) {
    (void)state;
    enum { INFINITE = 0x7f80 };
    const sizes s = {1, 35, 37, 45};
    bench t = make_bench(2, s);
    t.a[34 * s.depth + 44] = INFINITE;
    t.b[36 * s.depth + 44] = an_f32_to_bf16(0);
    const an_amx_job job = job_of(&t, s);
    run(&t, &job);
    for (int64_t i = 0; i < s.rows * s.columns; i++) assert_int_equal(isfinite(t.f32[i]) != 0, i / s.columns != 34);
    assert_true(isnan(t.f32[34 * s.columns + 36]));
    free_bench(&t);
}

/* ---- the op's kernel ---- */

/* a (batch, tokens, k) times b, which is (k, columns) or has the batch too, in what scratch the largest sizes need.
 * Batches of a lie one after the other, or with gaps, so that rows of all are not as one matrix's, or in one place. */
enum { A_DENSE, A_GAPS, A_REPEATED };
static void run_call(an_context *ctx, int64_t batch, int64_t tokens, int64_t columns, int64_t depth, int a_lies,
                     bool b_has_batch, size_t *scratch_bytes) {
    const an_kernel *amx = an_kernels_product_avx512;
    an_product_attributes attributes = {0};
    enum { GAP = 3 }; /* rows */
    const int64_t a_steps[] = {[A_DENSE] = tokens * depth, [A_GAPS] = (tokens + GAP) * depth, [A_REPEATED] = 0};
    const int64_t a_step = a_steps[a_lies], a_count = batch * (tokens + GAP) * depth, b_step = depth * columns;
    uint16_t *a = allocate(a_count, sizeof *a), *b = allocate(batch * b_step, sizeof *b);
    float *dst = allocate(batch * tokens * columns, sizeof *dst);
    fill(a, a_count, 3);
    fill(b, batch * b_step, 4);
    an_tensor src[] = {{a, AN_DTYPE_BF16, 3, {batch, tokens, depth}, {a_step, depth, 1}},
                       {b, AN_DTYPE_BF16, 3, {batch, depth, columns}, {b_step, columns, 1}}};
    if (!b_has_batch) src[1] = (an_tensor){b, AN_DTYPE_BF16, 2, {depth, columns}, {columns, 1}};
    an_tensor to = {dst, AN_DTYPE_F32, 3, {batch, tokens, columns}, {tokens * columns, columns, 1}};
    an_call call = {.ctx = ctx, .attributes = &attributes, .src_count = 2, .src = src, .dst_count = 1, .dst = &to};
    assert_string_equal(amx->name, "amx");
    if (!*scratch_bytes) {
        assert_true(amx->applies(&call));
        *scratch_bytes = amx->scratch(&call);
    }
    char *scratch = allocate((int64_t)*scratch_bytes, 1);
    memset(scratch + *scratch_bytes, GUARD_BYTE, GUARD);
    call.scratch = scratch;
    OK(ctx, amx->run(&call));
    for (int i = 0; i < GUARD; i++) assert_int_equal(scratch[*scratch_bytes + (size_t)i], GUARD_BYTE);
    for (int64_t i = 0; i < batch * tokens * columns; i++) {
        const uint16_t *row = a + i / columns / tokens * a_step + i / columns % tokens * depth;
        const uint16_t *column = b + (b_has_batch ? i / columns / tokens * b_step : 0) + i % columns;
        double want = 0;
        for (int64_t k = 0; k < depth; k++)
            want += (double)an_bf16_to_f32(row[k]) * (double)an_bf16_to_f32(column[k * columns]);
        assert_true(fabs((double)dst[i] - want) <= 1e-6 * sqrt((double)depth));
    }
    free(a);
    free(b);
    free(dst);
    free(scratch);
}

/* A kernel is chosen at the largest sizes and then given every smaller one, down to 1. */
static void test_every_smaller_size(void **state) {
    (void)state;
    static const int64_t batches[] = {5, 2, 1}, tokens[] = {40, 33, 2, 1}, columns[] = {50, 32, 1}, depths[] = {70, 1};
    an_context *ctx = context_of(2);
    for (int way = 0; way < 6; way++) {
        size_t scratch_bytes = 0;
        for (size_t i = 0; i < 3 * 4 * 3 * 2; i++)
            run_call(ctx, batches[i / 24], tokens[i / 6 % 4], columns[i / 2 % 3], depths[i % 2], way / 2, way % 2,
                     &scratch_bytes);
    }
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tails),    cmocka_unit_test(test_cuts),       cmocka_unit_test(test_threads),
        cmocka_unit_test(test_rows),     cmocka_unit_test(test_accumulate), cmocka_unit_test(test_finish),
        cmocka_unit_test(test_no_depth), cmocka_unit_test(test_not_finite), cmocka_unit_test(test_every_smaller_size),
    };
    an_context *ctx = context_of(1);
    const bool has_tiles = an_context_isa(ctx) == AN_ISA_AMX;
    an_context_destroy(&ctx);
    return has_tiles ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
#else
int main(void) {
    return 0;
}
#endif
