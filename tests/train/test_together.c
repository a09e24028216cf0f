/* Leaves that are computed together in one micro-batch: the same weights, losses and norms, to the bit, as one by
 * one and on parts of them. */
#include "support/support.h"

#include "anneal/experimental.h"
#include "ops/ops.h"
#include "train/trainer.h"

#include "train/array_trainer.h"

enum { SAMPLES = 61, STEPS = 7, SIDE = 6, TOKENS = 9 };

static float pictures[SAMPLES][SIDE * SIDE];
static int32_t classes[SAMPLES], tokens[SAMPLES][TOKENS], next_tokens[SAMPLES][TOKENS];

static void make_data(void) {
    for (int i = 0; i < SAMPLES; i++) {
        classes[i] = class_of(i);
        for (int k = 0; k < SIDE * SIDE; k++)
            pictures[i][k] = (float)((i * 31 + k * 17) % 29 - 14) / 7 + (float)classes[i] / 3;
        for (int k = 0; k < TOKENS; k++) {
            tokens[i][k] = (i * 5 + k * k * 3) % 11;
            next_tokens[i][k] = (i * 5 + (k + 1) * (k + 1) * 3) % 11;
        }
    }
}

/* ---- models ---- */

static an_graph *make_numbers(void) {
    an_graph *g = NULL;
    OK(ctx, an_graph_create(&g, ctx, "numbers"));
    const an_dim batch = an_symbol_dim(g, "batch");
    const an_value x = an_input(g, "x", AN_DTYPE_F32, 2, (const an_dim[]){batch, SIDE * SIDE});
    const an_value y = an_input(g, "y", AN_DTYPE_I32, 1, (const an_dim[]){batch});
    const an_value samples = an_input(g, "samples", AN_DTYPE_I64, 1, (const an_dim[]){batch});
    an_value h = an_layer_norm_layer(g, an_relu(g, an_linear(g, x, "in", 24)), "norm", 1e-5);
    h = an_dropout(g, an_rms_norm_layer(g, an_linear_plain(g, h, "middle", 16), "rms", 1e-5), samples, 0.25);
    const an_value o = an_linear(g, h, "out", 3);
    an_graph_set_output(g, o, "logits");
    an_graph_set_loss(g, an_cross_entropy(g, o, y, NULL), y);
    OK(ctx, an_graph_verify(g));
    return g;
}

static an_graph *make_pictures(void) {
    static const int64_t filters[] = {4, 5};
    an_cnn_options model;
    an_graph *g = NULL;
    an_cnn_options_init(&model, sizeof model);
    model.height = model.width = SIDE;
    model.channels = 1;
    model.classes = 3;
    model.filters = filters;
    model.filter_count = 2;
    model.hidden = 7;
    OK(ctx, an_model_cnn(&g, ctx, &model));
    return g;
}

static an_graph *make_texts(void) {
    const an_llama_options model = small_llama();
    an_graph *g = NULL;
    OK(ctx, an_model_llama(&g, ctx, &model));
    return g;
}

static an_graph *make_tied(void) {
    const an_gpt2_options model = small_gpt2();
    an_graph *g = NULL;
    OK(ctx, an_model_gpt2(&g, ctx, &model));
    return g;
}

typedef struct {
    const char *name;
    an_graph *(*make)(void);
    void *inputs, *targets;
    an_dtype inputs_dtype;
    int ndims;
    int64_t dims[4];
    int target_dims;
    bool together; /* the model allows it */
} model;

static const model models[] = {
    {"numbers", make_numbers, pictures, classes, AN_DTYPE_F32, 2, {SAMPLES, SIDE *SIDE}, 1, true},
    {"pictures", make_pictures, pictures, classes, AN_DTYPE_F32, 4, {SAMPLES, 1, SIDE, SIDE}, 1, true},
    {"texts", make_texts, tokens, next_tokens, AN_DTYPE_I32, 2, {SAMPLES, TOKENS}, 2, true},
    {"tied", make_tied, tokens, next_tokens, AN_DTYPE_I32, 2, {SAMPLES, TOKENS}, 2, true},
};

/* ---- runs ---- */

/* What a run comes to, and how it was divided. */
typedef struct {
    char weights[AN_HASH_TEXT];
    double losses[STEPS], norms[STEPS];
    int64_t together, micro;
} outcome;

static outcome train(const model *m, int64_t global, int64_t leaves, int64_t micro, an_dtype precision) {
    const an_batch_options batch = {.size = sizeof batch, .global = global, .leaves = leaves, .micro = micro};
    an_trainer_options options = few_steps(STEPS, &batch);
    options.precision = precision;
    array_trainer a = array_trainer_create(m->make(), array_of(m->inputs, m->inputs_dtype, m->ndims, m->dims),
                                           array_of(m->targets, AN_DTYPE_I32, m->target_dims, m->dims), &options);
    outcome o = {.together = a.trainer->cut.together, .micro = a.trainer->samples.batches.micro};
    for (int i = 0; i < STEPS; i++) {
        const an_step_metrics metrics = array_trainer_step(&a);
        o.losses[i] = metrics.loss;
        o.norms[i] = metrics.norm;
    }
    OK(ctx, an_trainer_weights_hash(a.trainer, o.weights));
    array_trainer_destroy(&a);
    return o;
}

static void check_same(const model *m, const outcome *a, const outcome *b, int64_t leaves, int64_t micro) {
    bool same = !strcmp(a->weights, b->weights);
    for (int i = 0; i < STEPS; i++) same = same && a->losses[i] == b->losses[i] && a->norms[i] == b->norms[i];
    if (!same)
        fail_msg("%s with %lld leaves: other bits in micro-batches of %lld", m->name, (long long)leaves,
                 (long long)micro);
}

/* A step of 16 samples, one of 13 that leaves cut unevenly, and epochs that end with 13 or 9 samples:
 * some leaves are empty then. */
static void test_a_micro_batch_does_not_matter(void **state) {
    static const struct { int64_t global, leaves; } steps[] = {{16, 4}, {16, 16}, {13, 8}, {13, 5}};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
            for (int low = 0; low < 2; low++) {
                const int64_t global = steps[k].global, leaves = steps[k].leaves, leaf = (global + leaves - 1) / leaves;
                const an_dtype precision = low ? AN_DTYPE_BF16 : AN_DTYPE_NONE;
                const outcome one = train(&models[i], global, leaves, leaf, precision);
                assert_int_equal(one.together, 1);
                for (int64_t micro = 2 * leaf; micro < 2 * global; micro *= 2) {
                    const outcome more = train(&models[i], global, leaves, micro, precision);
                    assert_true(models[i].together || more.together == 1);
                    assert_true(more.micro <= micro);
                    if (micro >= global && models[i].together)
                        assert_true(more.together >= leaves && more.micro == global);
                    check_same(&models[i], &one, &more, leaves, micro);
                }
            }
}

/* Kernels that know nothing of leaves are run once for each of them, and their sums are added: the same bits again. */
static void test_kernels_without_leaves(void **state) {
    static const an_op *const ops[] = {&an_op_matmul, &an_op_reduce_sum, &an_op_cross_entropy,
                                       &an_op_layer_norm_diff_weights, &an_op_rms_norm_diff_weights};
    const model *m = &models[0];
    outcome usual[2], own[2];
    (void)state;
    for (int i = 0; i < 2; i++) usual[i] = train(m, 13, 5 + 3 * i, 13, AN_DTYPE_NONE);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const an_kernel *last = an_op_kernels(ops[i], ctx->isa);
        while (last[1].name) last++;
        const an_kernel kernel = {
            .name = "simple", .applies = last->applies, .scratch = last->scratch, .run = last->run};
        assert_true(last->by_leaves);
        OK(ctx, an_context_add_kernel(ctx, ops[i]->name, &kernel));
    }
    for (int i = 0; i < 2; i++) {
        own[i] = train(m, 13, 5 + 3 * i, 13, AN_DTYPE_NONE);
        assert_int_equal(own[i].together, 8);
        check_same(m, &usual[i], &own[i], 5 + 3 * i, 13);
    }
}

/* The gradients of each leaf are rounded: a sum of several could not be. */
static void test_rounded_leaves_are_alone(void **state) {
    const model *m = &models[0];
    char weights[2][AN_HASH_TEXT];
    (void)state;
    for (int i = 0; i < 2; i++) {
        const an_batch_options batch = {.size = sizeof batch, .global = 16, .leaves = 4, .micro = i ? 16 : 4};
        an_trainer_options options = few_steps(STEPS, &batch);
        options.reduces_bf16 = true;
        array_trainer a = array_trainer_create(m->make(), array_of(m->inputs, m->inputs_dtype, m->ndims, m->dims),
                                               array_of(m->targets, AN_DTYPE_I32, m->target_dims, m->dims), &options);
        for (int k = 0; k < STEPS; k++) array_trainer_step(&a);
        OK(ctx, an_trainer_weights_hash(a.trainer, weights[i]));
        array_trainer_destroy(&a);
    }
    assert_string_equal(weights[0], weights[1]);
}

/* The gradient buffers that a plan counts are those of micro-batches that wait, not of leaves. */
static void test_buffers_are_for_micro_batches(void **state) {
    static const int64_t buffers[][2] = {{1, 4}, {2, 3}, {4, 2}, {8, 1}, {16, 0}}; /* of 16 leaves: together, waiting */
    (void)state;
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        const an_batch_options batch = {.size = sizeof batch, .global = 16, .leaves = 16, .micro = buffers[i][0]};
        const an_trainer_options options = few_steps(STEPS, &batch);
        const model *m = &models[0];
        array_trainer a = array_trainer_create(m->make(), array_of(m->inputs, m->inputs_dtype, m->ndims, m->dims),
                                               array_of(m->targets, AN_DTYPE_I32, m->target_dims, m->dims), &options);
        an_plan_memory memory;
        an_plan_memory_init(&memory, sizeof memory);
        OK(ctx, an_plan_memory_get(a.trainer->plan, &memory));
        assert_int_equal(memory.leaves, buffers[i][1] * memory.gradients);
        array_trainer_destroy(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_micro_batch_does_not_matter, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kernels_without_leaves, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rounded_leaves_are_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_buffers_are_for_micro_batches, setup, teardown),
    };
    make_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
