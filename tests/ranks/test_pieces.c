/* Ranks that divide the optimizer's state: each updates its own pieces, and the run has the bits of one
 * process. The ranks are threads. */
#include "anneal/models.h"
#include "exec/plan.h"
#include "ranks/threads.h"
#include "step/step.h"

enum { SAMPLES = 16, TOKENS = 12, LEAVES = 8, STEPS = 6, IGNORED = -100 };

/* ---- what one run gives ---- */

typedef struct {
    an_dtype precision;
    double loss[STEPS], norm[STEPS];
    char *masters, *moments[AN_MOST_MOMENTS]; /* of all pages: every rank writes what it owns */
    size_t bytes;
    an_shard sharding;
} outcome;

static void keep(outcome *o, const an_params *p) {
    const size_t page = AN_PAGE * an_dtype_size(p->sizes.trainable_dtype);
    for (int i = 0; i < an_params_piece_count(p); i++) {
        const an_page_range piece = an_params_piece(p, i);
        const size_t at = (size_t)piece.begin * page, bytes = (size_t)(piece.end - piece.begin) * page;
        memcpy(o->masters + at, (char *)p->masters + at, bytes);
        for (int m = 0; m < p->moment_count; m++) memcpy(o->moments[m] + at, (char *)p->moments[m] + at, bytes);
    }
}

/* ---- one rank ---- */

typedef struct {
    an_graph *graph;
    an_groups *groups;
    an_plan *plan;
    an_shards *shards;
    an_params *params;
    an_program *program;
    an_optimizer *optimizer;
    an_stepper *stepper;
} training;

#define TRY(call) \
    if (rank_failed(r, #call, call)) return false

static bool create(one_rank *r, training *t) {
    const outcome *o = r->user;
    an_context *ctx = r->ctx;
    static const int64_t maxima[] = {SAMPLES, TOKENS};
    const char *symbols[2];
    an_gpt2_options model;
    an_plan_options plan;
    an_params_options params;
    an_stepper_options step;
    an_gpt2_options_init(&model, sizeof model);
    model.layers = 2;
    model.heads = 2;
    model.width = 64; /* matrices of several pages */
    model.context = 16;
    model.vocabulary = 61;
    an_plan_options_init(&plan, sizeof plan);
    an_params_options_init(&params, sizeof params);
    an_stepper_options_init(&step, sizeof step);
    TRY(an_model_gpt2(&t->graph, ctx, &model));
    TRY(an_groups_create(&t->groups, t->graph, NULL));
    TRY(an_graph_verify(t->graph));
    while (plan.symbol_count < 2 && (symbols[plan.symbol_count] = an_graph_symbol_name(t->graph, plan.symbol_count)))
        plan.symbol_count++;
    plan.symbols = symbols;
    plan.maxima = maxima;
    plan.programs = AN_PROGRAM_TRAINING;
    plan.precision = o->precision;
    plan.ranks = r->comm.ranks;
    plan.rank = r->comm.rank;
    plan.leaves = LEAVES;
    TRY(an_plan_create(&t->plan, ctx, t->graph, &plan));
    TRY(an_shards_create(&t->shards, ctx, t->plan, &(an_shards_options){.ranks = r->comm.ranks, .rank = r->comm.rank}));
    const an_params_pieces pieces = {.shards = t->shards, .sharding = o->sharding};
    TRY(an_params_create_in(&t->params, ctx, t->graph, &params, o->sharding == AN_SHARD_NONE ? NULL : &pieces));
    TRY(an_params_reset(t->params, 7));
    TRY(an_program_create(&t->program, t->plan, t->params));
    TRY(an_optimizer_create(&t->optimizer, t->params, t->groups, NULL));
    step.leaves = LEAVES;
    step.rate = 1e-2;
    step.clip_norm = 0.5;
    TRY(an_stepper_create(&t->stepper, t->program, t->optimizer, NULL, &step));
    return true;
}

static void destroy(training *t) {
    an_stepper_destroy(&t->stepper);
    an_optimizer_destroy(&t->optimizer);
    an_program_destroy(&t->program);
    an_params_destroy(&t->params);
    an_shards_destroy(&t->shards);
    an_plan_destroy(&t->plan);
    an_groups_destroy(&t->groups);
    an_graph_destroy(&t->graph);
}

/* Sequences of 1 to 12 targets; those of one leaf of a step are absent. */
static int64_t targets_of(int64_t sample, int step) {
    return 1 + (sample * 5 + step) % TOKENS;
}

static int64_t leaf_begin(int64_t leaf) {
    return leaf * SAMPLES / LEAVES;
}

static bool is_absent(int64_t leaf, int step) {
    return leaf == (step * 3 + 1) % LEAVES;
}

static bool run_leaf(one_rank *r, const training *t, int64_t leaf, int step) {
    int32_t tokens[SAMPLES * TOKENS], targets[SAMPLES * TOKENS];
    const int64_t begin = leaf_begin(leaf), count = leaf_begin(leaf + 1) - begin, dims[] = {count, TOKENS};
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < TOKENS; k++) {
            const int64_t sample = begin + i;
            tokens[i * TOKENS + k] = (int32_t)((sample * 7 + k * 3 + step) % 11);
            targets[i * TOKENS + k] = k < targets_of(sample, step) ? (int32_t)((sample * 5 + k) % 11) : IGNORED;
        }
    const an_array token_array = array_of(tokens, AN_DTYPE_I32, 2, dims);
    const an_array target_array = array_of(targets, AN_DTYPE_I32, 2, dims);
    TRY(an_program_bind(t->program, "batch", count));
    TRY(an_program_set_input(t->program, "tokens", &token_array));
    TRY(an_program_set_input(t->program, "targets", &target_array));
    TRY(an_step_micro_batch(t->stepper, leaf, count));
    return true;
}

static bool run_step(one_rank *r, const training *t, int step) {
    outcome *o = r->user;
    int64_t first, end, targets = 0;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_stepper_leaves(t->stepper, &first, &end);
    for (int64_t leaf = first; leaf < end; leaf++)
        for (int64_t i = leaf_begin(leaf); i < leaf_begin(leaf + 1) && !is_absent(leaf, step); i++)
            targets += targets_of(i, step);
    TRY(an_step_begin(t->stepper, targets));
    for (int64_t leaf = first; leaf < end; leaf++)
        if (!is_absent(leaf, step) && !run_leaf(r, t, leaf, step)) return false;
    TRY(an_step_reduce(t->stepper));
    TRY(an_step_unscale(t->stepper));
    TRY(an_step_clip(t->stepper));
    TRY(an_step_update(t->stepper));
    TRY(an_step_schedule(t->stepper));
    TRY(an_step_end(t->stepper, &metrics));
    if (r->comm.rank == r->comm.ranks - 1) {
        o->loss[step] = metrics.loss;
        o->norm[step] = metrics.norm;
    }
    return true;
}

static void train(one_rank *r) {
    outcome *o = r->user;
    training t = {0};
    if (create(r, &t)) {
        bool is_well = true;
        for (int step = 0; step < STEPS && is_well; step++) is_well = run_step(r, &t, step);
        if (is_well) keep(o, t.params);
        o->bytes = (size_t)an_params_flat_bytes(&t.params->sizes);
    }
    destroy(&t);
}

/* ---- tests ---- */

enum { ROOM = 1 << 20 };

static void run(outcome *o, int ranks, int host_ranks) {
    one_rank all[MOST_RANKS];
    o->masters = calloc(1, ROOM);
    for (int m = 0; m < AN_MOST_MOMENTS; m++) o->moments[m] = calloc(1, ROOM);
    run_ranks_on(all, ranks, host_ranks, train, o, NULL);
    for (int i = 0; i < ranks; i++)
        if (*all[i].error)
            fail_msg("%d ranks, %d a host, %s: %s", ranks, host_ranks, an_dtype_name(o->precision), all[i].error);
    assert_true(o->bytes <= ROOM);
}

static void release(outcome *o) {
    free(o->masters);
    for (int m = 0; m < AN_MOST_MOMENTS; m++) free(o->moments[m]);
}

static void compare(const outcome *a, const outcome *b, int ranks, int host_ranks) {
    for (int i = 0; i < STEPS; i++)
        if (a->loss[i] != b->loss[i] || a->norm[i] != b->norm[i])
            fail_msg("%d ranks, %d a host, %s: step %d has loss %.17g and norm %.17g instead of %.17g and %.17g", ranks,
                     host_ranks, an_dtype_name(a->precision), i, b->loss[i], b->norm[i], a->loss[i], a->norm[i]);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->masters, b->masters, a->bytes);
    for (int m = 0; m < AN_MOST_MOMENTS; m++) assert_memory_equal(a->moments[m], b->moments[m], a->bytes);
}

static void test_pieces_give_the_bits_of_one_process(void **state) {
    static const an_dtype precisions[] = {AN_DTYPE_NONE, AN_DTYPE_BF16};
    (void)state;
    for (int p = 0; p < 2; p++) {
        outcome alone = {.precision = precisions[p]};
        run(&alone, 1, 1);
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
            for (int shared = 0; shared < 2; shared++) {
                outcome o = {.precision = precisions[p], .sharding = AN_SHARD_OPTIMIZER};
                run(&o, ranks, shared ? ranks : 1);
                compare(&alone, &o, ranks, shared ? ranks : 1);
                release(&o);
            }
        release(&alone);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces_give_the_bits_of_one_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
