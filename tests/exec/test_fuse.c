/* Fusion changes memory and time and nothing else: losses and gradients have the bits of the parts, in every precision,
 * in training and evaluation, also where a loss has more rows than a chunk. */
#include "exec/recompute_models.h"
#include "kernels/product/loss.h"

enum { LARGE_BATCH = 2 * AN_PRODUCT_LOSS_ROWS / TOKENS + 3 }; /* two chunks and a short one */

static const int64_t large[] = {LARGE_BATCH, TOKENS};

/* Everything that a run makes, in the order in which it is read. */
typedef struct {
    double losses[3];
    float *gradients;
    int64_t count, instructions, fused;
} outcome;

static void count_fused(const an_plan *plan, outcome *o) {
    static const char *const names[] = {"matmul_cross_entropy", "matmul_chain", "chain"};
    an_plan_op op;
    an_plan_op_init(&op, sizeof op);
    for (int i = 0; i < an_plan_op_count(); i++) {
        assert_int_equal(an_plan_op_get(plan, AN_FORM_TRAIN_FIRST, i, &op), AN_OK);
        o->instructions += op.instructions;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (!strcmp(op.name, names[k])) o->fused += op.instructions;
    }
}

static void take_gradients(an_context *ctx, const an_params *params, outcome *o) {
    for (int64_t i = 0; i < an_params_count(params); i++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        OK(ctx, an_params_info(params, i, &info));
        o->gradients = realloc(o->gradients, (size_t)(o->count + info.elements) * sizeof *o->gradients);
        assert_non_null(o->gradients);
        an_array a = array_of(o->gradients + o->count, info.dtype, info.ndims, info.dims);
        OK(ctx, an_params_get(params, info.name, AN_PART_GRADIENT, &a));
        o->count += info.elements;
    }
}

static outcome run(an_context *ctx, const an_graph *g, an_dtype precision, bool unfused) {
    outcome o = {0};
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    while (an_graph_symbol_name(g, options.symbol_count)) options.symbol_count++;
    options.symbols = symbols;
    options.maxima = large;
    options.precision = precision;
    options.fused = !unfused;
    OK(ctx, an_plan_create(&plan, ctx, g, &options));
    count_fused(plan, &o);
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_program_create(&program, plan, params));
    OK(ctx, an_params_reset(params, 3));
    static const an_form forms[] = {AN_FORM_TRAIN_FIRST, AN_FORM_TRAIN_NEXT, AN_FORM_EVALUATE};
    for (int i = 0; i < 3; i++) {
        OK(ctx, an_program_bind(program, "batch", large[0] - i));
        feed(ctx, program, (uint64_t)i);
        if (an_program_set_scalar_i64(program, "seed", 42) == AN_OK)
            OK(ctx, an_program_set_scalar_i64(program, "step", i)); /* where there is dropout */
        OK(ctx, an_program_run(program, forms[i]));
        OK(ctx, an_program_loss(program, &o.losses[i]));
        take_gradients(ctx, params, &o);
    }
    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
    return o;
}

static void check(const char *name, an_status (*build)(an_graph **g, an_context *ctx)) {
    static const an_dtype precisions[] = {AN_DTYPE_NONE, AN_DTYPE_BF16, AN_DTYPE_F16};
    enum { PRECISIONS = sizeof precisions / sizeof *precisions };
    for (an_isa isa = AN_ISA_BASE; isa <= AN_ISA_AMX; isa++) {
        an_context_options options;
        an_context_options_init(&options, sizeof options);
        an_context *ctx = NULL;
        an_graph *g = NULL;
        options.isa = isa;
        options.threads = 2;
        if (an_context_create(&ctx, &options) == AN_ERR_UNSUPPORTED) continue; /* not of this machine */
        OK(ctx, build(&g, ctx));
        for (size_t i = 0; i < PRECISIONS; i++) {
#ifdef ANNEAL_SANITIZED /* bits are not a sanitizer's matter: one precision a level, for AMX the one that it has */
            if (i != (size_t)(isa - AN_ISA_BASE + 1) % PRECISIONS) continue;
#endif
            outcome parts = run(ctx, g, precisions[i], true), fused = run(ctx, g, precisions[i], false);
            print_message("%-6s %-6s %-4s %3lld instructions, %3lld of %3lld fused\n", name, an_isa_name(isa),
                          i ? an_dtype_name(precisions[i]) : "f32", (long long)parts.instructions,
                          (long long)fused.fused, (long long)fused.instructions);
            assert_int_equal(parts.fused, 0);
            assert_true(fused.fused > 0 && fused.instructions < parts.instructions);
            assert_int_equal(parts.count, fused.count);
            assert_memory_equal(parts.losses, fused.losses, sizeof parts.losses);
            assert_memory_equal(parts.gradients, fused.gradients, (size_t)parts.count * sizeof *parts.gradients);
            free(parts.gradients);
            free(fused.gradients);
        }
        an_graph_destroy(&g);
        an_context_destroy(&ctx);
    }
}

static an_status build_plain_mlp(an_graph **g, an_context *ctx) {
    an_mlp_options o;
    an_mlp_options_init(&o, sizeof o);
    o.inputs = 12;
    o.outputs = 5;
    o.hidden_count = 2;
    o.hidden = (const int64_t[]){64, 40};
    o.loss = AN_LOSS_SQUARED;
    return an_model_mlp(g, ctx, &o);
}

#define TEST(name)                          \
    static void test_##name(void **state) { \
        (void)state;                        \
        check(#name, build_##name);         \
    }
TEST(gpt)
TEST(llama)
TEST(mlp)
TEST(plain_mlp)
TEST(cnn)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt),       cmocka_unit_test(test_llama), cmocka_unit_test(test_mlp),
        cmocka_unit_test(test_plain_mlp), cmocka_unit_test(test_cnn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
