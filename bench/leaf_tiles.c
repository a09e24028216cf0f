/* What sums by leaves cost a gradient of a weight in bf16 on tiles: time of the product with leaves ÷ time without.
 *
 *     leaf_tiles [rounds] [threads] [first product] [end]
 *
 * Both take turns in every round. Prints two lines for each product: k × rows × columns of dst, and for leaves of 32,
 * 64, … rows the median of the ratios within a round; then the same of the fastest rounds, which means something on a
 * busy machine too. Microseconds are those without leaves. On one thread it is the processor's time: other work counts
 * only for what it takes of the caches. It looks inside the library, as a kernel is no public call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "anneal/anneal.h"
#include "anneal/experimental.h"
#include "base/system/clock.h"
#define AN_LEVEL _avx512
#include "kernels/product/product.h"

enum { MOST_ROUNDS = 2000, SIZES = 6, SMALLEST_LEAF = 32, LARGEST_LEAF = 1024, MOST_LEAVES = 128 };

typedef struct {
    int64_t depth, rows, columns;
} product;

static const product products[] = {{1024, 768, 768},  {1024, 768, 3072}, {1024, 2304, 768}, {4096, 768, 768},
                                   {4096, 768, 3072}, {4096, 2304, 768}, {1024, 576, 8},    {1024, 8, 1536},
                                   {4096, 576, 8},    {4096, 8, 1536}};

static bool on_one_thread;
static double now(void) {
    struct timespec t;
    if (!on_one_thread) return an_clock_seconds();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(an_context *ctx, an_status status) {
    if (status == AN_OK) return;
    fprintf(stderr, "product-leaves: %s\n", an_last_error(ctx));
    exit(1);
}

static void *allocate(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) exit(1);
    return memory;
}

static uint16_t *make_operand(int64_t count) {
    uint16_t *to = allocate((size_t)count * sizeof *to);
    for (int64_t i = 0; i < count; i++) to[i] = (uint16_t)(0x3f00 + i * 7919 % 251); /* from 0.5 to 2 */
    return to;
}

static int by_number(const void *a, const void *b) {
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_number);
    return values[count / 2];
}

static double run(const an_kernel *kernel, an_call call, const an_leaf_cut *cut) {
    call.leaves = cut;
    const double begin = now();
    check(call.ctx, kernel->run(&call));
    return now() - begin;
}

/* Every row is a sample. */
static void race(an_context *ctx, product p, int rounds) {
    const an_kernel *kernel = an_kernels_product_avx512;
    static double alone[MOST_ROUNDS * SIZES], ratios[SIZES][MOST_ROUNDS];
    double fastest[SIZES][2];
    int timed = 0;
    const an_product_attributes attributes = {.transpose_a = true};
    uint16_t *a = make_operand(p.depth * p.rows), *b = make_operand(p.depth * p.columns);
    float *dst = allocate((size_t)(p.rows * p.columns) * sizeof *dst);
    const an_tensor src[] = {{a, AN_DTYPE_BF16, 2, {p.depth, p.rows}, {p.rows, 1}},
                             {b, AN_DTYPE_BF16, 2, {p.depth, p.columns}, {p.columns, 1}}};
    const an_tensor to = {dst, AN_DTYPE_F32, 2, {p.rows, p.columns}, {p.columns, 1}};
    const an_leaf_cut maximum = {.count = MOST_LEAVES, .samples = p.depth};
    an_call call = {.ctx = ctx,
                    .attributes = &attributes,
                    .src_count = 2,
                    .src = src,
                    .dst_count = 1,
                    .dst = &to,
                    .leaves = &maximum};
    call.scratch = allocate(kernel->scratch(&call));
    for (int round = -2; round < rounds; round++) { /* two to warm up */
        int size = 0;
        for (int64_t leaf = SMALLEST_LEAF; leaf <= LARGEST_LEAF; leaf *= 2, size++) {
            int64_t ends[MOST_LEAVES];
            const an_leaf_cut cut = {.count = p.depth / leaf, .samples = p.depth, .ends = ends};
            for (int64_t i = 0; i < cut.count; i++) ends[i] = (i + 1) * leaf;
            const double without = run(kernel, call, NULL), with = run(kernel, call, &cut);
            if (round < 0) continue;
            alone[timed++] = without;
            ratios[size][round] = with / without;
            if (round == 0 || without < fastest[size][0]) fastest[size][0] = without;
            if (round == 0 || with < fastest[size][1]) fastest[size][1] = with;
        }
    }
    printf("%5lld %5lld %5lld %9.1f", (long long)p.depth, (long long)p.rows, (long long)p.columns,
           1e6 * median(alone, timed)); /* which sorts them */
    for (int i = 0; i < SIZES; i++) printf(" %6.3f", median(ratios[i], rounds));
    printf("\n%20s %9.1f", "fastest", 1e6 * alone[0]);
    for (int i = 0; i < SIZES; i++) printf(" %6.3f", fastest[i][1] / fastest[i][0]);
    printf("\n");
    fflush(stdout);
    free(a);
    free(b);
    free(dst);
    free(call.scratch);
}

int main(int count, char **texts) {
    int rounds = count > 1 ? (int)strtol(texts[1], NULL, 10) : 31;
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = count > 2 ? (int)strtol(texts[2], NULL, 10) : 1;
    on_one_thread = options.threads == 1;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    check(NULL, an_context_create(&ctx, &options));
    if (an_context_isa(ctx) != AN_ISA_AMX) {
        fprintf(stderr, "product-leaves: this machine has no tiles\n");
        return 1;
    }
    printf("    k  rows columns       µs");
    for (int64_t leaf = SMALLEST_LEAF; leaf <= LARGEST_LEAF; leaf *= 2) printf(" %6lld", (long long)leaf);
    printf("\n");
    const int first = count > 3 ? (int)strtol(texts[3], NULL, 10) : 0;
    const int end = count > 4 ? (int)strtol(texts[4], NULL, 10) : (int)(sizeof products / sizeof products[0]);
    for (int i = first; i < end; i++) race(ctx, products[i], rounds);
    an_context_destroy(&ctx);
    return 0;
}
