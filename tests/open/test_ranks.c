/* Ranks that open a run together: rank 0 reads, all have the same, and what one cannot do none does. The ranks are
 * threads of this process. */
#include <pthread.h>

#include "anneal/open.h"
#include "anneal/ranks.h"
#include "base/context.h"
#include "base/status.h"
#include "open/support.h"
#include "support/thread_comm.h"

enum { MOST_RANKS = 5, MESSAGE = 1024 };

#define MODEL                           \
    "model: {type: mlp, hidden: [4]}\n" \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n"
static const char config[] = "run: {dir: together, steps: 4}\nbatch: {global: 8}\n" MODEL;

/* ---- ranks ---- */

typedef struct rank {
    int number, ranks;
    an_comm comm;
    thread_rank own;
    an_context_options options;
    an_context *ctx;
    void (*work)(struct rank *r);
    an_status status; /* and what is left for the test to look at */
    char message[MESSAGE];
    int64_t leaves;
    char hash[AN_HASH_TEXT];
    double loss;
    int threads;
    an_isa isa;
    pthread_t thread;
} rank;

static rank all[MOST_RANKS];

static void *run_rank(void *user) {
    rank *r = user;
    r->options.communicator = &r->comm;
    r->options.alone = true;
    if (!r->options.threads) r->options.threads = 1;
    r->status = an_context_create(&r->ctx, &r->options);
    if (r->status == AN_OK) {
        r->isa = an_context_isa(r->ctx);
        r->work(r);
    }
    snprintf(r->message, sizeof r->message, "%s", r->status == AN_OK ? "" : an_last_error(r->ctx));
    an_context_destroy(&r->ctx);
    return NULL;
}

typedef void prepare(rank *r);

/* Does the work on so many ranks; what a test prepares on each comes first. */
static void on_ranks(int ranks, prepare *before, void (*work)(rank *r)) {
    thread_hub hub;
    thread_hub_init(&hub, ranks, 1);
    for (int i = 0; i < ranks; i++) {
        all[i] = (rank){.number = i, .ranks = ranks, .work = work};
        an_context_options_init(&all[i].options, sizeof all[i].options);
        thread_comm_init(&all[i].comm, &all[i].own, &hub, i);
        if (before) before(&all[i]);
        assert_int_equal(pthread_create(&all[i].thread, NULL, run_rank, &all[i]), 0);
    }
    for (int i = 0; i < ranks; i++) pthread_join(all[i].thread, NULL);
    thread_hub_destroy(&hub);
}

static void all_say(int ranks, an_status status, const char *words) {
    for (int i = 0; i < ranks; i++) {
        if (all[i].status != status)
            fail_msg("rank %d: %s, not %s: %s", i, an_status_name(all[i].status), an_status_name(status),
                     all[i].message);
        if (!strstr(all[i].message, words)) fail_msg("rank %d: '%s' is not in: %s", i, words, all[i].message);
        assert_string_equal(all[i].message, all[0].message);
    }
}

static void look(rank *r, an_trainer *trainer) {
    an_trainer_info info;
    an_trainer_info_init(&info, sizeof info);
    if (r->status == AN_OK) r->status = an_trainer_info_get(trainer, &info);
    r->leaves = info.leaves;
    an_trainer_destroy(&trainer);
}

/* ---- opening ---- */

/* Only rank 0's file counts. */
static void open_file(rank *r) {
    an_trainer *trainer = NULL;
    r->status = an_trainer_open(&trainer, r->ctx, r->number == 0 ? "run.yaml" : "nowhere.yaml", NULL);
    look(r, trainer);
}

static void test_rank_0_reads(void **state) {
    static const int64_t leaves[] = {0, 1, 2, 4, 4, 8}; /* auto, by ranks */
    (void)state;
    write_sums();
    write_text("run.yaml", config);
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        on_ranks(ranks, NULL, open_file);
        all_say(ranks, AN_OK, "");
        for (int i = 0; i < ranks; i++) assert_int_equal(all[i].leaves, leaves[ranks]);
    }
}

static void test_mistakes_of_rank_0_are_everyones(void **state) {
    (void)state;
    write_sums();
    write_text("run.yaml", "model: {type: mlp, hiden: [4]}\n");
    on_ranks(3, NULL, open_file);
    all_say(3, AN_ERR_UNKNOWN, "run.yaml:1:20: unknown key 'model.hiden'");
    write_text("run.yaml", "run: {dir: together}\nmodel: mlp\ndata: {train: {type: csv, path: none.csv}}\n");
    on_ranks(3, NULL, open_file);
    all_say(3, AN_ERR_FILE, "none.csv");
    remove("run.yaml");
    on_ranks(2, NULL, open_file);
    all_say(2, AN_ERR_FILE, "run.yaml: the config cannot be read");
    write_text("run.yaml", "run: {dir: together}\nmodel: mlp\nbatch: {global: 2, leaves: 2}\n"
                           "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}}\n");
    on_ranks(3, NULL, open_file);
    all_say(3, AN_ERR_UNSUPPORTED, "this run has 2 leaves, so at most 2 ranks, but there are 3");
}

/* Configs that every rank has read by itself must be the same. */
static void open_own(rank *r) {
    an_config *own = NULL;
    an_trainer *trainer = NULL;
    an_config_options options;
    an_open_options open;
    an_config_options_init(&options, sizeof options);
    an_open_options_init(&open, sizeof open);
    const char *const set = r->number == 1 ? "optimizer.lr=0.5" : "optimizer.lr=0.25";
    options.file = "run.yaml";
    options.sets = &set;
    options.set_count = 1;
    r->status = an_config_create(&own, r->ctx, &options);
    if (r->status == AN_OK) r->status = an_trainer_open_config(&trainer, r->ctx, own, &open);
    look(r, trainer);
    an_config_destroy(&own);
}

static void test_other_configs_are_refused(void **state) {
    (void)state;
    write_sums();
    write_text("run.yaml", config);
    on_ranks(3, NULL, open_own);
    all_say(3, AN_ERR_ARGUMENT, "rank 1: the config here is not that of rank 0: 'lr: 0.5' here, 'lr: 0.25' there");
}

/* ---- resuming ---- */

#define RESUMED "run: {dir: resumed, steps: 8}\nbatch: {global: 8, leaves: 4}\n" MODEL

static void save_twice(rank *r) {
    an_trainer *trainer = NULL;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    r->status = an_trainer_open(&trainer, r->ctx, "run.yaml", NULL);
    for (int i = 1; r->status == AN_OK && i <= 2; i++) {
        r->status = an_trainer_step(trainer, &metrics);
        if (r->status == AN_OK) r->status = an_trainer_save(trainer, i);
    }
    an_trainer_destroy(&trainer);
}

static void open_resumed(rank *r) {
    an_trainer *trainer = NULL;
    r->status = an_trainer_open(&trainer, r->ctx, "run.yaml", NULL);
    if (r->status == AN_OK) r->leaves = an_trainer_next_step(trainer);
    an_trainer_destroy(&trainer);
}

/* Only rank 0 looks for checkpoints; the others could not. */
static void list_checkpoints(rank *r) {
    an_config *own = NULL;
    an_candidates *candidates = NULL;
    an_config_options options;
    an_open_options open;
    an_config_options_init(&options, sizeof options);
    an_open_options_init(&open, sizeof open);
    options.file = "run.yaml";
    if (r->number > 0) open.resume = "nowhere";
    r->status = an_config_read(&own, r->ctx, &options);
    if (r->status == AN_OK) r->status = an_candidates_create(&candidates, r->ctx, own, &open);
    while (r->status == AN_OK && an_candidates_path(candidates, (int)r->leaves)) r->leaves++;
    if (r->status == AN_OK && r->leaves > 0)
        snprintf(r->hash, sizeof r->hash, "%s", strrchr(an_candidates_path(candidates, 0), '/') + 1);
    an_candidates_destroy(&candidates);
    an_config_destroy(&own);
}

static void test_all_ranks_have_the_list_of_rank_0(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf resumed"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    write_sums();
    write_text("run.yaml", RESUMED);
    on_ranks(3, NULL, list_checkpoints);
    all_say(3, AN_OK, "");
    for (int i = 0; i < 3; i++) assert_int_equal(all[i].leaves, 0);
    on_ranks(1, NULL, save_twice);
    all_say(1, AN_OK, "");
    on_ranks(3, NULL, list_checkpoints);
    all_say(3, AN_OK, "");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(all[i].leaves, 2);
        assert_string_equal(all[i].hash, "step-00000002-1-at-2");
    }
}

/* All ranks go back to the same checkpoint, and all say so if there is none. */
static void test_damaged_checkpoints(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf resumed"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    write_sums();
    write_text("run.yaml", RESUMED);
    on_ranks(1, NULL, save_twice);
    all_say(1, AN_OK, "");
    on_ranks(3, NULL, open_resumed);
    all_say(3, AN_OK, "");
    for (int i = 0; i < 3; i++) assert_int_equal(all[i].leaves, 2);
    write_text("resumed/checkpoints/step-00000002-1-at-2/manifest.json", "{}");
    on_ranks(3, NULL, open_resumed);
    all_say(3, AN_OK, "");
    for (int i = 0; i < 3; i++) assert_int_equal(all[i].leaves, 1);
    write_text("resumed/checkpoints/step-00000001-1-at-1/manifest.json", "{}");
    on_ranks(3, NULL, open_resumed);
    all_say(3, AN_ERR_DAMAGED, "none of the checkpoints of this run can be read");
}

/* ---- steps on a program's own samples ---- */

/* Rank 0 has none in its first step, before it has computed anything. Together the ranks have the six samples that one
 * process has; a rank divides its own among its leaves, so the order of sums is another. */
static void step_on(rank *r) {
    static const float inputs[] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f},
                       targets[] = {0.3f, 0.1f, 0.2f, 0.6f, 0.4f, 0.5f};
    static const int first[2][4] = {{0, 0, 3, 6}, {0, 2, 2, 6}}; /* by step and rank */
    an_trainer *trainer = NULL;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    r->status = an_trainer_open(&trainer, r->ctx, "run.yaml", NULL);
    for (int step = 0; step < 2 && r->status == AN_OK; step++) {
        const int begin = r->ranks == 1 ? 0 : first[step][r->number],
                  end = r->ranks == 1 ? 6 : first[step][r->number + 1];
        r->status = an_trainer_step_on_f32(trainer, end - begin, inputs + begin, targets + begin, &metrics);
    }
    if (r->status == AN_OK) r->status = an_trainer_state_hash(trainer, r->hash);
    r->loss = metrics.loss;
    an_trainer_destroy(&trainer);
}

static void test_a_rank_without_samples(void **state) {
    (void)state;
    write_text("run.yaml", "run: {dir: stepped}\nmodel: {type: mlp, inputs: 1, outputs: 1, hidden: [4]}\n"
                           "data: {train: {type: stream}}\nbatch: {global: 8, leaves: 4}\n");
    on_ranks(1, NULL, step_on);
    all_say(1, AN_OK, "");
    const double alone = all[0].loss;
    on_ranks(3, NULL, step_on);
    all_say(3, AN_OK, "");
    for (int i = 0; i < 3; i++) {
        assert_string_equal(all[i].hash, all[0].hash);
        assert_true(fabs(all[i].loss - alone) < 1e-6 * alone);
    }
}

/* ---- what ranks compare ---- */

static void other_kernels(rank *r) {
    if (r->number == 2) r->ctx->kernel_fingerprint[0] = r->ctx->kernel_fingerprint[1] = 7;
    open_file(r);
}

static void test_other_kernels_are_refused(void **state) {
    (void)state;
    write_sums();
    write_text("run.yaml", config);
    on_ranks(3, NULL, other_kernels);
    all_say(3, AN_ERR_UNSUPPORTED,
            "but rank 2 has 00000000000000070000000000000007, so they would not compute the same");
}

/* The trainer of a program, on data of its own: rank 1 has another number in its last sample. */
static void create_trainer(rank *r) {
    float inputs[8 * 4] = {0}, targets[8 * 2] = {0};
    static const char *const names[] = {"x", "y"};
    an_graph *graph = NULL;
    an_dataset *data = NULL;
    an_trainer *trainer = NULL;
    an_trainer_options train;
    an_batch_options batch;
    an_array_source source;
    an_trainer_options_init(&train, sizeof train);
    an_batch_options_init(&batch, sizeof batch);
    an_array_source_init(&source, sizeof source);
    inputs[8 * 4 - 1] = (float)(r->number == 1);
    const an_array arrays[] = {array_of(inputs, AN_DTYPE_F32, 2, (const int64_t[]){8, 4}),
                               array_of(targets, AN_DTYPE_F32, 2, (const int64_t[]){8, 2})};
    source.array_count = 2;
    source.arrays = arrays;
    source.names = names;
    batch.global = 4;
    batch.leaves = 4;
    train.batch = &batch;
    r->status = small_mlp(&graph, r->ctx);
    if (r->status == AN_OK) r->status = an_dataset_create_arrays(&data, r->ctx, &source);
    if (r->status == AN_OK) r->status = an_trainer_create(&trainer, graph, data, NULL, &train);
    an_trainer_destroy(&trainer);
    an_dataset_destroy(&data);
    an_graph_destroy(&graph);
}

static void test_other_data_is_refused(void **state) {
    (void)state;
    on_ranks(3, NULL, create_trainer);
    all_say(3, AN_ERR_UNSUPPORTED, "rank 0 has data with the hash");
}

/* ---- contexts ---- */

static void do_nothing(rank *r) {
    r->threads = an_context_threads(r->ctx);
}

static void weak_rank(rank *r) {
    if (r->number == 1) r->options.isa = AN_ISA_BASE;
}

static void test_the_lowest_level_is_taken(void **state) {
    (void)state;
    on_ranks(3, weak_rank, do_nothing);
    all_say(3, AN_OK, "");
    for (int i = 0; i < 3; i++) assert_int_equal(all[i].isa, AN_ISA_BASE);
}

static void wrong_rank(rank *r) {
    if (r->number == 2) r->options.threads = -1;
}

static void test_a_context_that_one_rank_cannot_make_none_has(void **state) {
    (void)state;
    on_ranks(5, wrong_rank, do_nothing);
    all_say(5, AN_ERR_ARGUMENT, "rank 2: -1 threads were requested");
}

/* ---- agreeing ---- */

static void fail_on_two(rank *r) {
    if (r->number == 0) r->status = AN_OK;
    if (r->number == 1) r->status = AN_ERROR(r->ctx, AN_ERR_DAMAGED, "a page is torn");
    if (r->number == 3) r->status = AN_ERROR(r->ctx, AN_ERR_FILE, "the disk is gone");
    r->status = an_ranks_agree(r->ctx, r->status);
}

static void fail_on_one(rank *r) {
    if (r->number == 1) r->status = AN_ERROR(r->ctx, AN_ERR_DAMAGED, "a page is torn");
    r->status = an_ranks_agree(r->ctx, r->status);
}

/* A damaged file is a reason for another try, so any other error goes first. */
static void test_one_error_is_everyones(void **state) {
    (void)state;
    on_ranks(4, NULL, fail_on_two);
    all_say(4, AN_ERR_FILE, "rank 3: the disk is gone");
    on_ranks(3, NULL, fail_on_one);
    all_say(3, AN_ERR_DAMAGED, "rank 1: a page is torn");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_0_reads),
        cmocka_unit_test(test_mistakes_of_rank_0_are_everyones),
        cmocka_unit_test(test_other_configs_are_refused),
        cmocka_unit_test(test_all_ranks_have_the_list_of_rank_0),
        cmocka_unit_test(test_damaged_checkpoints),
        cmocka_unit_test(test_a_rank_without_samples),
        cmocka_unit_test(test_other_kernels_are_refused),
        cmocka_unit_test(test_other_data_is_refused),
        cmocka_unit_test(test_the_lowest_level_is_taken),
        cmocka_unit_test(test_a_context_that_one_rank_cannot_make_none_has),
        cmocka_unit_test(test_one_error_is_everyones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
