/* Metrics and weights of classes on several ranks, and the accuracy of tokens: counts, scores and weights of all of
 * them, with the bits of one process. The ranks are threads. */
#include <math.h>

#include "anneal/details.h"
#include "anneal/open.h"
#include "anneal/run.h"
#include "ranks/threads.h"
#include "train/trainer.h"

static const char of_classes[] =
    "run: {dir: run-%d-%s, steps: 6, seed: 5}\nmodel: {type: mlp, hidden: [24]}\n"
    "data: {train: {type: csv, path: sides.csv, classes: on, part: 0%%..60%%},\n"
    "       eval: {type: csv, path: sides.csv, classes: on, part: 60%%..100%%}, threads: 0,\n"
    "       class_weights: balanced}\n"
    "batch: {global: 16, leaves: 8, micro: 2}\ntrain: {precision: f32}\nsave: {every: off}\nranks: {shard: %s}\n"
    "optimizer: {lr: 1e-2}\neval: {every: 2 steps, metrics: [loss, precision, recall, f1, auc], best: val_auc}\n";

static const char of_labels[] =
    "run: {dir: labels-%d-%s, steps: 6, seed: 5}\nmodel: {type: mlp, hidden: [24], loss: binary_cross_entropy}\n"
    "data: {train: {type: csv, path: sides.csv, targets: [side, b_is_3], part: 0%%..60%%},\n"
    "       eval: {type: csv, path: sides.csv, targets: [side, b_is_3], part: 60%%..100%%}, threads: 0}\n"
    "batch: {global: 16, leaves: 8, micro: 2}\ntrain: {precision: f32}\nsave: {every: off}\nranks: {shard: %s}\n"
    "optimizer: {lr: 1e-2}\neval: {every: 2 steps, metrics: [loss, precision, recall, f1, auc], best: val_auc}\n";

static const char of_tokens[] =
    "run: {dir: words-%d-%s, steps: 6, seed: 5}\nmodel: {type: gpt2, layers: 1, heads: 2, width: 16, context: 8, "
    "dropout: 0}\n"
    "data: {train: {type: text, path: words.txt, tokens: chars, part: 0%%..60%%},\n"
    "       eval: {type: text, path: words.txt, tokens: chars, part: 60%%..100%%}, threads: 0}\n"
    "batch: {global: 16, leaves: 8, micro: 2}\ntrain: {precision: f32}\nsave: {every: off}\nranks: {shard: %s}\n"
    "optimizer: {lr: 1e-2}\neval: {every: 2 steps, best: val_accuracy}\n";

enum { ROWS = 500, CLASSES = 2, POINTS = 300 };

/* Inputs have few values, so that many scores are equal. */
static void write_table(bool labels) {
    FILE *file = fopen("sides.csv", "w");
    assert_non_null(file);
    fprintf(file, labels ? "a,b,side,b_is_3\n" : "a,b,side\n");
    for (int i = 0; i < ROWS; i++) {
        const double a = (int)(4 * noise((uint64_t)i)), b = (int)(4 * noise((uint64_t)i + 700));
        fprintf(file, "%g,%g,%d", a, b, a + b + 3 * noise((uint64_t)i + 1400) > 0.5);
        fprintf(file, labels ? ",%d\n" : "\n", b > 2);
    }
    fclose(file);
}

static void write_words(void) {
    static const char *const words[] = {"one ", "two ", "three ", "four "};
    FILE *file = fopen("words.txt", "w");
    assert_non_null(file);
    for (int i = 0; i < ROWS; i++) fprintf(file, "%s", words[(int)(4 * noise((uint64_t)i + 3)) & 3]);
    fclose(file);
}

typedef struct {
    char name[64];
    bool tokens, labels;
    an_label_metrics each[MOST_RANKS][CLASSES]; /* of labels */
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
    if (rank_failed(r, "open", an_trainer_open(&t, r->ctx, l->name, NULL))) return;
    rank_failed(r, "run", an_trainer_run(t, NULL, NULL));
    if (!*r->error) rank_failed(r, "evaluation", an_trainer_evaluation(t, e));
    for (int i = 0; i < CLASSES && !*r->error && l->labels; i++) {
        an_label_metrics_init(&l->each[rank][i], sizeof l->each[rank][i]);
        rank_failed(r, "labels", an_trainer_label_metrics(t, i, &l->each[rank][i]));
    }
    for (int i = 0; i < CLASSES * CLASSES && !*r->error && !l->tokens && !l->labels; i++)
        rank_failed(r, "counts",
                    an_trainer_confusion(t, i / CLASSES, i % CLASSES, &l->confusion[rank][i / CLASSES][i % CLASSES]));
    if (rank == 0 && !*r->error && !l->tokens && !l->labels)
        rank_failed(r, "curve", an_trainer_roc(t, POINTS, l->curve, &l->points));
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
    fprintf(file, l->tokens ? of_tokens : l->labels ? of_labels : of_classes, count, shard, shard);
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
    write_table(false);
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

static void test_labels(void **state) {
    (void)state;
    static leg alone = {.labels = true}, l;
    char first[HASH_TEXT], hash[HASH_TEXT];
    write_table(true);
    run_leg(&alone, 1, "none", first);
    assert_true(alone.evaluations[0].auc == (alone.each[0][0].auc + alone.each[0][1].auc) / 2);
    assert_true(alone.each[0][1].targets > 0 && alone.each[0][1].samples == ROWS - ROWS * 6 / 10);
    for (int count = 2; count <= 4; count += 2) {
        l = (leg){.labels = true};
        run_leg(&l, count, "full", hash);
        assert_string_equal(hash, first);
        for (int rank = 0; rank < count; rank++) assert_memory_equal(l.each[rank], alone.each[0], sizeof l.each[rank]);
    }
}

/* ---- scores alone ---- */

enum { EACH = 7, ROOM = MOST_RANKS * EACH };

typedef struct {
    int undefined; /* the rank that has a NaN; -1: none */
    int64_t room;  /* of rank 0 */
    an_status status;
    double area;
    int64_t positive, negative;
} gathered;

static double score_of(int rank, int i) {
    return (rank * 5 + i * 3) % 8;
}

static bool is_positive(int rank, int i) {
    return (rank + i) % 3 == 0;
}

static void gather(one_rank *r) {
    gathered *g = r->user;
    double values[ROOM];
    const int rank = r->comm.rank;
    an_trainer t = {.ctx = r->ctx, .rank = rank, .ranks = r->comm.ranks};
    an_scores s = {.values = values, .room = rank == 0 ? g->room : EACH};
    an_scores_clear(&s);
    for (int i = 0; i < EACH; i++)
        an_scores_add(&s, is_positive(rank, i), rank == g->undefined && i == 2 ? NAN : score_of(rank, i));
    const an_status status = an_scores_gather(&s, &t);
    if (rank > 0) return;
    an_scores_sort(&s);
    g->status = status;
    g->area = an_scores_area(&s);
    g->positive = s.positive;
    g->negative = s.negative;
}

static gathered gather_on(int count, int undefined, int64_t room) {
    static one_rank ranks[MOST_RANKS];
    gathered g = {.undefined = undefined, .room = room};
    run_ranks_on(ranks, count, 1, gather, &g, NULL);
    return g;
}

/* By all pairs of scores of all ranks. */
static double area_of(int count) {
    double sum = 0;
    int pairs = 0;
    for (int a = 0; a < count * EACH; a++)
        for (int b = 0; b < count * EACH; b++) {
            if (!is_positive(a / EACH, a % EACH) || is_positive(b / EACH, b % EACH)) continue;
            const double high = score_of(a / EACH, a % EACH), low = score_of(b / EACH, b % EACH);
            sum += high > low ? 1 : high == low ? 0.5 : 0;
            pairs++;
        }
    return sum / pairs;
}

static void test_scores_of_all_ranks(void **state) {
    (void)state;
    for (int count = 1; count <= MOST_RANKS; count++) {
        gathered g = gather_on(count, -1, count * EACH);
        assert_int_equal(g.status, AN_OK);
        assert_int_equal(g.positive + g.negative, count * EACH);
        if (!(fabs(g.area - area_of(count)) < 1e-14)) fail_msg("%d ranks: %g is not %g", count, g.area, area_of(count));
        for (int rank = 0; rank < count; rank++) assert_true(isnan(gather_on(count, rank, count * EACH).area));
        /* what a rank sends is not believed */
        if (count > 1) assert_int_equal(gather_on(count, -1, count * EACH - 1).status, AN_ERR_STATE);
    }
}

static void test_accuracy_of_tokens(void **state) {
    (void)state;
    static const char *const shards[] = {"none", "full"};
    static leg alone, l;
    char first[HASH_TEXT], hash[HASH_TEXT];
    write_words();
    alone.tokens = true;
    run_leg(&alone, 1, "none", first);
    const an_evaluation *e = &alone.evaluations[0];
    assert_true(e->counts_right && !e->classifies && e->accuracy > 0.1 && e->accuracy < 1);
    for (int count = 2; count <= 4; count++)
        for (int s = 0; s < 2; s++) {
            l = (leg){.tokens = true};
            run_leg(&l, count, shards[s], hash);
            assert_string_equal(hash, first);
            for (int rank = 0; rank < count; rank++) assert_true(l.evaluations[rank].accuracy == e->accuracy);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_one_process),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_scores_of_all_ranks),
        cmocka_unit_test(test_accuracy_of_tokens),
    };
    if (system("rm -rf run-* words-* labels-*") != 0) return 1; /* of an earlier test */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
