/* Ranks that divide the state of a run, by every strategy: losses, norms, evaluations, weights and state have the bits
 * of one process, and each rank holds and sends what the plan says. The ranks are threads; what MPI and checkpoints
 * add is tested by hash.sh. */
#include "anneal/config.h"
#include "anneal/open.h"
#include "anneal/ranks.h"
#include "ranks/own_run.h"
#include "train/trainer.h"

enum { STEPS = 9, MOST_NORMS = 64 };
/* ---- runs ---- */

#define ROWS "{type: csv, path: rows.csv, inputs: [a, b], targets: [sum], part: "
#define MLP(dtype, more)                                                                                          \
    "run: {dir: run, steps: 9, seed: 5}\nsave: {every: off}\n"                                                    \
    "data: {train: " ROWS "0%..80%, dtype: " dtype "}, eval: " ROWS "80%..100%, dtype: " dtype "}, threads: 0}\n" \
    "train: {precision: " dtype "}\nlog: {grad_norms: parameter}\n" more
#define GPT(more)                                                                                                   \
    "run: {dir: run, steps: 9, seed: 5}\nsave: {every: off}\n"                                                      \
    "data: {train: {type: text, path: text.txt, tokens: chars, part: 0%..80%}, eval: {type: text, path: text.txt, " \
    "tokens: chars, part: 80%..100%}, threads: 0}\n"                                                                \
    "model: {type: gpt2, layers: 3, heads: 2, width: 64, context: 16, dropout: 0.1}\nlog: {grad_norms: block}\n" more

static const struct {
    const char *name, *text;
    const char *accumulate; /* of strategies that divide gradients; NULL: auto */
    bool is_of_rounds;      /* it is for these strategies */
} configs[] = {
    {"mlp", MLP("f32", "model: {type: mlp, hidden: [80, 50, 40], dropout: 0.1}\nbatch: {global: 16, leaves: 8}\n"),
     NULL, false},
    {"f64", MLP("f64", "model: {type: mlp, hidden: [80, 50]}\nbatch: {global: 13, leaves: 11}\n"), NULL, false},
    {"gpt-f32", GPT("batch: {global: 16, leaves: 8}\ntrain: {precision: f32}\n"), NULL, false},
    {"gpt-bf16", GPT("batch: {global: 16, leaves: 8}\ntrain: {precision: bf16, recompute: block}\n"), NULL, false},
    {"rounded", GPT("batch: {global: 16, leaves: 8}\ntrain: {precision: f32}\nranks: {precision: {reduce: bf16}}\n"),
     NULL, false},
    {"lora",
     GPT("batch: {global: 16, leaves: 8}\ntrain: {precision: bf16, recompute: block}\n"
         "lora: {targets: [c_attn, c_fc], rank: 4, dropout: 0.1}\n"),
     NULL, false},
    /* Leaves of 2 samples: two or four of them in a micro-batch, or two micro-batches a leaf; a step has 8, 5 or 16
     * leaves. */
    {"pairs",
     MLP("f32", "model: {type: mlp, hidden: [80, 50, 40], dropout: 0.1}\nbatch: {global: 16, leaves: 8, micro: 4}\n"),
     NULL, true},
    {"pairs-sent", MLP("f32", "model: {type: mlp, hidden: [80, 50]}\nbatch: {global: 16, leaves: 8, micro: 4}\n"),
     "off", true},
    {"fours-sent", GPT("batch: {global: 16, leaves: 8, micro: 8}\ntrain: {precision: f32}\n"), "off", true},
    {"all-sent", GPT("batch: {global: 16, leaves: 8}\ntrain: {precision: bf16}\n"), "off", true},
    {"uneven-sent", MLP("f64", "model: {type: mlp, hidden: [80, 50]}\nbatch: {global: 13, leaves: 11, micro: 3}\n"),
     "off", true},
    {"uneven", MLP("f64", "model: {type: mlp, hidden: [80, 50]}\nbatch: {global: 13, leaves: 11, micro: 3}\n"), "on",
     true},
    {"parts", MLP("f32", "model: {type: mlp, hidden: [80, 50, 40]}\nbatch: {global: 16, leaves: 8, micro: 1}\n"), NULL,
     true},
    {"gpt-parts", GPT("batch: {global: 32, leaves: 8, micro: 1}\ntrain: {precision: bf16, recompute: block}\n"), NULL,
     true},
    {"gpt-parts-rounded",
     GPT("batch: {global: 16, leaves: 8, micro: 1}\ntrain: {precision: f32}\nranks: {precision: {reduce: bf16}}\n"),
     NULL, true},
    {"gpt-added", GPT("batch: {global: 16, leaves: 16, micro: 2}\ntrain: {precision: f32}\n"), "on", true},
    {"joined", GPT("batch: {global: 16, leaves: 8}\ntrain: {precision: bf16}\nranks: {unit: {min_elements: 60000}}\n"),
     NULL, false},
};

static void write_data(void) {
    FILE *file = fopen("rows.csv", "w");
    assert_non_null(file);
    fprintf(file, "a,b,sum\n");
    for (int i = 0; i < 101; i++)
        fprintf(file, "%.4f,%.4f,%.4f\n", i % 11 / 10.0, i % 7 / 6.0, i % 11 / 10.0 + i % 7 / 6.0);
    fclose(file);
    file = fopen("text.txt", "w");
    assert_non_null(file);
    for (int i = 0; i < 2400; i++) fputc("to be or not, that is the question\n"[(i * i + i / 5) % 35], file);
    fclose(file);
}

/* ---- what one gives ---- */

typedef struct {
    double loss[STEPS], norm[STEPS], evaluation[STEPS], norms[MOST_NORMS];
    int norm_count;
    char weights[HASH_TEXT], state[HASH_TEXT];
    double sums[MOST_NORMS]; /* of the first parameters, as they are asked for by name */
    int taken, fullest;      /* strategy, and the rank that needs most with it */
    int64_t peak, maximum;   /* of this rank, and of that one */
} outcome;

typedef struct {
    outcome ranks[MOST_RANKS];
    bool checks_plan;
} training;

static void check_traffic(one_rank *r, const an_plan_traffic *planned, int64_t sent, int step) {
    if (sent != planned->sent && !*r->error)
        snprintf(r->error, sizeof r->error, "rank %d: step %d sends %lld bytes, planned are %lld", r->comm.rank, step,
                 (long long)sent, (long long)planned->sent);
}

/* Every parameter, whole, on every rank. */
static bool take_parameters(one_rank *r, an_trainer *t, outcome *o) {
    an_params *params = an_trainer_params(t);
    an_param_info info;
    an_param_info_init(&info, sizeof info);
    for (int64_t i = 0; i < an_params_count(params) && i < MOST_NORMS; i++) {
        if (rank_failed(r, "info", an_params_info(params, i, &info))) return false;
        if (!info.trainable) continue; /* it has no moments */
        char *values = calloc((size_t)info.elements, an_dtype_size(info.dtype));
        an_array array = array_of(values, info.dtype, info.ndims, info.dims);
        const bool failed = rank_failed(r, info.name, an_params_get(params, info.name, AN_PART_MOMENT_1, &array)) ||
                            rank_failed(r, info.name, an_params_get(params, info.name, AN_PART_WEIGHT, &array));
        for (int64_t k = 0; !failed && k < info.elements; k++)
            o->sums[i] += info.dtype == AN_DTYPE_F64 ? ((double *)(void *)values)[k] : ((float *)(void *)values)[k];
        free(values);
        if (failed) return false;
    }
    return true;
}

static bool run_steps(one_rank *r, an_trainer *t, const an_plan_traffic *planned, outcome *o) {
    an_step_metrics metrics;
    an_evaluation evaluation;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_evaluation_init(&evaluation, sizeof evaluation);
    for (int i = 0; i < STEPS; i++) {
        const int64_t sent = r->messages.sent;
        if (rank_failed(r, "step", an_trainer_step(t, &metrics))) return false;
        if (planned && i % 3 != 2) /* an evaluation before it has gathered the weights */
            check_traffic(r, planned, r->messages.sent - sent, i + 1);
        o->loss[i] = metrics.loss;
        o->norm[i] = metrics.norm;
        if (i % 3 != 1) continue; /* twice in a row nothing is evaluated */
        if (rank_failed(r, "evaluate", an_trainer_evaluate(t, &evaluation))) return false;
        o->evaluation[i] = evaluation.loss;
    }
    return true;
}

static bool take_norms(one_rank *r, const an_trainer *t, outcome *o) {
    const char *name;
    o->norm_count = an_trainer_norm_count(t);
    for (int i = 0; i < o->norm_count && i < MOST_NORMS; i++)
        if (rank_failed(r, "norm", an_trainer_norm(t, i, &name, &o->norms[i]))) return false;
    return true;
}

static void take_strategy(const an_trainer *t, outcome *o) {
    for (int shard = AN_SHARD_NONE; shard < AN_SHARD_AUTO; shard++) {
        an_strategy strategy;
        an_plan_memory memory;
        an_strategy_init(&strategy, sizeof strategy);
        an_plan_memory_init(&memory, sizeof memory);
        if (an_trainer_strategy(t, (an_shard)shard, &strategy) != AN_OK || !strategy.taken ||
            an_trainer_strategy_memory(t, (an_shard)shard, &memory) != AN_OK)
            continue;
        o->taken = shard;
        o->fullest = strategy.rank;
        o->maximum = memory.peak;
    }
}

static void train(one_rank *r) {
    training *all = r->user;
    outcome *o = &all->ranks[r->comm.rank];
    an_trainer *t = NULL;
    an_plan_traffic traffic;
    an_plan_memory memory;
    an_plan_traffic_init(&traffic, sizeof traffic);
    an_plan_memory_init(&memory, sizeof memory);
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    /* the context keeps the table of options from here on */
    if (rank_failed(r, "options", an_config_key_get(r->ctx, 0, &key))) return;
    const size_t before = an_context_bytes(r->ctx);
    if (rank_failed(r, "open", an_trainer_open(&t, r->ctx, "config.yaml", NULL)) ||
        rank_failed(r, "traffic", an_plan_traffic_get(an_trainer_plan(t), &traffic)) ||
        rank_failed(r, "memory", an_plan_memory_get(an_trainer_plan(t), &memory)))
        goto end;
    take_strategy(t, o);
    o->peak = memory.peak;
    r->planned = memory.peak - memory.checkpoint;
    r->allocated = (int64_t)(an_context_bytes(r->ctx) - before);
    if (run_steps(r, t, all->checks_plan ? &traffic : NULL, o) && take_norms(r, t, o) && take_parameters(r, t, o) &&
        !rank_failed(r, "weights", an_trainer_weights_hash(t, o->weights)))
        rank_failed(r, "state", an_trainer_state_hash(t, o->state));
end:
    an_trainer_destroy(&t);
}

/* ---- all of them ---- */

static bool same_bits(double a, double b) {
    uint64_t bits[2];
    memcpy(&bits[0], &a, sizeof a);
    memcpy(&bits[1], &b, sizeof b);
    return bits[0] == bits[1];
}

static void expect(const char *what, const outcome *o, const outcome *expected) {
    for (int i = 0; i < STEPS; i++) {
        if (!same_bits(o->loss[i], expected->loss[i]))
            fail_msg("%s: step %d has the loss %.17g, one process %.17g", what, i + 1, o->loss[i], expected->loss[i]);
        if (!same_bits(o->norm[i], expected->norm[i]))
            fail_msg("%s: step %d has the norm %.17g, one process %.17g", what, i + 1, o->norm[i], expected->norm[i]);
        if (!same_bits(o->evaluation[i], expected->evaluation[i]))
            fail_msg("%s: the evaluation after step %d is %.17g, one process has %.17g", what, i + 1, o->evaluation[i],
                     expected->evaluation[i]);
    }
    assert_int_equal(o->norm_count, expected->norm_count);
    for (int i = 0; i < MOST_NORMS; i++) {
        if (!same_bits(o->norms[i], expected->norms[i]))
            fail_msg("%s: norm %d is %.17g, of one process %.17g", what, i, o->norms[i], expected->norms[i]);
        if (!same_bits(o->sums[i], expected->sums[i]))
            fail_msg("%s: parameter %d has the sum %.17g, of one process %.17g", what, i, o->sums[i],
                     expected->sums[i]);
    }
    if (strcmp(o->weights, expected->weights) != 0) fail_msg("%s: other weights", what);
    if (strcmp(o->state, expected->state) != 0) fail_msg("%s: another state", what);
}

/* A config with its strategy. */
static void write_config(size_t index, const char *shard) {
    const char *config = configs[index].text, *ranks = strstr(config, "ranks: {");
    const bool divides = strcmp(shard, "none") != 0 && strcmp(shard, "optimizer") != 0;
    FILE *file = fopen("config.yaml", "w");
    assert_non_null(file);
    fprintf(file, "%.*sranks: {shard: %s", (int)(ranks ? ranks - config : (long)strlen(config)), config, shard);
    if (divides && configs[index].accumulate) fprintf(file, ", accumulate: %s", configs[index].accumulate);
    fputs(ranks ? ", " : "}\n", file);
    if (ranks) fputs(ranks + strlen("ranks: {"), file);
    fclose(file);
}

/* All ranks know the same of the strategy that they use. */
static void expect_one_choice(const char *what, const outcome *ranks, int count) {
    const outcome *first = &ranks[0];
    int64_t maximum = 0;
    for (int i = 0; i < count; i++) {
        if (ranks[i].taken != first->taken || ranks[i].fullest != first->fullest || ranks[i].maximum != first->maximum)
            fail_msg("%s: rank %d has strategy %d, rank 0 %d, or they know another fullest rank", what, i,
                     ranks[i].taken, first->taken);
        if (ranks[i].peak > maximum) maximum = ranks[i].peak;
    }
    if (first->maximum != maximum || ranks[first->fullest].peak != maximum)
        fail_msg("%s: the fullest rank needs %lld bytes, not %lld", what, (long long)maximum,
                 (long long)first->maximum);
}

static void check_strategy(size_t config, const char *shard, int count, int host, const outcome *expected) {
    static one_rank ranks[MOST_RANKS];
    /* On one host some goes through memory. */
    training all = {.checks_plan = host == 1 || host < count};
    char what[128];
    snprintf(what, sizeof what, "%s, %s, %d ranks, %d a host", configs[config].name, shard, count, host);
    write_config(config, shard);
    run_ranks_on(ranks, count, host, train, &all, NULL);
    for (int k = 0; k < count; k++) {
        if (*ranks[k].error) fail_msg("%s: %s", what, ranks[k].error);
        expect(what, &all.ranks[k], expected);
        if (ranks[k].planned != ranks[k].allocated)
            fail_msg("%s: rank %d has %lld bytes, planned are %lld", what, k, (long long)ranks[k].allocated,
                     (long long)ranks[k].planned);
    }
    expect_one_choice(what, all.ranks, count);
}

static void run_alone(size_t config, outcome *expected) {
    one_rank ranks[1];
    training all = {0};
    write_config(config, "none");
    run_ranks(ranks, 1, train, &all, NULL);
    if (*ranks[0].error) fail_msg("%s: %s", configs[config].name, ranks[0].error);
    *expected = all.ranks[0];
}

static const char *const shards[] = {"none", "optimizer", "gradients", "full"};
static const int hybrids[][2] = {{4, 2}, {6, 2}, {6, 3}, {8, 2}, {8, 4}, {4, 1}, {3, 3}}; /* ranks, and on a host */
enum { SHARDS = sizeof shards / sizeof *shards, HYBRIDS = sizeof hybrids / sizeof *hybrids };

#ifdef ANNEAL_SANITIZED
/* Two strategies for each config, in turn, with one number of ranks, on one host or on many: a sanitizer looks at what
 * is done with memory, and not at bits. All strategies and numbers come in several configs. */
static void check_config(size_t i, const outcome *expected) {
    for (size_t s = i % 2; s < SHARDS; s += 2) {
        const int count = 2 + (int)(i + 2 * s) % (MOST_RANKS - 1);
        check_strategy(i, shards[s], count, (i + s) % 2 ? 1 : count, expected);
    }
    if (i % 2) check_strategy(i, "hybrid", hybrids[i % HYBRIDS][0], hybrids[i % HYBRIDS][1], expected);
}

static void check_rounds(size_t i, const outcome *expected) {
    const int count = 2 + (int)i % 4;
    check_strategy(i, shards[2 + i % 2], count, i % 4 < 2 ? 1 : count, expected);
}
#else
static void check_config(size_t i, const outcome *expected) {
    for (size_t s = 0; s < SHARDS; s++)
        /* even numbers of ranks or odd ones, in turn: all of them with every strategy, in several configs */
        for (int count = 2 + (int)(i + s) % 2; count <= MOST_RANKS; count += 2)
            for (int host = 1; host <= count; host += count - 1) check_strategy(i, shards[s], count, host, expected);
    for (size_t h = 0; h < HYBRIDS; h++) check_strategy(i, "hybrid", hybrids[h][0], hybrids[h][1], expected);
}

/* Only strategies whose leaves run in rounds. */
static void check_rounds(size_t i, const outcome *expected) {
    for (int count = 2; count <= 5; count++)
        check_strategy(i, shards[2 + (i + (size_t)count) % 2], count, count % 2 ? 1 : count, expected);
    check_strategy(i, "hybrid", hybrids[i % HYBRIDS][0], hybrids[i % HYBRIDS][1], expected);
}
#endif

static void every_strategy_has_the_bits_of_one_process(void **state) {
    (void)state;
    outcome expected;
    write_data();
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        run_alone(i, &expected);
        if (configs[i].is_of_rounds)
            check_rounds(i, &expected);
        else
            check_config(i, &expected);
    }
}

/* ---- rounds ---- */

typedef struct {
    int64_t leaves, passes, sent;
} round_shape;

static void take_round(one_rank *r) {
    round_shape *shapes = r->user;
    an_trainer *t = NULL;
    an_plan_traffic traffic;
    an_plan_traffic_init(&traffic, sizeof traffic);
    if (!rank_failed(r, "open", an_trainer_open(&t, r->ctx, "config.yaml", NULL)) &&
        !rank_failed(r, "traffic", an_plan_traffic_get(an_trainer_plan(t), &traffic)))
        shapes[r->comm.rank] =
            (round_shape){t->division.pieces.round_leaves, t->division.pieces.round_passes, traffic.sent};
    if (t && t->division.pieces.round_passes > 1 && an_program_run(t->program, AN_FORM_TRAIN_FIRST) != AN_ERR_STATE &&
        !*r->error)
        snprintf(r->error, sizeof r->error, "rank %d: gradients are written where there is no room", r->comm.rank);
    an_trainer_destroy(&t);
}

/* What a rank makes in a round: as much as no other rank waits for, and as many micro-batches as it has room to add. */
static void rounds_have_the_leaves_and_micro_batches_that_fit(void **state) {
    static const struct {
        const char *name, *shard;
        int ranks;
        int64_t leaves, passes; /* 0 passes: nothing is added before it is sent */
    } cases[] = {
        {"mlp", "full", 2, 4, 0},        {"mlp", "full", 3, 1, 0},
        {"mlp", "gradients", 4, 2, 0},   {"mlp", "full", 6, 1, 0},
        {"pairs", "full", 2, 4, 2},      {"pairs", "full", 4, 2, 0},
        {"pairs-sent", "full", 2, 2, 0}, {"parts", "gradients", 2, 4, 8},
        {"parts", "gradients", 8, 1, 2}, {"gpt-parts-rounded", "full", 2, 1, 2},
        {"gpt-added", "full", 2, 8, 4},  {"gpt-added", "full", 5, 2, 0},
        {"gpt-added", "full", 7, 1, 0},  {"fours-sent", "full", 2, 4, 0},
        {"uneven", "full", 2, 2, 2},
    };
    static one_rank ranks[MOST_RANKS];
    (void)state;
    write_data();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        round_shape shapes[MOST_RANKS];
        size_t config = 0;
        while (strcmp(configs[config].name, cases[i].name) != 0) config++;
        write_config(config, cases[i].shard);
        run_ranks(ranks, cases[i].ranks, take_round, shapes, NULL);
        for (int k = 0; k < cases[i].ranks; k++) {
            if (*ranks[k].error) fail_msg("%s: %s", cases[i].name, ranks[k].error);
            if (shapes[k].leaves != cases[i].leaves || shapes[k].passes != cases[i].passes)
                fail_msg("%s, %s, rank %d of %d: %lld leaves in %lld micro-batches", cases[i].name, cases[i].shard, k,
                         cases[i].ranks, (long long)shapes[k].leaves, (long long)shapes[k].passes);
        }
    }
}

/* What auto takes is the same on all ranks, whatever each of them needs: of 8 leaves, three ranks have 2 or 3. */
static void auto_is_one_choice(void **state) {
    (void)state;
    outcome expected;
    write_data();
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i += 3) {
        run_alone(i, &expected);
        for (int count = 2; count <= 3; count++)
            for (int host = 1; host <= count; host += count - 1) check_strategy(i, "auto", count, host, &expected);
    }
}

/* On the second of two hosts, one weight becomes another. */
static void change_one_host(one_rank *r) {
    an_trainer *t = NULL;
    an_param_info info;
    an_param_info_init(&info, sizeof info);
    if (rank_failed(r, "open", an_trainer_open(&t, r->ctx, "config.yaml", NULL)) ||
        rank_failed(r, "step", an_trainer_step(t, NULL)) ||
        rank_failed(r, "info", an_params_info(an_trainer_params(t), 0, &info)))
        goto end;
    float *values = calloc((size_t)info.elements, sizeof *values);
    an_array array = array_of(values, info.dtype, info.ndims, info.dims);
    bool failed = rank_failed(r, "get", an_params_get(an_trainer_params(t), info.name, AN_PART_WEIGHT, &array));
    values[0] += 1;
    if (!failed && r->comm.rank >= 2)
        failed = rank_failed(r, "set", an_params_set(an_trainer_params(t), info.name, AN_PART_WEIGHT, &array));
    free(values);
    /* A step looks at some of them. */
    for (int i = 1; i < STEPS && !failed; i++) failed = rank_failed(r, "changed", an_trainer_step(t, NULL));
end:
    an_trainer_destroy(&t);
}

static void hosts_of_a_hybrid_have_the_same_weights(void **state) {
    (void)state;
    one_rank ranks[4];
    write_data();
    write_config(0, "hybrid");
    run_ranks_on(ranks, 4, 2, change_one_host, NULL, NULL);
    for (int i = 0; i < 4; i++)
        if (!strstr(ranks[i].error, "changed: rank 2 has other weights than rank 0"))
            fail_msg("rank %d says: %s", i, ranks[i].error);
}

static void open_only(one_rank *r) {
    an_trainer *t = NULL;
    rank_failed(r, "open", an_trainer_open(&t, r->ctx, "config.yaml", NULL));
    an_trainer_destroy(&t);
}

static void hosts_of_a_hybrid_have_as_many_ranks(void **state) {
    (void)state;
    one_rank ranks[5];
    write_data();
    write_config(0, "hybrid");
    run_ranks_on(ranks, 5, 2, open_only, NULL, NULL);
    for (int i = 0; i < 5; i++)
        if (!strstr(ranks[i].error, "all hosts must have as many ranks"))
            fail_msg("rank %d says: %s", i, ranks[i].error);
}

static void what_is_no_strategy_is_refused(void **state) {
    (void)state;
    an_context *ctx = NULL;
    own_run run;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    own_choices choices = own_usual();
    choices.options.shard = (an_shard)7;
    FAILS(ctx, own_create(&run, ctx, choices), AN_ERR_ARGUMENT, "shard is 7");
    own_destroy(&run);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_is_one_choice),
        cmocka_unit_test(rounds_have_the_leaves_and_micro_batches_that_fit),
        cmocka_unit_test(every_strategy_has_the_bits_of_one_process),
        cmocka_unit_test(hosts_of_a_hybrid_have_the_same_weights),
        cmocka_unit_test(hosts_of_a_hybrid_have_as_many_ranks),
        cmocka_unit_test(what_is_no_strategy_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
