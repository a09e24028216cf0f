/* Runs on several ranks, which are threads here: the same state_hash on any number of them, memory as planned on each, and messages as planned. What MPI adds is
 * tested by hash.sh. */
#include "anneal/open.h"
#include "anneal/run.h"
#include "ranks/threads.h"

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
} config;

static const config configs[] = {
    {"mlp", RUN("mlp", "f32", "model: {type: mlp, hidden: [12, 9], dropout: 0.1}\nbatch: {global: 16, leaves: 8}\n")},
    {"f64", RUN("f64", "f64", "model: {type: mlp, hidden: [12, 9]}\nbatch: {micro: 1, accumulate: 2, leaves: 8}\n")},
    {"uneven", RUN("uneven", "f32", "model: {type: mlp, hidden: [40, 30]}\nbatch: {global: 13, leaves: 11}\n")},
};

static void train(one_rank *r) {
    const config *c = r->user;
    an_trainer *trainer = NULL;
    char path[64];
    snprintf(path, sizeof path, "%s.yaml", c->name);
    if (!rank_failed(r, "open", an_trainer_open(&trainer, r->ctx, path)) &&
        !rank_failed(r, "run", an_trainer_run(trainer, NULL, NULL)))
        rank_failed(r, "hash", an_trainer_state_hash(trainer, r->hash));
    an_trainer_destroy(&trainer);
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
        for (int count = 1; count <= MOST_RANKS; count++) {
            snprintf(folder, sizeof folder, "rm -rf run-%s", configs[i].name);
            assert_int_equal(system(folder), 0);
            run_ranks(ranks, count, train, (void *)(uintptr_t)&configs[i], NULL);
            for (int k = 0; k < count; k++) {
                if (*ranks[k].error) fail_msg("%s on %d ranks: %s", configs[i].name, count, ranks[k].error);
                if (count == 1) memcpy(expected, ranks[k].hash, sizeof expected);
                if (strcmp(expected, ranks[k].hash) != 0)
                    fail_msg("%s: rank %d of %d has %s, one process %s", configs[i].name, k, count, ranks[k].hash,
                             expected);
            }
        }
    }
}

/* What each rank sends in a step, to the byte, and what it holds. */
static void step(one_rank *r) {
    an_trainer *trainer = NULL;
    an_plan_traffic traffic;
    an_plan_memory memory;
    an_plan_traffic_init(&traffic, sizeof traffic);
    an_plan_memory_init(&memory, sizeof memory);
    const size_t before = an_context_bytes(r->ctx);
    if (rank_failed(r, "open", an_trainer_open(&trainer, r->ctx, "mlp.yaml")) ||
        rank_failed(r, "traffic", an_plan_traffic_get(an_trainer_plan(trainer), &traffic)) ||
        rank_failed(r, "memory", an_plan_memory_get(an_trainer_plan(trainer), &memory)))
        goto end;
    r->planned = memory.peak - memory.checkpoint;
    r->allocated = (int64_t)(an_context_bytes(r->ctx) - before);
    for (int i = 0; i < 12 && !*r->error; i++) { /* the sixth is short */
        const int64_t sent = r->messages.sent;
        if (rank_failed(r, "step", an_trainer_step(trainer, NULL))) break;
        if (r->messages.sent - sent != traffic.sent)
            snprintf(r->error, sizeof r->error, "rank %d: step %d sends %lld bytes, planned are %lld", r->comm.rank,
                     i + 1, (long long)(r->messages.sent - sent), (long long)traffic.sent);
    }
end:
    an_trainer_destroy(&trainer);
}

static void messages_and_memory_are_as_planned(void **state) {
    (void)state;
    one_rank ranks[MOST_RANKS];
    assert_int_equal(system("rm -rf run-mlp"), 0);
    for (int count = 2; count <= MOST_RANKS; count++) {
        run_ranks(ranks, count, step, NULL, NULL);
        for (int k = 0; k < count; k++) {
            if (*ranks[k].error) fail_msg("%d ranks: %s", count, ranks[k].error);
            if (ranks[k].planned != ranks[k].allocated)
                fail_msg("rank %d of %d has %lld bytes, planned are %lld", k, count, (long long)ranks[k].allocated,
                         (long long)ranks[k].planned);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_ranks_gives_one_hash),
        cmocka_unit_test(messages_and_memory_are_as_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
