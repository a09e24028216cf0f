/* What a program says about itself: its inputs, and where its time went. */
#include "anneal/models.h"
#include "anneal/plan.h"
#include "support/support.h"

enum { BATCH = 3, TOKENS = 5, VOCABULARY = 17 };

typedef struct {
    an_context *ctx;
    an_graph *g;
    an_params *params;
    an_plan *plan;
    an_program *program;
    const char *kernels;
} rig;

static void finish_rig(rig *r) {
    const char *const symbols[] = {"batch", "tokens"};
    const int64_t maxima[] = {BATCH + 1, TOKENS + 1};
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    options.symbols = symbols;
    options.maxima = maxima;
    options.kernels = r->kernels;
    while (an_graph_symbol_name(r->g, options.symbol_count)) options.symbol_count++;
    OK(r->ctx, an_plan_create(&r->plan, r->ctx, r->g, &options));
    OK(r->ctx, an_params_create(&r->params, r->ctx, r->g, NULL));
    OK(r->ctx, an_params_reset(r->params, 1));
    OK(r->ctx, an_program_create(&r->program, r->plan, r->params));
    for (int i = 0; i < options.symbol_count; i++) OK(r->ctx, an_program_bind(r->program, symbols[i], maxima[i] - 1));
}

static void rig_up_gpt2_with(rig *r, const char *kernels) {
    an_gpt2_options options;
    an_gpt2_options_init(&options, sizeof options);
    options.layers = options.heads = 1;
    options.width = 8;
    options.context = TOKENS + 1;
    options.vocabulary = VOCABULARY;
    options.dropout = 0.1;
    *r = (rig){.kernels = kernels};
    assert_int_equal(an_context_create(&r->ctx, NULL), AN_OK);
    OK(r->ctx, an_model_gpt2(&r->g, r->ctx, &options));
    finish_rig(r);
}

static void rig_up_gpt2(rig *r) {
    rig_up_gpt2_with(r, NULL);
}

static void rig_down(rig *r) {
    an_program_destroy(&r->program);
    an_plan_destroy(&r->plan);
    an_params_destroy(&r->params);
    an_graph_destroy(&r->g);
    an_context_destroy(&r->ctx);
}

static an_input_info input_of(const rig *r, const char *name) {
    an_input_info info;
    an_input_info_init(&info, sizeof info);
    for (int64_t i = 0; i < an_program_input_count(r->program); i++) {
        OK(r->ctx, an_program_input(r->program, i, &info));
        if (!strcmp(info.name, name)) return info;
    }
    fail_msg("there is no input '%s'", name);
    return info;
}

/* Shapes are those of the bound sizes, and integers that name rows or classes have a limit. */
static void test_inputs(void **state) {
    (void)state;
    rig r;
    rig_up_gpt2(&r);
    assert_int_equal(an_program_input_count(r.program), 3);
    static const char *const named[] = {"tokens", "targets"};
    for (int i = 0; i < 2; i++) {
        const an_input_info info = input_of(&r, named[i]);
        assert_int_equal(info.dtype, AN_DTYPE_I32);
        assert_int_equal(info.ndims, 2);
        assert_int_equal(info.dims[0], BATCH);
        assert_int_equal(info.dims[1], TOKENS);
        assert_int_equal(info.limit, VOCABULARY);
    }
    const an_input_info samples = input_of(&r, "samples");
    assert_int_equal(samples.dtype, AN_DTYPE_I64);
    assert_int_equal(samples.dims[0], BATCH);
    assert_int_equal(samples.limit, 0); /* any number is a sample's */

    an_input_info info;
    an_input_info_init(&info, sizeof info);
    FAILS(r.ctx, an_program_input(r.program, 3, &info), AN_ERR_ARGUMENT, "input 3 does not exist");
    FAILS(r.ctx, an_program_input(r.program, -1, &info), AN_ERR_ARGUMENT, "input -1 does not exist");
    info.size = 0;
    FAILS(r.ctx, an_program_input(r.program, 0, &info), AN_ERR_ARGUMENT, "call an_input_info_init first");
    rig_down(&r);
}

/* Of two tables that one input names rows of, the smaller one says how far it goes. */
static void test_inputs_of_two_tables(void **state) {
    static const int64_t rows[][2] = {{VOCABULARY, 2 * VOCABULARY}, {2 * VOCABULARY, VOCABULARY}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        rig r = {0};
        assert_int_equal(an_context_create(&r.ctx, NULL), AN_OK);
        OK(r.ctx, an_graph_create(&r.g, r.ctx, "tables"));
        const an_value x = an_input(r.g, "x", AN_DTYPE_I32, AN_DIMS(an_symbol_dim(r.g, "batch")));
        const an_value a = an_embedding_layer(r.g, x, "a", AN_DTYPE_F32, rows[i][0], 2);
        const an_value b = an_embedding_layer(r.g, x, "b", AN_DTYPE_F32, rows[i][1], 2);
        const an_value y = an_input(r.g, "y", AN_DTYPE_F32, AN_DIMS(an_symbol_dim(r.g, "batch"), 2));
        an_graph_set_loss(r.g, an_squared_error(r.g, an_add(r.g, a, b), y), y);
        OK(r.ctx, an_graph_verify(r.g));
        finish_rig(&r);
        assert_int_equal(input_of(&r, "x").limit, VOCABULARY);
        rig_down(&r);
    }
}

/* Numbers have no limit, whatever reads them. */
static void test_inputs_of_numbers(void **state) {
    (void)state;
    rig r = {0};
    assert_int_equal(an_context_create(&r.ctx, NULL), AN_OK);
    OK(r.ctx, small_mlp(&r.g, r.ctx));
    finish_rig(&r);
    assert_int_equal(an_program_input_count(r.program), 2);
    assert_int_equal(input_of(&r, "x").limit, 0);
    assert_int_equal(input_of(&r, "y").limit, 0);
    assert_int_equal(input_of(&r, "y").dims[1], 2);
    rig_down(&r);
}

/* Instructions begin one after the other, and the last run is one of all. */
static void test_profile(void **state) {
    (void)state;
    enum { RUNS = 3 };
    rig r;
    rig_up_gpt2(&r);
    OK(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST)); /* not noted */
    an_program_profile(r.program, true);
    for (int i = 0; i < RUNS; i++) OK(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST));
    an_program_profile(r.program, false);
    OK(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST));

    const int64_t count = an_program_profile_count(r.program, AN_FORM_TRAIN_FIRST);
    double end = 0;
    bool backward = false;
    assert_true(count > 0);
    for (int64_t i = 0; i < count; i++) {
        an_profile_entry entry;
        an_profile_entry_init(&entry, sizeof entry);
        OK(r.ctx, an_program_profile_entry(r.program, AN_FORM_TRAIN_FIRST, i, &entry));
        assert_int_equal(entry.runs, RUNS);
        assert_true(entry.begin >= end - 1e-9); /* the difference of two clocks is rounded */
        assert_true(entry.last > 0 && entry.last <= entry.seconds);
        assert_true(entry.dtype != AN_DTYPE_NONE);
        assert_true(entry.flops > 0 || entry.bytes > 0);
        end = entry.begin + entry.last;
        backward = backward || entry.backward;
    }
    assert_true(backward);
    rig_down(&r);
}

static const char *kernel_of(const rig *r, const char *op) {
    const int64_t count = an_program_profile_count(r->program, AN_FORM_TRAIN_FIRST);
    for (int64_t i = 0; i < count; i++) {
        an_profile_entry entry;
        an_profile_entry_init(&entry, sizeof entry);
        OK(r->ctx, an_program_profile_entry(r->program, AN_FORM_TRAIN_FIRST, i, &entry));
        if (!strcmp(entry.op, op)) return entry.kernel;
    }
    fail_msg("there is no %s", op);
    return "";
}

/* A forced kernel is that of the gradient too. */
static void test_forced_kernels(void **state) {
    rig r;
    (void)state;
    rig_up_gpt2_with(&r, "attention=portable");
    assert_string_equal(kernel_of(&r, "attention"), "portable");
    assert_string_equal(kernel_of(&r, "attention_diff"), "portable");
    const bool has_others = an_context_isa(r.ctx) != AN_ISA_BASE;
    rig_down(&r);
    if (!has_others) return;
    rig_up_gpt2_with(&r, "attention=portable,attention_diff=tiled");
    assert_string_equal(kernel_of(&r, "attention"), "portable");
    assert_string_equal(kernel_of(&r, "attention_diff"), "tiled");
    rig_down(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_inputs_of_two_tables),
        cmocka_unit_test(test_inputs_of_numbers),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_forced_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
