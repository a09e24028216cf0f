/* Graphs that meet what ranks divide in unusual ways, with the bits of one process under every strategy: nodes that
 * read the weights of three units at once, one of them an op of the program's own; and values that are computed
 * twice so that a budget of memory is kept, where gathered weights and gradients of units are in that memory too. */
#include "anneal/open.h"
#include "exec/program.h"
#include "ranks/threads.h"
#include "support/own_ops.h"
#include "train/trainer.h"

enum { WIDTH = 1100, INPUTS = 4, SAMPLES = 40, STEPS = 5, LARGEST = 4 }; /* a vector of WIDTH has two pages */

static const an_shard strategies[] = {AN_SHARD_NONE, AN_SHARD_OPTIMIZER, AN_SHARD_GRADIENTS, AN_SHARD_FULL};
static const char *const names[] = {"none", "optimizer", "gradients", "full"}; /* by an_shard */
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

#ifdef ANNEAL_SANITIZED /* one number of ranks for each strategy: bits are not a sanitizer's matter */
enum { EACH_COUNT = LARGEST };
#define FIRST_COUNT(strategy) (2 + (strategy) % (LARGEST - 1))
#else
enum { EACH_COUNT = 1 };
#define FIRST_COUNT(strategy) 2
#endif

/* ---- blend(x, a, b, c) = x·a + b·c, where a, b and c are rows ---- */

static an_status run_blend(const an_call *call) {
    const float *x = call->src[0].data, *a = call->src[1].data, *b = call->src[2].data, *c = call->src[3].data;
    float *dst = call->dst[0].data;
    for (int64_t i = 0; i < own_elements(&call->dst[0]); i++) {
        const int64_t k = i % WIDTH;
        dst[i] = x[i] * a[k] + b[k] * c[k];
    }
    return AN_OK;
}

static const char *infer_blend(const an_own_node *node, an_own_output *outputs) {
    own_like(node, node->inputs[0], &outputs[0]);
    return NULL;
}

static an_value sum_rows(an_graph *g, an_value x) {
    return an_reduce_sum(g, x, 1, (const int[]){0}, false);
}

static void grad_blend(const an_own_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    an_graph *g = node->graph;
    const an_value *in = node->inputs;
    (void)want;
    const an_value sums = sum_rows(g, diff_dst[0]);
    diff_src[0] = an_multiply(g, diff_dst[0], in[1]);
    diff_src[1] = sum_rows(g, an_multiply(g, diff_dst[0], in[0]));
    diff_src[2] = an_multiply(g, sums, in[3]);
    diff_src[3] = an_multiply(g, sums, in[2]);
}

static const an_kernel blend_kernels[] = {{.name = "plain", .applies = own_is_f32, .run = run_blend}, {0}};

static an_status add_blend(an_context *ctx) {
    return an_context_add_op(ctx, &(an_own_op){.size = sizeof(an_own_op),
                                               .name = "blend",
                                               .inputs_min = 4,
                                               .inputs_max = 4,
                                               .outputs = 1,
                                               .infer = infer_blend,
                                               .gradient = grad_blend,
                                               .kernels = blend_kernels,
                                               .autocast = AN_AUTOCAST_F32,
                                               .dense = 15});
}

/* ---- a model on it ---- */

static an_status build_braided(an_graph **graph, an_context *ctx) {
    static const char *const blocks[] = {"a", "b", "c"};
    an_graph *g = NULL;
    an_status status = add_blend(ctx);
    if (status == AN_OK) status = an_graph_create(&g, ctx, "braided");
    if (status != AN_OK) return status;
    const an_dim batch = an_symbol_dim(g, "batch");
    const an_value x = an_input(g, "x", AN_DTYPE_F32, 2, (const an_dim[]){batch, INPUTS}),
                   y = an_input(g, "y", AN_DTYPE_F32, 2, (const an_dim[]){batch, 3});
    an_value inputs[4];
    inputs[0] = an_tanh(g, an_linear(g, x, "in", WIDTH));
    an_block_begin(g, "d", 1);
    inputs[0] = an_tanh(g, an_linear(g, inputs[0], "in", WIDTH));
    an_block_end(g);
    for (int i = 0; i < 3; i++) {
        an_block_begin(g, blocks[i], 1);
        inputs[i + 1] = an_param(g, "row", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 0.1, 1, (const an_dim[]){WIDTH});
        an_block_end(g);
    }
    const an_value h = (an_own)(g, "blend", 4, inputs, NULL);
    const an_value rows = an_reshape(g, an_concat(g, 0, 3, inputs + 1), 2, (const an_dim[]){3, WIDTH});
    an_graph_set_loss(g, an_squared_error(g, an_matmul(g, h, rows, false, true), y), y);
    *graph = g;
    return an_graph_verify(g);
}

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t capacity) {
    (void)user, (void)message, (void)capacity;
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < INPUTS; k++)
            ((float *)fields[0])[i * INPUTS + k] = (float)noise((uint64_t)(indices[i] + k));
        for (int k = 0; k < 3; k++) ((float *)fields[1])[i * 3 + k] = (float)(indices[i] % (5 + k)) / 4;
    }
    return AN_OK;
}

static an_status make_data(an_dataset **dataset, an_context *ctx) {
    const an_field fields[] = {
        {.size = sizeof *fields, .name = "x", .dims = {INPUTS}, .ndims = 1, .dtype = AN_DTYPE_F32},
        {.size = sizeof *fields, .name = "y", .dims = {3}, .ndims = 1, .dtype = AN_DTYPE_F32, .target = true}};
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    record.count = SAMPLES;
    record.fields = fields;
    record.field_count = 2;
    record.read = read_samples;
    return an_dataset_create(dataset, ctx, &record);
}

typedef struct {
    an_shard shard;
    int64_t min_elements; /* of the last rank, if others have 1; 0: it has too */
    an_accumulation accumulate;
    const char *refuses; /* how a run between two steps is refused, while weights are read; NULL: there is none */
    bool waits_for_all;  /* out: some instruction waits for more units than two */
    int regions;         /* out: that one instruction reads at most */
} braid;

/* How many regions of gathered weights a node reads. */
static int count_regions(const an_node *n) {
    const an_node *seen[AN_MAX_INPUTS];
    int count = 0;
    for (int i = 0; i < n->input_count; i++) {
        const an_result *r = an_node_input(n, i);
        if (!r || strcmp(r->root->node->op->name, "gather_weights") != 0) continue;
        int k = 0;
        while (k < count && seen[k] != r->root->node) k++;
        if (k == count) seen[count++] = r->root->node;
    }
    return count;
}

static void look_at(const an_trainer *t, braid *b) {
    const an_program_form *f = &t->program->forms[AN_FORM_TRAIN_FIRST];
    for (size_t i = 0; i < f->tables.instructions; i++) {
        const int regions = count_regions(f->instructions[i].node);
        b->waits_for_all |= f->instructions[i].units[0] == AN_ALL_UNITS;
        if (regions > b->regions) b->regions = regions;
    }
}

/* Outside of a step, weights come to every program that runs, and gradients leave none: they would be lost. */
static bool run_between_steps(one_rank *r, const an_trainer *t, const char *words) {
    if (rank_failed(r, "begin", an_step_begin_reading(t->stepper))) return false;
    const an_status trained = an_program_run(t->program, AN_FORM_TRAIN_FIRST);
    if (trained != AN_ERR_STATE || !strstr(an_last_error(r->ctx), words))
        snprintf(r->error, sizeof r->error, "training outside of a step: %s", trained ? an_last_error(r->ctx) : "done");
    return !rank_failed(r, "end", an_step_end_reading(t->stepper)) && !*r->error;
}

static void train_braided(one_rank *r) {
    braid *b = r->user;
    an_graph *graph = NULL;
    an_dataset *data = NULL;
    an_trainer *t = NULL;
    an_batch_options batch;
    an_batch_options_init(&batch, sizeof batch);
    batch.global = 8;
    batch.leaves = 8;
    an_trainer_options options;
    an_trainer_options_init(&options, sizeof options);
    options.steps = STEPS;
    options.seed = 5;
    options.batch = &batch;
    options.shard = b->shard;
    options.accumulate = b->accumulate;
    options.min_elements = b->min_elements && r->comm.rank == r->comm.ranks - 1 ? b->min_elements : 1;
    if (rank_failed(r, "graph", build_braided(&graph, r->ctx)) || rank_failed(r, "data", make_data(&data, r->ctx)) ||
        rank_failed(r, "create", an_trainer_create(&t, graph, data, NULL, &options)))
        goto end;
    for (int i = 0; i < STEPS; i++) {
        if (i == 1 && b->refuses && !run_between_steps(r, t, b->refuses)) goto end;
        if (rank_failed(r, "step", an_trainer_step(t, NULL))) goto end;
    }
    if (r->comm.rank == 0) look_at(t, b);
    rank_failed(r, "hash", an_trainer_state_hash(t, r->hash));
end:
    an_trainer_destroy(&t);
    an_dataset_destroy(&data);
    an_graph_destroy(&graph);
}

static void expect_hash(const one_rank *ranks, int count, const char *what, const char *expected) {
    for (int i = 0; i < count; i++) {
        if (*ranks[i].error) fail_msg("%s, %d ranks: %s", what, count, ranks[i].error);
        if (strcmp(ranks[i].hash, expected) != 0)
            fail_msg("%s, %d ranks: rank %d does not have the bits of one process", what, count, i);
    }
}

static void nodes_that_read_three_units(void **state) {
    (void)state;
    one_rank ranks[LARGEST];
    char expected[HASH_TEXT];
    run_ranks(ranks, 1, train_braided, &(braid){.shard = AN_SHARD_NONE}, NULL);
    if (*ranks[0].error) fail_msg("%s", ranks[0].error);
    memcpy(expected, ranks[0].hash, sizeof expected);
    for (int s = 0; s < STRATEGIES; s++)
        for (int count = FIRST_COUNT(s); count <= LARGEST; count += EACH_COUNT) {
            braid b = {.shard = strategies[s]};
            run_ranks(ranks, count, train_braided, &b, NULL);
            expect_hash(ranks, count, names[b.shard], expected);
            const bool is_gathered_at_once = b.shard == AN_SHARD_OPTIMIZER || b.shard == AN_SHARD_GRADIENTS;
            assert_int_equal(b.waits_for_all, is_gathered_at_once);
            assert_int_equal(b.regions, b.shard == AN_SHARD_FULL ? 3 : 0);
        }
}

static void gradients_outside_of_a_step_are_refused(void **state) {
    (void)state;
    one_rank ranks[LARGEST];
    char expected[HASH_TEXT];
    run_ranks(ranks, 1, train_braided, &(braid){.shard = AN_SHARD_NONE}, NULL);
    if (*ranks[0].error) fail_msg("%s", ranks[0].error);
    memcpy(expected, ranks[0].hash, sizeof expected);
    for (int s = AN_SHARD_GRADIENTS; s <= AN_SHARD_FULL; s++) {
        braid off = {.shard = (an_shard)s, .accumulate = AN_ACCUMULATE_OFF, .refuses = "but nobody takes them"};
        run_ranks(ranks, LARGEST, train_braided, &off, NULL);
        expect_hash(ranks, LARGEST, names[s], expected);
        braid on = {.shard = (an_shard)s, .accumulate = AN_ACCUMULATE_ON, .refuses = "only a step adds them"};
        run_ranks(ranks, LARGEST, train_braided, &on, NULL);
        expect_hash(ranks, LARGEST, names[s], expected);
    }
}

/* They would wait for what the other never sends. */
static void other_units_are_refused(void **state) {
    (void)state;
    one_rank ranks[3];
    for (int s = AN_SHARD_OPTIMIZER; s <= AN_SHARD_FULL; s++) {
        run_ranks(ranks, 3, train_braided, &(braid){.shard = (an_shard)s, .min_elements = 1 << 20}, NULL);
        for (int i = 0; i < 3; i++)
            if (!strstr(ranks[i].error, "rank 0 divides the model into pieces") ||
                !strstr(ranks[i].error, "but rank 2"))
                fail_msg("%s: rank %d says '%s'", names[s], i, ranks[i].error);
    }
}

/* ---- a budget ---- */

typedef struct {
    int64_t arena; /* out */
} budgeted;

static void write_text(void) {
    FILE *file = fopen("text.txt", "w");
    assert_non_null(file);
    for (int i = 0; i < 1200; i++) fputc("to be or not, that is the question\n"[(i * i + i / 5) % 35], file);
    fclose(file);
}

/* 0: no budget */
static void write_config(an_shard shard, int64_t budget) {
    FILE *file = fopen("budget.yaml", "w");
    assert_non_null(file);
    fprintf(file,
            "run: {dir: run, steps: %d, seed: 5}\nsave: {every: off}\n"
            "data: {train: {type: text, path: text.txt, tokens: chars}, threads: 0}\n"
            "model: {type: gpt2, layers: 3, heads: 2, width: 64, context: 32, dropout: 0.1}\n"
            "batch: {global: 16, leaves: 8}\nranks: {shard: %s}\n",
            STEPS, names[shard]);
    if (budget) fprintf(file, "train: {precision: f32, recompute: {budget: %lld}}\n", (long long)budget);
    if (!budget) fputs("train: {precision: f32}\n", file);
    fclose(file);
}

static void train_budgeted(one_rank *r) {
    budgeted *b = r->user;
    an_trainer *t = NULL;
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    if (rank_failed(r, "open", an_trainer_open(&t, r->ctx, "budget.yaml", NULL)) ||
        rank_failed(r, "memory", an_plan_memory_get(an_trainer_plan(t), &memory)))
        goto end;
    if (r->comm.rank == 0) b->arena = memory.activations + memory.scratch;
    for (int i = 0; i < STEPS; i++)
        if (rank_failed(r, "step", an_trainer_step(t, NULL))) goto end;
    rank_failed(r, "hash", an_trainer_state_hash(t, r->hash));
end:
    an_trainer_destroy(&t);
}

static void a_budget_is_kept(void **state) {
    (void)state;
    one_rank ranks[LARGEST];
    char expected[HASH_TEXT], what[64];
    write_text();
    write_config(AN_SHARD_NONE, 0);
    run_ranks(ranks, 1, train_budgeted, &(budgeted){0}, NULL);
    if (*ranks[0].error) fail_msg("%s", ranks[0].error);
    memcpy(expected, ranks[0].hash, sizeof expected);
    for (int s = 0; s < STRATEGIES; s++)
        for (int count = FIRST_COUNT(s); count <= LARGEST; count += 2 * EACH_COUNT) {
            budgeted all = {0}, less = {0};
            write_config(strategies[s], 0);
            run_ranks(ranks, count, train_budgeted, &all, NULL);
            expect_hash(ranks, count, names[s], expected);
            const int64_t budget = all.arena / 10 * 8;
            snprintf(what, sizeof what, "%s with a budget of %lld bytes", names[s], (long long)budget);
            write_config(strategies[s], budget);
            run_ranks(ranks, count, train_budgeted, &less, NULL);
            expect_hash(ranks, count, what, expected);
            assert_in_range(less.arena, 1, budget);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_that_read_three_units),
        cmocka_unit_test(gradients_outside_of_a_step_are_refused),
        cmocka_unit_test(other_units_are_refused),
        cmocka_unit_test(a_budget_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
