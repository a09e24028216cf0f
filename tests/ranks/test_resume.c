/* Runs that stop and go on with another number of ranks, which read the checkpoint together: the state of an
 * undisturbed run. A damaged checkpoint is skipped by all ranks alike, for the one before it. */
#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "ranks/threads.h"

enum { FIRST = 3, STOP = 5, STEPS = 9 };

static const char config[] =
    "run: {dir: run-resumed, steps: 9, seed: 5}\nmodel: {type: mlp, hidden: [40, 30], batch_norm: on}\n"
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n"
    "batch: {global: 16, leaves: 8}\ntrain: {precision: f32}\nsave: {writers: 3, every: off}\n";

static void write_files(void) {
    FILE *file = fopen("sums.csv", "w");
    assert_non_null(file);
    fprintf(file, "a,b,sum\n");
    for (int i = 0; i < 64; i++)
        fprintf(file, "%.4f,%.4f,%.4f\n", i % 11 / 10.0, i % 7 / 6.0, i % 11 / 10.0 + i % 7 / 6.0);
    fclose(file);
    file = fopen("resumed.yaml", "w");
    assert_non_null(file);
    fputs(config, file);
    fclose(file);
}

/* What each rank is told, and what rank 0 saw. */
typedef struct {
    int64_t stop;      /* after this step */
    char resumed[256]; /* the checkpoint that it began with */
} leg;

/* Every run saves after the same steps. */
static bool is_saved(int64_t step) {
    return step == FIRST || step == STOP;
}

static void train(one_rank *r) {
    leg *l = r->user;
    an_trainer *t = NULL;
    if (rank_failed(r, "open", an_trainer_open(&t, r->ctx, "resumed.yaml", NULL))) return;
    if (r->comm.rank == 0 && an_trainer_resumed(t))
        snprintf(l->resumed, sizeof l->resumed, "%s", an_trainer_resumed(t));
    while (!*r->error && an_trainer_next_step(t) < l->stop) {
        rank_failed(r, "step", an_trainer_step(t, NULL));
        if (!*r->error && is_saved(an_trainer_next_step(t)))
            rank_failed(r, "save", an_trainer_save_over(t, an_trainer_next_step(t)));
    }
    if (!*r->error) rank_failed(r, "hash", an_trainer_state_hash(t, r->hash));
    an_trainer_destroy(&t);
}

static void run_leg(leg *l, int count, char hash[HASH_TEXT]) {
    static one_rank ranks[MOST_RANKS];
    run_ranks(ranks, count, train, l, NULL);
    for (int i = 0; i < count; i++) {
        if (*ranks[i].error) fail_msg("%d ranks: %s", count, ranks[i].error);
        assert_string_equal(ranks[i].hash, ranks[0].hash);
    }
    memcpy(hash, ranks[0].hash, HASH_TEXT);
}

static void forget(void) {
    assert_int_equal(system("rm -rf run-resumed"), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

static void another_number_of_ranks_goes_on(void **state) {
    static const int counts[] = {1, 2, 3, 5, 8};
    enum { COUNTS = sizeof counts / sizeof *counts };
    char expected[HASH_TEXT], hash[HASH_TEXT];
    (void)state;
    write_files();
    forget();
    run_leg(&(leg){.stop = STEPS}, 1, expected);
    for (int i = 0; i < COUNTS; i++) {
        leg first = {.stop = STOP}, second = {.stop = STEPS};
        forget();
        run_leg(&first, counts[i], hash);
        run_leg(&second, counts[(i + 2) % COUNTS], hash);
        assert_non_null(strstr(second.resumed, "step-00000005"));
        assert_string_equal(hash, expected);
    }
}

/* A byte of the newest checkpoint is another one, in its last part, which rank 2 of 3 reads. */
static void a_damaged_checkpoint_is_skipped(void **state) {
    static const char path[] = "run-resumed/checkpoints/step-00000005-1-at-5/part-00002.safetensors";
    char expected[HASH_TEXT], hash[HASH_TEXT];
    leg first = {.stop = STOP}, second = {.stop = STEPS};
    (void)state;
    write_files();
    forget();
    run_leg(&(leg){.stop = STEPS}, 1, expected);
    forget();
    run_leg(&first, 2, hash);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    fputc(byte ^ 4, file);
    fclose(file);
    run_leg(&second, 3, hash);
    assert_non_null(strstr(second.resumed, "step-00000003"));
    assert_string_equal(hash, expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_number_of_ranks_goes_on),
        cmocka_unit_test(a_damaged_checkpoint_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
