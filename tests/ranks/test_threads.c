/* Runs on several ranks, which are threads here: the same state_hash on any number of them, memory as planned on each,
 * and messages as planned. What MPI adds is tested by hash.sh. */
#include "anneal/config.h"
#include "anneal/open.h"
#include "anneal/run.h"
#include "ranks/threads.h"
#include "train/trainer.h"

/* Columns a, b and their sum: 101 rows, so that the last step of an epoch has 5 samples for 8 leaves. */
static void write_rows(void) {
    FILE *file = fopen("rows.csv", "w");
    assert_non_null(file);
    fprintf(file, "a,b,sum\n");
    for (int i = 0; i < 101; i++)
        fprintf(file, "%.4f,%.4f,%.4f\n", i % 11 / 10.0, i % 7 / 6.0, i % 11 / 10.0 + i % 7 / 6.0);
    fclose(file);
}

#define RUN(name, dtype, more)                                                                                        \
    "run: {dir: run-" name ", steps: 12, seed: 5}\n"                                                                  \
    "data: {train: {type: csv, path: rows.csv, inputs: [a, b], targets: [sum], dtype: " dtype ", part: 0%..80%}, "    \
    "eval: {type: csv, path: rows.csv, inputs: [a, b], targets: [sum], dtype: " dtype ", part: 80%..100%}, threads: " \
    "0}\neval: {every: 5 steps}\nsave: {every: off}\ntrain: {precision: " dtype "}\n" more

typedef struct {
    const char *name, *text;
    bool shares; /* memory of ranks is tried too */
} config;

static const config configs[] = {
    {"mlp", RUN("mlp", "f32", "model: {type: mlp, hidden: [12, 9], dropout: 0.1}\nbatch: {global: 16, leaves: 8}\n"),
     false},
    {"f64", RUN("f64", "f64", "model: {type: mlp, hidden: [12, 9]}\nbatch: {micro: 1, accumulate: 16, leaves: 8}\n"),
     false},
    {"uneven", RUN("uneven", "f32", "model: {type: mlp, hidden: [40, 30]}\nbatch: {global: 13, leaves: 11}\n"), true},
};

static void train(one_rank *r) {
    const config *c = r->user;
    an_trainer *trainer = NULL;
    char path[64];
    snprintf(path, sizeof path, "%s.yaml", c->name);
    if (!rank_failed(r, "open", an_trainer_open(&trainer, r->ctx, path, NULL)) &&
        !rank_failed(r, "run", an_trainer_run(trainer, NULL, NULL)))
        rank_failed(r, "hash", an_trainer_state_hash(trainer, r->hash));
    an_trainer_destroy(&trainer);
}

/* How many ranks share memory: none, three of them, all. */
static int next_host(int host, int count) {
    return host == 1 && count > 3 ? 3 : host < count ? count : count + 1;
}

static void every_number_of_ranks_gives_one_hash(void **state) {
    (void)state;
    one_rank ranks[MOST_RANKS];
    char expected[HASH_TEXT], folder[64];
    write_rows();
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s.yaml", configs[i].name);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(configs[i].text, file);
        fclose(file);
        for (int count = 1; count <= MOST_RANKS; count++)
            for (int host = 1; host <= (configs[i].shares ? count : 1); host = next_host(host, count)) {
                snprintf(folder, sizeof folder, "rm -rf run-%s", configs[i].name);
                assert_int_equal(system(folder), 0);
                run_ranks_on(ranks, count, host, train, (void *)(uintptr_t)&configs[i], NULL);
                for (int k = 0; k < count; k++) {
                    if (*ranks[k].error)
                        fail_msg("%s on %d ranks, %d a host: %s", configs[i].name, count, host, ranks[k].error);
                    if (count == 1) memcpy(expected, ranks[k].hash, sizeof expected);
                    if (strcmp(expected, ranks[k].hash) != 0)
                        fail_msg("%s: rank %d of %d, %d a host, has %s, one process %s", configs[i].name, k, count,
                                 host, ranks[k].hash, expected);
                }
            }
    }
}

/* What each rank sends in a step, and reads and writes in shared memory, to the byte, and what it holds. */
static void step(one_rank *r) {
    an_trainer *trainer = NULL;
    an_plan_traffic traffic;
    an_plan_memory memory;
    an_plan_traffic_init(&traffic, sizeof traffic);
    an_plan_memory_init(&memory, sizeof memory);
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    /* the context keeps the table of options from here on */
    if (rank_failed(r, "options", an_config_key_get(r->ctx, 0, &key))) return;
    const size_t before = an_context_bytes(r->ctx);
    if (rank_failed(r, "open", an_trainer_open(&trainer, r->ctx, "mlp.yaml", NULL)) ||
        rank_failed(r, "traffic", an_plan_traffic_get(an_trainer_plan(trainer), &traffic)) ||
        rank_failed(r, "memory", an_plan_memory_get(an_trainer_plan(trainer), &memory)))
        goto end;
    r->planned = memory.peak - memory.checkpoint;
    r->allocated = (int64_t)(an_context_bytes(r->ctx) - before);
    const an_reduction *reduction = trainer->stepper->leaves.reduction;
    r->shared = an_reduction_host_ranks(reduction);
    for (int i = 0; i < 12 && !*r->error; i++) { /* the sixth is short */
        const int64_t sent = r->messages.sent;
        const an_reduction_cost first = an_reduction_count(reduction);
        if (rank_failed(r, "step", an_trainer_step(trainer, NULL))) break;
        if (r->messages.sent - sent != traffic.sent)
            snprintf(r->error, sizeof r->error, "rank %d: step %d sends %lld bytes, planned are %lld", r->comm.rank,
                     i + 1, (long long)(r->messages.sent - sent), (long long)traffic.sent);
        const an_reduction_cost now = an_reduction_count(reduction);
        if (now.read - first.read != traffic.read || now.written - first.written != traffic.written)
            snprintf(r->error, sizeof r->error,
                     "rank %d: step %d reads %lld bytes and writes %lld, planned are %lld and %lld", r->comm.rank,
                     i + 1, (long long)(now.read - first.read), (long long)(now.written - first.written),
                     (long long)traffic.read, (long long)traffic.written);
    }
end:
    an_trainer_destroy(&trainer);
}

static void messages_and_memory_are_as_planned(void **state) {
    (void)state;
    one_rank ranks[MOST_RANKS];
    assert_int_equal(system("rm -rf run-mlp"), 0);
    for (int count = 2; count <= MOST_RANKS; count++)
        for (int host = 1; host <= count; host = next_host(host, count)) {
            run_ranks_on(ranks, count, host, step, NULL, NULL);
            for (int k = 0; k < count; k++) {
                if (*ranks[k].error) fail_msg("%d ranks, %d a host: %s", count, host, ranks[k].error);
                assert_int_equal(ranks[k].shared, host);
                if (ranks[k].planned != ranks[k].allocated)
                    fail_msg("rank %d of %d, %d a host, has %lld bytes, planned are %lld", k, count, host,
                             (long long)ranks[k].allocated, (long long)ranks[k].planned);
            }
        }
}

/* Gradients that are shared have one user, and who says that they are not shared is obeyed or told. */
static void share(one_rank *r) {
    an_trainer *trainer = NULL, *other = NULL;
    an_stepper *second = NULL;
    an_stepper_options options;
    an_stepper_options_init(&options, sizeof options);
    options.leaves = 8;
    if (rank_failed(r, "open", an_trainer_open(&trainer, r->ctx, "mlp.yaml", NULL)) ||
        rank_failed(r, "step", an_trainer_step(trainer, NULL)))
        goto end;
    if (an_stepper_create(&second, trainer->program, trainer->optimizer, NULL, &options) != AN_ERR_STATE ||
        !strstr(an_last_error(r->ctx), "these parameters have a stepper"))
        snprintf(r->error, sizeof r->error, "rank %d: a second stepper: %s", r->comm.rank, an_last_error(r->ctx));
    if (rank_failed(r, "step", an_trainer_step(trainer, NULL))) goto end;
    if (an_trainer_open(&other, r->ctx, "apart.yaml", NULL) != AN_ERR_ARGUMENT ||
        !strstr(an_last_error(r->ctx), "ranks.shared_memory is off"))
        snprintf(r->error, sizeof r->error, "rank %d: apart.yaml: %s", r->comm.rank, an_last_error(r->ctx));
end:
    an_stepper_destroy(&second);
    an_trainer_destroy(&other);
    an_trainer_destroy(&trainer);
}

static void sharing_has_one_user_and_can_be_refused(void **state) {
    (void)state;
    enum { RANKS = 2 };
    one_rank ranks[MOST_RANKS];
    FILE *file = fopen("apart.yaml", "w");
    assert_non_null(file);
    fprintf(file, "%sranks: {shared_memory: off}\n", configs[0].text);
    fclose(file);
    assert_int_equal(system("rm -rf run-mlp"), 0);
    run_ranks_on(ranks, RANKS, RANKS, share, NULL, NULL);
    for (int k = 0; k < RANKS; k++)
        if (*ranks[k].error) fail_msg("%s", ranks[k].error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_ranks_gives_one_hash),
        cmocka_unit_test(messages_and_memory_are_as_planned),
        cmocka_unit_test(sharing_has_one_user_and_can_be_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
