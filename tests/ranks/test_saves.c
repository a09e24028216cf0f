/* Checkpoints that W files make and P ranks write, of runs by themselves and in callbacks: read by any other number of
 * ranks, equal to those of one process, with memory as planned.
 *
 * RANKS_SHARD is a list of strategies (ranks.shard), each of which is to do all of this. */
#include <dirent.h>
#include <stdlib.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "anneal/run.h"
#include "ranks/threads.h"
#include "run/saver.h"
#include "store/stream.h"

#define FOLDER "run-saves"
#define FOLDER_OF_CHECKPOINTS FOLDER "/checkpoints"
enum {
    STOP = 4,
    STEPS = 6,
    FEW_BYTES = 128 << 10
}; /* of lists and texts that a saver of this small model has beside its image */

static const int counts[] = {1, 2, 3, 8};
static const int64_t writers[] = {1, 2, 3, 8};
enum { COUNTS = sizeof counts / sizeof *counts, WRITERS = sizeof writers / sizeof *writers };

typedef struct {
    const char
        *shard; /* the strategy; NULL: the config does not say. By hybrid, an even number of ranks is on two hosts */
    int64_t writers; /* 0: auto */
    int64_t stop;    /* the run ends after this step, with a save; 0: it only begins */
    bool direct;     /* saves are written without a copy of the state, as if there were no memory for one */
    char resumed[256];
    int files[MOST_RANKS]; /* that each rank has */
} leg;

static void write_data(void) {
    FILE *file = fopen("saves.csv", "w");
    assert_non_null(file);
    fprintf(file, "a,b,sum\n");
    for (int i = 0; i < 64; i++)
        fprintf(file, "%.4f,%.4f,%.4f\n", i % 11 / 10.0, i % 7 / 6.0, i % 11 / 10.0 + i % 7 / 6.0);
    fclose(file);
}

static void write_config(const leg *l) {
    char several[32] = "auto";
    FILE *file = fopen("saves.yaml", "w");
    assert_non_null(file);
    if (l->writers) snprintf(several, sizeof several, "%lld", (long long)l->writers);
    fprintf(file,
            "run: {dir: " FOLDER ", steps: %d, seed: 5}\nmodel: {type: mlp, hidden: [70, 60], batch_norm: on}\n"
            "data: {train: {type: csv, path: saves.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n"
            "batch: {global: 16, leaves: 8}\ntrain: {precision: f32}\nsave: {writers: %s, every: 2 steps}\n",
            STEPS, several);
    if (l->shard) fprintf(file, "ranks: {shard: %s}\n", l->shard);
    fclose(file);
}

/* ---- what each rank does ---- */

static an_status after_step(void *user, an_trainer *t) {
    const leg *l = user;
    if (an_trainer_next_step(t) == l->stop) an_trainer_request_stop(t);
    return AN_OK;
}

/* The image is in the plan, to the byte. What a saver has beside it is small. */
static void check_memory(one_rank *r, an_trainer *t, size_t before) {
    const an_saver *s = t->run->saver;
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    if (rank_failed(r, "memory", an_plan_memory_get(an_trainer_plan(t), &memory))) return;
    if (s && t->saving.directly)
        memory.checkpoint = (int64_t)an_save_window_bytes(s->job.layout, s->job.files, AN_SAVE_WINDOW);
    const int64_t beside = (int64_t)(an_context_bytes(r->ctx) - before) - memory.checkpoint;
    if (!s || (int64_t)s->memory_bytes != memory.checkpoint || beside < 0 || beside > FEW_BYTES)
        snprintf(r->error, sizeof r->error, "rank %d: a save took %lld bytes, and %lld beside them; planned are %lld",
                 r->comm.rank, s ? (long long)s->memory_bytes : -1, (long long)beside, (long long)memory.checkpoint);
}

static void train(one_rank *r) {
    leg *l = r->user;
    an_trainer *t = NULL;
    an_run_callbacks callbacks;
    an_run_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.after_step = after_step;
    callbacks.user = l;
    an_run_options options;
    if (rank_failed(r, "open", an_trainer_open(&t, r->ctx, "saves.yaml", NULL))) return;
    if (r->comm.rank == 0 && an_trainer_resumed(t))
        snprintf(l->resumed, sizeof l->resumed, "%s", an_trainer_resumed(t));
    const size_t before = an_context_bytes(r->ctx);
    t->saving.directly = l->direct;
    an_run_options_init(&options, sizeof options);
    if (l->stop && !rank_failed(r, "options", an_trainer_run_options(t, &options))) {
        options.callbacks = &callbacks;
        if (!rank_failed(r, "run", an_trainer_run(t, &options, NULL))) check_memory(r, t, before);
        if (t->run->saver)
            l->files[r->comm.rank] = (int)(t->run->saver->job.files.end - t->run->saver->job.files.begin);
    }
    if (!*r->error) rank_failed(r, "hash", an_trainer_state_hash(t, r->hash));
    an_trainer_destroy(&t);
}

static void run_leg(leg *l, int count, char hash[HASH_TEXT]) {
    static one_rank ranks[MOST_RANKS];
    const bool is_hybrid = l->shard && !strcmp(l->shard, "hybrid");
    write_config(l);
    run_ranks_on(ranks, count, is_hybrid && count % 2 == 0 ? count / 2 : 1, train, l, NULL);
    for (int i = 0; i < count; i++) {
        if (*ranks[i].error)
            fail_msg("%d ranks, %lld writers, %s: %s", count, (long long)l->writers, l->shard ? l->shard : "none",
                     ranks[i].error);
        assert_string_equal(ranks[i].hash, ranks[0].hash);
    }
    memcpy(hash, ranks[0].hash, HASH_TEXT);
}

static void forget(void) {
    assert_int_equal(system("rm -rf " FOLDER), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

/* Files of the checkpoint after step STOP; nothing unfinished is left. */
static int count_parts(void) {
    int parts = 0;
    const struct dirent *entry;
    DIR *folder = opendir(FOLDER_OF_CHECKPOINTS);
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        if (entry->d_name[0] != '.' && strncmp(entry->d_name, "step-", 5) != 0) fail_msg("%s is left", entry->d_name);
    closedir(folder);
    folder = opendir(FOLDER_OF_CHECKPOINTS "/step-00000004-1");
    assert_non_null(folder);
    while ((entry = readdir(folder))) parts += !strncmp(entry->d_name, "part-", 5);
    closedir(folder);
    return parts;
}

/* ---- tests ---- */

typedef struct {
    char stopped[HASH_TEXT], ended[HASH_TEXT]; /* after STOP, and at the end */
} hashes;

static void take_hashes(hashes *alone) {
    forget();
    run_leg(&(leg){.stop = STOP}, 1, alone->stopped);
    run_leg(&(leg){.stop = STEPS}, 1, alone->ended);
}

static const char *strategy_of(int count, const char *shard) {
    return count > 1 && strcmp(shard, "none") != 0 ? shard : NULL;
}

/* Written by counts[p] ranks in writers[w] files, and read by every number of ranks, which may divide the state
 * otherwise. */
static void check_checkpoint(const hashes *alone, int p, int w, const char *writing, const char *reading) {
    char hash[HASH_TEXT];
    leg first = {
        .shard = strategy_of(counts[p], writing), .writers = writers[w], .stop = STOP, .direct = (p + w) % 2 == 0};
    forget();
    run_leg(&first, counts[p], hash);
    assert_string_equal(hash, alone->stopped);
    assert_int_equal(count_parts(), writers[w]);
    for (int rank = 0; rank < counts[p]; rank++) {
        const an_file_range files = an_route_files((size_t)writers[w], rank, counts[p]);
        assert_int_equal(first.files[rank], files.end - files.begin);
    }
    for (int other = 0; other < COUNTS; other++) { /* the last one goes on, with another number of files */
        leg next = {.shard = strategy_of(counts[other], reading),
                    .writers = other == COUNTS - 1 ? writers[(w + 1) % WRITERS] : writers[w],
                    .stop = other == COUNTS - 1 ? STEPS : 0};
        run_leg(&next, counts[other], hash);
        assert_non_null(strstr(next.resumed, "step-00000004"));
        assert_string_equal(hash, next.stop ? alone->ended : alone->stopped);
    }
}

/* All strategies of the list with all numbers. Without one, strategies take turns. */
static void any_number_writes_and_any_number_reads(void **state) {
    static const char *const strategies[] = {"none", "optimizer", "gradients", "full", "hybrid"};
    enum { STRATEGIES = sizeof strategies / sizeof *strategies };
    const char *list = getenv("RANKS_SHARD");
    char names[256];
    hashes alone;
    (void)state;
    take_hashes(&alone);
    snprintf(names, sizeof names, "%s", list ? list : "");
    for (char *rest = names, *name = strtok_r(rest, " ,", &rest); name; name = strtok_r(NULL, " ,", &rest))
        for (int i = 0; i < COUNTS * WRITERS; i++) check_checkpoint(&alone, i / WRITERS, i % WRITERS, name, name);
    for (int i = 0; !*names && i < COUNTS * WRITERS; i++)
        check_checkpoint(&alone, i / WRITERS, i % WRITERS, strategies[i % STRATEGIES],
                         strategies[(i + 1) % STRATEGIES]);
}

static void each_rank_has_a_file(void **state) {
    char hash[HASH_TEXT];
    (void)state;
    for (int p = 0; p < COUNTS; p++) {
        leg l = {.stop = STOP};
        forget();
        run_leg(&l, counts[p], hash);
        assert_int_equal(count_parts(), counts[p]);
        for (int rank = 0; rank < counts[p]; rank++) assert_int_equal(l.files[rank], 1);
    }
}

static int setup(void **state) {
    (void)state;
    write_data();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_writes_and_any_number_reads),
        cmocka_unit_test(each_rank_has_a_file),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
