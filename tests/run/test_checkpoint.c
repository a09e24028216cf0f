/* Saving and carrying on, from a program: the same bits, which checkpoints stay, a host's own clock, launches
 * that overtake each other. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "anneal/run.h"
#include "store/launch.h"

#include "open/support.h" /* last, as its ctx would be shadowed */

#define CONFIG                                                                                             \
    "run: {dir: folder, steps: 24, seed: 2}\nmodel: {type: mlp, hidden: [6]}\n"                            \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]},"                           \
    " eval: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}}\nbatch: {global: 8, leaves: 2}\n" \
    "train: {precision: f32}\neval: {every: 5 steps}\n"

static int start(void **state) {
    /* NOLINTNEXTLINE(cert-env33-c): the test's own folders */
    if (setup(state) || system("rm -rf folder folder-2 stage elsewhere nobody") != 0) return 1;
    write_sums();
    return 0;
}

typedef struct {
    char weights[AN_HASH_TEXT], state[AN_HASH_TEXT];
} hashes;

static hashes hash(const an_trainer *trainer) {
    hashes h;
    OK(ctx, an_trainer_weights_hash(trainer, h.weights));
    OK(ctx, an_trainer_state_hash(trainer, h.state));
    return h;
}

static void same(hashes a, hashes b) {
    assert_string_equal(a.weights, b.weights);
    assert_string_equal(a.state, b.state);
}

/* The end of the run that is never stopped, and kept nowhere. */
static hashes undisturbed(const char *more) {
    char config[1024];
    snprintf(config, sizeof config, "%s%s", CONFIG, more);
    an_trainer *trainer = open_run(config);
    OK(ctx, an_trainer_set_folder(trainer, NULL));
    OK(ctx, an_trainer_run(trainer, NULL, NULL));
    const hashes end = hash(trainer);
    an_trainer_destroy(&trainer);
    return end;
}

/* Names in a folder that begin so, one after another in `list`; how many there are. */
static int list_names(const char *folder, const char *prefix, char *list, size_t capacity) {
    int count = 0;
    struct dirent **entries;
    list[0] = 0;
    const int all = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < all; i++) {
        if (!strncmp(entries[i]->d_name, prefix, strlen(prefix))) {
            const size_t used = strlen(list);
            snprintf(list + used, capacity - used, "%s ", entries[i]->d_name);
            count++;
        }
        free(entries[i]);
    }
    if (all >= 0) free(entries);
    return count;
}

static void has_names(const char *folder, const char *prefix, const char *expected) {
    char list[4096];
    list_names(folder, prefix, list, sizeof list);
    assert_string_equal(list, expected);
}

typedef struct {
    an_trainer *trainer;
    int64_t at; /* the step after which the run is asked to stop */
} stopping;

static an_status stop_at(void *user, an_trainer *trainer) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, an_trainer_step_metrics(trainer, &metrics));
    const stopping *s = user;
    if (metrics.step == s->at) an_trainer_request_stop(s->trainer);
    return AN_OK;
}

static an_run_outcome run_until(an_trainer *trainer, int64_t step) {
    stopping s = {trainer, step};
    an_run_options run;
    an_run_options_init(&run, sizeof run);
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    OK(ctx, an_trainer_run_options(trainer, &run));
    run.callbacks = &(const an_run_callbacks){.size = sizeof(an_run_callbacks), .after_step = stop_at, .user = &s};
    OK(ctx, an_trainer_run(trainer, &run, &outcome));
    return outcome;
}

/* Also right before an evaluation, in the middle of an epoch, and before the first step. */
static void test_stopped_after_any_step_same_bits(void **state) {
    (void)state;
    const hashes end = undisturbed("");
    for (int64_t step = 1; step < 24; step++) {
        assert_int_equal(system("rm -rf folder"), 0); /* NOLINT(cert-env33-c) */
        an_trainer *trainer = open_run(CONFIG);
        assert_null(an_trainer_resumed(trainer));
        assert_int_equal(run_until(trainer, step).end, AN_RUN_REQUESTED);
        assert_int_equal(an_trainer_next_step(trainer), step);
        const hashes before = hash(trainer);
        an_trainer_destroy(&trainer);
        trainer = open_run(CONFIG);
        assert_non_null(an_trainer_resumed(trainer));
        assert_int_equal(an_trainer_next_step(trainer), step);
        same(hash(trainer), before);
        OK(ctx, an_trainer_run(trainer, NULL, NULL));
        same(hash(trainer), end);
        an_trainer_destroy(&trainer);
    }
}

/* The same trainer goes on: an evaluation that the stop kept back comes first, and its state is saved
 * beside that of the step. */
static void test_stopped_and_run_again(void **state) {
    (void)state;
    const hashes end = undisturbed("");
    an_trainer *trainer = open_run(CONFIG "save: {every: 5 steps, keep_last: all}\n");
    for (int64_t step = 5; step < 24; step += 5) run_until(trainer, step);
    OK(ctx, an_trainer_run(trainer, NULL, NULL));
    same(hash(trainer), end);
    an_trainer_destroy(&trainer);
    OK(ctx, an_checkpoint_verify(ctx, "folder"));
}

static void test_parts_of_many_writers_are_one_state(void **state) {
    (void)state;
    const hashes end = undisturbed("");
    for (int writers = 2; writers < 12; writers += 3) {
        char config[1024];
        assert_int_equal(system("rm -rf folder"), 0); /* NOLINT(cert-env33-c) */
        snprintf(config, sizeof config, "%ssave: {every: 7 steps, writers: %d}\n", CONFIG, writers);
        an_trainer *trainer = open_run(config);
        run_until(trainer, 14);
        an_trainer_destroy(&trainer);
        char list[4096], path[256];
        an_checkpoint *checkpoint = NULL;
        an_checkpoint_info info;
        an_checkpoint_info_init(&info, sizeof info);
        OK(ctx, an_checkpoint_open(&checkpoint, ctx, "folder"));
        OK(ctx, an_checkpoint_info_get(checkpoint, &info));
        snprintf(path, sizeof path, "%s", info.path);
        assert_int_equal(list_names(path, "part-", list, sizeof list), writers);
        an_checkpoint_close(&checkpoint);
        OK(ctx, an_checkpoint_verify(ctx, "folder"));
        trainer = open_run(CONFIG); /* by another number of writers */
        assert_int_equal(an_trainer_next_step(trainer), 14);
        OK(ctx, an_trainer_run(trainer, NULL, NULL));
        same(hash(trainer), end);
        an_trainer_destroy(&trainer);
    }
}

/* The last two, every tenth, the best, and what the host named. */
static void test_which_stay(void **state) {
    char target[256] = "";
    (void)state;
    an_trainer *trainer =
        open_run(CONFIG "save: {every: 2 steps, keep_last: 2, keep_every: 10 steps}\noptimizer: {lr: 1e-2}\n");
    run_until(trainer, 3);
    OK(ctx, an_trainer_save(trainer, 77));
    OK(ctx, an_trainer_run(trainer, NULL, NULL));
    assert_int_equal(readlink("folder/best", target, sizeof target - 1) > 0, true);
    an_trainer_destroy(&trainer);
    has_names("folder/checkpoints", "step-",
              "step-00000003-1-at-77 step-00000010-1 step-00000020-1 step-00000022-1 step-00000024-1 ");
    has_names("folder/checkpoints", "unfinished-", "");
    has_names("folder/checkpoints", "removed-", "");
    assert_string_equal(target, "checkpoints/step-00000024-1");
}

/* A metric that gets worse: the best is an old one, and stays. */
static void test_best_stays(void **state) {
    char target[256] = "";
    (void)state;
    an_trainer *trainer =
        open_run(CONFIG "save: {every: 5 steps, keep_last: 1}\noptimizer: {type: sgd, lr: 1e-9, weight_decay: 0}\n"
                        "schedule: {type: points, points: {0: 1, 5: 1, 6: 3e8, 24: 3e8}}\n");
    OK(ctx, an_trainer_run(trainer, NULL, NULL));
    an_trainer_destroy(&trainer);
    const ssize_t length = readlink("folder/best", target, sizeof target - 1);
    assert_true(length > 0);
    struct stat found;
    assert_int_equal(stat("folder/best/manifest.json", &found), 0);
}

static an_status open_at(an_trainer **trainer, int64_t user_step) {
    an_open_options options;
    an_open_options_init(&options, sizeof options);
    options.user_step = &user_step;
    return an_trainer_open(trainer, ctx, "run.yaml", &options);
}

static void test_hosts_clock(void **state) {
    an_trainer *trainer = open_run(CONFIG);
    (void)state;
    assert_int_equal(an_trainer_user_step(trainer), 0);
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    hashes at[3];
    for (int i = 0; i < 3; i++) {
        OK(ctx, an_trainer_step(trainer, &metrics));
        OK(ctx, an_trainer_save(trainer, 100 * (i + 1)));
        at[i] = hash(trainer);
    }
    an_trainer_destroy(&trainer);
    OK(ctx, an_trainer_open(&trainer, ctx, "run.yaml", NULL)); /* the newest */
    assert_int_equal(an_trainer_user_step(trainer), 300);
    an_trainer_destroy(&trainer);
    OK(ctx, open_at(&trainer, 200));
    assert_int_equal(an_trainer_user_step(trainer), 200);
    same(hash(trainer), at[1]);
    an_trainer_destroy(&trainer);
    assert_int_equal(open_at(&trainer, 250), AN_ERR_UNKNOWN);
    assert_non_null(strstr(an_last_error(ctx), "folder: there is no intact checkpoint of user step 250"));
    OK(ctx, open_at(&trainer, 100));
    same(hash(trainer), at[0]);
    OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save(trainer, 250)); /* the same step of the run, by a later launch */
    an_trainer_destroy(&trainer);
    has_names("folder/checkpoints", "step-",
              "step-00000001-1-at-100 step-00000002-1-at-200 step-00000002-2-at-250 step-00000003-1-at-300 ");
}

/* A second save at a user step is refused and changes nothing, in the same launch and in a later one. */
static void test_a_user_step_is_saved_once(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    an_trainer *trainer = open_run(CONFIG);
    OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save(trainer, -7));
    OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save(trainer, 8));
    for (int launch = 0; launch < 2; launch++) {
        if (launch) OK(ctx, an_trainer_open(&trainer, ctx, "run.yaml", NULL));
        assert_true((an_trainer_resumed(trainer) != NULL) == (launch == 1));
        const hashes before = hash(trainer);
        assert_int_equal(an_trainer_save(trainer, -7), AN_ERR_STATE);
        assert_non_null(strstr(
            an_last_error(ctx),
            "folder: user step -7 is already saved as step-00000001-1-at--7; use an_trainer_save_over to replace it"));
        assert_int_equal(an_trainer_user_step(trainer), 8);
        same(hash(trainer), before);
        has_names("folder/checkpoints", "", ". .. step-00000001-1-at--7 step-00000002-1-at-8 ");
        an_trainer_destroy(&trainer);
    }
}

static void test_save_over_replaces(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    an_trainer *trainer = open_run(CONFIG);
    OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save_over(trainer, 5)); /* there is none yet */
    OK(ctx, an_trainer_save(trainer, 6));
    has_names("folder/checkpoints", "step-", "step-00000001-1-at-5 step-00000001-1-at-6 ");
    OK(ctx, an_trainer_save_over(trainer, 5)); /* the same step: a name is never used twice */
    has_names("folder/checkpoints", "step-", "step-00000001-1-at-6 step-00000001-2-at-5 ");
    OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save_over(trainer, 5));
    const hashes last = hash(trainer);
    an_trainer_destroy(&trainer);
    has_names("folder/checkpoints", "", ". .. step-00000001-1-at-6 step-00000002-2-at-5 ");
    OK(ctx, open_at(&trainer, 5));
    same(hash(trainer), last);
    assert_non_null(strstr(an_trainer_resumed(trainer), "step-00000002-2-at-5"));
    an_trainer_destroy(&trainer);
}

/* The new one cannot be written: the old one stays, and is what the run opens. */
static void test_save_over_that_fails_keeps_the_old(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    an_trainer *trainer = open_run(CONFIG);
    OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save(trainer, 5));
    const hashes saved = hash(trainer);
    OK(ctx, an_trainer_step(trainer, &metrics));
    write_text("folder/checkpoints/unfinished-00000002-1-at-5",
               "in the way"); /* a file where the folder would be made */
    assert_int_equal(an_trainer_save_over(trainer, 5), AN_ERR_FILE);
    has_names("folder/checkpoints", "step-", "step-00000001-1-at-5 ");
    an_trainer_destroy(&trainer);
    OK(ctx, open_at(&trainer, 5));
    same(hash(trainer), saved);
    an_trainer_destroy(&trainer);
}

/* save.keep_named counts saves at user steps only, whatever keep_last says of the others. */
static void test_keep_named(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    an_trainer *trainer = open_run(CONFIG "save: {every: 2 steps, keep_last: all, keep_named: 2}\n");
    for (int i = 1; i <= 4; i++) {
        OK(ctx, an_trainer_step(trainer, &metrics));
        OK(ctx, an_trainer_save(trainer, 10 * i));
    }
    has_names("folder/checkpoints", "", ". .. step-00000003-1-at-30 step-00000004-1-at-40 ");
    OK(ctx, an_trainer_save_over(trainer, 30)); /* the newest save now */
    has_names("folder/checkpoints", "", ". .. step-00000004-1-at-30 step-00000004-1-at-40 ");
    run_until(trainer, 8);
    an_trainer_destroy(&trainer);
    has_names("folder/checkpoints", "",
              ". .. step-00000004-1-at-30 step-00000004-1-at-40 step-00000005-1 step-00000006-1 step-00000008-1 ");
    /* a run that resumes may keep fewer; step 5 is the best */
    trainer = open_run(CONFIG "save: {every: 2 steps, keep_last: 1, keep_named: 1}\n");
    OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save(trainer, 50));
    an_trainer_destroy(&trainer);
    has_names("folder/checkpoints", "", ". .. step-00000005-1 step-00000009-2-at-50 ");
}

/* A crash in a save that replaces another leaves two checkpoints of one user step. They count as one: nothing
 * else has to go for them. */
static void test_keep_named_counts_user_steps(void **state) {
    static const char config[] = CONFIG "save: {every: off, keep_named: 2}\n", both[] = "folder/checkpoints";
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    an_trainer *trainer = open_run(config);
    OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save(trainer, 10));
    OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save(trainer, 20));
    an_trainer_destroy(&trainer);
    assert_int_equal(system("cp -r folder/checkpoints/step-00000002-1-at-20 aside"), 0); /* NOLINT(cert-env33-c) */
    trainer = open_run(config);
    OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save_over(trainer, 20));
    an_trainer_destroy(&trainer);
    assert_int_equal(rename("aside", "folder/checkpoints/step-00000002-1-at-20"), 0);
    has_names(both, "", ". .. step-00000001-1-at-10 step-00000002-1-at-20 step-00000003-2-at-20 ");
    trainer = open_run(config);
    OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save_over(trainer, 20));
    an_trainer_destroy(&trainer);
    has_names(both, "", ". .. step-00000001-1-at-10 step-00000004-3-at-20 ");
}

/* A launch that wakes up late finds that it has been followed, and changes nothing any more. */
static void test_an_old_launch_is_fenced(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    an_trainer *old = open_run(CONFIG), *young = NULL;
    OK(ctx, an_trainer_step(old, &metrics));
    OK(ctx, an_trainer_save(old, 1));
    OK(ctx, an_trainer_open(&young, ctx, "run.yaml", NULL));
    OK(ctx, an_trainer_step(young, &metrics));
    OK(ctx, an_trainer_save(young, 2));
    OK(ctx, an_trainer_step(old, &metrics));
    assert_int_equal(an_trainer_save(old, 3), AN_ERR_TAKEN_OVER);
    assert_non_null(strstr(an_last_error(ctx), ": launch 2 has taken over this run, so this process, launch 1"));
    assert_int_equal(an_trainer_run(old, NULL, NULL), AN_ERR_TAKEN_OVER);
    has_names("folder/checkpoints", "", ". .. step-00000001-1-at-1 step-00000002-2-at-2 ");
    OK(ctx, an_trainer_run(young, NULL, NULL));
    an_trainer_destroy(&old);
    an_trainer_destroy(&young);
}

static void test_generations_rise(void **state) {
    int64_t generation = 0;
    (void)state;
    for (int64_t i = 1; i < 20; i++) {
        OK(ctx, an_launch_claim(ctx, "folder", &generation));
        assert_int_equal(generation, i);
    }
    has_names("folder/launches", "1", "19 ");
}

/* Of a fast folder, the checkpoint that the run's own had not got yet. */
static void test_staged_first(void **state) {
    (void)state;
    const hashes end = undisturbed("");
    an_trainer *trainer = open_run(CONFIG "save: {every: 4 steps, stage: stage}\n");
    run_until(trainer, 9);
    an_trainer_destroy(&trainer);
    char list[512];
    assert_int_equal(list_names("stage", "anneal-", list, sizeof list), 1);
    assert_int_equal(system("rm -rf folder/checkpoints/step-00000009-1"), 0); /* NOLINT(cert-env33-c) */
    trainer = open_run(CONFIG "save: {every: 4 steps, stage: stage}\n");
    assert_int_equal(an_trainer_next_step(trainer), 9);
    assert_non_null(strstr(an_trainer_resumed(trainer), "stage/anneal-"));
    OK(ctx, an_trainer_run(trainer, NULL, NULL));
    same(hash(trainer), end);
    an_trainer_destroy(&trainer);
}

/* ---- the folder of another run ---- */

#define OTHER                                                                      \
    "run: {dir: elsewhere, steps: 24, seed: 3}\nmodel: {type: mlp, hidden: [6]}\n" \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}}\nbatch: {global: 8, leaves: 2}\n"

/* The program's own trainer, which saves to `folder` and keeps one checkpoint. */
static an_trainer *save_to(const char *config, const char *folder) {
    an_save_options saving;
    an_save_options_init(&saving, sizeof saving);
    an_trainer *trainer = open_run(config);
    saving.folder = folder;
    saving.every = (an_interval){.steps = 2};
    saving.keep_last = saving.keep_named = 1;
    OK(ctx, an_trainer_set_saving(trainer, &saving));
    return trainer;
}

/* A run that is over by half, with two checkpoints. */
static void half_a_run(void) {
    an_trainer *trainer = open_run(CONFIG "save: {every: 6 steps, keep_last: all}\n");
    run_until(trainer, 12);
    an_trainer_destroy(&trainer);
}

static void test_a_folder_of_another_run_is_refused(void **state) {
    static const char there[] = "step-00000005-1 step-00000006-1 step-00000010-1 step-00000012-1 ";
    static const char words[] = "folder: this folder already has the checkpoints of another run: the newest is "
                                "step-00000012-1, after step 12 of 24.";
    (void)state;
    half_a_run();
    has_names("folder/checkpoints", "step-", there);
    an_trainer *trainer = save_to(OTHER, "folder");
    FAILS(ctx, an_trainer_run(trainer, NULL, NULL), AN_ERR_STATE, words);
    assert_int_equal(an_trainer_next_step(trainer), 0);
    OK(ctx, an_trainer_step(trainer, NULL));
    FAILS(ctx, an_trainer_save(trainer, 1), AN_ERR_STATE, "To continue that run, load it before the first step");
    has_names("folder/checkpoints", "step-", there);
    OK(ctx, an_trainer_set_folder(trainer, "elsewhere")); /* another folder, and all is well */
    OK(ctx, an_trainer_run(trainer, NULL, NULL));
    an_trainer_destroy(&trainer);
    has_names("folder/checkpoints", "step-", there);
    assert_int_equal(system("rm -rf elsewhere"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    trainer = save_to(OTHER, "elsewhere");           /* nor with the state of a third run */
    OK(ctx, an_trainer_load(trainer, "folder"));
    OK(ctx, an_trainer_set_folder(trainer, "folder-2"));
    OK(ctx, an_trainer_save(trainer, 1));
    an_trainer_destroy(&trainer);
    trainer = save_to(OTHER, "folder");
    OK(ctx, an_trainer_load(trainer, "folder-2"));
    FAILS(ctx, an_trainer_run(trainer, NULL, NULL), AN_ERR_STATE, words);
    an_trainer_destroy(&trainer);
    has_names("folder/checkpoints", "step-", there);
}

/* Without a config: the run folder is loaded like a checkpoint in it, and the run goes on in its folder with the same
 * bits. */
static void test_a_run_folder_is_loaded(void **state) {
    static const char *const paths[] = {"folder", "folder/checkpoints/step-00000012-1",
                                        "folder/best/../step-00000012-1"};
    char config[1024];
    (void)state;
    const hashes end = undisturbed("");
    snprintf(config, sizeof config, "%s", CONFIG);
    memcpy(strstr(config, "dir: folder"), "dir: nobody", sizeof "dir: nobody" - 1);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_int_equal(system("rm -rf folder nobody"), 0); /* NOLINT(cert-env33-c): the test's own folders */
        half_a_run();
        an_trainer *trainer = save_to(config, "folder");
        OK(ctx, an_trainer_load(trainer, paths[i]));
        assert_int_equal(an_trainer_next_step(trainer), 12);
        assert_non_null(strstr(an_trainer_resumed(trainer), "step-00000012-1"));
        OK(ctx, an_trainer_run(trainer, NULL, NULL));
        same(hash(trainer), end);
        an_trainer_destroy(&trainer);
        has_names("folder/checkpoints", "step-00000024-", "step-00000024-2 ");
    }
    assert_int_equal(system("mkdir nobody"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    an_trainer *trainer = save_to(config, "nobody");
    FAILS(ctx, an_trainer_load(trainer, "nobody"), AN_ERR_DAMAGED, "nobody/manifest.json: is missing");
    FAILS(ctx, an_trainer_load(trainer, "nowhere"), AN_ERR_FILE, "nowhere: there is no such checkpoint or run");
    an_trainer_destroy(&trainer);
}

/* Memory that is not there: an error, nothing lost, and the run can be saved another time. */
static void test_without_memory(void **state) {
    int64_t failures = 0;
    (void)state;
    an_trainer *trainer = open_run(CONFIG);
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, an_trainer_step(trainer, &metrics));
    an_status status = AN_ERR_MEMORY;
    for (long call = 1; status != AN_OK; call++) {
        counted.calls = 0;
        counted.fail_at = call;
        counted.once = true;
        status = an_trainer_save(trainer, 5);
        counted.fail_at = 0;
        failures += status != AN_OK;
        assert_true(status == AN_OK || status == AN_ERR_MEMORY);
    }
    assert_true(failures > 10);
    an_trainer_destroy(&trainer);
    failures = 0;
    status = AN_ERR_MEMORY;
    for (long call = 1; status != AN_OK; call++) {
        counted.calls = 0;
        counted.fail_at = call;
        status = an_trainer_open(&trainer, ctx, "run.yaml", NULL);
        counted.fail_at = 0;
        failures += status != AN_OK;
        if (status != AN_OK) assert_null(trainer);
    }
    assert_true(failures > 50);
    assert_int_equal(an_trainer_next_step(trainer), 1);
    an_trainer_destroy(&trainer);
    counted.once = false;
}

static void test_other_data_is_refused(void **state) {
    an_trainer *trainer = open_run(CONFIG);
    (void)state;
    run_until(trainer, 3);
    an_trainer_destroy(&trainer);
    FILE *file = fopen("sums.csv", "a");
    assert_non_null(file);
    fputs("1,1,2,2\n", file);
    fclose(file);
    refused(CONFIG, AN_ERR_ARGUMENT, "the data is not the data that this run was trained on");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stopped_after_any_step_same_bits, start, teardown),
        cmocka_unit_test_setup_teardown(test_stopped_and_run_again, start, teardown),
        cmocka_unit_test_setup_teardown(test_parts_of_many_writers_are_one_state, start, teardown),
        cmocka_unit_test_setup_teardown(test_which_stay, start, teardown),
        cmocka_unit_test_setup_teardown(test_best_stays, start, teardown),
        cmocka_unit_test_setup_teardown(test_hosts_clock, start, teardown),
        cmocka_unit_test_setup_teardown(test_a_user_step_is_saved_once, start, teardown),
        cmocka_unit_test_setup_teardown(test_save_over_replaces, start, teardown),
        cmocka_unit_test_setup_teardown(test_save_over_that_fails_keeps_the_old, start, teardown),
        cmocka_unit_test_setup_teardown(test_keep_named, start, teardown),
        cmocka_unit_test_setup_teardown(test_keep_named_counts_user_steps, start, teardown),
        cmocka_unit_test_setup_teardown(test_an_old_launch_is_fenced, start, teardown),
        cmocka_unit_test_setup_teardown(test_generations_rise, start, teardown),
        cmocka_unit_test_setup_teardown(test_staged_first, start, teardown),
        cmocka_unit_test_setup_teardown(test_a_folder_of_another_run_is_refused, start, teardown),
        cmocka_unit_test_setup_teardown(test_a_run_folder_is_loaded, start, teardown),
        cmocka_unit_test_setup_teardown(test_without_memory, start, teardown),
        cmocka_unit_test_setup_teardown(test_other_data_is_refused, start, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
