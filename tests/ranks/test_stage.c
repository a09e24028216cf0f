/* Checkpoints that several ranks write to a fast folder first (save.stage), under every strategy: the run ends with
 * the state of one process, and goes on from the staged copy where that is the newest. */
#include <dirent.h>
#include <stdlib.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "anneal/run.h"
#include "ranks/threads.h"

#define FOLDER "run-stage"
#define STAGE "stage"
enum { STOP = 4, STEPS = 6 };

typedef struct {
    const char *shard;
    int64_t stop; /* the run ends after this step, with a save */
    char resumed[256];
} leg;

static void write_data(void) {
    FILE *file = fopen("stage.csv", "w");
    assert_non_null(file);
    fprintf(file, "a,b,sum\n");
    for (int i = 0; i < 64; i++)
        fprintf(file, "%.4f,%.4f,%.4f\n", i % 11 / 10.0, i % 7 / 6.0, i % 11 / 10.0 + i % 7 / 6.0);
    fclose(file);
}

static void write_config(const leg *l) {
    FILE *file = fopen("stage.yaml", "w");
    assert_non_null(file);
    fprintf(file,
            "run: {dir: " FOLDER ", steps: %d, seed: 5}\nmodel: {type: mlp, hidden: [70, 60], batch_norm: on}\n"
            "data: {train: {type: csv, path: stage.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n"
            "batch: {global: 16, leaves: 8}\ntrain: {precision: f32}\nsave: {every: 2 steps, stage: " STAGE "}\n"
            "ranks: {shard: %s}\n",
            STEPS, l->shard);
    fclose(file);
}

static an_status after_step(void *user, an_trainer *t) {
    const leg *l = user;
    if (an_trainer_next_step(t) == l->stop) an_trainer_request_stop(t);
    return AN_OK;
}

static void train(one_rank *r) {
    leg *l = r->user;
    an_trainer *t = NULL;
    an_run_callbacks callbacks;
    an_run_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.after_step = after_step;
    callbacks.user = l;
    an_run_options options;
    an_run_options_init(&options, sizeof options);
    if (rank_failed(r, "open", an_trainer_open(&t, r->ctx, "stage.yaml", NULL))) return;
    if (r->comm.rank == 0 && an_trainer_resumed(t))
        snprintf(l->resumed, sizeof l->resumed, "%s", an_trainer_resumed(t));
    if (!rank_failed(r, "options", an_trainer_run_options(t, &options))) {
        options.callbacks = &callbacks;
        if (!rank_failed(r, "run", an_trainer_run(t, &options, NULL)))
            rank_failed(r, "hash", an_trainer_state_hash(t, r->hash));
    }
    an_trainer_destroy(&t);
}

static void run_leg(leg *l, int count, char hash[HASH_TEXT]) {
    one_rank ranks[MOST_RANKS];
    write_config(l);
    run_ranks(ranks, count, train, l, NULL);
    for (int i = 0; i < count; i++) {
        if (*ranks[i].error) fail_msg("%d ranks, %s: %s", count, l->shard, ranks[i].error);
        assert_string_equal(ranks[i].hash, ranks[0].hash);
    }
    memcpy(hash, ranks[0].hash, HASH_TEXT);
}

static void shell(const char *command) {
    if (system(command) != 0) fail_msg("%s", command); /* NOLINT(cert-env33-c): the test's own folders */
}

static void forget(void) {
    shell("rm -rf " FOLDER " " STAGE " && mkdir " STAGE);
}

/* Parts of the checkpoint of step STOP in a folder. */
static int count_parts(const char *folder) {
    char path[600];
    int parts = 0;
    const struct dirent *entry;
    snprintf(path, sizeof path, "%s/step-00000004-1", folder);
    DIR *checkpoint = opendir(path);
    if (!checkpoint) return 0;
    while ((entry = readdir(checkpoint))) parts += !strncmp(entry->d_name, "part-", 5);
    closedir(checkpoint);
    return parts;
}

/* The run's own folder in the fast one. */
static void find_stage(char path[512]) {
    const struct dirent *entry;
    DIR *folder = opendir(STAGE);
    assert_non_null(folder);
    *path = 0;
    while ((entry = readdir(folder)))
        if (!strncmp(entry->d_name, "anneal-", 7)) snprintf(path, 512, STAGE "/%s", entry->d_name);
    closedir(folder);
    if (!*path) fail_msg("nothing was staged");
}

static void staged_by_ranks(void **state) {
    (void)state;
    static const char *const shards[] = {"none", "optimizer", "gradients", "full"};
    char stopped[HASH_TEXT], ended[HASH_TEXT], hash[HASH_TEXT], stage[512];
    write_data();
    forget();
    run_leg(&(leg){.shard = "none", .stop = STOP}, 1, stopped);
    run_leg(&(leg){.shard = "none", .stop = STEPS}, 1, ended);
    for (int s = 0; s < 4; s++)
        for (int count = 2; count <= 3; count++) {
            forget();
            run_leg(&(leg){.shard = shards[s], .stop = STOP}, count, hash);
            assert_string_equal(hash, stopped);
            find_stage(stage);
            assert_int_equal(count_parts(stage), count);
            assert_int_equal(count_parts(FOLDER "/checkpoints"), count);
            shell("rm -r " FOLDER "/checkpoints/step-00000004-1"); /* as if it had not got there */
            leg next = {.shard = shards[(s + 1) % 4], .stop = STEPS};
            run_leg(&next, 5 - count, hash);
            if (!strstr(next.resumed, STAGE "/") || !strstr(next.resumed, "step-00000004"))
                fail_msg("%s on %d ranks: it went on from '%s'", shards[s], count, next.resumed);
            assert_string_equal(hash, ended);
        }
}

/* A fast folder that cannot be written to is no reason to end: checkpoints get to where they belong. */
static void a_stage_that_fails(void **state) {
    (void)state;
    char hash[HASH_TEXT];
    write_data();
    forget();
    shell("rm -r " STAGE " && : >" STAGE);
    run_leg(&(leg){.shard = "full", .stop = STOP}, 3, hash);
    assert_int_equal(count_parts(FOLDER "/checkpoints"), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(staged_by_ranks),
        cmocka_unit_test(a_stage_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
