/* Metrics and weights of classes on several ranks: counts, scores and weights of all of them, with the bits of one process. The ranks are threads. */
#include "anneal/details.h"
#include "anneal/open.h"
#include "anneal/run.h"
#include "ranks/threads.h"

static const char config[] =
    "run: {dir: run-%d-%s, steps: 6, seed: 5}\nmodel: {type: mlp, hidden: [24]}\n"
    "data: {train: {type: csv, path: sides.csv, classes: on, part: 0%%..60%%},\n"
    "       eval: {type: csv, path: sides.csv, classes: on, part: 60%%..100%%}, threads: 0,\n"
    "       class_weights: balanced}\n"
    "batch: {global: 16, leaves: 8, micro: 2}\ntrain: {precision: f32}\nsave: {every: off}\nranks: {shard: %s}\n"
    "optimizer: {lr: 1e-2}\neval: {every: 2 steps, metrics: [loss, precision, recall, f1, auc], best: val_auc}\n";

enum { ROWS = 500, CLASSES = 2, POINTS = 300 };

/* Inputs have few values, so that many scores are equal. */
static void write_table(void) {
    FILE *file = fopen("sides.csv", "w");
    assert_non_null(file);
    fprintf(file, "a,b,side\n");
    for (int i = 0; i < ROWS; i++) {
        const double a = (int)(4 * noise((uint64_t)i)), b = (int)(4 * noise((uint64_t)i + 700));
        fprintf(file, "%g,%g,%d\n", a, b, a + b + 3 * noise((uint64_t)i + 1400) > 0.5);
    }
    fclose(file);
}

typedef struct {
    char name[64];
    int64_t confusion[MOST_RANKS][CLASSES][CLASSES];
    an_evaluation evaluations[MOST_RANKS];
    an_roc_point curve[POINTS];
    int64_t points;
} leg;

static void train(one_rank *r) {
    leg *l = r->user;
    const int rank = r->comm.rank;
    an_trainer *t = NULL;
    an_evaluation *e = &l->evaluations[rank];
    an_roc_point none[2];
    int64_t count;
    an_evaluation_init(e, sizeof *e);
    if (rank_failed(r, "open", an_trainer_open(&t, r->ctx, l->name))) return;
    rank_failed(r, "run", an_trainer_run(t, NULL, NULL));
    if (!*r->error) rank_failed(r, "evaluation", an_evaluation_get(t, e));
    for (int i = 0; i < CLASSES * CLASSES && !*r->error; i++)
        rank_failed(r, "counts",
                    an_trainer_confusion(t, i / CLASSES, i % CLASSES, &l->confusion[rank][i / CLASSES][i % CLASSES]));
    if (rank == 0 && !*r->error) rank_failed(r, "curve", an_trainer_roc(t, POINTS, l->curve, &l->points));
    if (rank > 0 && !*r->error && an_trainer_roc(t, 2, none, &count) != AN_ERR_STATE)
        snprintf(r->error, sizeof r->error, "a rank that is not the first has a curve");
    if (!*r->error) rank_failed(r, "hash", an_trainer_state_hash(t, r->hash));
    an_trainer_destroy(&t);
}

static void run_leg(leg *l, int count, const char *shard, char hash[HASH_TEXT]) {
    static one_rank ranks[MOST_RANKS];
    snprintf(l->name, sizeof l->name, "%d-%s.yaml", count, shard);
    FILE *file = fopen(l->name, "w");
    assert_non_null(file);
    fprintf(file, config, count, shard, shard);
    fclose(file);
    run_ranks_on(ranks, count, 1, train, l, NULL);
    for (int i = 0; i < count; i++)
        if (*ranks[i].error) fail_msg("%s: %s", l->name, ranks[i].error);
    memcpy(hash, ranks[0].hash, HASH_TEXT);
}

static void test_bits_of_one_process(void **state) {
    (void)state;
    static const char *const shards[] = {"none", "full"};
    static leg alone, l;
    char first[HASH_TEXT], hash[HASH_TEXT];
    write_table();
    run_leg(&alone, 1, "none", first);
    const an_evaluation *e = &alone.evaluations[0];
    assert_true(e->counts_classes && e->scores_classes && e->auc > 0.6 && e->auc < 1);
    for (int count = 2; count <= 4; count++)
        for (int s = 0; s < 2; s++) {
            l = (leg){0};
            run_leg(&l, count, shards[s], hash);
            assert_string_equal(hash, first);
            for (int rank = 0; rank < count; rank++) {
                const an_evaluation *other = &l.evaluations[rank];
                assert_true(other->precision == e->precision && other->recall == e->recall && other->f1 == e->f1 &&
                            other->auc == e->auc);
                assert_memory_equal(l.confusion[rank], alone.confusion[0], sizeof l.confusion[rank]);
            }
            assert_int_equal(l.points, alone.points);
            assert_memory_equal(l.curve, alone.curve, (size_t)l.points * sizeof *l.curve);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits_of_one_process)};
    if (system("rm -rf run-*") != 0) return 1; /* of an earlier test */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
