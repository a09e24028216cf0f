/* Sums by leaves against the same sums without: bias gradients and weight gradients of norms, in one thread.
 *
 *     leaf_sums [--rounds 101]
 *
 * Prints one line of JSON for each size and leaf: microseconds of CPU time of each (median over the rounds), and
 * the median of the ratios within a round, in which each has its turn. It looks inside the library, as a kernel is
 * no public call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <anneal/experimental.h>

#include "base/level.h"
#include "kernels/norm/norm.h"
#include "kernels/reduce/reduce.h"

enum { MOST_ROUNDS = 1001, MOST_TENSORS = 4, ROUND_ELEMENTS = 1 << 22 };

static const an_kernel *const sum_kernels[] = AN_KERNELS(reduce_sum);
static const an_kernel *const layer_norm_kernels[] = AN_KERNELS(layer_norm_diff_weights);
static const an_kernel *const rms_norm_kernels[] = AN_KERNELS(rms_norm_diff_weights);

static const struct {
    const char *name;
    const an_kernel *const *kernels;
    int64_t rows, columns;
} sizes[] = {{"bias", sum_kernels, 64, 256},
             {"bias", sum_kernels, 4096, 128},
             {"bias", sum_kernels, 768, 512},
             {"bias", sum_kernels, 1024, 3072},
             {"layer_norm", layer_norm_kernels, 1024, 768},
             {"layer_norm", layer_norm_kernels, 768, 128},
             {"rms_norm", rms_norm_kernels, 1024, 768},
             {"rms_norm", rms_norm_kernels, 768, 128}};
static const int64_t leaf_rows[] = {16, 32, 64, 256};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static an_tensor make(int ndims, int64_t rows, int64_t columns) {
    an_tensor t = {.dtype = AN_DTYPE_F32, .ndims = ndims, .dims = {rows, columns}, .strides = {columns, 1}};
    if (ndims == 1) t.strides[0] = 1;
    const int64_t elements = ndims == 1 ? rows : rows * columns;
    float *data = aligned_alloc(64, ((size_t)elements * sizeof *data + 63) / 64 * 64);
    if (!data) abort();
    for (int64_t i = 0; i < elements; i++) data[i] = (float)(i % 977) * 0.001F;
    t.data = data;
    return t;
}

static double run(const an_kernel *kernel, const an_call *call, int times) {
    const double begin = now();
    for (int i = 0; i < times; i++)
        if (kernel->run(call) != AN_OK) abort();
    return (now() - begin) / times;
}

static void race(an_context *ctx, size_t size, int64_t leaf, int rounds) {
    static double seconds[2][MOST_ROUNDS], ratios[MOST_ROUNDS];
    const int64_t rows = sizes[size].rows, columns = sizes[size].columns;
    const an_kernel *kernel = sizes[size].kernels[an_level_of(an_context_isa(ctx))];
    const bool is_sum = sizes[size].kernels == sum_kernels, has_mean = sizes[size].kernels == layer_norm_kernels;
    const an_reduce_attributes attributes = {.axes = {1, {0}}};
    an_tensor src[MOST_TENSORS] = {make(2, rows, columns)}, dst[2] = {make(1, columns, 1), make(1, columns, 1)};
    int64_t ends[MOST_ROUNDS];
    const int64_t count = (rows + leaf - 1) / leaf;
    int inputs = 1;
    if (!is_sum) {
        src[inputs++] = make(2, rows, columns);
        for (int i = 0; i <= has_mean; i++) src[inputs++] = make(1, rows, 1);
    }
    for (int64_t i = 0; i < count; i++) ends[i] = i + 1 < count ? (i + 1) * leaf : rows;
    const an_leaf_cut cut = {count, rows, ends};
    an_call calls[2];
    for (int way = 0; way < 2; way++) {
        calls[way] = (an_call){.ctx = ctx,
                               .attributes = &attributes,
                               .src_count = inputs,
                               .dst_count = 1 + has_mean,
                               .src = src,
                               .dst = dst,
                               .leaves = way ? &cut : NULL};
        const size_t bytes = kernel->scratch(&calls[way]);
        calls[way].scratch = aligned_alloc(64, bytes / 64 * 64 + 64);
    }
    const int times = (int)(ROUND_ELEMENTS / (rows * columns)) + 1;
    for (int round = -2; round < rounds; round++) /* two to warm up */
        for (int turn = 0; turn < 2; turn++) {
            const int way = (round + turn) & 1;
            const double time = run(kernel, &calls[way], times);
            if (round >= 0) seconds[way][round] = time;
        }
    for (int i = 0; i < rounds; i++) ratios[i] = seconds[1][i] / seconds[0][i];
    printf("{\"kernel\": \"%s\", \"rows\": %lld, \"columns\": %lld, \"leaf\": %lld, \"us\": %.1f, \"leaves_us\": %.1f, "
           "\"ratio\": %.3f}\n",
           sizes[size].name, (long long)rows, (long long)columns, (long long)leaf, 1e6 * median(seconds[0], rounds),
           1e6 * median(seconds[1], rounds), median(ratios, rounds));
    fflush(stdout);
    for (int i = 0; i < inputs; i++) free(src[i].data);
    for (int i = 0; i < 2; i++) {
        free(dst[i].data);
        free(calls[i].scratch);
    }
}

int main(int count, char **texts) {
    int rounds = 101;
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = 1;
    for (int i = 1; i + 1 < count; i += 2) {
        const int value = (int)strtol(texts[i + 1], NULL, 10);
        if (!strcmp(texts[i], "--rounds") && value >= 1 && value <= MOST_ROUNDS) rounds = value;
    }
    if (an_context_create(&ctx, &options) != AN_OK) {
        fprintf(stderr, "leaf_sums: %s\n", an_last_error(NULL));
        return 1;
    }
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
        for (size_t i = 0; i < sizeof leaf_rows / sizeof *leaf_rows; i++)
            if (leaf_rows[i] < sizes[size].rows) race(ctx, size, leaf_rows[i], rounds);
    an_context_destroy(&ctx);
    return 0;
}
