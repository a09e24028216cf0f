/* The product core, at every level of instructions: its bits are those of the rule in kernels/product/core.h,
 * whatever the sizes, layouts and threads; jobs that continue sums; the finish hook; and scratch, which is
 * enough for smaller jobs. */
#include "base/float16.h"
#include "base/isa.h"
#include "kernels/product/core_leaves.h"
#include "kernels/product/core_plan.h"
#include "support/leaf_calls.h"

/* What the other levels' object files give: the headers name those of the base level here. */
#define LEVEL(suffix)                                                                                               \
    void an_product_run_f32##suffix(const an_product_job *job);                                                     \
    void an_product_run_f64##suffix(const an_product_job *job);                                                     \
    an_product_operand an_matrix_operand##suffix(an_matrix *matrix);                                                \
    size_t an_product_scratch##suffix(an_context *ctx, bool f64, int64_t items, int64_t rows, int64_t columns,      \
                                      int64_t depth);                                                               \
    an_product_plan an_product_plan_make##suffix(an_context *ctx, size_t element, int64_t items, int64_t rows,      \
                                                 int64_t columns, int64_t depth, int64_t pieces, int slots);        \
    size_t an_product_leaf_scratch##suffix(an_context *ctx, bool f64, int64_t items, int64_t rows, int64_t columns, \
                                           int64_t depth, const an_leaf_cut *leaves);
#if defined(__x86_64__)
LEVEL(_avx2)
LEVEL(_avx512)
#endif

typedef struct {
    const char *name;
    an_isa isa;
    bool fused; /* rounds once for a product and its addition */
    void (*run_f32)(const an_product_job *job), (*run_f64)(const an_product_job *job);
    an_product_operand (*operand)(an_matrix *matrix);
    size_t (*scratch)(an_context *ctx, bool f64, int64_t items, int64_t rows, int64_t columns, int64_t depth);
    an_product_plan (*plan)(an_context *ctx, size_t element, int64_t items, int64_t rows, int64_t columns,
                            int64_t depth, int64_t pieces, int slots);
    size_t (*leaf_scratch)(an_context *ctx, bool f64, int64_t items, int64_t rows, int64_t columns, int64_t depth,
                           const an_leaf_cut *leaves);
} level;

static const level levels[] = {
    {"base", AN_ISA_BASE, false, an_product_run_f32, an_product_run_f64, an_matrix_operand, an_product_scratch,
     an_product_plan_make, an_product_leaf_scratch},
#if defined(__x86_64__)
    {"avx2", AN_ISA_AVX2, true, an_product_run_f32_avx2, an_product_run_f64_avx2, an_matrix_operand_avx2,
     an_product_scratch_avx2, an_product_plan_make_avx2, an_product_leaf_scratch_avx2},
    {"avx512", AN_ISA_AVX512, true, an_product_run_f32_avx512, an_product_run_f64_avx512, an_matrix_operand_avx512,
     an_product_scratch_avx512, an_product_plan_make_avx512, an_product_leaf_scratch_avx512},
#endif
};
enum { LEVELS = sizeof levels / sizeof levels[0] };

static int machine_levels(void) {
    const an_isa machine = an_isa_highest();
    int count = 0;
    while (count < LEVELS && levels[count].isa <= machine) count++;
    return count;
}

/* ---- operands and their elements ---- */

/* How a matrix of lanes × depth lies in memory. */
typedef enum { ALONG_K, ALONG_LANES, SPREAD, BROKEN, LOW, LAYOUTS } layout;

typedef struct {
    an_tensor tensor;
    an_matrix matrix;
    int64_t items, lanes, depth;
} side;

enum { GAP = 3 }; /* elements between those that belong to a matrix */

/* Its elements differ in sign and size, so that another order of additions gives other bits. */
static void side_make(side *s, bool f64, layout how, int64_t items, int64_t lanes, int64_t depth, uint64_t seed) {
    int64_t step = how == SPREAD ? GAP : how == ALONG_LANES ? lanes + GAP : 1;
    int64_t lane = how == ALONG_LANES ? 1 : depth * step + GAP;
    int64_t item = lane * lanes + step * depth + GAP;
    *s = (side){.items = items, .lanes = lanes, .depth = depth};
    s->tensor.dtype = how == LOW ? AN_DTYPE_BF16 : f64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
    s->tensor.data = malloc((size_t)(items * item) * an_dtype_size(s->tensor.dtype));
    s->matrix.tensor = &s->tensor;
    an_grid_add(&s->matrix.items, items, item);
    if (how == BROKEN && lanes % 2 == 0) { /* two runs of lanes that no stride joins */
        an_grid_add(&s->matrix.lines, 2, lanes / 2 * lane + 1);
        an_grid_add(&s->matrix.lines, lanes / 2, lane);
    } else {
        an_grid_add(&s->matrix.lines, lanes, lane);
    }
    an_grid_add(&s->matrix.places, depth, step);
    for (int64_t i = 0; i < items * item; i++) {
        double value = noise(seed + (uint64_t)i) * (i % 5 ? 1 : 100);
        if (s->tensor.dtype == AN_DTYPE_F64) ((double *)s->tensor.data)[i] = value;
        if (s->tensor.dtype == AN_DTYPE_F32) ((float *)s->tensor.data)[i] = (float)value;
        if (s->tensor.dtype == AN_DTYPE_BF16) ((uint16_t *)s->tensor.data)[i] = an_f32_to_bf16((float)value);
    }
}

static int64_t grid_place(const an_grid *grid, int64_t index) {
    int64_t offset = 0;
    for (int i = grid->ndims - 1; i >= 0; index /= grid->dims[i--]) offset += index % grid->dims[i] * grid->strides[i];
    return offset;
}

static double element(const an_matrix *m, int64_t item, int64_t line, int64_t place) {
    int64_t at = grid_place(&m->items, item) + grid_place(&m->lines, line) + grid_place(&m->places, place);
    if (m->tensor->dtype == AN_DTYPE_F64) return ((const double *)m->tensor->data)[at];
    if (m->tensor->dtype == AN_DTYPE_F32) return (double)((const float *)m->tensor->data)[at];
    return (double)an_bf16_to_f32(((const uint16_t *)m->tensor->data)[at]);
}

/* ---- a product, and what the rule says it is ---- */

typedef struct {
    bool f64;
    int64_t items, rows, columns, depth;
    layout a, b, dst;
    int threads;
    const level *level;
    side sides[2];
    an_matrix plain[2]; /* before operands turn them around */
    side result;        /* lanes are rows, depth is columns */
    void *scratch;
    size_t scratch_bytes;
    an_context *ctx;
    an_product_job job;
} product;

static void product_make(product *p) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = p->threads;
    assert_int_equal(an_context_create(&p->ctx, &options), AN_OK);
    side_make(&p->sides[0], p->f64, p->a, p->items, p->rows, p->depth, 1);
    side_make(&p->sides[1], p->f64, p->b, p->items, p->columns, p->depth, 2);
    side_make(&p->result, p->f64, p->dst, p->items, p->rows, p->columns, 3);
    for (int i = 0; i < 2; i++) p->plain[i] = p->sides[i].matrix;
    p->scratch_bytes = p->level->scratch(p->ctx, p->f64, p->items, p->rows, p->columns, p->depth);
    p->scratch = aligned_alloc(64, (p->scratch_bytes + 127) / 64 * 64);
    memset(p->scratch, 0xff, p->scratch_bytes + 1); /* not-a-numbers; one byte is not the core's */
    p->job = (an_product_job){.ctx = p->ctx,
                              .scratch = p->scratch,
                              .items = p->items,
                              .rows = p->rows,
                              .columns = p->columns,
                              .depth = p->depth,
                              .a = p->level->operand(&p->sides[0].matrix),
                              .b = p->level->operand(&p->sides[1].matrix),
                              .dst = p->result.matrix};
}

static void product_run(product *p) {
    (p->f64 ? p->level->run_f64 : p->level->run_f32)(&p->job);
    assert_int_equal(((unsigned char *)p->scratch)[p->scratch_bytes], 0xff);
}

static void product_free(product *p) {
    for (int i = 0; i < 2; i++) free(p->sides[i].tensor.data);
    free(p->result.tensor.data);
    free(p->scratch);
    an_context_destroy(&p->ctx);
}

static double rule(const product *p, int64_t item, int64_t row, int64_t column) {
    double total = 0;
    for (int64_t begin = 0; begin < p->depth; begin += AN_PRODUCT_PIECE) {
        double sum = 0;
        for (int64_t k = begin; k < p->depth && k < begin + AN_PRODUCT_PIECE; k++) {
            double x = element(&p->plain[0], item, row, k), y = element(&p->plain[1], item, column, k);
            if (p->f64)
                sum = p->level->fused ? fma(x, y, sum) : sum + x * y;
            else
                sum =
                    (double)(p->level->fused ? fmaf((float)x, (float)y, (float)sum) : (float)sum + (float)x * (float)y);
        }
        if (begin == 0)
            total = sum;
        else
            total = p->f64 ? total + sum : (double)((float)total + (float)sum);
    }
    return total;
}

static bool same_bits(double a, double b) {
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

static void check_element(const product *p, int64_t item, int64_t row, int64_t column) {
    double got = element(&p->result.matrix, item, row, column), want = rule(p, item, row, column);
    if (p->dst == LOW) want = (double)an_bf16_to_f32(an_f32_to_bf16((float)want));
    if (!same_bits(got, want))
        fail_msg("%s %s %lld x %lld x %lld x %lld, layouts %d %d %d: element %lld %lld %lld is %a, not %a",
                 p->level->name, p->f64 ? "f64" : "f32", (long long)p->items, (long long)p->rows, (long long)p->columns,
                 (long long)p->depth, (int)p->a, (int)p->b, (int)p->dst, (long long)item, (long long)row,
                 (long long)column, got, want);
}

/* All elements, or of a large product some and the last ones of all sides. */
static void check_product(const product *p) {
#ifdef ANNEAL_SANITIZED
    enum { WORK = 6000, LEAST = 10 }; /* what the core reads and writes is looked at there, not its numbers */
#else
    enum { WORK = 60000, LEAST = 40 };
#endif
    int64_t all = p->items * p->rows * p->columns, some = WORK / p->depth > LEAST ? WORK / p->depth : LEAST;
    for (int64_t i = 0; i < (all <= some ? all : some); i++) {
        uint64_t at = all <= some ? (uint64_t)i : (uint64_t)(noise((uint64_t)i) * 0x1p40 + 0x1p40) % (uint64_t)all;
        check_element(p, (int64_t)at / (p->rows * p->columns), (int64_t)at / p->columns % p->rows,
                      (int64_t)at % p->columns);
    }
    check_element(p, p->items - 1, p->rows - 1, p->columns - 1);
    check_element(p, 0, p->rows - 1, 0);
    check_element(p, 0, 0, p->columns - 1);
}

static void check(product p) {
    for (int i = 0; i < machine_levels(); i++) {
        p.level = &levels[i];
        for (int f64 = 0; f64 < 2; f64++) {
            p.f64 = f64;
            product_make(&p);
            product_run(&p);
            check_product(&p);
            product_free(&p);
        }
    }
}

/* ---- tests ---- */

/* One row and column more and less than panels of all levels have, and depths around vectors. */
static void test_every_edge(void **state) {
    (void)state;
    static const int64_t columns[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 65};
    static const int64_t depths[] = {1, 7, 16, 33};
    for (int64_t rows = 1; rows <= 30; rows += rows < 16 ? 1 : 7)
        for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
            for (int layouts = 0; layouts < 4; layouts++)
                check((product){.items = 1,
                                .rows = rows,
                                .columns = columns[c],
                                .depth = depths[(rows + (int64_t)c + layouts) % 4],
                                .a = layouts % 2 ? ALONG_K : ALONG_LANES,
                                .b = layouts / 2 ? ALONG_K : ALONG_LANES,
                                .threads = 1});
}

static void test_every_layout(void **state) {
    (void)state;
    for (int i = 0; i < LAYOUTS * LAYOUTS * LAYOUTS; i++)
        check((product){.items = 2,
                        .rows = 18,
                        .columns = 36,
                        .depth = 20,
                        .a = (layout)(i % LAYOUTS),
                        .b = (layout)(i / LAYOUTS % LAYOUTS),
                        .dst = (layout)(i / LAYOUTS / LAYOUTS),
                        .threads = 2});
}

/* Sizes at which the core cuts in each of its ways: tiles of one side and of both, pieces that run at once, and blocks
 * of items, of k, of columns and of rows. */
static const struct {
    int64_t items, rows, columns, depth;
} shapes[] = {
    {1, 1, 700, 300},    {1, 13, 600, 520},    {1, 600, 13, 257},    {1, 300, 600, 300}, {1, 20, 20, 9000},
    {1, 130, 150, 4000}, {1, 64, 300, 5000},   {3, 150, 300, 260},   {40, 60, 70, 256},  {9, 300, 300, 1100},
    {1, 300, 270, 8100}, {1, 150, 2700, 1030}, {1, 2500, 270, 1030},
};
#ifdef ANNEAL_EMULATED
enum { SHAPES = 9 }; /* without the largest, which take ten minutes there; the cuts are the same for every machine */
#else
enum { SHAPES = sizeof shapes / sizeof shapes[0] };
#endif
#ifdef ANNEAL_SANITIZED
enum {
    FINISHED = 9
}; /* likewise; test_every_cut has the largest, and the hook sees no more than an element and its place */
#else
enum { FINISHED = SHAPES };
#endif

/* A sanitizer looks at accesses, which depend on the shape and on the layouts, each by itself: one layout of
 * four for each shape there. */
#ifdef ANNEAL_SANITIZED
enum { EVERY = 4 };
#else
enum { EVERY = 1 };
#endif

static void test_every_cut(void **state) {
    (void)state;
    static const layout results[] = {ALONG_K, LOW, SPREAD, ALONG_K};
    for (int i = 0; i < SHAPES; i++)
        for (int layouts = i % EVERY; layouts < 4; layouts += EVERY)
            check((product){.items = shapes[i].items,
                            .rows = shapes[i].rows,
                            .columns = shapes[i].columns,
                            .depth = shapes[i].depth,
                            .a = layouts % 2 ? ALONG_K : ALONG_LANES,
                            .b = layouts / 2 ? ALONG_K : ALONG_LANES,
                            .dst = results[layouts],
                            .threads = 1 + layouts});
}

/* The rule is one for both; but that they agree is a promise of its own, which no oracle should stand between. */
static void test_fused_levels_agree(void **state) {
    (void)state;
    if (LEVELS < 3 || machine_levels() < LEVELS) skip(); /* base, and two that fuse */
#ifdef ANNEAL_SANITIZED
    skip(); /* numbers, which a sanitizer does not look at */
#endif
    for (int i = 0; i < SHAPES; i++) {
        product p[2];
        for (int j = 0; j < 2; j++) {
            p[j] = (product){.items = shapes[i].items,
                             .rows = shapes[i].rows,
                             .columns = shapes[i].columns,
                             .depth = shapes[i].depth,
                             .threads = 2,
                             .level = &levels[LEVELS - 2 + j]};
            product_make(&p[j]);
            product_run(&p[j]);
        }
        const side *first = &p[0].result, *second = &p[1].result;
        for (int64_t row = 0; row < p[0].items * p[0].rows; row++)
            for (int64_t column = 0; column < p[0].columns; column++) {
                int64_t item = row / p[0].rows, line = row % p[0].rows;
                assert_true(element(&first->matrix, item, line, column) ==
                            element(&second->matrix, item, line, column));
            }
        for (int j = 0; j < 2; j++) product_free(&p[j]);
    }
}

/* A product of which k is cut at multiples of the piece: the first part overwrites, the others continue. */
static void check_parts(product p, int64_t part) {
    product_make(&p);
    int64_t depth = p.depth;
    for (int64_t begin = 0; begin < depth; begin += part) {
        for (int i = 0; i < 2; i++) {
            p.sides[i].matrix = p.plain[i];
            p.sides[i].matrix.offset = grid_place(&p.plain[i].places, begin);
            if (p.plain[i].places.ndims) p.sides[i].matrix.places.dims[0] = begin + part < depth ? part : depth - begin;
        }
        p.job.a = p.level->operand(&p.sides[0].matrix);
        p.job.b = p.level->operand(&p.sides[1].matrix);
        p.job.depth = begin + part < depth ? part : depth - begin;
        p.job.accumulate = begin > 0;
        product_run(&p);
    }
    check_product(&p);
    product_free(&p);
}

static void test_accumulate(void **state) {
    (void)state;
    static const int64_t parts[] = {1, 3};
    static const layout results[] = {ALONG_K, SPREAD, BROKEN};
    for (int i = 0; i < machine_levels(); i++)
        for (int j = 0; j < 24; j++) {
            product p = {.items = 2, .rows = 17, .columns = 35, .depth = 1300, .threads = 2};
            if (j % 4 == 1) p.rows = p.columns = 20, p.items = 1, p.depth = 12000; /* k of each part is cut */
            if (j % 4 == 2) p.rows = 160, p.columns = 300, p.items = 1;
            if (j % 4 == 3) p.rows = 1;
            p.level = &levels[i];
            p.f64 = j / 4 % 2;
            p.a = j % 3 ? ALONG_K : ALONG_LANES;
            p.b = j % 2 ? ALONG_K : ALONG_LANES;
            p.dst = results[j / 8];
            check_parts(p, parts[j % 2] * AN_PRODUCT_PIECE * (j % 4 == 1 ? 8 : 1));
        }
}

/* Counts how often each element is seen and doubles it; 1/4 is more than bf16 keeps of some. */
typedef struct {
    const product *p;
    unsigned char *seen;
} hook;

static void hook_see(const hook *h, int64_t item, int64_t row, int64_t column, int64_t count) {
    const product *p = h->p;
    assert_true(item >= 0 && item < p->items && row >= 0 && row < p->rows && column >= 0);
    assert_true(count > 0 && column + count <= p->columns);
    for (int64_t i = 0; i < count; i++) h->seen[(item * p->rows + row) * p->columns + column + i]++;
}

static void hook_f32(const void *user, int64_t item, int64_t row, int64_t column, int64_t count, float *values) {
    hook_see(user, item, row, column, count);
    for (int64_t i = 0; i < count; i++) values[i] = 2 * values[i] + 0.25f;
}

static void hook_f64(const void *user, int64_t item, int64_t row, int64_t column, int64_t count, double *values) {
    hook_see(user, item, row, column, count);
    for (int64_t i = 0; i < count; i++) values[i] = 2 * values[i] + 0.25;
}

static void check_finish(product p) {
    product_make(&p);
    int64_t all = p.items * p.rows * p.columns;
    hook h = {&p, calloc((size_t)all, 1)};
    p.job.finish_f32 = hook_f32;
    p.job.finish_f64 = hook_f64;
    p.job.finish_user = &h;
    product_run(&p);
    for (int64_t i = 0; i < all; i++) {
        int64_t item = i / (p.rows * p.columns), row = i / p.columns % p.rows, column = i % p.columns;
        assert_int_equal(h.seen[i], 1);
        if (i % (1 + all / 50) != 0) continue;
        double want = 2 * rule(&p, item, row, column) + 0.25;
        if (!p.f64) want = (double)(2 * (float)rule(&p, item, row, column) + 0.25f);
        if (p.dst == LOW) want = (double)an_bf16_to_f32(an_f32_to_bf16((float)want));
        assert_true(element(&p.result.matrix, item, row, column) == want);
    }
    free(h.seen);
    product_free(&p);
}

static void test_finish(void **state) {
    (void)state;
    static const layout results[] = {ALONG_K, LOW, SPREAD, BROKEN};
    for (int i = 0; i < machine_levels(); i++)
        for (int j = 0; j < 2 * FINISHED; j++)
            check_finish((product){.items = shapes[j / 2].items,
                                   .rows = shapes[j / 2].rows,
                                   .columns = shapes[j / 2].columns,
                                   .depth = shapes[j / 2].depth,
                                   .dst = results[j % 4],
                                   .threads = 1, /* cmocka's assertions are not for threads */
                                   .f64 = j % 2,
                                   .level = &levels[i]});
}

/* A convolution's phase may have no taps. */
static void test_zero_depth(void **state) {
    (void)state;
    for (int i = 0; i < machine_levels(); i++)
        for (int j = 0; j < 8; j++) {
            product p = {.items = 1, .rows = j % 2 ? 5 : 300, .columns = 600, .depth = 1, .threads = 2};
            p.level = &levels[i];
            p.f64 = j / 2 % 2;
            product_make(&p);
            double before = element(&p.result.matrix, 0, p.rows - 1, 599);
            assert_true(before != 0);
            p.job.depth = 0;
            p.job.accumulate = j / 4;
            product_run(&p);
            for (int64_t column = 0; column < 599; column++)
                if (!p.job.accumulate) assert_true(element(&p.result.matrix, 0, p.rows - 1, column) == 0);
            assert_true(element(&p.result.matrix, 0, p.rows - 1, 599) == (p.job.accumulate ? before : 0));
            product_free(&p);
        }
}

/* Plans give scratch for the largest sizes; runs may be smaller in each. */
static void test_scratch(void **state) {
    (void)state;
    enum { TRIES = 20000 };
    static const int64_t maximum[] = {40, 6000, 6000, 70000};
    const int count = machine_levels();
    for (int threads = 1; threads <= 64; threads *= 8) {
        an_context *ctx = NULL;
        an_context_options options;
        an_context_options_init(&options, sizeof options);
        options.threads = threads;
        assert_int_equal(an_context_create(&ctx, &options), AN_OK);
        for (uint64_t i = 0; i < TRIES; i++) {
            int64_t large[4], small[4];
            for (uint64_t j = 0; j < 4; j++) { /* sizes of every order of magnitude */
                double x = noise(8 * i + j) / 2 + 0.5, y = noise(8 * i + 4 + j) / 2 + 0.5;
                large[j] = (int64_t)exp(x * log((double)maximum[j]) + 1e-9);
                small[j] = i % 2 ? large[j] : 1 + (int64_t)(y * (double)(large[j] - 1));
            }
            const level *l = &levels[i % (uint64_t)count];
            bool f64 = i / 3 % 2;
            size_t given = l->scratch(ctx, f64, large[0], large[1], large[2], large[3]);
            size_t needed =
                l->plan(ctx, f64 ? 8 : 4, small[0], small[1], small[2], small[3], an_product_pieces(small[3]), 1).bytes;
            if (needed > given)
                fail_msg("%s %s: %lld x %lld x %lld x %lld needs %zu bytes, but %lld x %lld x %lld x %lld gives %zu",
                         l->name, f64 ? "f64" : "f32", (long long)small[0], (long long)small[1], (long long)small[2],
                         (long long)small[3], needed, (long long)large[0], (long long)large[1], (long long)large[2],
                         (long long)large[3], given);
        }
        an_context_destroy(&ctx);
    }
}

/* The same for jobs with leaves, of which there may be fewer too: pieces, slots and the sums. */
static void test_leaf_scratch(void **state) {
    (void)state;
    enum { TRIES = 5000, LEAVES = 300, ROWS = 3000 };
    const int count = machine_levels();
    void *memory = malloc(LEAVES * 1000);
    for (int threads = 1; threads <= 8; threads *= 2) {
        an_context *ctx = NULL;
        an_context_options options;
        an_context_options_init(&options, sizeof options);
        options.threads = threads;
        assert_int_equal(an_context_create(&ctx, &options), AN_OK);
        for (uint64_t i = 0; i < TRIES; i++) {
            int64_t large[5], small[5]; /* leaves, samples, rows of a sample, rows and columns of dst */
            static const int64_t maximum[] = {LEAVES, 300, 600, ROWS, ROWS};
            for (uint64_t j = 0; j < 5; j++) {
                const double x = noise(10 * i + j) / 2 + 0.5, y = noise(10 * i + 5 + j) / 2 + 0.5;
                large[j] = (int64_t)exp(x * log((double)maximum[j]) + 1e-9);
                small[j] = i % 2 || j == 2 ? large[j] : 1 + (int64_t)(y * (double)(large[j] - 1));
            }
            const level *l = &levels[i % (uint64_t)count];
            const bool f64 = i / 3 % 2;
            const an_leaf_cut known = {.count = large[0], .samples = large[1]};
            an_leaf_cut leaves = leaf_cut_make(small[0], small[1], i / 5 % 3 ? i : 0);
            const int64_t depth = small[1] * small[2];
            const size_t bytes = an_product_cut_bytes(depth, &leaves);
            assert_true(bytes <= LEAVES * 1000);
            const an_product_cut cut = an_product_cut_make(depth, &leaves, memory);
            assert_true(cut.count <= an_product_most_pieces(depth, &leaves));
            assert_true(cut.slots <= an_product_most_slots(depth, &leaves));
            const size_t given = l->leaf_scratch(ctx, f64, 1, large[3], large[4], large[1] * large[2], &known);
            const size_t needed =
                bytes + l->plan(ctx, f64 ? 8 : 4, 1, small[3], small[4], depth, cut.count, cut.slots).bytes;
            if (needed > given)
                fail_msg(
                    "%s %s: %lld leaves of %lld samples of %lld, %lld x %lld, need %zu bytes, but %lld of %lld, %lld x "
                    "%lld give %zu",
                    l->name, f64 ? "f64" : "f32", (long long)small[0], (long long)small[1], (long long)small[2],
                    (long long)small[3], (long long)small[4], needed, (long long)large[0], (long long)large[1],
                    (long long)large[3], (long long)large[4], given);
            leaf_cut_free(&leaves);
        }
        an_context_destroy(&ctx);
    }
    free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_edge),   cmocka_unit_test(test_every_layout),
        cmocka_unit_test(test_every_cut),    cmocka_unit_test(test_fused_levels_agree),
        cmocka_unit_test(test_accumulate),   cmocka_unit_test(test_finish),
        cmocka_unit_test(test_zero_depth),   cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_leaf_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
