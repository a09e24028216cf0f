/* oneDNN: the cache of primitives, its statuses, its level in the process, and what a plan does when memory ends. */
#include "support/support.h"

#if defined(ANNEAL_HAVE_ONEDNN) && defined(__x86_64__)
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "anneal/experimental.h"
#include "anneal/models.h"
#include "anneal/plan.h"
#include "kernels/convolution_calls.h"
#include "kernels/onednn/onednn.h"

/* ---- levels; in processes of their own, as oneDNN's limit is the process's ---- */

/* A hash of the results of all kinds in f32. 0: something failed, and `message` says what. */
static uint64_t hash_f32(an_isa isa, char *message, size_t capacity) {
    static const problem problems[] = {
        {3, 3, 12, 12, 20, 5, 1, 2, 1}, {2, 40, 9, 9, 24, 3, 2, 1, 1}, {1, 16, 5, 5, 16, 1, 1, 0, 1}};
    uint64_t hash = 1469598103934665603u;
    an_context *ctx = make_context(1, isa);
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            an_tensor tensors[TENSORS];
            convolution_call c;
            set_shapes(&problems[i], kind, AN_DTYPE_F32, false, tensors);
            allocate_tensors(tensors);
            make_call(&c, ctx, &problems[i], kind, tensors);
            const size_t bytes = kernels[kind]->scratch(&c.call);
            c.call.scratch =
                bytes == AN_SCRATCH_FAILED ? NULL : aligned_alloc(AN_ALIGNMENT, an_round_up(bytes, AN_ALIGNMENT));
            if (!c.call.scratch || kernels[kind]->run(&c.call) != AN_OK) {
                snprintf(message, capacity, "%s", an_last_error(ctx));
                return 0;
            }
            const unsigned char *result = c.dst[0].data;
            for (size_t b = 0; b < bytes_of(&c.dst[0]); b++) hash = (hash ^ result[b]) * 1099511628211u;
            free(c.call.scratch);
            free_tensors(tensors);
        }
    an_context_destroy(&ctx);
    return hash;
}

typedef struct {
    uint64_t hash;
    dnnl_cpu_isa_t limit; /* oneDNN's, in the end */
    char message[1024];
} answer;

/* What a process answers in which `first` (NULL: nothing) happened before anneal was used. */
static answer ask_process(void (*first)(void), an_isa isa) {
    answer a = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (first) first();
        a.hash = hash_f32(isa, a.message, sizeof a.message);
        a.limit = dnnl_get_effective_cpu_isa();
        _exit(write(ends[1], &a, sizeof a) == (ssize_t)sizeof a ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &a, sizeof a), sizeof a);
    close(ends[0]);
    waitpid(child, NULL, 0);
    return a;
}

static void use_onednn(dnnl_cpu_isa_t limit) {
    dnnl_set_max_cpu_isa(limit);
    (void)dnnl_get_effective_cpu_isa(); /* from here on the limit holds */
}
static void host_has_avx512(void) {
    use_onednn(dnnl_cpu_isa_avx512_core);
}
static void host_has_avx2(void) {
    use_onednn(dnnl_cpu_isa_avx2);
}
static void variables_are_set(void) {
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    setenv("ONEDNN_DEFAULT_FPMATH_MODE", "BF16", 1);
    setenv("ONEDNN_CPU_ISA_HINTS", "PREFER_YMM", 1);
}
static void levels_are_limited(void) {
    setenv("ANNEAL_MAX_ISA", "avx512", 1);
}

/* First of all tests: a process that has threads should not fork. */
static void test_a_level_is_the_same_everywhere(void **state) {
    (void)state;
    if (!has_level(AN_ISA_AVX512)) skip();
    const answer plain = ask_process(NULL, AN_ISA_AVX512);
    if (!plain.hash) fail_msg("%s", plain.message);
    assert_int_equal(ask_process(host_has_avx512, AN_ISA_AVX512).hash, plain.hash);
    assert_int_equal(ask_process(variables_are_set, AN_ISA_AVX512).hash, plain.hash);
    if (has_level(AN_ISA_AMX)) assert_int_equal(ask_process(NULL, AN_ISA_AMX).hash, plain.hash);
}

/* What is kept from contexts, oneDNN does not use either. */
static void test_a_limited_level_limits_onednn(void **state) {
    (void)state;
    if (!has_level(AN_ISA_AVX512)) skip();
    const answer plain = ask_process(NULL, AN_ISA_AVX512);
    const answer limited = ask_process(levels_are_limited, AN_ISA_AVX512);
    if (!limited.hash) fail_msg("%s", limited.message);
    assert_int_equal(limited.hash, plain.hash);
    assert_int_equal(limited.limit, dnnl_cpu_isa_avx512_core);
    if (has_level(AN_ISA_AMX)) assert_int_not_equal(plain.limit, dnnl_cpu_isa_avx512_core);
}

static void test_a_limit_that_is_too_low_is_told(void **state) {
    (void)state;
    if (!has_level(AN_ISA_AVX512)) skip();
    const answer a = ask_process(host_has_avx2, AN_ISA_AVX512);
    assert_true(a.hash == 0);
    if (!strstr(a.message, "the program has limited oneDNN to")) fail_msg("%s", a.message);
}

static void test_which_level_has_what(void **state) {
    (void)state;
    const problem p = {2, 8, 9, 9, 8, 3, 1, 1, 1};
    const an_kernel *low[] = {an_kernels_convolution, an_kernels_convolution_avx2};
    if (!has_level(AN_ISA_AVX512)) skip();
    for (int i = 0; i < 2; i++) assert_string_not_equal(low[i]->name, "onednn");
    an_context *ctx = make_context(1, AN_ISA_AVX512);
    for (int kind = 0; kind < KINDS; kind++) {
        assert_true(applies(ctx, &p, kind, AN_DTYPE_F32));
        assert_false(applies(ctx, &p, kind, AN_DTYPE_BF16));
        assert_false(applies(ctx, &p, kind, AN_DTYPE_F64));
    }
    an_context_destroy(&ctx);
}

/* ---- the cache ---- */

static int made;
static dnnl_status_t made_with;

static dnnl_status_t make(dnnl_engine_t engine, const void *key, an_onednn_set *set) {
    const dnnl_dims_t dims = {*(const int64_t *)key + 1};
    (void)engine;
    made++;
    assert_int_equal(omp_get_max_threads(), 1);
    AN_ONEDNN_TRY(dnnl_memory_desc_create_with_tag(&set->layouts[0], 1, dims, dnnl_f32, dnnl_a));
    set->numbers[0] = *(const int64_t *)key;
    return made_with;
}

static const an_onednn_set *find(an_context *ctx, int64_t key) {
    const an_onednn_set *set = NULL;
    OK(ctx, an_onednn_find(ctx, "a test", &key, sizeof key, make, &set));
    assert_int_equal(set->numbers[0], key);
    return set;
}

static void test_cache(void **state) {
    (void)state;
    if (!has_level(AN_ISA_AVX512)) skip();
    an_context *ctx = make_context(1, AN_ISA_AVX512);
    const an_onednn_set *first = find(ctx, 0);
    made = 0;
    for (int64_t i = 0; i < AN_ONEDNN_CAPACITY; i++) find(ctx, i); /* all have a place */
    assert_int_equal(made, AN_ONEDNN_CAPACITY - 1);
    assert_ptr_equal(find(ctx, 0), first);
    for (int64_t i = 0; i < AN_ONEDNN_CAPACITY - 1; i++) find(ctx, 1000 + i); /* 0 was used last, so it stays */
    made = 0;
    assert_ptr_equal(find(ctx, 0), first);
    assert_int_equal(made, 0);
    find(ctx, 1); /* was pushed out */
    assert_int_equal(made, 1);
    an_context_destroy(&ctx);
}

static void test_statuses(void **state) {
    (void)state;
    static const struct {
        dnnl_status_t status;
        an_status expected;
        const char *words;
    } cases[] = {{dnnl_out_of_memory, AN_ERR_MEMORY, "memory"},
                 {dnnl_unimplemented, AN_ERR_UNSUPPORTED, "unimplemented"},
                 {dnnl_runtime_error, AN_ERR_KERNEL, "runtime_error"}};
    if (!has_level(AN_ISA_AVX512)) skip();
    an_context *ctx = make_context(1, AN_ISA_AVX512);
    const int64_t key = 7;
    const an_onednn_set *set;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made_with = cases[i].status;
        FAILS(ctx, an_onednn_find(ctx, "a test", &key, sizeof key, make, &set), cases[i].expected, cases[i].words);
    }
    made_with = dnnl_success;
    find(ctx, key); /* what failed was not kept */
    an_context_destroy(&ctx);
}

/* ---- in a plan ---- */

static an_status plan_cnn(an_context *ctx) {
    an_cnn_options options;
    an_cnn_options_init(&options, sizeof options);
    const int64_t filters[] = {4, 8};
    an_graph *g = NULL;
    an_plan *plan = NULL;
    options.channels = 1;
    options.height = options.width = 8;
    options.filters = filters;
    options.filter_count = 2;
    options.hidden = 8;
    options.classes = 3;
    an_status status = an_model_cnn(&g, ctx, &options);
    if (status == AN_OK) status = an_graph_verify(g);
    if (status == AN_OK) status = plan_for(&plan, ctx, g, "batch", 4, AN_PROGRAM_TRAINING);
    an_plan_destroy(&plan);
    an_graph_destroy(&g);
    return status;
}

/* The n-th allocation fails, for every n: also that of what oneDNN's primitives are kept in. */
static void test_every_allocation(void **state) {
    (void)state;
    an_status status = AN_ERR_MEMORY;
    for (long n = 1; status != AN_OK; n++) {
        ledger l = {.fail_at = n};
        an_context *ctx = NULL;
        status = context_with_ledger(&ctx, &l, 2);
        if (status == AN_OK) status = plan_cnn(ctx);
        if (status != AN_OK && status != AN_ERR_MEMORY)
            fail_msg("allocation %ld failed and gave %s: %s", n, an_status_name(status), an_last_error(ctx));
        if (status == AN_OK && has_level(AN_ISA_AVX512)) assert_non_null(ctx->engine);
        an_context_destroy(&ctx);
        assert_int_equal(l.held, 0);
        assert_false(l.mismatch);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_level_is_the_same_everywhere),
        cmocka_unit_test(test_a_limited_level_limits_onednn),
        cmocka_unit_test(test_a_limit_that_is_too_low_is_told),
        cmocka_unit_test(test_which_level_has_what),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_every_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
static void test_version(void **state) {
    (void)state;
    assert_string_equal(an_onednn_version(), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_version)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
