/* convolution_diff_weights by leaves has the bits of its leaves alone, added in the tree: with oneDNN and without. */
#include "base/float16.h"
#include "base/integer.h"
#include "kernels/convolution_calls.h"
#include "support/leaf_calls.h"

enum { MOST_LEAVES = 64 };

static uint64_t state = 1;

static int64_t below(int64_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)limit);
}

/* Images with gaps between samples, or with channels last. */
static void set_strides(an_tensor *t) {
    const int64_t kind = below(4);
    if (kind == 0) {
        t->strides[1] = 1;
        t->strides[3] = t->dims[1];
        t->strides[2] = t->dims[1] * t->dims[3];
        t->strides[0] = t->strides[2] * t->dims[2] + (below(2) ? t->dims[1] : 0);
    } else if (kind == 1) {
        t->strides[0] += 3;
    }
}

/* One sample for all: a tensor that another kernel may have to take. */
static void share_samples(an_tensor *t) {
    t->strides[0] = 0;
}

static void fill_any(an_tensor *t, int64_t elements, uint64_t seed) {
    for (int64_t i = 0; i < elements; i++) {
        const double value = noise(seed * 1000003 + (uint64_t)i);
        switch (t->dtype) {
        case AN_DTYPE_F64: ((double *)t->data)[i] = value; break;
        case AN_DTYPE_BF16: ((uint16_t *)t->data)[i] = an_f32_to_bf16((float)value); break;
        case AN_DTYPE_F16: ((uint16_t *)t->data)[i] = an_f32_to_f16((float)value); break;
        default: ((float *)t->data)[i] = (float)value;
        }
    }
}

static void allocate(an_tensor *t, uint64_t seed) {
    int64_t elements = 1;
    for (int i = 0; i < 4; i++) elements += (t->dims[i] - 1) * t->strides[i];
    t->data = malloc((size_t)elements * an_dtype_size(t->dtype));
    assert_non_null(t->data);
    fill_any(t, elements, seed);
}

static int64_t offset_of(const an_tensor *t, int64_t element) {
    int64_t offset = 0;
    for (int i = 3; i >= 0; i--) {
        offset += element % t->dims[i] * t->strides[i];
        element /= t->dims[i];
    }
    return offset;
}

typedef struct {
    an_context *ctx;
    const an_kernel *kernel;
    an_dtype dtype;
    bool shares, has_gaps; /* samples share memory; the weights have gaps */
} way;

static void check(const way *w, const problem *p, const an_leaf_cut *cut) {
    static const int axes[] = {0, 0};
    an_tensor tensors[TENSORS];
    convolution_call c;
    set_shapes(p, DIFF_WEIGHTS, w->dtype, false, tensors);
    if (w->dtype == AN_DTYPE_F64) tensors[WEIGHTS].dtype = AN_DTYPE_F64;
    for (int i = 0; i < TENSORS; i++) {
        if (i != WEIGHTS) set_strides(&tensors[i]);
        if (i == WEIGHTS && w->has_gaps) tensors[i].strides[0] += 2;
        if (i == DST && w->shares) share_samples(&tensors[i]);
        allocate(&tensors[i], (uint64_t)i + 1);
    }
    make_call(&c, w->ctx, p, DIFF_WEIGHTS, tensors);
    const an_tensor *dst = &c.dst[0];
    const leaf_calls l = {w->kernel, &c.call, axes, cut};
    const int64_t elements = elements_of(dst);
    void *sums = malloc((size_t)elements * sizeof(double));
    assert_non_null(sums);
    assert_true(w->kernel->by_leaves);
    leaf_calls_run(&l, &sums);
    leaf_calls_run_whole(&l);
    const size_t element = an_dtype_size(dst->dtype);
    for (int64_t i = 0; i < elements; i++)
        if (memcmp((const char *)sums + (size_t)i * element,
                   (const char *)dst->data + (size_t)offset_of(dst, i) * element, element) != 0)
            fail_msg("%s, dtype %d: %lld × %lld channels × %lld × %lld, %lld filters, window %lld, groups %lld, %lld "
                     "leaves: weight %lld has other bits",
                     w->kernel->name, (int)w->dtype, (long long)p->samples, (long long)p->channels,
                     (long long)p->height, (long long)p->width, (long long)p->filters, (long long)p->window,
                     (long long)p->groups, (long long)cut->count, (long long)i);
    free(sums);
    for (int i = 0; i < TENSORS; i++) free(tensors[i].data);
}

static problem any_problem(int64_t most_samples) {
    static const int64_t groups[] = {1, 1, 1, 2, 4};
    problem p = {.samples = 1 + below(most_samples), .window = 1 + 2 * below(3), .stride = 1 + below(2)};
    p.groups = groups[below(5)];
    p.channels = p.groups * (1 + below(5));
    p.filters = p.groups * (1 + below(9));
    p.padding = below(p.window);
    p.height = p.window + below(7);
    p.width = p.window + below(7);
    return p;
}

static void check_random(const way *w, int cases, int64_t most_samples) {
    for (int i = 0; i < cases; i++) {
        const problem p = any_problem(most_samples);
        an_leaf_cut cut = leaf_cut_make(1 + below(below(2) ? 6 : MOST_LEAVES), p.samples, below(2) ? state : 0);
        way at = *w;
        at.shares = below(8) == 0;
        at.has_gaps = below(8) == 0;
        check(&at, &p, &cut);
        leaf_cut_free(&cut);
    }
}

static void test_portable(void **unused) {
    (void)unused;
    enum { CASES = 40, SAMPLES = 40 };
    static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F64, AN_DTYPE_BF16, AN_DTYPE_F16};
    const an_kernel *lists[] = {
        an_kernels_convolution_diff_weights,
#if defined(__x86_64__)
        an_kernels_convolution_diff_weights_avx2,
        an_kernels_convolution_diff_weights_avx512,
#endif
    };
    static const an_isa levels[] = {AN_ISA_BASE, AN_ISA_AVX2, AN_ISA_AVX512};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (!has_level(levels[i])) continue;
        for (int d = 0; d < 4; d++) {
            an_context *ctx = make_context(1 + d % 3, levels[i]);
            const an_kernel *kernel = lists[i];
            while (kernel[1].name) kernel++;
            check_random(&(way){.ctx = ctx, .kernel = kernel, .dtype = dtypes[d]}, CASES, SAMPLES);
            an_context_destroy(&ctx);
        }
    }
}

#if defined(ANNEAL_HAVE_ONEDNN) && defined(__x86_64__)
/* Where parts are of several sizes, or there are several slices and chains; the last ones have room for some leaves
 * only, or for none. */
static void check_large(const way *w) {
    static const problem large[] = {
        {300, 3, 6, 6, 20, 3, 1, 1, 1},  {61, 150, 4, 4, 200, 3, 1, 1, 1}, {40, 130, 3, 3, 16, 3, 1, 1, 1},
        {37, 24, 6, 6, 24, 3, 1, 1, 24}, {64, 1, 28, 28, 16, 3, 1, 1, 1},  {48, 520, 3, 3, 520, 1, 1, 0, 1},
        {8, 128, 9, 9, 200, 8, 3, 7, 1}, {9, 256, 20, 20, 64, 7, 3, 4, 1},
    };
    static const int64_t counts[] = {2, 3, 9};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        for (int c = 0; c < 3; c++) {
            an_leaf_cut cut = leaf_cut_make(counts[c], large[i].samples, c == 1 ? state + i : 0);
            way at = *w;
            at.has_gaps = c == 2 && i % 3 == 0;
            check(&at, &large[i], &cut);
            leaf_cut_free(&cut);
        }
}

static void test_onednn(void **unused) {
    (void)unused;
    enum { CASES = 60, SAMPLES = 80 };
    static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F32, AN_DTYPE_BF16};
    static const an_isa levels[] = {AN_ISA_AVX512, AN_ISA_AMX, AN_ISA_AMX};
    for (int i = 0; i < 3; i++) {
        if (!has_level(levels[i])) continue;
        for (int threads = 1; threads <= 3; threads++) {
            an_context *ctx = make_context(threads, levels[i]);
            const way w = {.ctx = ctx, .kernel = onednn_of(DIFF_WEIGHTS), .dtype = dtypes[i]};
            check_random(&w, CASES / 3, SAMPLES);
            if (threads == 2) check_large(&w);
            an_context_destroy(&ctx);
        }
    }
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_portable),
#if defined(ANNEAL_HAVE_ONEDNN) && defined(__x86_64__)
        cmocka_unit_test(test_onednn),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
