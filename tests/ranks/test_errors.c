/* One rank's error is everyone's: a failure at every instruction and every message of a step, on one of three ranks, or
 * of four on two hosts, whatever ranks divide among themselves. All ranks return its message, none waits, and no weight
 * has changed. If an exchange itself was lost, every rank returns an error, and its trainer refuses further steps.
 *     test_ranks_errors [STRIDE [STRATEGY...]]     every STRIDEth only (5: all strategies in little time) */
#include <time.h>

#include "anneal/open.h"
#include "base/text/text.h"
#include "ranks/threads.h"
#include "train/trainer.h"

enum { MOST = 4, CULPRITS = 2, STEPS_BEFORE = 2, ATTEMPTS = 3 };

static int stride = 5, rank_count, host_ranks;
static const char *strategy;
static bool adds;   /* a leaf is two micro-batches also where ranks divide gradients, which each rank adds first */
static int culprit; /* rank 0, or one that has a round without a leaf where there are rounds */
static int offset;  /* what a stride leaves out differs between strategies and ranks */

/* What is planted, and what came of it. */
typedef struct {
    int64_t instruction;            /* of the culprit's third step; -1: none */
    bool is_unready;                /* the culprit's program fails before its first instruction */
    int64_t message;                /* the culprit's call of this number in that step; 0: none */
    long allocation;                /* the culprit's allocation of this number in that step; 0: none */
    int64_t instructions, messages; /* that a step has */
    long allocations;
} plant;

typedef struct {
    an_status status, again;
    char message[1024];
    bool same; /* weights and moments are those before the step */
    bool refuses;
    double seconds;
    char hash[HASH_TEXT]; /* after the step again, if it was taken */
} outcome;

static outcome outcomes[MOST];
static plant planted;
static pthread_barrier_t
    together; /* before the third step: a failure in it must not reach a rank that is still in the second */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct {
    int64_t seen;
} counted;

static an_status fail_at(void *user, int64_t instruction) {
    counted *c = user;
    (void)instruction;
    return c->seen++ == planted.instruction ? AN_ERR_HOOK : AN_OK;
}

static size_t fail_to_bind(const an_call *call) {
    return AN_ERROR(call->ctx, AN_ERR_KERNEL, "the planted kernel is not ready") == AN_OK ? 0 : AN_SCRATCH_FAILED;
}

/* Programs bind their kernels again for every new size, and one of them may not have the memory that it needs for
 * it. */
static void plant_kernel(an_trainer *t, const an_kernel **before) {
    static an_kernel failing[AN_FORMS];
    for (int form = AN_FORM_TRAIN_FIRST; form <= AN_FORM_TRAIN_NEXT; form++) {
        an_node *n = t->plan->forms[form] ? t->plan->forms[form]->first : NULL;
        while (n && (!an_node_runs(n) || n->op->flags & AN_OP_COMMUNICATION)) n = n->next;
        if (!n) continue;
        const an_kernel *own = n->kernel;
        failing[form] = *own;
        failing[form].scratch = fail_to_bind;
        n->kernel = before[form] ? before[form] : &failing[form];
        before[form] = own;
        t->program->forms[form].is_bound = false;
    }
}

/* Of what this rank updates: when a message is lost, ranks cannot ask each other any more. */
static uint64_t own_hash(const an_trainer *t) {
    const an_params *p = t->params;
    const size_t page = AN_PAGE * an_dtype_size(p->sizes.trainable_dtype);
    uint64_t hash = 0;
    for (int i = 0; i < an_params_piece_count(p); i++) {
        const an_page_range piece = an_params_piece(p, i);
        const size_t at = (size_t)piece.begin * page, bytes = (size_t)(piece.end - piece.begin) * page;
        hash = an_hash((const char *)p->masters + at, bytes, hash);
        for (int k = 0; k < p->moment_count; k++) hash = an_hash((const char *)p->moments[k] + at, bytes, hash);
    }
    return hash;
}

static void step_with_failure(one_rank *r) {
    an_trainer *t = NULL;
    outcome *o = &outcomes[r->comm.rank];
    counted c = {0};
    const an_kernel *kernels[AN_FORMS] = {NULL};
    bool is_ready = !rank_failed(r, "open", an_trainer_open(&t, r->ctx, "errors.yaml", NULL));
    for (int i = 0; i < STEPS_BEFORE && is_ready; i++) is_ready = !rank_failed(r, "step", an_trainer_step(t, NULL));
    pthread_barrier_wait(&together);
    if (!is_ready) goto end;
    const bool is_culprit = r->comm.rank == culprit;
    const int64_t calls = r->messages.calls;
    if (is_culprit) an_program_set_hook(t->program, fail_at, &c);
    if (is_culprit && planted.message > 0) r->messages.fails_at = calls + planted.message;
    if (is_culprit && planted.is_unready) plant_kernel(t, kernels);
    const uint64_t before = own_hash(t);
    const long allocations = r->memory.calls;
    r->memory.once = true;
    if (is_culprit && planted.allocation > 0) r->memory.fail_at = allocations + planted.allocation;
    const double begin = now();
    o->status = an_trainer_step(t, NULL);
    o->seconds = now() - begin;
    snprintf(o->message, sizeof o->message, "%s", o->status == AN_OK ? "" : an_last_error(r->ctx));
    if (is_culprit) {
        planted.instructions = c.seen;
        planted.messages = r->messages.calls - calls;
        planted.allocations = r->memory.calls - allocations;
        an_program_set_hook(t->program, NULL, NULL);
    }
    if (is_culprit && planted.is_unready) plant_kernel(t, kernels); /* and away again */
    r->messages.fails_at = 0;
    r->memory.fail_at = 0;
    o->same = own_hash(t) == before;
    o->again = an_trainer_step(t, NULL); /* the same step again, or the next */
    if (planted.message == 0) rank_failed(r, "hash", an_trainer_weights_hash(t, o->hash));
    o->refuses = o->again != AN_OK && an_trainer_step(t, NULL) != AN_OK;
end:
    an_trainer_destroy(&t);
}

/* The longest that a rank waited in the step. */
static double run_step_once(one_rank *ranks, int *slowest) {
    memset(outcomes, 0, sizeof outcomes);
    assert_int_equal(pthread_barrier_init(&together, NULL, (unsigned)rank_count), 0);
    run_ranks_on(ranks, rank_count, host_ranks, step_with_failure, NULL, NULL);
    pthread_barrier_destroy(&together);
    for (int i = 0; i < rank_count; i++)
        if (*ranks[i].error) fail_msg("%s", ranks[i].error);
    *slowest = 0;
    for (int i = 1; i < rank_count; i++)
        if (outcomes[i].seconds > outcomes[*slowest].seconds) *slowest = i;
    return outcomes[*slowest].seconds;
}

/* A rank that waits for another waits every time. A machine that does something else for a second does so now and
 * then, so a slow step is taken again. */
static void run_once(one_rank *ranks) {
    int slowest = 0;
    double seconds = run_step_once(ranks, &slowest);
    for (int i = 1; i < ATTEMPTS && seconds > 1; i++) seconds = run_step_once(ranks, &slowest);
    if (seconds > 1) fail_msg("rank %d waited %.1f s, in the last of %d attempts", slowest, seconds, ATTEMPTS);
}

static bool is_hybrid(void) {
    return !strcmp(strategy, "hybrid");
}

static void write_files(void) {
    FILE *file = fopen("rows.csv", "w");
    assert_non_null(file);
    fprintf(file, "a,b,sum\n");
    for (int i = 0; i < 40; i++) fprintf(file, "%.4f,%.4f,%.4f\n", i / 40.0, i % 7 / 6.0, i / 40.0 + i % 7 / 6.0);
    fclose(file);
    file = fopen("errors.yaml", "w");
    assert_non_null(file);
    /* From `gradients` on, a leaf is one micro-batch, unless a rank adds them. With 4 leaves, rank 0 has two and the
     * others have a round without one; so it is with 6 leaves on the hosts of a hybrid. */
    const bool rounds = strcmp(strategy, "none") != 0 && strcmp(strategy, "optimizer") != 0;
    fprintf(file,
            "run: {dir: run-errors, steps: 20, seed: 5}\nmodel: {type: mlp, hidden: [9, 7], dropout: 0.1}\n"
            "data: {train: {type: csv, path: rows.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n"
            "batch: {micro: 1, accumulate: %d, leaves: %d}\ntrain: {precision: f32}\n"
            "ranks: {shard: %s, unit: {min_elements: 1}}\n",
            (rounds && !adds ? 1 : 2) * (is_hybrid() ? 6 : 4), is_hybrid() ? 6 : 4, strategy);
    fclose(file);
}

/* The weights of one process after the step that fails here. */
static void remember_next(char hash[HASH_TEXT]) {
    an_context *ctx = NULL;
    an_trainer *t = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, an_trainer_open(&t, ctx, "errors.yaml", NULL));
    for (int i = 0; i <= STEPS_BEFORE; i++) OK(ctx, an_trainer_step(t, NULL));
    OK(ctx, an_trainer_weights_hash(t, hash));
    an_trainer_destroy(&t);
    an_context_destroy(&ctx);
}

static bool is_of_culprit(const char *message, const char *words) {
    char expected[64];
    snprintf(expected, sizeof expected, "rank %d: %s", culprit, words);
    return !strncmp(message, expected, strlen(expected));
}

/* All ranks have refused the step with the culprit's words, and have taken it then. */
static void check_refused(const char *what, int64_t at, an_status status, const char *words, const char *next) {
    for (int i = 0; i < rank_count; i++) {
        const outcome *o = &outcomes[i];
        if (o->status != status)
            fail_msg("%s %lld: rank %d returned %s", what, (long long)at, i, an_status_name(o->status));
        if (!is_of_culprit(o->message, words) || strcmp(o->message, outcomes[0].message) != 0)
            fail_msg("%s %lld: rank %d says '%s'", what, (long long)at, i, o->message);
        if (!o->same) fail_msg("%s %lld: the weights of rank %d have changed", what, (long long)at, i);
        if (o->again != AN_OK) fail_msg("%s %lld: rank %d cannot take the step again", what, (long long)at, i);
        if (strcmp(o->hash, next) != 0) fail_msg("%s %lld: rank %d has other weights", what, (long long)at, i);
    }
}

/* It still takes part in what others wait for. */
static void before_first_instruction_of(void) {
    one_rank ranks[MOST];
    char next[HASH_TEXT];
    remember_next(next);
    planted = (plant){.instruction = -1, .is_unready = true};
    run_once(ranks);
    check_refused("before instruction", 0, AN_ERR_KERNEL, "the planted kernel is not ready", next);
    assert_int_equal(planted.instructions, 0);
}

static void every_instruction_of(void) {
    one_rank ranks[MOST];
    planted = (plant){.instruction = -1};
    run_once(ranks);
    const int64_t instructions = planted.instructions;
    assert_true(instructions > 10);
    for (int i = 0; i < rank_count; i++) assert_int_equal(outcomes[i].status, AN_OK);
    char next[HASH_TEXT]; /* the weights after the step that failed was taken again */
    remember_next(next);
    for (int64_t at = offset++ % stride; at < instructions; at += stride) {
        planted = (plant){.instruction = at};
        run_once(ranks);
        check_refused("instruction", at, AN_ERR_HOOK, "the hook stopped", next);
    }
    print_message("%lld instructions\n", (long long)instructions);
}

/* A step allocates nothing of its own; what a kernel's library does must not stop the others either. */
static void every_allocation_of(void) {
    one_rank ranks[MOST];
    planted = (plant){.instruction = -1};
    run_once(ranks);
    const long allocations = planted.allocations;
    for (long at = 1; at <= allocations; at++) {
        planted = (plant){.instruction = -1, .allocation = at};
        run_once(ranks);
        for (int i = 0; i < rank_count; i++)
            if (outcomes[i].status != AN_ERR_MEMORY || !outcomes[i].same || outcomes[i].again != AN_OK)
                fail_msg("allocation %ld: rank %d returned %s", at, i, an_status_name(outcomes[i].status));
    }
    print_message("%ld allocations\n", allocations);
}

static void every_message_of(void) {
    one_rank ranks[MOST];
    planted = (plant){.instruction = -1};
    run_once(ranks);
    const int64_t messages = planted.messages;
    int64_t late = 0;
    assert_true(messages > (host_ranks < rank_count ? 10 : 4)); /* with shared memory, records only */
    for (int64_t at = 1 + offset++ % stride; at <= messages; at += stride) {
        planted = (plant){.instruction = -1, .message = at};
        run_once(ranks);
        int failed = 0;
        for (int i = 0; i < rank_count; i++) failed += outcomes[i].status != AN_OK;
        if (failed == 0) fail_msg("message %lld: no rank returned an error", (long long)at);
        late += failed < rank_count; /* of the second record: the others find out in the next step */
        for (int i = 0; i < rank_count; i++) {
            const outcome *o = &outcomes[i];
            if (failed == rank_count && !o->same)
                fail_msg("message %lld: the weights of rank %d have changed", (long long)at, i);
            if (o->status == AN_OK && o->again == AN_OK)
                fail_msg("message %lld: rank %d never returned an error", (long long)at, i);
            if (!o->refuses) fail_msg("message %lld: rank %d takes further steps", (long long)at, i);
            if (failed == rank_count && !strstr(o->message, "planted"))
                fail_msg("message %lld: rank %d says '%s'", (long long)at, i, o->message);
        }
    }
    print_message("%lld messages, of which %lld were too late for one step\n", (long long)messages, (long long)late);
}

#define FOR_CULPRITS(test)                                            \
    static void test(void **state) {                                  \
        (void)state;                                                  \
        for (culprit = 0; culprit < CULPRITS; culprit++) test##_of(); \
    }
FOR_CULPRITS(before_first_instruction)
FOR_CULPRITS(every_instruction)
FOR_CULPRITS(every_allocation)
FOR_CULPRITS(every_message)

static int share(void **state) {
    (void)state;
    if (!is_hybrid()) host_ranks = rank_count;
    return 0;
}

static int divide(void **state) {
    (void)state;
    host_ranks = is_hybrid() ? 2 : 1;
    return 0;
}

typedef struct {
    const char *name, *strategy;
    bool adds;
} way;

static int run_way(const way *w) {
    strategy = w->strategy;
    adds = w->adds;
    rank_count = is_hybrid() ? 4 : 3;
    (void)divide(NULL);
    write_files();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_first_instruction),
        cmocka_unit_test(every_instruction),
        cmocka_unit_test(every_allocation),
        cmocka_unit_test(every_message),
        cmocka_unit_test_setup_teardown(every_instruction, share, divide),
        cmocka_unit_test_setup_teardown(every_message, share, divide),
    };
    return cmocka_run_group_tests_name(w->name, tests, NULL, NULL);
}

int main(int argc, char **argv) {
    static const way ways[] = {{"none", "none", false},           {"optimizer", "optimizer", false},
                               {"gradients", "gradients", false}, {"full", "full", false},
                               {"hybrid", "hybrid", false},       {"gradients-adds", "gradients", true},
                               {"full-adds", "full", true}};
    int failed = 0;
    if (argc > 1) stride = (int)strtol(argv[1], NULL, 10);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        bool is_asked = argc < 3;
        for (int k = 2; k < argc; k++) is_asked |= !strcmp(argv[k], ways[i].name);
        if (is_asked) failed += run_way(&ways[i]);
    }
    return failed;
}
