/* The n-th allocation fails, for every n, while an MLP is built, planned and run twice: a clean error each
 * time, no leak, no crash. In a build where MALLOC_IS_WRAPPED every malloc of the library fails in turn,
 * not only those of the context. */
#include "support/support.h"

static an_status run_twice(an_context *ctx, bool *ran) {
    an_status status;
    an_graph *g = NULL;
    an_params *params = NULL;
    an_plan *plan = NULL;
    an_program *program = NULL;
    char *text = NULL;
    float x[8 * 4] = {0}, y[8 * 2] = {0};
    an_array ax = array_of(x, AN_DTYPE_F32, 2, (const int64_t[]){8, 4}),
             ay = array_of(y, AN_DTYPE_F32, 2, (const int64_t[]){8, 2});
    double loss;
    *ran = false;
    if ((status = small_mlp(&g, ctx))) goto done;
    if ((status = an_graph_print(g, &text))) goto done;
    an_graph_destroy(&g);
    if ((status = an_graph_parse(&g, ctx, text, strlen(text)))) goto done;
    if ((status = an_graph_verify(g))) goto done;
    if ((status = an_params_create(&params, ctx, g, NULL))) goto done;
    if ((status = an_params_reset(params, 1))) goto done;
    if ((status = plan_for(&plan, ctx, g, "batch", 8, 7))) goto done;
    if ((status = an_program_create(&program, plan, params))) goto done;
    for (int i = 0; i < 2; i++) {
        if ((status = an_program_set_input(program, "x", &ax))) goto done;
        if ((status = an_program_set_input(program, "y", &ay))) goto done;
        if ((status = an_program_run(program, i ? AN_FORM_TRAIN_NEXT : AN_FORM_TRAIN_FIRST))) goto done;
        if ((status = an_program_loss(program, &loss))) goto done;
    }
    *ran = true;
done:
    an_program_destroy(&program);
    an_plan_destroy(&plan);
    an_params_destroy(&params);
    an_string_release(ctx, &text);
    an_graph_destroy(&g);
    return status;
}

static void fail_each(bool once) {
    long n = 1;
    for (bool ran = false; !ran; n++) {
        ledger l = {.fail_at = n, .once = once};
        an_context *ctx = NULL;
        an_status status = context_with_ledger(&ctx, &l, 2);
        if (status == AN_OK) status = run_twice(ctx, &ran);
        bool reached = l.calls >= n; /* else this run needed fewer: all have failed once */
        if (reached && ran) {        /* only a message that needed memory for its words may do without */
            ran = false;
        } else if (!ran && status != AN_ERR_MEMORY) {
            fail_msg("allocation %ld failed and gave %s: %s", n, an_status_name(status), an_last_error(ctx));
        }
        if (!ran && status && !strstr(an_last_error(ctx), "memory"))
            fail_msg("allocation %ld: %s", n, an_last_error(ctx));
        an_context_destroy(&ctx);
        if (l.held) fail_msg("allocation %ld failed and left %zu bytes", n, l.held);
        assert_false(l.mismatch);
        assert_true(n < 100000);
    }
    print_message("%ld allocations, each failed once\n", n - 2);
    assert_true(n > 50);
}

static void test_every_allocation_and_all_after_it(void **state) {
    (void)state;
    fail_each(false);
}

static void test_every_allocation_alone(void **state) {
    (void)state;
    fail_each(true);
}

#ifdef MALLOC_IS_WRAPPED
/* The linker sends every malloc and aligned_alloc of the library here. */
void *__real_malloc(size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *memory);

static long mallocs, malloc_fail_at, blocks;

static bool refuse(void) {
    return malloc_fail_at && ++mallocs >= malloc_fail_at;
}
void *__wrap_malloc(size_t bytes) {
    if (refuse()) return NULL;
    void *memory = __real_malloc(bytes);
    blocks += memory != NULL;
    return memory;
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    if (refuse()) return NULL;
    void *memory = __real_aligned_alloc(alignment, bytes);
    blocks += memory != NULL;
    return memory;
}
void __wrap_free(void *memory) {
    blocks -= memory != NULL;
    __real_free(memory);
}

static void test_every_malloc(void **state) {
    (void)state;
    long n = 1;
    for (bool ran = false; !ran; n++) {
        an_context *ctx = NULL;
        an_context_options options;
        an_context_options_init(&options, sizeof options);
        long before = blocks;
        options.threads = 2;
        mallocs = 0;
        malloc_fail_at = n;
        an_status status = an_context_create(&ctx, &options);
        if (status == AN_OK) status = run_twice(ctx, &ran);
        malloc_fail_at = 0;
        if (!ran && status != AN_ERR_MEMORY) fail_msg("malloc %ld failed and gave %s", n, an_status_name(status));
        an_context_destroy(&ctx);
        if (blocks != before) fail_msg("malloc %ld failed and left %ld blocks", n, blocks - before);
        assert_true(n < 100000);
    }
    print_message("%ld mallocs, each failed once\n", n - 2);
    assert_true(n > 50);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_and_all_after_it),
        cmocka_unit_test(test_every_allocation_alone),
#ifdef MALLOC_IS_WRAPPED
        cmocka_unit_test(test_every_malloc),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
