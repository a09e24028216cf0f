/* No sample twice, none missed: a program that trains with the library's own resume is killed again and again, and
 * writes down which samples each step took. Whatever launch took it, a step has the same samples, and every epoch has
 * each sample once. Its saves at user steps replace each other: whenever it is killed, the checkpoint of a user step
 * whose save had returned can be opened, or a newer one.
 *
 *   ledger [KILLS]         in the working folder
 *
 * What a step trains on is what its loader gives: the linker puts __wrap_an_loader_next before an_loader_next
 * (CMakeLists.txt), so nothing of this is in the library. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "train/trainer.h"

enum {
    SAMPLES = 211,
    STEPS = 400,
    SAVE_EVERY = 9,
    OVER = 5,
    KEEP_NAMED = 3,
    MOST_TAKEN = 64,
    LINE_BYTES = 2048,
    FAILED = 1,
    KILLS = 200
};

/* Epochs with steps of 6, 12, 18 and again 6 samples; none divides the samples, so steps at the end of an epoch are
 * short. */
static const char config_text[] = "run: {dir: run, steps: %d, seed: 11}\n"
                                  "model: {type: mlp, hidden: [8], dropout: 0.2}\n"
                                  "data: {train: {type: csv, path: ledger.csv}, threads: 2}\n"
                                  "batch: {micro: 3, leaves: 2, accumulate: {0: 2, 1: 4, 3: 6, 6: 2}}\n"
                                  "save: {every: 14 steps, keep_last: 2, keep_named: %d}\n"
                                  "log: {every: 1 steps, tensorboard: off}\n";

/* What one step took. */
typedef struct taken {
    int64_t step, count;
    int64_t samples[MOST_TAKEN]; /* in the data */
    int64_t numbers[MOST_TAKEN]; /* in the run: what dropout is keyed by */
} taken;

static taken current;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names */
an_status __real_an_loader_next(an_loader *loader, an_batch *batch);
an_status __wrap_an_loader_next(an_loader *loader, an_batch *batch);

an_status __wrap_an_loader_next(an_loader *loader, an_batch *batch) {
    const an_status status = __real_an_loader_next(loader, batch);
    if (status != AN_OK || batch->part.n > MOST_TAKEN) return status;
    current.step = batch->number;
    current.count = batch->part.n;
    memcpy(current.samples, batch->indices, (size_t)batch->part.n * sizeof *batch->indices);
    return status;
}

/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- the program that is killed ---- */

static int fail(an_context *ctx, const char *what) {
    fprintf(stderr, "ledger: %s: %s\n", what, ctx ? an_last_error(ctx) : strerror(errno));
    return FAILED;
}

/* The ledger, without a line that a kill has torn: a write that crosses pages of the file may end between them. The
 * step of such a line was not saved, so it is taken again. */
static int open_ledger(void) {
    char tail[LINE_BYTES];
    const int ledger = open("ledger.txt", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    const off_t size = ledger < 0 ? -1 : lseek(ledger, 0, SEEK_END);
    if (size < 0) return -1;
    const off_t from = size > LINE_BYTES ? size - LINE_BYTES : 0;
    ssize_t length = pread(ledger, tail, LINE_BYTES, from);
    while (length > 0 && tail[length - 1] != '\n') length--;
    return length < 0 || ftruncate(ledger, from + length) != 0 ? -1 : ledger;
}

/* One line, in one write. */
static int write_line(int ledger, const an_trainer *trainer) {
    char line[LINE_BYTES];
    int length = snprintf(line, sizeof line, "%" PRId64 " %" PRId64, current.step, current.count);
    for (int64_t i = 0; i < current.count; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, " %" PRId64 ":%" PRId64, current.samples[i],
                           trainer->samples.numbers[i]);
    line[length++] = '\n';
    return write(ledger, line, (size_t)length) == length ? 0 : fail(NULL, "the ledger cannot be written");
}

/* Every OVER saves in a row have one user step. The note is put in place by a rename: it is always whole. */
static int save(an_trainer *trainer, an_context *ctx, int64_t step) {
    const int64_t user_step = step / ((int64_t)OVER * SAVE_EVERY);
    if (an_trainer_save_over(trainer, user_step) != AN_OK) return fail(ctx, "save");
    FILE *file = fopen("saved.new", "we");
    if (!file) return fail(NULL, "saved.new");
    fprintf(file, "%" PRId64 " %" PRId64 "\n", user_step, step);
    return fclose(file) == 0 && rename("saved.new", "saved.txt") == 0 ? 0 : fail(NULL, "saved.txt");
}

static an_status open_at(an_trainer **trainer, an_context *ctx, int64_t user_step) {
    an_open_options opening;
    an_open_options_init(&opening, sizeof opening);
    opening.user_step = &user_step;
    return an_trainer_open(trainer, ctx, "ledger.yaml", &opening);
}

/* Whether as many newer user steps are there as the run keeps: then this one was removed for them. Their saves need not
 * have returned: on a slow disk, one launch after another may be killed before that. */
static bool is_replaced(an_context *ctx, int64_t user_step) {
    int newer = 0;
    for (int64_t k = user_step + 1; k <= STEPS / (OVER * SAVE_EVERY); k++) {
        an_trainer *trainer = NULL;
        newer += open_at(&trainer, ctx, k) == AN_OK;
        an_trainer_destroy(&trainer);
    }
    return newer >= KEEP_NAMED;
}

/* What a launch before this one saved last is there. */
static int check_saved(an_context *ctx) {
    int64_t user_step, step;
    an_trainer *trainer = NULL;
    FILE *file = fopen("saved.txt", "re");
    if (!file) return 0;
    const int read = fscanf(file, "%" SCNd64 " %" SCNd64, &user_step, &step); /* NOLINT(cert-err34-c) */
    fclose(file);
    const an_status status = read == 2 ? open_at(&trainer, ctx, user_step) : AN_ERR_FILE;
    if (status == AN_ERR_UNKNOWN && is_replaced(ctx, user_step)) return 0;
    if (status != AN_OK) return fail(ctx, "a save that had returned cannot be opened");
    const bool is_old = an_trainer_next_step(trainer) < step;
    an_trainer_destroy(&trainer);
    return is_old ? fail(ctx, "an older save was opened than the last one") : 0;
}

static int train(void) {
    an_context *ctx = NULL;
    an_trainer *trainer = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    options.threads = 1;
    const int ledger = open_ledger();
    if (ledger < 0) return fail(NULL, "ledger.txt");
    if (an_context_create(&ctx, &options) != AN_OK) return fail(ctx, "context");
    if (check_saved(ctx) != 0) return FAILED;
    if (an_trainer_open(&trainer, ctx, "ledger.yaml", NULL) != AN_OK) return fail(ctx, "open");
    while (an_trainer_next_step(trainer) < an_trainer_steps(trainer)) {
        const int64_t step = an_trainer_next_step(trainer);
        if (an_trainer_step(trainer, &metrics) != AN_OK) return fail(ctx, "step");
        if (current.step != step || current.count != metrics.samples) return fail(ctx, "a step took other samples");
        if (write_line(ledger, trainer) != 0) return FAILED;
        if (metrics.step % SAVE_EVERY == 0 && save(trainer, ctx, metrics.step) != 0) return FAILED;
    }
    an_trainer_destroy(&trainer);
    an_context_destroy(&ctx);
    return 0;
}

/* ---- who kills it ---- */

static void wait_ms(double ms) {
    const long nanoseconds = (long)(ms * 1e6);
    nanosleep(&(struct timespec){.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000}, NULL);
}

/* One launch: its exit code, or -1 if it was killed. */
static int launch(double milliseconds) {
    int status;
    const pid_t child = fork();
    if (child == 0) _exit(train());
    if (milliseconds > 0) {
        wait_ms(milliseconds);
        kill(child, SIGKILL);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return FAILED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) == SIGKILL ? -1 : FAILED;
}

static bool read_taken(FILE *file, taken *t) {
    memset(t, 0, sizeof *t);
    if (fscanf(file, "%" SCNd64 " %" SCNd64, &t->step, &t->count) != 2) return false; /* NOLINT(cert-err34-c) */
    if (t->step < 0 || t->step >= STEPS || t->count < 1 || t->count > MOST_TAKEN) return false;
    for (int64_t i = 0; i < t->count; i++) /* NOLINTNEXTLINE(cert-err34-c): the lines are our own */
        if (fscanf(file, " %" SCNd64 ":%" SCNd64, &t->samples[i], &t->numbers[i]) != 2) return false;
    return true;
}

/* Puts all launches together; how many steps were taken more than once, or -1. */
static int64_t merge(taken *steps) {
    taken t;
    int64_t again = 0;
    FILE *file = fopen("ledger.txt", "re");
    while (file && read_taken(file, &t)) {
        taken *known = &steps[t.step];
        if (known->count == 0) {
            *known = t;
            continue;
        }
        again++;
        if (memcmp(known, &t, sizeof t) == 0) continue;
        fprintf(stderr, "ledger: step %" PRId64 " took other samples in another launch\n", t.step);
        fclose(file);
        return -1;
    }
    const bool whole = file && feof(file);
    if (file) fclose(file);
    return whole ? again : -1;
}

/* Epochs, counted off in the order of the steps: each sample once in each, and numbers of the run without a gap. */
static bool check_epochs(const taken *steps) {
    bool seen[SAMPLES] = {false};
    int64_t number = 0;
    for (int64_t step = 0; step < STEPS; step++) {
        if (steps[step].count == 0) return fprintf(stderr, "ledger: nobody took step %" PRId64 "\n", step), false;
        for (int64_t i = 0; i < steps[step].count; i++, number++) {
            const int64_t sample = steps[step].samples[i];
            if (number % SAMPLES == 0) memset(seen, 0, sizeof seen);
            if (sample < 0 || sample >= SAMPLES || seen[sample] || steps[step].numbers[i] != number) {
                fprintf(stderr,
                        "ledger: step %" PRId64 ": sample %" PRId64 " is taken twice in its epoch, or out of order\n",
                        step, sample);
                return false;
            }
            seen[sample] = true;
        }
    }
    printf("  %d steps, %" PRId64 " samples in %.1f epochs, each once\n", STEPS, number, (double)number / SAMPLES);
    return true;
}

static bool write_files(void) {
    FILE *config = fopen("ledger.yaml", "we"), *data = fopen("ledger.csv", "we");
    if (!config || !data) return false;
    fprintf(config, config_text, STEPS, KEEP_NAMED);
    fputs("a,b,y\n", data);
    for (int i = 0; i < SAMPLES; i++) fprintf(data, "%d,%d,%d\n", i % 7, i % 5, i % 3);
    const int unwritten = fclose(config) | fclose(data);
    return unwritten == 0;
}

/* A run from its first step to its last, killed until it is done or there were enough. */
static bool play(int *kills, int maximum) {
    static taken steps[STEPS];
    char folder[] = "ledger-XXXXXX";
    int code = -1, launches = 0;
    if (!mkdtemp(folder) || chdir(folder) != 0 || !write_files()) return false;
    memset(steps, 0, sizeof steps);
    while (code == -1) {
        const double milliseconds = 5 + rand() % 60; /* NOLINT(cert-msc30-c): any will do */
        code = launch(*kills < maximum ? milliseconds : 0);
        *kills += code == -1;
        launches++;
    }
    const int64_t again = code == 0 ? merge(steps) : -1;
    if (again < 0 || !check_epochs(steps)) return fprintf(stderr, "ledger: see %s\n", folder), false;
    printf("  %d launches, %" PRId64 " steps taken more than once, %d kills in all\n", launches, again, *kills);
    return chdir("..") == 0;
}

int main(int count, char **arguments) {
    int kills = 0;
    const int maximum = count > 1 ? (int)strtol(arguments[1], NULL, 10) : KILLS;
    srand((unsigned)time(NULL));
    while (kills < maximum)
        if (!play(&kills, maximum)) return FAILED;
    printf("ledger: %d kills, no sample twice, none missed\n", kills);
    return 0;
}
