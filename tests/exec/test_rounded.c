/* Products that round what they multiply blocks of q8_0 by: the same bits at every level of instructions, fused with
 * what follows and alone, for any precision; and where rounding is not possible, the reason. */
#include "base/float16.h"
#include "exec/program.h"
#include "pass/frozen.h"
#include "support/support.h"

enum { BATCH = 5, WIDTH = 96, COLUMNS = 72 };

#define HEAD                                                                     \
    "ang 1\ngraph \"m\"\nsymbol batch\n%x = input(name=\"x\") : f32[batch,96]\n" \
    "%w = param(name=\"w\", frozen=true) : q8_0[72,96]\n%b = param(name=\"b\", frozen=true) : f32[72]\n"
#define TAIL "%q = bias(%p, %b, axis=1)\n%out = silu(%q)\noutput(%out, name=\"out\")\n"

typedef struct {
    float out[BATCH * COLUMNS];
    bool has_chain;
} outcome;

static void run(an_context *ctx, const char *text, bool rounds, bool fused, an_dtype precision, outcome *o) {
    static float x[BATCH * WIDTH], w[COLUMNS * WIDTH], b[COLUMNS];
    an_graph *g = NULL;
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    an_plan_options options;
    an_params_options stored;
    for (int i = 0; i < BATCH * WIDTH; i++) x[i] = (float)(i * i % 173 - 86) / 31;
    for (int i = 0; i < COLUMNS * WIDTH; i++) w[i] = (float)(i * 7 % 211 - 105) / 300;
    for (int i = 0; i < COLUMNS; i++) b[i] = (float)(i - 30) / 40;
    OK(ctx, an_graph_parse(&g, ctx, text, strlen(text)));
    OK(ctx, an_graph_verify(g));
    if (rounds) OK(ctx, an_graph_round_products(g));
    an_params_options_init(&stored, sizeof stored);
    stored.gradients = false;
    OK(ctx, an_params_create(&params, ctx, g, &stored));
    OK(ctx, an_params_set(params, "w", AN_PART_WEIGHT,
                          &(an_array){.data = w, .dtype = AN_DTYPE_F32, .ndims = 2, .dims = {COLUMNS, WIDTH}}));
    OK(ctx, an_params_set(params, "b", AN_PART_WEIGHT,
                          &(an_array){.data = b, .dtype = AN_DTYPE_F32, .ndims = 1, .dims = {COLUMNS}}));
    an_plan_options_init(&options, sizeof options);
    options.symbol_count = 1;
    options.symbols = (const char *[]){"batch"};
    options.maxima = (const int64_t[]){BATCH};
    options.moments = 0;
    options.precision = precision;
    options.fused = fused;
    options.programs = AN_PROGRAM_PREDICTION;
    OK(ctx, an_plan_create(&plan, ctx, g, &options));
    OK(ctx, an_program_create(&program, plan, params));
    OK(ctx, an_program_bind(program, "batch", BATCH));
    OK(ctx, an_program_set_input(program, "x",
                                 &(an_array){.data = x, .dtype = AN_DTYPE_F32, .ndims = 2, .dims = {BATCH, WIDTH}}));
    OK(ctx, an_program_run(program, AN_FORM_PREDICT));
    OK(ctx,
       an_program_get_output(program, "out",
                             &(an_array){.data = o->out, .dtype = AN_DTYPE_F32, .ndims = 2, .dims = {BATCH, COLUMNS}}));
    o->has_chain = false;
    an_plan_op op;
    an_plan_op_init(&op, sizeof op);
    for (int i = 0; i < an_plan_op_count(); i++) {
        OK(ctx, an_plan_op_get(plan, AN_FORM_PREDICT, i, &op));
        o->has_chain = o->has_chain || (!strcmp(op.name, "matmul_chain") && op.instructions > 0);
    }
    an_program_destroy(&program);
    an_plan_destroy(&plan);
    an_params_destroy(&params);
    an_graph_destroy(&g);
}

static void test_bits(void **state) {
    static const an_dtype precisions[] = {AN_DTYPE_NONE, AN_DTYPE_BF16};
    static const char text[] = HEAD "%p = matmul(%x, %w, transpose_b=true)\n" TAIL;
    (void)state;
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
        outcome first = {0}, other, unrounded;
        for (an_isa isa = AN_ISA_BASE; isa <= AN_ISA_AMX; isa++) {
            an_context *ctx = NULL;
            an_context_options options;
            an_context_options_init(&options, sizeof options);
            options.isa = isa;
            options.threads = 2;
            if (an_context_create(&ctx, &options) == AN_ERR_UNSUPPORTED) continue; /* not of this machine */
            if (isa == AN_ISA_BASE) {
                run(ctx, text, true, false, precisions[p], &first);
                assert_false(first.has_chain);
                run(ctx, text, false, false, precisions[p], &unrounded);
                float maximum = 0, apart = 0;
                for (int i = 0; i < BATCH * COLUMNS; i++) {
                    maximum = fmaxf(maximum, fabsf(first.out[i]));
                    apart = fmaxf(apart, fabsf(first.out[i] - unrounded.out[i]));
                }
                assert_true(apart > 0 && apart < (p == 0 ? 1e-4F : 1e-2F) * maximum);
            }
            for (int fused = 0; fused < 2; fused++) {
                run(ctx, text, true, fused, precisions[p], &other);
                assert_int_equal(other.has_chain, fused);
                for (int i = 0; i < BATCH * COLUMNS; i++)
                    if (an_bits_of_f32(first.out[i]) != an_bits_of_f32(other.out[i]))
                        fail_msg("%s, precision %d, fused %d: other bits", an_isa_name(isa), (int)p, fused);
            }
            an_context_destroy(&ctx);
        }
    }
}

static void refused(an_context *ctx, const char *text, const char *words) {
    an_graph *g = NULL;
    FAILS(ctx, an_graph_parse(&g, ctx, text, strlen(text)), AN_ERR_DTYPE, words);
    an_graph_destroy(&g);
}

static void test_mistakes(void **state) {
    an_context *ctx = NULL;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    refused(ctx,
            HEAD "%v = param(name=\"v\") : f32[72,96]\n%p = matmul(%x, %v, transpose_b=true, rounds_a=true)\n" TAIL,
            "b must be q8_0");
    refused(ctx,
            HEAD "%y = input(name=\"y\") : f32[96,batch]\n%p = matmul(%y, %w, transpose_a=true, transpose_b=true, "
                 "rounds_a=true)\n" TAIL,
            "nor transposed");
    refused(
        ctx,
        HEAD
        "%y = input(name=\"y\") : f32[batch,72]\n%out = matmul(%y, %w, rounds_a=true)\noutput(%out, name=\"out\")\n",
        "transpose_b");
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
