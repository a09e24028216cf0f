/* The fingerprint of a context's kernels: the same on any number of threads, another one where a kernel is another. */
#include "base/context.h"
#include "base/isa.h"
#include "support/support.h"
#include "train/kernel_fingerprint.h"

typedef struct {
    uint64_t hash[2];
} fingerprint;

static bool same(fingerprint a, fingerprint b) {
    return a.hash[0] == b.hash[0] && a.hash[1] == b.hash[1];
}

static an_context *open_context(int threads, an_isa isa) {
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = threads;
    options.isa = isa;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    return ctx;
}

static fingerprint fingerprint_of(int threads, an_isa isa) {
    an_context *ctx = open_context(threads, isa);
    fingerprint f = {0}, again = {0}, computed = {0};
    const size_t before = an_context_bytes(ctx);
    OK(ctx, an_kernel_fingerprint(ctx, f.hash));
    assert_int_equal(an_context_bytes(ctx), before);
    const uint64_t allocations = ctx->allocations;
    OK(ctx, an_kernel_fingerprint(ctx, again.hash)); /* from memory */
    assert_int_equal(ctx->allocations, allocations);
    assert_true(same(f, again));
    OK(ctx, an_kernel_fingerprint_compute(ctx, NULL, computed.hash)); /* by this context, whoever computed the other */
    assert_true(same(f, computed));
    assert_true(f.hash[0] != 0 || f.hash[1] != 0);
    an_context_destroy(&ctx);
    return f;
}

static fingerprint fingerprint_with(const char *kernels, an_isa isa) {
    an_context *ctx = open_context(1, isa);
    fingerprint f = {0};
    OK(ctx, an_kernel_fingerprint_compute(ctx, kernels, f.hash));
    an_context_destroy(&ctx);
    return f;
}

static void test_threads_do_not_matter(void **state) {
    (void)state;
    const fingerprint one = fingerprint_of(1, AN_ISA_AUTO);
    assert_true(same(one, fingerprint_of(2, AN_ISA_AUTO)));
    assert_true(same(one, fingerprint_of(4, AN_ISA_AUTO)));
}

/* Levels do not add in the same order, so the hash tells them apart; without oneDNN, whose convolutions have levels
 * of their own, only those that have products of their own. */
static void test_levels_differ(void **state) {
    (void)state;
    fingerprint levels[AN_ISA_AMX + 1];
    const int maximum = (int)an_isa_highest();
    for (int isa = AN_ISA_BASE; isa <= maximum; isa++) {
        levels[isa] = fingerprint_of(1, (an_isa)isa);
#ifdef ANNEAL_HAVE_ONEDNN
        for (int other = AN_ISA_BASE; other < isa; other++) assert_false(same(levels[isa], levels[other]));
#endif
    }
    if (maximum > AN_ISA_BASE) assert_false(same(levels[maximum], levels[AN_ISA_BASE]));
}

/* Any one of the families that a run's bits come from, at every level that the machine has. A level whose best kernel
 * is the portable one has no other to force. */
static void test_other_kernels_differ(void **state) {
    (void)state;
    static const struct {
        const char *kernels;
        an_isa from; /* the lowest level that has a kernel with other bits than portable's */
    } forced[] = {
        {"matmul=portable", AN_ISA_AMX},
        {"attention=portable", AN_ISA_AVX2},
#ifdef ANNEAL_HAVE_ONEDNN
        {"convolution=portable", AN_ISA_AVX512},
#endif
    };
    for (an_isa isa = AN_ISA_BASE; isa <= an_isa_highest(); isa++) {
        const fingerprint usual = fingerprint_with(NULL, isa);
        for (size_t i = 0; i < sizeof forced / sizeof *forced; i++)
            if (same(usual, fingerprint_with(forced[i].kernels, isa)) != (isa < forced[i].from))
                fail_msg("%s: the fingerprint with %s", an_isa_name(isa), forced[i].kernels);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_levels_differ),
        cmocka_unit_test(test_other_kernels_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
