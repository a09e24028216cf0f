/* data.normalize on several ranks, by every strategy, and from a checkpoint on other ranks: the bits of one
 * process. The ranks are threads. */
#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "ranks/threads.h"

enum { STOP = 4, STEPS = 9 };

static const char config[] =
    "run: {dir: run-%s, steps: 9, seed: 5}\nmodel: {type: mlp, hidden: [40, 30], batch_norm: on}\n"
    "data: {train: {type: csv, path: units.csv, part: 0%%..80%%}, eval: {type: csv, path: units.csv, part: "
    "80%%..100%%}, "
    "normalize: {inputs: standard, targets: range, fit: first 300 samples}, threads: 0}\n"
    "batch: {global: 16, leaves: 8}\ntrain: {precision: %s, recompute: %s}\nsave: {writers: 2, every: off}\n"
    "ranks: {shard: %s}\n";

static void write_table(void) {
    FILE *file = fopen("units.csv", "w");
    assert_non_null(file);
    fprintf(file, "a,b,y\n");
    for (int i = 0; i < 500; i++)
        fprintf(file, "%.4f,%.9f,%.4f\n", 1e5 * noise((uint64_t)i), 1e-3 * noise((uint64_t)i + 700),
                50 + noise((uint64_t)i) + noise((uint64_t)i + 700));
    fclose(file);
}

typedef struct {
    char name[64];
    int64_t stop;
    double mae;
} leg;

static void train(one_rank *r) {
    leg *l = r->user;
    an_trainer *t = NULL;
    an_evaluation e;
    an_evaluation_init(&e, sizeof e);
    if (rank_failed(r, "open", an_trainer_open(&t, r->ctx, l->name, NULL))) return;
    while (!*r->error && an_trainer_next_step(t) < l->stop) {
        rank_failed(r, "step", an_trainer_step(t, NULL));
        if (!*r->error && an_trainer_next_step(t) == STOP) rank_failed(r, "save", an_trainer_save_over(t, STOP));
    }
    if (!*r->error) rank_failed(r, "evaluate", an_trainer_evaluate(t, &e));
    if (!*r->error) rank_failed(r, "hash", an_trainer_state_hash(t, r->hash));
    if (r->comm.rank == 0) l->mae = e.mean_absolute_error;
    an_trainer_destroy(&t);
}

static void run_leg(leg *l, int count, char hash[HASH_TEXT]) {
    static one_rank ranks[MOST_RANKS];
    run_ranks_on(ranks, count, count > 2 ? count / 2 : 1, train, l, NULL);
    for (int i = 0; i < count; i++) {
        if (*ranks[i].error) fail_msg("%s, %d ranks: %s", l->name, count, ranks[i].error);
        assert_string_equal(ranks[i].hash, ranks[0].hash);
    }
    memcpy(hash, ranks[0].hash, HASH_TEXT);
}

static void write_config(leg *l, const char *name, const char *precision, const char *recompute, const char *shard) {
    snprintf(l->name, sizeof l->name, "%s.yaml", name);
    FILE *file = fopen(l->name, "w");
    assert_non_null(file);
    fprintf(file, config, name, precision, recompute, shard);
    fclose(file);
}

static void test_one_hash(void **state) {
    (void)state;
    static const char *const precisions[] = {"f32", "bf16"};
    static const char *const shards[] = {"none", "optimizer", "gradients", "full"};
    static const int counts[] = {2, 4};
    write_table();
    for (int p = 0; p < 2; p++) {
        leg alone = {.stop = STEPS};
        char first[HASH_TEXT], hash[HASH_TEXT], name[64];
        snprintf(name, sizeof name, "alone-%d", p);
        write_config(&alone, name, precisions[p], "none", "none");
        run_leg(&alone, 1, first);
        for (int s = 0; s < 4; s++)
            for (int c = 0; c < 2; c++) {
                leg l = {.stop = STOP};
                snprintf(name, sizeof name, "leg-%d-%d-%d", p, s, counts[c]);
                write_config(&l, name, precisions[p], s % 2 ? "block" : "none", shards[s]);
                run_leg(&l, counts[c], hash);
                l.stop = STEPS; /* goes on with others */
                run_leg(&l, counts[1 - c], hash);
                assert_string_equal(hash, first);
                assert_true(l.mae == alone.mae);
            }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_hash)};
    if (system("rm -rf run-*") != 0) return 1; /* of an earlier test */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
