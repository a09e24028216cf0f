/* oneDNN's convolutions, what checkops has no cases for: samples in batches of any size, every smaller size, many
 * channels, tensors at the edge of memory, the host's threads. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS; NOLINT(bugprone-reserved-identifier) */
#include "support/support.h"

#if defined(ANNEAL_HAVE_ONEDNN) && defined(__x86_64__)
#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/convolution_calls.h"

static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_BF16};

static an_isa level_for(an_dtype dtype) {
    return dtype == AN_DTYPE_BF16 ? AN_ISA_AMX : AN_ISA_AVX512;
}

/* Memory that ends where a page begins that nobody may touch. */
typedef struct {
    void *pages;
    size_t bytes;
} edge;

static void *allocate_at_edge(size_t bytes, edge *e) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    e->bytes = an_round_up(bytes + 1, page) + page;
    e->pages = mmap(NULL, e->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(e->pages != MAP_FAILED);
    assert_int_equal(mprotect((char *)e->pages + e->bytes - page, page, PROT_NONE), 0);
    return (char *)e->pages + e->bytes - page - bytes;
}

static size_t scratch_of(an_context *ctx, const problem *p, int kind, an_dtype dtype, const an_kernel *kernel) {
    convolution_call c;
    an_tensor tensors[TENSORS];
    set_shapes(p, kind, dtype, true, tensors);
    make_call(&c, ctx, p, kind, tensors);
    const size_t bytes = kernel->scratch(&c.call);
    if (bytes == AN_SCRATCH_FAILED) fail_msg("%s", an_last_error(ctx));
    return bytes;
}

static void run(an_context *ctx, const problem *p, int kind, const an_kernel *kernel, const an_tensor *tensors) {
    convolution_call c;
    edge e;
    make_call(&c, ctx, p, kind, tensors);
    const size_t bytes = kernel->scratch(&c.call);
    if (bytes == AN_SCRATCH_FAILED) fail_msg("%s", an_last_error(ctx));
    c.call.scratch = allocate_at_edge(an_round_up(bytes, AN_ALIGNMENT), &e);
    memset(c.call.scratch, 0xff, bytes);
    OK(ctx, kernel->run(&c.call));
    munmap(e.pages, e.bytes);
}

/* Against the portable kernel: the largest difference may be this part of the largest value. */
static void compare(const problem *p, int kind, const float *got, const float *want, int64_t n) {
    const float tolerance = 1e-4f;
    float largest = 0, difference = 0;
    for (int64_t i = 0; i < n; i++) {
        const float d = fabsf(got[i] - want[i]);
        if (fabsf(want[i]) > largest) largest = fabsf(want[i]);
        if (!(d <= difference)) difference = d; /* also of a NaN */
    }
    if (!(difference <= tolerance * (largest > 1e-3f ? largest : 1e-3f)))
        fail_msg("kind %d, %lld × %lld channels × %lld × %lld, %lld filters: off by %g of %g", kind,
                 (long long)p->samples, (long long)p->channels, (long long)p->height, (long long)p->width,
                 (long long)p->filters, (double)difference, (double)largest);
}

/* One problem with oneDNN and with the portable kernel, all tensors at the edge of memory. */
static void check_problem(an_context *ctx, const problem *p, int kind, an_dtype dtype, bool channels_last) {
    an_tensor tensors[TENSORS];
    edge edges[TENSORS];
    set_shapes(p, kind, dtype, true, tensors);
    for (int i = 0; i < TENSORS; i++) {
        an_tensor *t = &tensors[i];
        t->data = allocate_at_edge(bytes_of(t), &edges[i]);
        if (channels_last && i != WEIGHTS) {
            t->strides[1] = 1;
            t->strides[3] = t->dims[1];
            t->strides[2] = t->dims[1] * t->dims[3];
        }
        for (int d = 0; d < t->ndims; d++)
            if (t->dims[d] == 1) t->strides[d] = 5; /* means nothing */
        fill(t, (uint64_t)i + 1);
    }
    an_tensor *result = &tensors[result_of(kind)];
    float *want = malloc(bytes_of(result)), *got = result->data;
    assert_non_null(want);
    run(ctx, p, kind, onednn_of(kind), tensors);
    result->data = want;
    run(ctx, p, kind, portable_of(kind), tensors);
    compare(p, kind, got, want, elements_of(result));
    free(want);
    for (int i = 0; i < TENSORS; i++) munmap(edges[i].pages, edges[i].bytes);
}

static const problem many[] = {
    {64, 3, 11, 11, 20, 3, 1, 1, 1}, {64, 16, 8, 8, 32, 3, 2, 1, 1}, {64, 40, 4, 4, 48, 3, 1, 1, 1},
    {64, 64, 6, 6, 24, 1, 2, 0, 1},  {64, 12, 7, 7, 12, 5, 1, 2, 2},
};

/* Samples [first, first + count) alone have the bits that they have among all. */
static void check_samples(an_context *ctx, const problem *p, int kind, an_tensor *tensors, int64_t first,
                          int64_t count) {
    problem few = *p;
    an_tensor parts[TENSORS];
    few.samples = count;
    for (int i = 0; i < TENSORS; i++) {
        parts[i] = tensors[i];
        if (i == WEIGHTS) continue;
        parts[i].dims[0] = count;
        parts[i].data = (char *)tensors[i].data + (size_t)(first * parts[i].strides[0]) * an_dtype_size(parts[i].dtype);
    }
    an_tensor *result = &parts[result_of(kind)];
    const void *among_all = result->data;
    result->data = malloc(bytes_of(result));
    assert_non_null(result->data);
    run(ctx, &few, kind, onednn_of(kind), parts);
    if (memcmp(result->data, among_all, bytes_of(result)) != 0)
        fail_msg("kind %d, %lld channels: samples %lld to %lld have other bits alone", kind, (long long)p->channels,
                 (long long)first, (long long)(first + count - 1));
    free(result->data);
}

static void test_samples_in_batches_of_any_size(void **state) {
    (void)state;
    static const int64_t counts[] = {1, 2, 3, 7, 64};
    for (int i = 0; i < 2; i++) {
        if (!has_level(level_for(dtypes[i]))) continue;
        an_context *ctx = make_context(2, level_for(dtypes[i]));
        for (size_t m = 0; m < sizeof many / sizeof many[0]; m++)
            for (int kind = FORWARD; kind <= DIFF_SRC; kind++) {
                an_tensor tensors[TENSORS];
                set_shapes(&many[m], kind, dtypes[i], false, tensors);
                allocate_tensors(tensors);
                run(ctx, &many[m], kind, onednn_of(kind), tensors);
                for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                    check_samples(ctx, &many[m], kind, tensors, 0, counts[c]);
                    check_samples(ctx, &many[m], kind, tensors, many[m].samples - counts[c], counts[c]);
                }
                free_tensors(tensors);
            }
        an_context_destroy(&ctx);
    }
}

/* More filters and channels than a slice has, whole slices and not; batches that parts and chains do not divide;
 * windows for which oneDNN wants more room than there is. */
static void test_many_channels(void **state) {
    (void)state;
    static const problem wide[] = {
        {5, 150, 6, 6, 200, 3, 1, 1, 1},  {33, 130, 3, 3, 16, 3, 1, 1, 1}, {70, 2, 5, 5, 129, 3, 1, 1, 1},
        {3, 256, 4, 4, 128, 1, 1, 0, 1},  {2, 192, 5, 5, 192, 3, 1, 1, 1}, {4, 128, 9, 9, 200, 8, 3, 7, 1},
        {4, 256, 20, 20, 64, 7, 3, 4, 1}, {37, 24, 6, 6, 24, 3, 1, 1, 24}, {18, 64, 9, 9, 128, 3, 2, 1, 2},
    };
    for (int i = 0; i < 2; i++) {
        if (!has_level(level_for(dtypes[i]))) continue;
        an_context *ctx = make_context(3, level_for(dtypes[i]));
        for (size_t w = 0; w < sizeof wide / sizeof wide[0]; w++)
            for (int kind = 0; kind < KINDS; kind++) {
                check_problem(ctx, &wide[w], kind, dtypes[i], false);
                check_problem(ctx, &wide[w], kind, dtypes[i], true);
            }
        an_context_destroy(&ctx);
    }
}

/* A kernel is chosen at the largest sizes and then given smaller ones, which must be right in no more scratch. */
static void test_every_smaller_size(void **state) {
    (void)state;
    static const problem largest[] = {{9, 8, 16, 16, 20, 5, 1, 2, 1}, {9, 33, 12, 12, 64, 3, 2, 1, 1}};
    static const int64_t samples[] = {1, 3, 4, 9};
    for (int i = 0; i < 2; i++) {
        if (!has_level(level_for(dtypes[i]))) continue;
        an_context *ctx = make_context(2, level_for(dtypes[i]));
        for (size_t l = 0; l < sizeof largest / sizeof largest[0]; l++)
            for (int kind = 0; kind < KINDS; kind++) {
                assert_true(applies(ctx, &largest[l], kind, dtypes[i]));
                const size_t maximum = scratch_of(ctx, &largest[l], kind, dtypes[i], onednn_of(kind));
                for (int64_t h = 1; h <= largest[l].height; h += h < 6 ? 1 : 5)
                    for (int64_t w = 1; w <= largest[l].width; w += w < 4 ? 1 : 6) {
                        problem p = largest[l];
                        p.height = h;
                        p.width = w;
                        p.samples = samples[(size_t)(h + w) % (sizeof samples / sizeof samples[0])];
                        assert_true(scratch_of(ctx, &p, kind, dtypes[i], onednn_of(kind)) <= maximum);
                        check_problem(ctx, &p, kind, dtypes[i], false);
                    }
            }
        an_context_destroy(&ctx);
    }
}

/* In a region of the host it runs on one thread; its setting of threads stays as it was; bits are the same. */
static void test_threads_of_the_host(void **state) {
    (void)state;
    const problem *p = &many[2];
    if (!has_level(AN_ISA_AVX512)) skip();
    an_context *ctx = make_context(4, AN_ISA_AVX512);
    const int before = omp_get_max_threads();
    omp_set_num_threads(3);
    for (int kind = 0; kind < KINDS; kind++) {
        an_tensor tensors[TENSORS];
        set_shapes(p, kind, AN_DTYPE_F32, false, tensors);
        allocate_tensors(tensors);
        an_tensor *result = &tensors[result_of(kind)];
        run(ctx, p, kind, onednn_of(kind), tensors);
        assert_int_equal(omp_get_max_threads(), 3);
        void *outside = result->data;
        result->data = malloc(bytes_of(result));
        assert_non_null(result->data);
#pragma omp parallel num_threads(2)
        {
#pragma omp single
            run(ctx, p, kind, onednn_of(kind), tensors);
        }
        assert_memory_equal(result->data, outside, bytes_of(result));
        free(outside);
        free_tensors(tensors);
    }
    omp_set_num_threads(before);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_in_batches_of_any_size),
        cmocka_unit_test(test_many_channels),
        cmocka_unit_test(test_every_smaller_size),
        cmocka_unit_test(test_threads_of_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
    enum { SKIPPED = 77 };
    return SKIPPED;
}
#endif
