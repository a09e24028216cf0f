/* The executor: sizes that change, the hook, failures, the floating-point environment, threads. */
#include <float.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "anneal/experimental.h"
#include "anneal/models.h"
#include "anneal/plan.h"
#include "ir/graph.h"
#include "support/support.h"

typedef struct {
    an_context *ctx;
    an_graph *g;
    an_params *params;
    an_plan *plan;
    an_program *program;
} rig;

static void rig_up(rig *r, int threads, int64_t batch) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = threads;
    *r = (rig){0};
    assert_int_equal(an_context_create(&r->ctx, &options), AN_OK);
    OK(r->ctx, small_mlp(&r->g, r->ctx));
    OK(r->ctx, an_params_create(&r->params, r->ctx, r->g, NULL));
    OK(r->ctx, an_params_reset(r->params, 11));
    OK(r->ctx, plan_for(&r->plan, r->ctx, r->g, "batch", batch, 7));
    OK(r->ctx, an_program_create(&r->program, r->plan, r->params));
}

static void rig_down(rig *r) {
    an_program_destroy(&r->program);
    an_plan_destroy(&r->plan);
    an_params_destroy(&r->params);
    an_graph_destroy(&r->g);
    an_context_destroy(&r->ctx);
}

static void feed(rig *r, int64_t first, int64_t n) {
    float x[64 * 4], y[64 * 2];
    for (int64_t i = 0; i < n * 4; i++) x[i] = (float)noise((uint64_t)(first * 4 + i));
    for (int64_t i = 0; i < n * 2; i++) y[i] = (float)noise((uint64_t)(first * 2 + i + 1000));
    an_array ax = array_of(x, AN_DTYPE_F32, 2, (const int64_t[]){n, 4}),
             ay = array_of(y, AN_DTYPE_F32, 2, (const int64_t[]){n, 2});
    OK(r->ctx, an_program_bind(r->program, "batch", n));
    OK(r->ctx, an_program_set_input(r->program, "x", &ax));
    OK(r->ctx, an_program_set_input(r->program, "y", &ay));
}

static void gradient(rig *r, float *w) {
    an_array a = array_of(w, AN_DTYPE_F32, 2, (const int64_t[]){16, 4});
    OK(r->ctx, an_params_get(r->params, "fc1.weight", AN_PART_GRADIENT, &a));
}

/* A short last micro-batch runs with a smaller batch, never padded; FIRST overwrites, NEXT adds. */
static void test_sizes_and_accumulation(void **state) {
    (void)state;
    rig r;
    float whole[64], parts[64], again[64];
    rig_up(&r, 2, 8);
    feed(&r, 0, 7);
    OK(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST));
    gradient(&r, whole);
    feed(&r, 0, 4);
    OK(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST));
    feed(&r, 4, 3);
    OK(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_NEXT));
    gradient(&r, parts);
    for (int i = 0; i < 64; i++) assert_true(fabsf(whole[i] - parts[i]) <= 1e-5f * (1 + fabsf(whole[i])));
    feed(&r, 0, 7);
    OK(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST));
    gradient(&r, again);
    assert_memory_equal(whole, again, sizeof whole);
    FAILS(r.ctx, an_program_bind(r.program, "batch", 9), AN_ERR_ARGUMENT, "1 to 8");
    FAILS(r.ctx, an_program_bind(r.program, "tokens", 1), AN_ERR_UNKNOWN, "tokens");
    rig_down(&r);
}

static int64_t activations(const rig *r) {
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    OK(r->ctx, an_plan_memory_get(r->plan, &memory));
    return memory.activations;
}

/* Evaluation may have maxima of its own: training does not notice, and each form refuses what is too large for it. */
static void test_maxima_of_evaluation(void **state) {
    static const int64_t maximum = 8, others[] = {2, 40};
    const char *symbol = "batch";
    float expected[64], found[64];
    rig r;
    (void)state;
    rig_up(&r, 2, 8);
    feed(&r, 0, 7);
    OK(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST));
    gradient(&r, expected);
    const int64_t same = activations(&r);
    rig_down(&r);
    for (int i = 0; i < 2; i++) {
        an_plan_options options = {DEFAULTS(an_plan_options)};
        char text[16];
        rig_up(&r, 2, 8);
        an_program_destroy(&r.program);
        an_plan_destroy(&r.plan);
        options.symbol_count = 1;
        options.symbols = &symbol;
        options.maxima = &maximum;
        options.evaluation_maxima = &others[i];
        options.programs = AN_PROGRAM_TRAINING | AN_PROGRAM_EVALUATION;
        OK(r.ctx, an_plan_create(&r.plan, r.ctx, r.g, &options));
        OK(r.ctx, an_program_create(&r.program, r.plan, r.params));
        assert_true(i == 0 ? activations(&r) == same : activations(&r) > same);
        feed(&r, 0, others[i]);
        OK(r.ctx, an_program_run(r.program, AN_FORM_EVALUATE));
        if (i == 1) FAILS(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST), AN_ERR_ARGUMENT, "1 to 8");
        feed(&r, 0, 7);
        OK(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST));
        gradient(&r, found);
        assert_memory_equal(expected, found, sizeof found);
        if (i == 0) FAILS(r.ctx, an_program_run(r.program, AN_FORM_EVALUATE), AN_ERR_ARGUMENT, "1 to 2");
        snprintf(text, sizeof text, "1 to %d", i == 0 ? 8 : 40);
        FAILS(r.ctx, an_program_bind(r.program, "batch", 41), AN_ERR_ARGUMENT, text);
        rig_down(&r);
    }
}

/* One sample alone gives the bits it gives in any batch. */
static void test_one_sample_in_any_batch(void **state) {
    (void)state;
    rig r;
    float alone[2], many[64 * 2];
    static const int64_t sizes[] = {1, 2, 3, 7, 64};
    rig_up(&r, 2, 64);
    for (int s = 0; s < 5; s++) {
        for (int64_t i = 0; i < sizes[s]; i++) {
            feed(&r, i, 1);
            OK(r.ctx, an_program_run(r.program, AN_FORM_PREDICT));
            an_array a = array_of(alone, AN_DTYPE_F32, 2, (const int64_t[]){1, 2});
            OK(r.ctx, an_program_get_output(r.program, "out", &a));
            feed(&r, 0, sizes[s]);
            OK(r.ctx, an_program_run(r.program, AN_FORM_PREDICT));
            a = array_of(many, AN_DTYPE_F32, 2, (const int64_t[]){sizes[s], 2});
            OK(r.ctx, an_program_get_output(r.program, "out", &a));
            assert_memory_equal(alone, many + i * 2, sizeof alone);
        }
    }
    rig_down(&r);
}

typedef struct {
    int64_t calls, stop_at;
} hook_log;

static an_status count_calls(void *user, int64_t instruction) {
    hook_log *h = user;
    assert_int_equal(instruction, h->calls);
    return ++h->calls == h->stop_at ? AN_ERR_STATE : AN_OK;
}

static void test_hook(void **state) {
    (void)state;
    rig r;
    hook_log h = {0};
    an_plan_cost cost;
    an_plan_cost_init(&cost, sizeof cost);
    rig_up(&r, 1, 8);
    feed(&r, 0, 8);
    OK(r.ctx, an_plan_cost_get(r.plan, AN_FORM_TRAIN_FIRST, &cost));
    an_program_set_hook(r.program, count_calls, &h);
    OK(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST));
    assert_int_equal(h.calls, cost.instructions);
    h = (hook_log){.stop_at = 3};
    FAILS(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST), AN_ERR_HOOK, "after instruction 2");
    assert_int_equal(h.calls, 3);
    rig_down(&r);
}

/* Two ops of our own: one that fails, one that talks to others and must run all the same. */
static int talks;
static an_status told;

static an_status same_infer(an_graph *g, an_node *node) {
    (void)g;
    an_result_like(&node->outputs[0], an_node_input(node, 0));
    return AN_OK;
}

static an_status run_fail(const an_call *call) {
    return AN_ERROR(call->ctx, AN_ERR_KERNEL, "planted");
}

static an_status run_talk(const an_call *call) {
    talks++;
    told = call->failed;
    return AN_OK;
}

static const an_kernel kernels_fail[] = {{.name = "portable", .run = run_fail}, {0}};
static const an_kernel kernels_talk[] = {{.name = "portable", .run = run_talk}, {0}};
static const an_op op_fail = {.name = "fail",
                              .inputs_min = 1,
                              .inputs_max = 1,
                              .outputs = 1,
                              .flags = AN_OP_OWN,
                              .infer = same_infer,
                              .kernels = {kernels_fail}};
static const an_op op_talk = {.name = "talk",
                              .inputs_min = 1,
                              .inputs_max = 1,
                              .outputs = 1,
                              .flags = AN_OP_OWN | AN_OP_COMMUNICATION | AN_OP_SINK,
                              .infer = same_infer,
                              .kernels = {kernels_talk}};

static void test_communication_goes_on_after_a_failure(void **state) {
    (void)state;
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_params *params = NULL;
    an_plan *plan = NULL;
    an_program *program = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, an_graph_create(&g, ctx, "failing"));
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(4));
    an_value broken = an_graph_add(g, &op_fail, 1, &x, NULL);
    an_graph_add(g, &op_talk, 1, &broken, NULL);
    an_graph_add(g, &op_talk, 1, &x, NULL);
    an_graph_set_output(g, an_relu(g, broken), "y");
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_plan_create(&plan, ctx, g, NULL));
    OK(ctx, an_program_create(&program, plan, params));
    talks = 0;
    FAILS(ctx, an_program_run(program, AN_FORM_PREDICT), AN_ERR_KERNEL, "fail at '' (kernel portable): planted");
    assert_int_equal(talks, 2);
    assert_int_equal(told, AN_ERR_KERNEL);
    an_program_destroy(&program);
    an_plan_destroy(&plan);
    an_params_destroy(&params);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

#if defined(__x86_64__)
/* The caller's environment, flush-to-zero, rounding and flags included, is as it was; the bits do not depend on it. */
static void test_float_environment(void **state) {
    (void)state;
    enum { FLUSH_AND_DENORMALS = 0x8040, ROUND_UP = 0x4000, DIVIDE_FLAG = 0x4 };
    float plain[64], odd[64];
    for (int threads = 1; threads <= 2; threads++) {
        rig r;
        rig_up(&r, threads, 8);
        feed(&r, 0, 8);
        OK(r.ctx, an_program_set_scalar(r.program, "loss_gradient", 1e-36)); /* gradients among the denormals */
        OK(r.ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST));
        gradient(&r, plain);
        unsigned callers = _mm_getcsr(), strange = callers | FLUSH_AND_DENORMALS | ROUND_UP | DIVIDE_FLAG;
        _mm_setcsr(strange);
        an_status status = an_program_run(r.program, AN_FORM_TRAIN_FIRST);
        unsigned after = _mm_getcsr();
        _mm_setcsr(callers);
        OK(r.ctx, status);
        assert_int_equal(after, strange);
        gradient(&r, odd);
        assert_memory_equal(plain, odd, sizeof plain);
        int denormals = 0;
        for (int i = 0; i < 64; i++) denormals += plain[i] != 0 && fabsf(plain[i]) < FLT_MIN;
        assert_true(denormals > 0);
        rig_down(&r);
    }
}
#endif

/* GPT-2 with dropout: the same bits for any number of threads, and evaluation leaves no trace. */
static uint64_t gpt_bits(int threads, bool evaluate) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_gpt2_options model;
    an_gpt2_options_init(&model, sizeof model);
    an_plan_options planned;
    an_plan_options_init(&planned, sizeof planned);
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_params *params = NULL;
    an_plan *plan = NULL;
    an_program *program = NULL;
    int32_t tokens[3 * 16], targets[3 * 16];
    int64_t samples[3] = {5, 9, 2};
    uint64_t bits = 0;
    options.threads = threads;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    model.layers = 2;
    model.heads = 2;
    model.width = 32;
    model.context = 16;
    model.vocabulary = 65;
    model.dropout = 0.1;
    OK(ctx, an_model_gpt2(&g, ctx, &model));
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_params_reset(params, 1337));
    planned.symbol_count = 2;
    planned.symbols = (const char *const[]){"batch", "tokens"};
    planned.maxima = (const int64_t[]){3, 16};
    OK(ctx, an_plan_create(&plan, ctx, g, &planned));
    OK(ctx, an_program_create(&program, plan, params));
    for (int i = 0; i < 48; i++) tokens[i] = (i * 7) % 65, targets[i] = (i * 7 + 7) % 65;
    an_array a = array_of(tokens, AN_DTYPE_I32, 2, (const int64_t[]){3, 16});
    OK(ctx, an_program_set_input(program, "tokens", &a));
    a.data = targets;
    OK(ctx, an_program_set_input(program, "targets", &a));
    a = array_of(samples, AN_DTYPE_I64, 1, (const int64_t[]){3});
    OK(ctx, an_program_set_input(program, "samples", &a));
    OK(ctx, an_program_set_scalar_i64(program, "seed", 42));
    for (int step = 0; step < 2; step++) {
        double loss;
        OK(ctx, an_program_set_scalar_i64(program, "step", step));
        OK(ctx, an_program_run(program, step ? AN_FORM_TRAIN_NEXT : AN_FORM_TRAIN_FIRST));
        OK(ctx, an_program_loss(program, &loss));
        uint64_t u;
        memcpy(&u, &loss, sizeof u);
        bits = bits * 31 + u;
        if (evaluate) OK(ctx, an_program_run(program, AN_FORM_EVALUATE));
    }
    for (int64_t i = 0; i < an_params_count(params); i++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        OK(ctx, an_params_info(params, i, &info));
        float *w = malloc((size_t)info.elements * sizeof *w);
        an_array aw = array_of(w, info.dtype, info.ndims, info.dims);
        OK(ctx, an_params_get(params, info.name, AN_PART_GRADIENT, &aw));
        for (int64_t k = 0; k < info.elements; k++) {
            uint32_t u;
            memcpy(&u, &w[k], sizeof u);
            bits = bits * 31 + u;
        }
        free(w);
    }
    an_program_destroy(&program);
    an_plan_destroy(&plan);
    an_params_destroy(&params);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
    return bits;
}

static void test_same_bits(void **state) {
    (void)state;
    uint64_t one = gpt_bits(1, false);
    for (int threads = 2; threads <= 5; threads++) assert_true(gpt_bits(threads, threads % 2) == one);
    assert_true(gpt_bits(1, true) == one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_and_accumulation),
        cmocka_unit_test(test_maxima_of_evaluation),
        cmocka_unit_test(test_one_sample_in_any_batch),
        cmocka_unit_test(test_hook),
        cmocka_unit_test(test_communication_goes_on_after_a_failure),
#if defined(__x86_64__)
        cmocka_unit_test(test_float_environment),
#endif
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
