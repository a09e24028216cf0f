/* Kernels that add by leaves against the same kernels without leaves: each has its turn in every round.
 *
 *     leaf_tables [--rounds 200] [--threads 1]
 *
 * Prints one line of JSON for each problem: milliseconds without leaves (median over the rounds), and the median of the
 * ratios within a round for each number of leaves. It looks inside the library, to time single kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/level.h"
#include "kernels/convolution/convolution.h"
#include "kernels/embedding/embedding.h"

#include "anneal/anneal.h"

enum { MOST_ROUNDS = 10000, CONTENDERS = 4, WITHOUT = 0, ALIGNMENT = 64 };

typedef struct {
    const char *name;
    int64_t samples;
    int64_t leaves[CONTENDERS]; /* 0: none */
    const an_kernel *kernel;
    an_call call;
} problem;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(const double *values, int count) {
    static double sorted[MOST_ROUNDS];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    return sorted[count / 2];
}

static void check(an_context *ctx, an_status status) {
    if (status == AN_OK) return;
    fprintf(stderr, "leaves: %s\n", an_last_error(ctx));
    exit(1);
}

static void *allocate(size_t bytes) {
    void *memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    if (!memory) {
        fprintf(stderr, "leaves: out of memory\n");
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

static an_tensor tensor(an_dtype dtype, int ndims, const int64_t *dims) {
    an_tensor t = {.dtype = dtype, .ndims = ndims};
    int64_t stride = 1;
    for (int i = ndims - 1; i >= 0; i--) {
        t.dims[i] = dims[i];
        t.strides[i] = stride;
        stride *= dims[i];
    }
    t.data = allocate((size_t)stride * an_dtype_size(dtype));
    if (dtype == AN_DTYPE_F32)
        for (int64_t i = 0; i < stride; i++) ((float *)t.data)[i] = (float)(i % 977) * 1e-3f;
    return t;
}

static void race(const problem *p, int rounds) {
    static double seconds[CONTENDERS][MOST_ROUNDS];
    an_leaf_cut cuts[CONTENDERS];
    int64_t *ends[CONTENDERS];
    an_call calls[CONTENDERS];
    for (int c = 0; c < CONTENDERS; c++) {
        const int64_t leaves = p->leaves[c] ? p->leaves[c] : 1;
        ends[c] = allocate((size_t)leaves * sizeof *ends[c]);
        for (int64_t i = 0; i < leaves; i++) ends[c][i] = (i + 1) * p->samples / leaves;
        cuts[c] = (an_leaf_cut){.count = leaves, .samples = p->samples};
        calls[c] = p->call;
        calls[c].leaves = c == WITHOUT ? NULL : &cuts[c];
        const size_t bytes = p->kernel->scratch(&calls[c]);
        if (bytes == AN_SCRATCH_FAILED) check(p->call.ctx, AN_ERR_KERNEL);
        calls[c].scratch = allocate(bytes);
        cuts[c].ends = ends[c];
    }
    for (int round = -2; round < rounds; round++) /* two to warm up */
        for (int c = 0; c < CONTENDERS; c++) {
            const double begin = now();
            check(p->call.ctx, p->kernel->run(&calls[c]));
            if (round >= 0) seconds[c][round] = now() - begin;
        }
    printf("{\"problem\": \"%s\", \"without_ms\": %.4f", p->name, 1e3 * median(seconds[WITHOUT], rounds));
    for (int c = 1; c < CONTENDERS; c++) {
        static double ratios[MOST_ROUNDS];
        for (int i = 0; i < rounds; i++) ratios[i] = seconds[c][i] / seconds[WITHOUT][i];
        printf(", \"%lld_leaves\": %.3f", (long long)p->leaves[c], median(ratios, rounds));
    }
    printf("}\n");
    fflush(stdout);
    for (int c = 0; c < CONTENDERS; c++) {
        free(ends[c]);
        free(calls[c].scratch);
    }
}

static const an_kernel *first_that_applies(an_context *ctx, const an_kernel *const *lists, const an_call *call) {
    const an_kernel *kernel = lists[an_level_of(an_context_isa(ctx))];
    while (kernel->applies && !kernel->applies(call)) kernel++;
    return kernel;
}

/* Words as in a text: few of them often, most of them never. */
static void race_table(an_context *ctx, const char *name, int64_t rows, int64_t width, int64_t samples, int64_t each,
                       int rounds) {
    static const an_kernel *const lists[] = AN_KERNELS(embedding_diff);
    an_tensor src[] = {tensor(AN_DTYPE_F32, 3, (const int64_t[]){samples, each, width}),
                       tensor(AN_DTYPE_I32, 2, (const int64_t[]){samples, each})};
    an_tensor dst = tensor(AN_DTYPE_F32, 2, (const int64_t[]){rows, width});
    uint64_t state = 1;
    for (int64_t i = 0; i < samples * each; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double x = (double)(state >> 33) * 0x1p-31;
        ((int32_t *)src[1].data)[i] = (int32_t)((double)(rows - 1) * x * x * x * x);
    }
    problem p = {.name = name,
                 .samples = samples,
                 .leaves = {0, 1, 8, 64},
                 .call = {.ctx = ctx, .src_count = 2, .dst_count = 1, .src = src, .dst = &dst}};
    p.kernel = first_that_applies(ctx, lists, &p.call);
    race(&p, rounds);
    for (int i = 0; i < 2; i++) free(src[i].data);
    free(dst.data);
}

static void race_convolution(an_context *ctx, const char *name, int64_t channels, int64_t filters, int64_t size,
                             int rounds) {
    enum { SAMPLES = 64, WINDOW = 3 };
    static const an_kernel *const lists[] = AN_KERNELS(convolution_diff_weights);
    const an_convolution_attributes attributes = {
        .stride = {2, {1, 1}}, .padding = {2, {1, 1}}, .dilation = {2, {1, 1}}, .groups = 1};
    an_tensor src[] = {tensor(AN_DTYPE_F32, 4, (const int64_t[]){SAMPLES, filters, size, size}),
                       tensor(AN_DTYPE_F32, 4, (const int64_t[]){SAMPLES, channels, size, size})};
    an_tensor dst = tensor(AN_DTYPE_F32, 4, (const int64_t[]){filters, channels, WINDOW, WINDOW});
    problem p = {
        .name = name,
        .samples = SAMPLES,
        .leaves = {0, 1, 4, 16}, /* 16 and 4 images in a leaf */
        .call = {.ctx = ctx, .attributes = &attributes, .src_count = 2, .dst_count = 1, .src = src, .dst = &dst}};
    p.kernel = first_that_applies(ctx, lists, &p.call);
    race(&p, rounds);
    for (int i = 0; i < 2; i++) free(src[i].data);
    free(dst.data);
}

int main(int count, char **texts) {
    enum { LARGE_ROUNDS = 20 /* a round of these is as long as many of the others */ };
    int rounds = 200;
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = 1;
    for (int i = 1; i + 1 < count; i += 2) {
        if (!strcmp(texts[i], "--rounds")) rounds = (int)strtol(texts[i + 1], NULL, 10);
        if (!strcmp(texts[i], "--threads")) options.threads = (int)strtol(texts[i + 1], NULL, 10);
    }
    if (rounds < 1 || rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    const int few = rounds < LARGE_ROUNDS ? rounds : LARGE_ROUNDS;
    check(NULL, an_context_create(&ctx, &options));
    race_table(ctx, "table 65x128, 768 positions", 65, 128, 64, 12, rounds);
    race_table(ctx, "table 50257x768, 1024 positions", 50257, 768, 64, 16, few);
    race_table(ctx, "table 49152x576, 1024 positions", 49152, 576, 64, 16, few);
    race_convolution(ctx, "convolution 1 to 16, 28x28", 1, 16, 28, rounds);
    race_convolution(ctx, "convolution 16 to 32, 28x28", 16, 32, 28, rounds);
    race_convolution(ctx, "convolution 16 to 32, 14x14", 16, 32, 14, rounds);
    race_convolution(ctx, "convolution 64 to 64, 16x16", 64, 64, 16, few);
    race_convolution(ctx, "convolution 256 to 256, 8x8", 256, 256, 8, few);
    an_context_destroy(&ctx);
    return 0;
}
