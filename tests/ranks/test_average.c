/* The moving average of the weights on several ranks: the hash of one process for every strategy, also after runs that
 * stop and go on with other ranks. The ranks are threads. */
#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "anneal/run.h"
#include "ranks/threads.h"

static const char config[] =
    "run: {dir: run-average, steps: 6, seed: 5}\nmodel: {type: gpt2, layers: 2, heads: 2, width: 32, context: 8}\n"
    "data: {train: {type: text, path: words.txt, tokens: chars, part: 0%%..80%%},\n"
    "       eval: {type: text, path: words.txt, tokens: chars, part: 80%%..100%%}, threads: 0}\n"
    "batch: {global: 8, leaves: 4, micro: 2}\ntrain: {precision: %s, ema: 0.8}\n"
    "save: {every: 3 steps, writers: 3}\nranks: {shard: %s}\n"
    "optimizer: {lr: 1e-2}\neval: {every: 2 steps, best: val_loss}\n";

enum { LETTERS = 2000, STEPS = 6, STOP = 3 };

static void write_words(void) {
    FILE *file = fopen("words.txt", "w");
    assert_non_null(file);
    for (int i = 0; i < LETTERS; i++) fputc(i % 7 == 6 ? ' ' : 'a' + i * i % 11, file);
    fclose(file);
}

typedef struct {
    int64_t stop; /* after this step */
    bool resumed;
    double loss; /* of the last evaluation */
} leg;

static an_status end_run(void *user, an_trainer *t) {
    const leg *l = user;
    if (l->stop < STEPS && an_trainer_next_step(t) == l->stop) an_trainer_request_stop(t);
    return AN_OK;
}

static void train(one_rank *r) {
    leg *l = r->user;
    an_trainer *t = NULL;
    an_evaluation e;
    an_evaluation_init(&e, sizeof e);
    an_run_callbacks callbacks;
    an_run_callbacks_init(&callbacks, sizeof callbacks);
    an_run_options options;
    an_run_options_init(&options, sizeof options);
    callbacks.after_step = end_run;
    callbacks.user = l;
    if (rank_failed(r, "open", an_trainer_open(&t, r->ctx, "average.yaml", NULL))) return;
    if (r->comm.rank == 0) l->resumed = an_trainer_resumed(t) != NULL;
    if (!rank_failed(r, "options", an_trainer_run_options(t, &options))) {
        options.callbacks = &callbacks;
        rank_failed(r, "run", an_trainer_run(t, &options, NULL));
    }
    if (!*r->error) rank_failed(r, "evaluation", an_trainer_evaluation(t, &e));
    if (!*r->error && r->comm.rank == 0) l->loss = e.loss;
    if (!*r->error) rank_failed(r, "hash", an_trainer_state_hash(t, r->hash));
    an_trainer_destroy(&t);
}

static void run_leg(leg *l, const char *precision, const char *shard, int count, int host_ranks, char hash[HASH_TEXT]) {
    static one_rank ranks[MOST_RANKS];
    FILE *file = fopen("average.yaml", "w");
    assert_non_null(file);
    fprintf(file, config, precision, shard);
    fclose(file);
    run_ranks_on(ranks, count, host_ranks, train, l, NULL);
    for (int i = 0; i < count; i++) {
        if (*ranks[i].error) fail_msg("%s, %d ranks, %s: %s", precision, count, shard, ranks[i].error);
        assert_string_equal(ranks[i].hash, ranks[0].hash);
    }
    memcpy(hash, ranks[0].hash, HASH_TEXT);
}

static void forget(void) {
    assert_int_equal(system("rm -rf run-average"), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

static const struct {
    const char *shard;
    int ranks, host_ranks;
} ways[] = {{"none", 2, 1},      {"none", 4, 2}, {"optimizer", 2, 2}, {"optimizer", 4, 1},
            {"gradients", 2, 1}, {"full", 2, 2}, {"full", 4, 1},      {"hybrid", 4, 2}};
enum { WAYS = sizeof ways / sizeof *ways };

static void check_precision(const char *precision) {
    char expected[HASH_TEXT], hash[HASH_TEXT];
    leg alone = {.stop = STEPS};
    forget();
    run_leg(&alone, precision, "none", 1, 1, expected);
    for (int i = 0; i < WAYS; i++) {
        const int next = (i + 3) % WAYS; /* and other ranks go on */
        leg whole = {.stop = STEPS}, first = {.stop = STOP}, second = {.stop = STEPS};
        forget();
        run_leg(&whole, precision, ways[i].shard, ways[i].ranks, ways[i].host_ranks, hash);
        if (strcmp(hash, expected) != 0)
            fail_msg("%s, %d ranks, %s: another hash", precision, ways[i].ranks, ways[i].shard);
        assert_true(whole.loss == alone.loss);
        forget();
        run_leg(&first, precision, ways[i].shard, ways[i].ranks, ways[i].host_ranks, hash);
        run_leg(&second, precision, ways[next].shard, ways[next].ranks, ways[next].host_ranks, hash);
        assert_true(second.resumed);
        if (strcmp(hash, expected) != 0)
            fail_msg("%s: %d ranks, %s, go on as %d, %s: another hash", precision, ways[i].ranks, ways[i].shard,
                     ways[next].ranks, ways[next].shard);
        assert_true(second.loss == alone.loss);
    }
}

static void test_bits_of_one_process(void **state) {
    (void)state;
    write_words();
    check_precision("f32");
    check_precision("bf16");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits_of_one_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
