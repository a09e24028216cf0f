/* Mistakes of programs on several ranks that docs/traps.md tells of: ranks that do not do the same. The ranks are
 * threads. */
#include <time.h>

#include "anneal/checkpoint.h"
#include "anneal/heartbeat.h"
#include "anneal/open.h"
#include "anneal/run.h"
#include "anneal/watch.h"
#include "ranks/own_run.h"

enum { RANKS = 3, MESSAGE = 1024, AT_ONCE = 30 }; /* seconds on a busy machine; a wait ends after 15 minutes */

/* What became of a rank. */
typedef struct {
    an_status status;
    char message[MESSAGE];
    double seconds; /* that its last call took */
    an_run_outcome outcome;
} ending;
static ending endings[RANKS];
static own_run runs[RANKS];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void end_with(one_rank *r, an_status status, double begin) {
    ending *e = &endings[r->comm.rank];
    e->status = status;
    e->seconds = now() - begin;
    snprintf(e->message, sizeof e->message, "%s", status == AN_OK ? "" : an_last_error(r->ctx));
}

static int host_ranks = 1; /* ranks that share memory */

static void run_all(void (*body)(one_rank *r), void *user, void (*plant)(one_rank *r)) {
    one_rank ranks[RANKS];
    memset(endings, 0, sizeof endings);
    run_ranks_on(ranks, RANKS, host_ranks, body, user, plant);
    for (int i = 0; i < RANKS; i++)
        if (*ranks[i].error) fail_msg("%s", ranks[i].error);
}

/* Every rank has this error with the same words, at once. */
static void expect_all(const char *name, an_status status, const char *words) {
    for (int i = 0; i < RANKS; i++) {
        const ending *e = &endings[i];
        if (e->status != status || !strstr(e->message, words))
            fail_msg("%s: rank %d: %s: %s", name, i, an_status_name(e->status), e->message);
        if (e->seconds > AT_ONCE) fail_msg("%s: rank %d waited %.1f s", name, i, e->seconds);
    }
}

/* ---- a call inside `if (rank == 0)` ---- */

static an_status evaluate(an_context *ctx, an_trainer *trainer) {
    (void)ctx;
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    return an_trainer_evaluate(trainer, &evaluation);
}

static an_status save(an_context *ctx, an_trainer *trainer) {
    (void)ctx;
    return an_trainer_save(trainer, 7);
}

static an_status barrier(an_context *ctx, an_trainer *trainer) {
    (void)trainer;
    return an_ranks_barrier(ctx);
}

static an_status add_up(an_context *ctx, an_trainer *trainer) {
    (void)trainer;
    double number = 1;
    return an_ranks_all_reduce(ctx, &number, 1, AN_DTYPE_F64, AN_REDUCE_SUM);
}

static an_status step(an_context *ctx, an_trainer *trainer) {
    (void)ctx;
    return an_trainer_step(trainer, NULL);
}

/* For a look at the data, say. */
static an_status open_another(an_context *ctx, an_trainer *trainer) {
    (void)trainer;
    an_trainer *another = NULL;
    const an_status status = an_trainer_open(&another, ctx, "run.yaml", NULL);
    an_trainer_destroy(&another);
    return status;
}

typedef an_status call(an_context *ctx, an_trainer *trainer);

typedef struct {
    const char *name;
    call *first, *others; /* of rank 0; of all others */
    const char *words;
    an_status status;
} branch;

static const branch branches[] = {
    {"evaluation", evaluate, step,
     "rank 0 is in the evaluation after step 2, but rank 1 is at the beginning of step 3: all ranks must make the same "
     "calls in the same order",
     AN_ERR_ORDER},
    {"save", save, step, "rank 0 is in the save after step 2, but rank 1 is at the beginning of step 3", AN_ERR_ORDER},
    {"sum", add_up, barrier, "rank 0 called an_ranks_all_reduce of 1 f64, sum, but rank 1 called an_ranks_barrier",
     AN_ERR_ORDER},
};

static pthread_barrier_t together;

static void call_by_rank(one_rank *r) {
    const branch *b = r->user;
    an_trainer *trainer = NULL;
    char before[HASH_TEXT], after[HASH_TEXT];
    bool is_ready = !rank_failed(r, "open", an_trainer_open(&trainer, r->ctx, "run.yaml", NULL));
    for (int i = 0; i < 2 && is_ready; i++) is_ready = !rank_failed(r, "step", an_trainer_step(trainer, NULL));
    is_ready = is_ready && !rank_failed(r, "hash", an_trainer_weights_hash(trainer, before));
    pthread_barrier_wait(&together); /* the failure must not reach a rank that is still in the second step */
    if (!is_ready) goto end;
    const double begin = now();
    end_with(r, (r->comm.rank == 0 ? b->first : b->others)(r->ctx, trainer), begin);
    if (rank_failed(r, "hash", an_trainer_weights_hash(trainer, after))) goto end;
    if (strcmp(before, after) != 0) snprintf(r->error, sizeof r->error, "%s: weights have changed", b->name);
end:
    an_trainer_destroy(&trainer);
}

/* Columns a, b and their sum. */
static void write_run(const char *more) {
    FILE *file = fopen("rows.csv", "w");
    assert_non_null(file);
    fprintf(file, "a,b,sum\n");
    for (int i = 0; i < 41; i++)
        fprintf(file, "%.4f,%.4f,%.4f\n", i % 11 / 10.0, i % 7 / 6.0, i % 11 / 10.0 + i % 7 / 6.0);
    fclose(file);
    file = fopen("run.yaml", "w");
    assert_non_null(file);
    fprintf(file,
            "run: {dir: run, steps: 6, seed: 5}\nmodel: {type: mlp, hidden: [4]}\n"
            "data: {train: {type: csv, path: rows.csv, inputs: [a, b], targets: [sum]}, "
            "eval: {type: csv, path: rows.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n"
            "batch: {global: 8, leaves: 4}\n%s",
            more);
    fclose(file);
    assert_int_equal(system("rm -rf run"), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

static void test_a_call_of_one_rank_is_named(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof branches / sizeof *branches; i++) {
        write_run("");
        assert_int_equal(pthread_barrier_init(&together, NULL, RANKS), 0);
        run_all(call_by_rank, (void *)(uintptr_t)&branches[i], NULL);
        pthread_barrier_destroy(&together);
        expect_all(branches[i].name, branches[i].status, branches[i].words);
    }
}

/* ---- waits that only a watch can explain ---- */

static an_heartbeat heartbeats[RANKS];
static pthread_mutex_t report_mutex = PTHREAD_MUTEX_INITIALIZER;
static char reported[16 * MESSAGE]; /* all of them: a busy machine may be taken for a stall before */

static void give_heartbeat(one_rank *r) {
    an_heartbeat_init(&heartbeats[r->comm.rank], sizeof(an_heartbeat));
    r->heartbeat = &heartbeats[r->comm.rank];
}

static void note_report(void *user, an_watch_event event, const char *text, bool is_told) {
    (void)user, (void)is_told;
    pthread_mutex_lock(&report_mutex);
    const size_t length = strlen(reported);
    if (event == AN_WATCH_STALL) snprintf(reported + length, sizeof reported - length, "%s\n", text);
    pthread_mutex_unlock(&report_mutex);
}

/* Steps under a watch; in the third one rank, by `first`, makes a call that the others do not make, or ends. */
static void step_watched(one_rank *r) {
    const branch *b = r->user;
    own_run *o = &runs[r->comm.rank];
    an_watch *watch = NULL;
    an_watch_options options;
    an_watch_options_init(&options, sizeof options);
    options.report_after = 0.5;
    options.timeout = 3;
    options.report = note_report;
    if (rank_failed(r, "create", own_create(o, r->ctx, own_usual())) ||
        rank_failed(r, "watch", an_watch_create(&watch, r->ctx, &options)))
        goto end;
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL); /* until the watches have heard of each other */
    for (int i = 0; i < 2; i++)
        if (rank_failed(r, "step", an_trainer_step(o->trainer, NULL))) goto end;
    const bool leaves = r->comm.rank == RANKS - 1 && !b->first;
    if (leaves) goto end;
    const double begin = now();
    end_with(r, (r->comm.rank == 0 && b->first ? b->first : step)(r->ctx, o->trainer), begin);
end:
    an_watch_destroy(&watch);
    own_destroy(o);
}

static void check_watched(const branch *b, int from) {
    *reported = 0;
    run_all(step_watched, (void *)(uintptr_t)b, give_heartbeat);
    if (!strstr(reported, b->words)) fail_msg("%s: reported was: %s", b->name, reported);
    for (int i = 0; i < from; i++) {
        if (endings[i].status != b->status || !strstr(endings[i].message, "which is the limit (ranks.timeout)"))
            fail_msg("%s: rank %d: %s", b->name, i, endings[i].message);
        if (endings[i].seconds > AT_ONCE) fail_msg("%s: rank %d waited %.1f s", b->name, i, endings[i].seconds);
    }
}

static void test_a_barrier_of_one_rank_is_reported(void **state) {
    static const branch b = {"barrier", barrier, NULL, "ranks wait for each other in different collective calls",
                             AN_ERR_COMMUNICATION};
    (void)state;
    check_watched(&b, RANKS);
    if (!strstr(reported, "an_ranks_barrier")) fail_msg("reported was: %s", reported);
}

static void test_a_trainer_that_one_rank_opens_is_reported(void **state) {
    static const branch b = {"open", open_another, NULL, "ranks wait for each other in different collective calls",
                             AN_ERR_COMMUNICATION};
    (void)state;
    write_run("");
    check_watched(&b, RANKS);
    if (!strstr(reported, "beginning of step 3")) fail_msg("reported was: %s", reported);
}

/* One rank has fewer steps than the others, and is gone. */
static void test_a_rank_that_leaves_the_loop_is_reported(void **state) {
    static const branch b = {"leaves", NULL, NULL, "rank 2", AN_ERR_COMMUNICATION};
    (void)state;
    check_watched(&b, RANKS - 1);
    if (!strstr(reported, "has ended")) fail_msg("reported was: %s", reported);
}

/* ---- other models, other options, other weights ---- */

typedef void change(own_choices *c);

static void change_rate(own_choices *c) {
    c->options.rate *= 2;
}

static void change_steps(own_choices *c) {
    c->options.epochs = 3;
}

static void change_width(own_choices *c) {
    static const int64_t other[] = {6, 4};
    c->model.hidden = other;
}

static void change_activation(own_choices *c) {
    c->model.activation = AN_ACTIVATION_TANH;
}

static void change_seed(own_choices *c) {
    c->options.seed++;
}

static void change_sharding(own_choices *c) {
    c->options.shard = AN_SHARD_AUTO;
}

static void change_kernels(own_choices *c) {
    c->options.kernels = "matmul=nonsense";
}

static void change_clip(own_choices *c) {
    c->options.clip_norm = 1e-3;
}

static void change_optimizer(own_choices *c) {
    c->optimizer.beta_1 = 0.5;
}

static const struct {
    const char *name;
    change *change; /* on rank 1 */
    an_status status;
    const char *words;
} differences[] = {
    {"rate", change_rate, AN_ERR_UNSUPPORTED, "rank 0 has the learning rate 0.01, but rank 1 has 0.02"},
    {"steps", change_steps, AN_ERR_UNSUPPORTED, "rank 0 has a run of 10 steps, but rank 1 of 15"},
    {"width", change_width, AN_ERR_UNSUPPORTED, "rank 0 has a model of 83 parameters, but rank 1 has 73"},
    {"activation", change_activation, AN_ERR_UNSUPPORTED, "rank 0 has a model with the hash"},
    {"seed", change_seed, AN_ERR_UNSUPPORTED, "rank 0 has the seed 11, but rank 1 has 12"},
    {"sharding", change_sharding, AN_ERR_UNSUPPORTED, "rank 0 has the sharding none, but rank 1 has auto"},
    {"kernels", change_kernels, AN_ERR_UNKNOWN, "rank 1: "}, /* it alone cannot plan */
    {"clip", change_clip, AN_ERR_STATE, "rank 1 has other weights than rank 0 at the beginning of step 2"},
    {"optimizer", change_optimizer, AN_ERR_STATE, "rank 1 has other weights than rank 0 at the beginning of step "},
};

static void train_otherwise(one_rank *r) {
    const double begin = now();
    own_choices c = own_usual();
    if (r->comm.rank == 1) (*(change *const *)r->user)(&c);
    an_status status = own_create(&runs[r->comm.rank], r->ctx, c);
    for (int i = 0; i < 4 && status == AN_OK; i++) status = an_trainer_step(runs[r->comm.rank].trainer, NULL);
    end_with(r, status, begin);
    own_destroy(&runs[r->comm.rank]);
}

static void test_what_one_rank_does_otherwise_is_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) {
        change *one = differences[i].change;
        for (host_ranks = 1; host_ranks <= RANKS; host_ranks += RANKS - 1) { /* … and wait for each other to make it */
            run_all(train_otherwise, &one, NULL);
            expect_all(differences[i].name, differences[i].status, differences[i].words);
        }
    }
    host_ranks = 1;
}

/* Rank 0 alone has other initial weights: set by hand, or loaded from a file that only it has. Everybody else would
 * have to be told by a broadcast. */
static an_status set_weights(one_rank *r, an_trainer *trainer) {
    float bias[5] = {0, 0, 0, 0, 0.25F};
    const an_array array = array_of(bias, AN_DTYPE_F32, 1, (const int64_t[]){5});
    (void)r;
    return an_params_set(an_trainer_params(trainer), "hidden.1.bias", AN_PART_WEIGHT, &array);
}

static an_status load_weights(one_rank *r, an_trainer *trainer) {
    an_load_options options;
    an_load_options_init(&options, sizeof options);
    (void)r;
    options.path = "weights";
    return an_trainer_load_weights(trainer, &options);
}

typedef an_status setter(one_rank *r, an_trainer *trainer);

static void set_on_one(one_rank *r) {
    const double begin = now();
    own_run *o = &runs[r->comm.rank];
    an_status status = own_create(o, r->ctx, own_usual());
    if (status == AN_OK && r->comm.rank == 0) status = (*(setter *const *)r->user)(r, o->trainer);
    if (!rank_failed(r, "set", status)) end_with(r, an_trainer_step(o->trainer, NULL), begin);
    own_destroy(o);
}

static void write_weights(one_rank *r) {
    own_run *o = &runs[r->comm.rank];
    own_choices c = own_usual();
    c.options.seed = 99;
    if (!rank_failed(r, "create", own_create(o, r->ctx, c)))
        if (!rank_failed(r, "folder", an_trainer_set_folder(o->trainer, "weights")))
            rank_failed(r, "save", an_trainer_save(o->trainer, 1));
    own_destroy(o);
}

static void test_weights_of_one_rank_are_refused(void **state) {
    static setter *const setters[] = {set_weights, load_weights};
    one_rank alone;
    (void)state;
    assert_int_equal(system("rm -rf weights"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    run_ranks(&alone, 1, write_weights, NULL, NULL);
    if (*alone.error) fail_msg("%s", alone.error);
    for (size_t i = 0; i < sizeof setters / sizeof *setters; i++) {
        setter *one = setters[i];
        run_all(set_on_one, &one, NULL);
        expect_all(i ? "load" : "set", AN_ERR_STATE, "rank 1 has other weights than rank 0 at the beginning of step 1");
    }
}

/* ---- ends of a run ---- */

static an_status stop_on_one(void *user, an_trainer *trainer) {
    const one_rank *r = user;
    if (r->comm.rank == 1 && an_trainer_next_step(trainer) == 3) an_trainer_request_stop(trainer);
    return AN_OK;
}

static void run_and_stop(one_rank *r) {
    own_run *o = &runs[r->comm.rank];
    ending *e = &endings[r->comm.rank];
    own_choices c = own_usual();
    an_run_options options = {DEFAULTS(an_run_options)};
    an_run_callbacks callbacks;
    an_run_callbacks_init(&callbacks, sizeof callbacks);
    an_run_outcome_init(&e->outcome, sizeof e->outcome);
    callbacks.after_step = stop_on_one;
    callbacks.user = r;
    options.evaluate_every = 1;
    if (r->user) {
        c.options.rate = 0; /* it does not get better */
        options.early_stop = "val_loss";
        options.patience = 2;
    } else {
        options.callbacks = &callbacks;
    }
    if (!rank_failed(r, "create", own_create(o, r->ctx, c)) &&
        !rank_failed(r, "run", an_trainer_run(o->trainer, &options, &e->outcome)))
        rank_failed(r, "hash", an_trainer_state_hash(o->trainer, e->message));
    own_destroy(o);
}

/* A stop that one rank was asked for, and one that a metric decides: all ranks end after the same step. */
static void test_ranks_end_after_the_same_step(void **state) {
    static const an_run_end expected[] = {AN_RUN_REQUESTED, AN_RUN_STOPPED_EARLY};
    (void)state;
    for (int early = 0; early < 2; early++) {
        run_all(run_and_stop, early ? &early : NULL, NULL);
        for (int i = 0; i < RANKS; i++) {
            assert_int_equal(endings[i].outcome.end, expected[early]);
            assert_int_equal(endings[i].outcome.steps, endings[0].outcome.steps);
            assert_true(endings[i].outcome.steps < 10);
            assert_string_equal(endings[i].message, endings[0].message);
        }
    }
}

/* ---- files ---- */

static void run_with_folder(one_rank *r) {
    an_trainer *trainer = NULL;
    an_config *config = NULL;
    an_folder *folder = NULL;
    an_config_options options;
    an_step_metrics metrics;
    an_config_options_init(&options, sizeof options);
    an_step_metrics_init(&metrics, sizeof metrics);
    options.file = "run.yaml";
    if (rank_failed(r, "config", an_config_read(&config, r->ctx, &options)) ||
        rank_failed(r, "open", an_trainer_open_config(&trainer, r->ctx, config, NULL)) ||
        rank_failed(r, "folder", an_folder_create(&folder, trainer, config, NULL)))
        goto end;
    while (an_trainer_next_step(trainer) < an_trainer_steps(trainer))
        if (rank_failed(r, "step", an_trainer_step(trainer, &metrics)) ||
            rank_failed(r, "write", an_folder_step(folder, &metrics, NULL)) ||
            rank_failed(r, "save", an_trainer_save(trainer, metrics.step)))
            break;
end:
    an_folder_destroy(&folder);
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
}

static int count_lines(const char *command) {
    char line[256];
    int lines = 0;
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): files of the test's own */
    assert_non_null(pipe);
    while (fgets(line, sizeof line, pipe)) lines++;
    assert_int_equal(pclose(pipe), 0);
    return lines;
}

static void test_one_rank_writes(void **state) {
    (void)state;
    write_run("log: {every: 1 steps}\nsave: {every: off}\n");
    run_all(run_with_folder, NULL, NULL);
    assert_int_equal(count_lines("cat run/metrics.jsonl"), 6);
    assert_int_equal(count_lines("ls run/checkpoints | grep '^step-'"), 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_of_one_rank_is_named),
        cmocka_unit_test(test_a_barrier_of_one_rank_is_reported),
        cmocka_unit_test(test_a_trainer_that_one_rank_opens_is_reported),
        cmocka_unit_test(test_a_rank_that_leaves_the_loop_is_reported),
        cmocka_unit_test(test_what_one_rank_does_otherwise_is_refused),
        cmocka_unit_test(test_weights_of_one_rank_are_refused),
        cmocka_unit_test(test_ranks_end_after_the_same_step),
        cmocka_unit_test(test_one_rank_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
