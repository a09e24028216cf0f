/* One rank's error is everyone's, also where it is not a kernel's or a message's (test_errors.c): a loader, the samples
 * of the caller, a callback, a save, memory, a launch that another one has taken over. It is planted on one of three
 * ranks, whatever they divide among themselves. All of them return its message within a second, with the same number of
 * steps behind them and the weights of an undisturbed run after as many; and when the cause is gone, all of them go on.
 *     test_ranks_failures [STRIDE [STRATEGY...]]     every STRIDEth allocation (0: few of them) */
#include <time.h>

#include "anneal/metric.h"
#include "comm/comm.h"
#include "ranks/failing.h"
#include "store/launch.h"
#include "train/trainer.h"

enum { RANKS = FAILING_RANKS, STEPS_BEFORE = 2, AT = 4, BEFORE_END = -1, ATTEMPTS = 3 };
/* Seconds for what also writes files or makes a trainer. A rank that waited in vain would say so in a
 * message of its own, after less. */
enum { AT_LEISURE = 60, TIMEOUT = 30 };

typedef struct {
    const char *name, *words; /* of the message */
    an_status status;
    int64_t steps;                  /* taken when it fails; BEFORE_END: not yet all */
    an_status (*call)(one_rank *r); /* by all ranks */
    void (*plant)(one_rank *r);     /* on one of them, before the call; NULL: a callback does it */
    int place;                      /* of the callback that fails, at step AT or at the end */
    int loader_threads;
    bool at_end, is_of_first, saves; /* is_of_first: only rank 0 can fail so */
} failure;

static char undisturbed[STEPS + 1][HASH_TEXT]; /* weights after so many steps */
static const failure *planted;
static int culprit;
static long allocation; /* of the call: this one fails; 0: none */
static double planted_at;
static long stride; /* of the allocations that fail; 0: as the table says */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- callbacks ---- */

enum { NOWHERE, BEFORE_STEP, AFTER_STEP, AFTER_EVALUATION, AFTER_SAVE, MEASURE, OPTIONS };

static an_status fail_here(failing_rank *s, int place, int64_t step) {
    const int64_t at = planted->at_end ? STEPS : AT;
    if (!s->is_culprit || s->is_mended || planted->place != place || step < at) return AN_OK;
    planted_at = now();
    return AN_ERR_HOOK;
}

static an_status before_step(void *user, an_trainer *trainer, int64_t step) {
    (void)trainer;
    return fail_here(user, BEFORE_STEP, step);
}

static an_status after_step(void *user, an_trainer *trainer) {
    return fail_here(user, AFTER_STEP, an_trainer_next_step(trainer));
}

static an_status after_evaluation(void *user, an_trainer *trainer, int64_t step, bool best) {
    (void)trainer, (void)best;
    return fail_here(user, AFTER_EVALUATION, step);
}

static an_status after_save(void *user, an_trainer *trainer) {
    an_save_report report;
    an_save_report_init(&report, sizeof report);
    const an_status status = an_trainer_save_report(trainer, &report);
    return status == AN_OK ? fail_here(user, AFTER_SAVE, report.step) : status;
}

static an_status measure(void *user, an_trainer *trainer, double *value) {
    *value = 1;
    return fail_here(user, MEASURE, an_trainer_next_step(trainer));
}

static an_status add_metric(one_rank *r) {
    an_metric_options metric;
    an_metric_options_init(&metric, sizeof metric);
    metric.name = "own";
    metric.measure = measure;
    metric.user = state_of(r);
    return an_context_add_metric(r->ctx, &metric);
}

/* ---- calls of all ranks ---- */

static an_status call_steps(one_rank *r) {
    return take_steps(r, STEPS - STEPS_BEFORE);
}

static an_status call_evaluate(one_rank *r) {
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    return an_trainer_evaluate(state_of(r)->trainer, &evaluation);
}

static an_status call_save(one_rank *r) {
    return an_trainer_save(state_of(r)->trainer, 1);
}

static an_status call_run(one_rank *r) {
    failing_rank *s = state_of(r);
    an_run_callbacks callbacks;
    an_run_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.before_step = before_step;
    callbacks.after_step = after_step;
    callbacks.after_evaluation = after_evaluation;
    callbacks.after_save = after_save;
    callbacks.user = s;
    an_run_options options;
    an_run_options_init(&options, sizeof options);
    options.evaluate_every = 4;
    options.callbacks = &callbacks;
    if (s->is_culprit && planted->place == OPTIONS) options.patience = 0;
    return an_trainer_run(s->trainer, &options, NULL);
}

typedef enum { IS_WELL, HAS_ANOTHER_SHAPE, HAS_NO_TARGETS, HAS_LESS_THAN_NONE } mistake;

static an_status step_on(one_rank *r, mistake made) {
    enum { MOST = 2 };
    const int64_t mine = strategy >= AN_SHARD_GRADIENTS ? 1 : MOST;
    float inputs[MOST * WIDTH] = {0}, targets[MOST * TARGETS] = {0};
    failing_rank *s = state_of(r);
    if (!s->is_culprit) made = IS_WELL;
    const an_array x = array_of(inputs, AN_DTYPE_F32, 2, (int64_t[]){mine, made == HAS_ANOTHER_SHAPE ? 3 : WIDTH}),
                   y = array_of(targets, AN_DTYPE_F32, 2, (int64_t[]){mine, TARGETS});
    return an_trainer_step_on(s->trainer, made == HAS_LESS_THAN_NONE ? -1 : mine, &x,
                              made == HAS_NO_TARGETS ? NULL : &y, NULL);
}

static an_status call_step_on(one_rank *r) {
    return step_on(r, IS_WELL);
}

static an_status call_step_on_shape(one_rank *r) {
    return step_on(r, HAS_ANOTHER_SHAPE);
}

static an_status call_step_on_nothing(one_rank *r) {
    return step_on(r, HAS_NO_TARGETS);
}

static an_status call_step_on_negative(one_rank *r) {
    return step_on(r, HAS_LESS_THAN_NONE);
}

/* ---- what is planted, and taken away again ---- */

static void plant_training(one_rank *r) {
    state_of(r)->training_fails = true;
}

static void plant_evaluation(one_rank *r) {
    state_of(r)->evaluation_fails = true;
}

/* The trainer binds its samples to an input that the program does not have. */
static void plant_binding(one_rank *r) {
    failing_rank *s = state_of(r);
    s->input = s->trainer->samples.feed.inputs[0].name;
    s->trainer->samples.feed.inputs[0].name = "planted";
}

/* A file is where the folder of checkpoints was. */
static void plant_disk(one_rank *r) {
    FILE *file = rename(FOLDER "/checkpoints", FOLDER "/before") == 0 ? fopen(FOLDER "/checkpoints", "w") : NULL;
    if (!file || fclose(file) != 0) snprintf(r->error, sizeof r->error, "the folder cannot be replaced");
}

static void plant_launch(one_rank *r) {
    int64_t generation;
    rank_failed(r, "claim", an_launch_claim(r->ctx, FOLDER, &generation));
}

static void mend(failing_rank *s) {
    s->training_fails = s->evaluation_fails = false;
    if (s->input) s->trainer->samples.feed.inputs[0].name = s->input;
    s->is_mended = true;
}

/* ---- one failure ---- */

static bool prepare(one_rank *r) {
    an_comm_set_timeout(r->ctx, TIMEOUT); /* what would hang fails */
    r->memory.once = true;
    state_of(r)->loader_threads = planted->loader_threads;
    if (rank_failed(r, "metric", add_metric(r)) || !open_data(r)) return false;
    if (planted->call == make_trainer) return true;
    return !rank_failed(r, "create", make_trainer(r)) &&
           (!planted->saves || !rank_failed(r, "set saving", set_saving(r))) &&
           !rank_failed(r, "step", take_steps(r, STEPS_BEFORE)) &&
           (!planted->saves || !rank_failed(r, "save", an_trainer_save(state_of(r)->trainer, 0)));
}

/* A loader that reads ahead may have met the failure once more before it was mended. */
static an_status go_on(const one_rank *r) {
    const an_trainer *t = state_of(r)->trainer;
    an_status status = take_steps(r, STEPS - t->next);
    return status != AN_OK && planted->loader_threads > 0 ? take_steps(r, STEPS - t->next) : status;
}

static void call_with_failure(one_rank *r) {
    failing_rank *s = state_of(r);
    s->is_culprit = r->comm.rank == culprit;
    if (!prepare(r)) goto end;
    const long allocations = r->memory.calls;
    if (s->is_culprit) {
        planted_at = now();
        if (planted->plant) planted->plant(r);
        if (allocation > 0) r->memory.fail_at = allocations + allocation;
    }
    s->status = planted->call(r);
    s->returned = now();
    r->memory.fail_at = 0;
    s->allocations = r->memory.calls - allocations;
    snprintf(s->message, sizeof s->message, "%s", s->status == AN_OK ? "" : an_last_error(r->ctx));
    mend(s);
    if (!s->trainer && rank_failed(r, "create again", make_trainer(r))) goto end;
    s->steps = s->trainer->next;
    rank_failed(r, "hash", an_trainer_weights_hash(s->trainer, s->hash));
    rank_failed(r, "go on", go_on(r));
    rank_failed(r, "last hash", an_trainer_weights_hash(s->trainer, s->last_hash));
end:
    close_all(s);
}

static void run_once(const failure *f, int rank, long at) {
    one_rank ranks[RANKS];
    planted = f;
    culprit = rank;
    allocation = at;
    memset(states, 0, sizeof states);
    assert_int_equal(system("rm -rf " FOLDER), 0); /* NOLINT(cert-env33-c): the test's own folder */
    run_ranks(ranks, RANKS, call_with_failure, NULL, NULL);
    for (int i = 0; i < RANKS; i++)
        if (*ranks[i].error) fail_msg("%s on rank %d: %s", f->name, rank, ranks[i].error);
}

/* All ranks have returned the same, and none has lost or gained a step. */
static void check_together(double seconds) {
    const char *name = planted->name;
    char culprit_name[16];
    snprintf(culprit_name, sizeof culprit_name, "rank %d: ", culprit);
    if (culprit > 0 && states[0].status != AN_OK && strncmp(states[0].message, culprit_name, strlen(culprit_name)) != 0)
        fail_msg("%s on rank %d: the message is '%s'", name, culprit, states[0].message);
    for (int i = 0; i < RANKS; i++) {
        const failing_rank *s = &states[i];
        if (s->status != states[0].status || strcmp(s->message, states[0].message) != 0)
            fail_msg("%s on rank %d: rank %d says '%s', rank 0 '%s'", name, culprit, i, s->message, states[0].message);
        if (s->steps != states[0].steps)
            fail_msg("%s on rank %d: rank %d has taken %lld steps, rank 0 %lld", name, culprit, i, (long long)s->steps,
                     (long long)states[0].steps);
        if (s->status == AN_OK && planted->call == call_step_on) continue; /* other samples, other weights */
        if (strcmp(s->hash, undisturbed[s->steps]) != 0)
            fail_msg("%s on rank %d: rank %d has other weights after %lld steps", name, culprit, i,
                     (long long)s->steps);
        if (strcmp(s->last_hash, undisturbed[STEPS]) != 0)
            fail_msg("%s on rank %d: rank %d ends with other weights", name, culprit, i);
        if (s->returned - planted_at > seconds)
            fail_msg("%s on rank %d: rank %d returned after %.1f s", name, culprit, i, s->returned - planted_at);
    }
}

/* ---- tests ---- */

static void remember(one_rank *r) {
    failing_rank *s = state_of(r);
    if (open_data(r) && !rank_failed(r, "create", make_trainer(r)))
        for (int i = 0; i <= STEPS; i++) {
            if (i > 0) rank_failed(r, "step", an_trainer_step(s->trainer, NULL));
            rank_failed(r, "hash", an_trainer_weights_hash(s->trainer, undisturbed[i]));
        }
    close_all(s);
}

static int run_undisturbed(void **state) {
    one_rank ranks[1];
    (void)state;
    run_ranks(ranks, 1, remember, NULL, NULL);
    if (*ranks[0].error) print_error("%s\n", ranks[0].error);
    return *ranks[0].error != 0;
}

static const failure failures[] = {
    {"loader", DISK_IS_GONE, AN_ERR_FILE, 2, .call = call_steps, .plant = plant_training},
    {"loader that reads ahead", DISK_IS_GONE, AN_ERR_FILE, BEFORE_END, .call = call_steps, .plant = plant_training,
     .loader_threads = 1},
    {"loader in a run", DISK_IS_GONE, AN_ERR_FILE, 2, .call = call_run, .plant = plant_training},
    {"evaluation", DISK_IS_GONE, AN_ERR_FILE, 2, .call = call_evaluate, .plant = plant_evaluation},
    {"evaluation in a run", DISK_IS_GONE, AN_ERR_FILE, 4, .call = call_run, .plant = plant_evaluation},
    {"binding", "planted", AN_ERR_UNKNOWN, 2, .call = call_steps, .plant = plant_binding},
    {"shape of samples", "'x'", AN_ERR_SHAPE, 2, .call = call_step_on_shape},
    {"no targets", "targets is NULL", AN_ERR_ARGUMENT, 2, .call = call_step_on_nothing},
    {"less than no samples", "-1 samples", AN_ERR_ARGUMENT, 2, .call = call_step_on_negative},
    {"options", "patience 0", AN_ERR_ARGUMENT, 2, .call = call_run, .place = OPTIONS},
    {"before_step", "the callback before_step", AN_ERR_HOOK, AT - 1, .call = call_run, .place = BEFORE_STEP},
    {"before the last step", "before_step", AN_ERR_HOOK, STEPS - 1, .call = call_run, .place = BEFORE_STEP,
     .at_end = 1},
    {"after_step", "the callback after_step", AN_ERR_HOOK, AT, .call = call_run, .place = AFTER_STEP},
    {"after the last step", "after_step", AN_ERR_HOOK, STEPS, .call = call_run, .place = AFTER_STEP, .at_end = 1},
    {"after_evaluation", "after_evaluation", AN_ERR_HOOK, AT, .call = call_run, .place = AFTER_EVALUATION},
    {"last after_evaluation", "after_evaluation", AN_ERR_HOOK, STEPS, .call = call_run, .place = AFTER_EVALUATION,
     .at_end = 1},
    {"own metric", "own", AN_ERR_HOOK, AT, .call = call_run, .place = MEASURE},
    {"after_save", "the callback after_save", AN_ERR_HOOK, BEFORE_END, .call = call_run, .place = AFTER_SAVE,
     .is_of_first = 1, .saves = 1},
    {"last after_save", "after_save", AN_ERR_HOOK, STEPS, .call = call_run, .place = AFTER_SAVE, .at_end = 1,
     .is_of_first = 1, .saves = 1},
    {"save", "checkpoints", AN_ERR_FILE, 2, .call = call_save, .plant = plant_disk, .is_of_first = 1, .saves = 1},
    {"saves of a run", "checkpoints", AN_ERR_FILE, STEPS, .call = call_run, .plant = plant_disk, .is_of_first = 1,
     .saves = 1},
    {"launch at a save", "has taken over this run", AN_ERR_TAKEN_OVER, 2, .call = call_save, .plant = plant_launch,
     .is_of_first = 1, .saves = 1},
    {"launch in a run", "has taken over this run", AN_ERR_TAKEN_OVER, BEFORE_END, .call = call_run,
     .plant = plant_launch, .is_of_first = 1, .saves = 1},
};

/* Seconds from the failure to the return of the last rank. */
static double waited(void) {
    double last = planted_at;
    for (int i = 0; i < RANKS; i++)
        if (states[i].returned > last) last = states[i].returned;
    return last - planted_at;
}

/* A rank that waits for another waits every time. A machine that does something else for a second does so now and
 * then, so a slow return is tried again. */
static void run_until_quick(const failure *f, int rank, double seconds) {
    run_once(f, rank, 0);
    for (int i = 1; i < ATTEMPTS && waited() > seconds; i++) run_once(f, rank, 0);
    check_together(seconds);
}

static void test_every_failure(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        const failure *f = &failures[i];
        const int last = f->is_of_first ? 0 : 1 + (int)i % 2; /* rank 0 and one of the others */
        for (int rank = 0; rank <= last; rank += last ? last : 1) {
            const failing_rank *s = &states[rank];
            run_until_quick(f, rank, f->saves ? AT_LEISURE : 1);
            if (s->status != f->status || !strstr(s->message, f->words))
                fail_msg("%s on rank %d: %s: %s", f->name, rank, an_status_name(s->status), s->message);
            if (f->steps == BEFORE_END ? s->steps == STEPS : s->steps != f->steps)
                fail_msg("%s on rank %d: after %lld steps", f->name, rank, (long long)s->steps);
        }
    }
}

/* Where memory ends: at an allocation of a call, on the first rank and on another. A save that fails in the middle
 * of a run does not end it. */
static const struct {
    failure failure;
    long stride; /* of the allocations that fail, as each takes a trainer of its own */
    bool goes_on;
} calls[] = {
    {{"memory of a step on samples", .call = call_step_on}, 1, false},
    {{"memory of an evaluation", .call = call_evaluate}, 1, false},
    {{"memory of a run", .call = call_run}, 1, false},
    {{"memory of a save", .call = call_save, .saves = true}, 1, false},
    {{"memory of saves in a run", .call = call_run, .saves = true}, 31, true},
    {{"memory of a trainer", .call = make_trainer}, 401, false},
};

static void test_every_allocation(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int rank = 0; rank < 2; rank++) {
            const failure *f = &calls[i].failure;
            run_once(f, rank, 0);
            const failing_rank *s = &states[rank];
            const long allocations = s->allocations;
            assert_int_equal(s->status, AN_OK);
            print_message("%s on rank %d: %ld allocations\n", f->name, rank, allocations);
            const long usual = strategy == AN_SHARD_NONE ? calls[i].stride : 4 * calls[i].stride; /* each takes files */
            for (long at = 1; at <= allocations; at += stride ? stride : usual) {
                run_once(f, rank, at);
                check_together(AT_LEISURE);
                if (!(s->status == AN_ERR_MEMORY && strstr(s->message, "out of memory")) &&
                    !(s->status == AN_OK && calls[i].goes_on))
                    fail_msg("%s on rank %d, allocation %ld: %s: %s", f->name, rank, at, an_status_name(s->status),
                             s->message);
            }
        }
}

static const char *const strategies[] = {"none", "optimizer", "gradients", "full"}; /* by an_shard */

static int run_strategy(int shard) {
    strategy = (an_shard)shard;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_failure),
        cmocka_unit_test(test_every_allocation),
    };
    return cmocka_run_group_tests_name(strategies[shard], tests, run_undisturbed, NULL);
}

int main(int argc, char **argv) {
    int failed = 0;
    if (argc > 1) stride = strtol(argv[1], NULL, 10);
    for (int i = AN_SHARD_NONE; i <= AN_SHARD_FULL; i++) {
        bool is_asked = argc < 3;
        for (int k = 2; k < argc; k++) is_asked |= !strcmp(argv[k], strategies[i]);
        if (is_asked) failed += run_strategy(i);
    }
    return failed;
}
