/* What it costs that a product adds by leaves: the gradient of a weight, (k × rows)ᵀ · (k × columns), with and without
 * leaves, in turns.
 *
 *     leaf_products [threads] [rounds]
 *
 * Prints one line of JSON for each shape: microseconds without leaves (the median), and for leaves of 32, 64 and 256
 * rows the median of the ratios of a run with leaves to the mean of the runs before and after it. It looks inside the
 * library, to time a single kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/context.h"
#include "kernels/product/product.h"

enum { MOST_ROUNDS = 1000, MOST_LEAVES = 4096 };
static const int64_t leaf_rows[] = {32, 64, 256};
enum { CUTS = sizeof leaf_rows / sizeof leaf_rows[0] };
static const struct {
    int64_t k, rows, columns;
} shapes[] = {{64, 784, 256}, {4096, 784, 128}, {768, 128, 512}, {1024, 768, 3072}};

static an_context *ctx;
static const an_kernel *kernel;

/* On one thread, the processor's time: other work on the machine does not count then, except that it uses the
 * caches. */
static double now(void) {
    struct timespec t;
    clock_gettime(an_context_threads(ctx) == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *memory(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (!p) exit(1);
    return p;
}

static an_tensor matrix(int64_t rows, int64_t columns) {
    an_tensor t = {.dtype = AN_DTYPE_F32, .ndims = 2, .dims = {rows, columns}, .strides = {columns, 1}};
    float *values = memory((size_t)(rows * columns) * sizeof *values);
    for (int64_t i = 0; i < rows * columns; i++) values[i] = (float)(i * 7919 % 1009) / 1009 - 0.5F;
    t.data = values;
    return t;
}

static double run(const an_call *call, int times) {
    const double begin = now();
    for (int i = 0; i < times; i++)
        if (kernel->run(call) != AN_OK) exit(1);
    return (now() - begin) / times;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static void race(int64_t k, int64_t rows, int64_t columns, int rounds) {
    an_tensor src[] = {matrix(k, rows), matrix(k, columns)}, dst = matrix(rows, columns);
    const an_product_attributes attributes = {.transpose_a = true};
    an_call call = {.ctx = ctx, .attributes = &attributes, .src_count = 2, .dst_count = 1, .src = src, .dst = &dst};
    static double without[MOST_ROUNDS * CUTS], ratios[CUTS][MOST_ROUNDS];
    static int64_t ends[CUTS][MOST_LEAVES];
    an_leaf_cut cuts[CUTS];
    size_t bytes = kernel->scratch(&call);
    for (int c = 0; c < CUTS; c++) {
        const int64_t leaves = (k + leaf_rows[c] - 1) / leaf_rows[c];
        for (int64_t i = 0; i < leaves; i++) ends[c][i] = (i + 1) * k / leaves;
        cuts[c] = (an_leaf_cut){.count = leaves, .samples = k, .ends = ends[c]};
        call.leaves = &cuts[c];
        const size_t more = kernel->scratch(&call);
        if (more > bytes) bytes = more;
    }
    call.scratch = memory(bytes);
    const int times = 1 + (int)(1e8 / (double)(k * rows * columns));
    for (int round = -1; round < rounds; round++) /* one to warm up */
        for (int c = 0; c < CUTS; c++) {
            call.leaves = NULL;
            const double before = run(&call, times);
            call.leaves = &cuts[c];
            const double with = run(&call, times);
            call.leaves = NULL;
            const double after = run(&call, times);
            if (round < 0) continue;
            without[round * CUTS + c] = before;
            ratios[c][round] = with / ((before + after) / 2);
        }
    printf("{\"k\": %lld, \"rows\": %lld, \"columns\": %lld, \"us\": %.1f", (long long)k, (long long)rows,
           (long long)columns, 1e6 * median(without, rounds * CUTS));
    for (int c = 0; c < CUTS; c++)
        printf(", \"leaves_of_%lld\": %.3f", (long long)leaf_rows[c], median(ratios[c], rounds));
    printf("}\n");
    fflush(stdout);
    free(src[0].data), free(src[1].data), free(dst.data), free(call.scratch);
}

int main(int count, char **texts) {
    static const an_kernel *const lists[] = AN_KERNELS(product);
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = count > 1 ? (int)strtol(texts[1], NULL, 10) : 1;
    int rounds = count > 2 ? (int)strtol(texts[2], NULL, 10) : 31;
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    if (an_context_create(&ctx, &options) != AN_OK) return 1;
    kernel = lists[an_level_of(an_context_isa(ctx))];
    while (strcmp(kernel->name, "portable") != 0) kernel++;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        race(shapes[i].k, shapes[i].rows, shapes[i].columns, rounds);
    an_context_destroy(&ctx);
    return 0;
}
