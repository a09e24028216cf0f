/* Products whose k is cut into leaves: at every level of instructions they have the bits of products of the
 * leaves alone, added in the tree, whatever the sizes, layouts, cuts and threads. And products to which
 * other matrices are added. */
#include "base/float16.h"
#include "base/isa.h"
#include "kernels/product/product.h"
#include "support/leaf_calls.h"

static const an_kernel *const lists[] = AN_KERNELS(product);
static const an_isa isas[] = {AN_ISA_BASE, AN_ISA_AVX2, AN_ISA_AVX512};
enum { LISTS = sizeof lists / sizeof lists[0], MOST_THREADS = 3 };

static an_context *contexts[LISTS][MOST_THREADS + 1];
static int levels;

static int make_contexts(void **state) {
    (void)state;
    while (levels < LISTS && isas[levels] <= an_isa_highest()) levels++;
    for (int level = 0; level < levels; level++)
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
            an_context_options options;
            an_context_options_init(&options, sizeof options);
            options.threads = threads;
            options.isa = isas[level];
            OK(NULL, an_context_create(&contexts[level][threads], &options));
        }
    return 0;
}

static int free_contexts(void **state) {
    (void)state;
    for (int level = 0; level < levels; level++)
        for (int threads = 1; threads <= MOST_THREADS; threads++) an_context_destroy(&contexts[level][threads]);
    return 0;
}

static const an_kernel *portable(int level) {
    const an_kernel *kernel = lists[level];
    while (strcmp(kernel->name, "portable") != 0) kernel++;
    assert_true(kernel->by_leaves);
    return kernel;
}

/* ---- a product ---- */

typedef struct {
    int level, threads;
    bool f64, transpose_a, transpose_b;
    an_dtype low;                         /* bf16 or f16: of the operands, where dst is f32; NONE: as dst */
    int64_t rows, columns, each, samples; /* k is each · samples */
    int64_t gap;                          /* elements after each line of each matrix */
    int64_t leaves;
    uint64_t seed; /* 0: even leaves */
    int added;     /* matrices that are added at the end */
    bool in_place; /* the first of these is dst */
} product;

static an_dtype real(const product *p) {
    return p->f64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
}

static void fill(void *data, an_dtype dtype, int64_t elements, uint64_t seed) {
    for (int64_t i = 0; i < elements; i++) {
        const double value = noise(seed + (uint64_t)i) * (i % 5 ? 1 : 100);
        switch (dtype) {
        case AN_DTYPE_F64: ((double *)data)[i] = value; break;
        case AN_DTYPE_BF16: ((uint16_t *)data)[i] = an_f32_to_bf16((float)value); break;
        case AN_DTYPE_F16: ((uint16_t *)data)[i] = an_f32_to_f16((float)value); break;
        default: ((float *)data)[i] = (float)value;
        }
    }
}

static an_tensor matrix(const product *p, an_dtype dtype, int64_t rows, int64_t columns, uint64_t seed) {
    const int64_t stride = columns + p->gap;
    an_tensor t = {.dtype = dtype, .ndims = 2, .dims = {rows, columns}, .strides = {stride, 1}};
    /* Not an element more than the matrix has, so that a sanitizer sees what is read behind its end. */
    const int64_t elements = stride * rows - p->gap;
    t.data = malloc((size_t)elements * an_dtype_size(t.dtype));
    fill(t.data, dtype, elements, seed);
    return t;
}

static void describe(const product *p) {
    fail_msg("level %d, %d threads, %s: %lld x %lld x (%lld x %lld), transposed %d %d, gap %lld, %lld leaves, seed "
             "%llu, %d added, in "
             "place %d",
             p->level, p->threads, an_dtype_name(p->low ? p->low : real(p)), (long long)p->rows, (long long)p->columns,
             (long long)p->each, (long long)p->samples, p->transpose_a, p->transpose_b, (long long)p->gap,
             (long long)p->leaves, (unsigned long long)p->seed, p->added, p->in_place);
}

static void add(bool f64, void *value, const void *left, int64_t elements) {
    for (int64_t i = 0; i < elements; i++)
        if (f64)
            ((double *)value)[i] = ((const double *)left)[i] + ((double *)value)[i];
        else
            ((float *)value)[i] = ((const float *)left)[i] + ((float *)value)[i];
}

static void check(product p) {
    const int64_t depth = p.each * p.samples, elements = p.rows * p.columns;
    const an_dtype dtype = real(&p), operand = p.low ? p.low : dtype;
    const size_t size = an_dtype_size(dtype);
    an_tensor src[2] = {
        p.transpose_a ? matrix(&p, operand, depth, p.rows, 1) : matrix(&p, operand, p.rows, depth, 1),
        p.transpose_b ? matrix(&p, operand, p.columns, depth, 7) : matrix(&p, operand, depth, p.columns, 7),
    };
    an_tensor dst = matrix(&p, dtype, p.rows, p.columns, 3);
    an_leaf_cut cut = leaf_cut_make(p.leaves, p.samples, p.seed);
    an_product_attributes attributes = {.transpose_a = p.transpose_a, .transpose_b = p.transpose_b};
    const an_call call = {.ctx = contexts[p.level][p.threads],
                          .attributes = &attributes,
                          .src_count = 2,
                          .dst_count = 1,
                          .src = src,
                          .dst = &dst};
    const leaf_calls calls = {.kernel = portable(p.level),
                              .call = &call,
                              .axes = (const int[]){p.transpose_a ? 0 : 1, p.transpose_b ? 1 : 0},
                              .cut = &cut};
    char *want = malloc((size_t)elements * sizeof(double));
    leaf_calls_run(&calls, (void *[]){want});
    void *added[AN_PRODUCT_MOST_ADDED];
    for (int i = p.added - 1; i >= 0; i--) {
        added[i] = malloc((size_t)elements * size);
        fill(added[i], dtype, elements, 100 * (uint64_t)i);
        add(p.f64, want, added[i], elements);
    }
    if (p.in_place && p.added > 0) { /* only a dense dst can be one of them */
        memcpy(dst.data, added[0], (size_t)elements * size);
        free(added[0]);
        added[0] = dst.data;
    }
    attributes.add_count = p.added;
    attributes.add_to = (const void *const *)added;
    leaf_calls_run_whole(&calls);
    for (int64_t row = 0; row < p.rows; row++) {
        const size_t at = (size_t)(row * dst.strides[0]) * size, bytes = (size_t)p.columns * size;
        if (memcmp((const char *)dst.data + at, want + (size_t)row * bytes, bytes) != 0) describe(&p);
    }
    for (int i = 0; i < p.added; i++)
        if (added[i] != dst.data) free(added[i]);
    free(want);
    leaf_cut_free(&cut);
    free(src[0].data);
    free(src[1].data);
    free(dst.data);
}

/* ---- tests ---- */

static uint64_t state_of_draws;
static int64_t draw(int64_t below) {
    state_of_draws = state_of_draws * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state_of_draws >> 33) % (uint64_t)below);
}

/* Sizes of every order of magnitude, mostly small. */
static int64_t draw_size(int64_t maximum) {
    const int64_t below = 1 + draw(maximum);
    return 1 + draw(below);
}

#ifdef ANNEAL_SANITIZED
enum { TRIES = 60 };
#else
enum { TRIES = 400 };
#endif

static product drawn(int i) {
    product p = {.level = i % levels,
                 .threads = 1 + i / 3 % MOST_THREADS,
                 .f64 = draw(2),
                 .transpose_a = draw(4) > 0,
                 .transpose_b = draw(4) == 0,
                 .rows = draw_size(60),
                 .columns = draw_size(90),
                 .samples = draw_size(90),
                 .each = draw(3) ? 1 + draw(12) : 1,
                 .gap = draw(2) * draw(9),
                 .leaves = 1 + draw(64),
                 .seed = draw(2) ? 0 : 1 + (uint64_t)i};
    if (i % 8 == 0) p.each = 100 + draw(400), p.samples = 1 + draw(12); /* leaves that are longer than a piece */
    if (i % 8 == 1) p.leaves = 1 + draw(3000);
    if (!p.f64) p.low = (const an_dtype[]){AN_DTYPE_NONE, AN_DTYPE_NONE, AN_DTYPE_BF16, AN_DTYPE_F16}[draw(4)];
    return p;
}

static void test_random(void **state) {
    (void)state;
    state_of_draws = 1;
    for (int i = 0; i < TRIES; i++) check(drawn(i));
}

/* Each of the ways in which the core cuts: several tiles, blocks of k, pieces that run at once; operands that are
 * packed, once or by each tile, and operands that are read where they are. */
static void test_every_cut(void **state) {
    (void)state;
    static const product products[] = {
        {.rows = 150, .columns = 530, .each = 1, .samples = 300, .leaves = 16, .threads = 1},
        {.rows = 150, .columns = 530, .each = 9, .samples = 64, .leaves = 64, .threads = 2, .seed = 3},
        {.rows = 300, .columns = 40, .each = 70, .samples = 13, .leaves = 5, .threads = 3},
        {.rows = 160, .columns = 200, .each = 150, .samples = 60, .leaves = 60, .threads = 1},
        {.rows = 160, .columns = 200, .each = 150, .samples = 60, .leaves = 64, .threads = 2, .seed = 5},
        {.rows = 20, .columns = 20, .each = 100, .samples = 90, .leaves = 64, .threads = 2, .seed = 1},
        {.rows = 33, .columns = 20, .each = 70, .samples = 90, .leaves = 30, .threads = 3},
        {.rows = 20, .columns = 64, .each = 1000, .samples = 7, .leaves = 4, .threads = 3, .gap = 3},
    };
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        for (int level = 0; level < levels; level++)
            for (int way = 0; way < 3; way++) {
                product p = products[i];
                p.level = level;
                p.f64 = way == 1;
                if (way == 2) p.low = i % 2 ? AN_DTYPE_BF16 : AN_DTYPE_F16;
                p.transpose_a = (way + level) % 3 > 0;
                p.transpose_b = level == 1;
                check(p);
            }
}

/* Every number of rows that a panel can have, with columns around its vectors; leaves of a few rows. */
static void test_every_edge(void **state) {
    (void)state;
    static const int64_t columns[] = {1, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 65};
    for (int64_t rows = 1; rows <= 29; rows++)
        for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
            check((product){.level = (int)c % levels,
                            .threads = 1,
                            .f64 = rows % 3 == 0,
                            .transpose_a = rows % 4 > 0,
                            .rows = rows,
                            .columns = columns[c],
                            .each = 3,
                            .samples = 40,
                            .gap = rows % 2,
                            .leaves = 7 + rows,
                            .seed = rows % 5 == 0 ? 0 : (uint64_t)rows});
}

/* Leaves so far apart that more levels of the tree are full than in a piece. */
static void test_many_absent_leaves(void **state) {
    (void)state;
    for (int level = 0; level < levels; level++)
        for (int seed = 1; seed < 4; seed++)
            check((product){.level = level,
                            .threads = 1 + level,
                            .f64 = seed == 2,
                            .transpose_a = true,
                            .rows = 17,
                            .columns = 33,
                            .each = seed == 3 ? 40 : 2,
                            .samples = 30,
                            .leaves = 5000,
                            .seed = (uint64_t)seed});
}

static void test_added(void **state) {
    (void)state;
    state_of_draws = 2;
    for (int i = 0; i < TRIES / 2; i++) {
        product p = drawn(i);
        if (i % 2) p.leaves = 1;
        p.added = 1 + (int)(i % 5 ? draw(3) : draw(AN_PRODUCT_MOST_ADDED));
        p.in_place = draw(2);
        if (p.in_place) p.gap = 0;
        check(p);
    }
    for (int level = 0; level < levels; level++)
        for (int way = 0; way < 4; way++)
            check((product){.level = level,
                            .threads = 1 + way % 2,
                            .rows = way / 2 ? 160 : 20,
                            .columns = way / 2 ? 200 : 30,
                            .each = 150,
                            .samples = 60,
                            .transpose_a = true,
                            .leaves = way % 2 ? 1 : 60,
                            .added = 2,
                            .in_place = true});
}

/* A product that goes on from what dst holds and then is added to another matrix. */
static void test_added_to_parts(void **state) {
    (void)state;
    enum { ROWS = 19, COLUMNS = 37, DEPTH = 700 };
    for (int level = 0; level < levels; level++) {
        const product p = {.level = level, .threads = 2};
        an_tensor whole[2] = {matrix(&p, AN_DTYPE_F32, DEPTH, ROWS, 1), matrix(&p, AN_DTYPE_F32, DEPTH, COLUMNS, 2)},
                  src[2];
        an_tensor dst = matrix(&p, AN_DTYPE_F32, ROWS, COLUMNS, 3), want = matrix(&p, AN_DTYPE_F32, ROWS, COLUMNS, 3);
        const an_tensor added = matrix(&p, AN_DTYPE_F32, ROWS, COLUMNS, 4);
        const an_kernel *kernel = portable(level);
        for (int part = 0; part < 3; part++) { /* two parts, and then the whole */
            const void *const add_to[] = {added.data};
            const an_product_attributes attributes = {
                .transpose_a = true, .accumulate = part == 1, .add_count = part == 1, .add_to = add_to};
            an_call call = {.ctx = contexts[level][p.threads],
                            .attributes = &attributes,
                            .src_count = 2,
                            .dst_count = 1,
                            .src = src,
                            .dst = part < 2 ? &dst : &want};
            memcpy(src, whole, sizeof src);
            for (int i = 0; i < 2; i++) {
                if (part == 0) src[i].dims[0] = AN_PRODUCT_CUT;
                if (part == 1) src[i].dims[0] = DEPTH - AN_PRODUCT_CUT;
                if (part == 1) src[i].data = (float *)src[i].data + AN_PRODUCT_CUT * src[i].strides[0];
            }
            call.scratch = leaf_call_scratch(kernel, &call);
            OK(call.ctx, kernel->run(&call));
            free(call.scratch);
        }
        add(false, want.data, added.data, ROWS * COLUMNS);
        assert_memory_equal(dst.data, want.data, ROWS * COLUMNS * sizeof(float));
        free(whole[0].data), free(whole[1].data), free(dst.data), free(want.data), free(added.data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),     cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_every_edge), cmocka_unit_test(test_many_absent_leaves),
        cmocka_unit_test(test_added),      cmocka_unit_test(test_added_to_parts),
    };
    return cmocka_run_group_tests(tests, make_contexts, free_contexts);
}
