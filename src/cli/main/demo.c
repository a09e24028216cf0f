/* anneal demo: writes an example that comes with anneal to the working directory and runs it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options/settings.h"
#include "cli/train/open.h"

enum { PATH = 4096, SAMPLE = 500 };

typedef struct {
    const char *name, *summary;
    const char *folder, *config; /* in the examples */
    const char *files[3];
    const char *settings[3]; /* over the example's own */
    const char *prompt;      /* what the sample begins after; NULL: none is written */
} demo;

static const demo demos[] = {
    {.name = "char-gpt",
     .summary = "a small GPT that learns to write like Shakespeare, in about a minute",
     .folder = "shakespeare",
     .config = "char.yaml",
     .files = {"char.yaml", "tinyshakespeare.txt"},
     .settings = {AN_SETTING_TO(eval.every, "500 steps")},
     .prompt = "\n"},
    {.name = "mnist",
     .summary = "handwritten digits with a small convolutional network, in half a minute",
     .folder = "mnist",
     .config = "cnn.yaml",
     .files = {"cnn.yaml", "mnist-10k-images-idx3-ubyte.gz", "mnist-10k-labels-idx1-ubyte.gz"},
     .settings = {AN_SETTING_TO(run.epochs, "3")}},
};
enum { DEMOS = sizeof demos / sizeof *demos };

enum { FRESH };
static const cli_option options[] = {
    [FRESH] = {.name = "fresh", .help = "start again, in a new folder beside that of the first run"},
    {0},
};

/* ---- files ---- */

/* The examples: beside the program as it was installed or built. */
static bool find_examples(char *path, size_t capacity) {
    char program[PATH];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) return false;
    program[length] = 0;
    for (int i = 0; i < 2; i++) { /* without the program's name, and without bin */
        char *slash = strrchr(program, '/');
        if (!slash) return false;
        *slash = 0;
    }
    return snprintf(path, capacity, "%s/share/anneal/examples", program) < (int)capacity && access(path, R_OK) == 0;
}

/* A file that is there is left as it is: its reader was asked to change it. It appears whole or not at all. */
static int copy_file(const cli_call *call, const char *from, const char *to) {
    static char part[2 * PATH + 8];
    char block[4096];
    size_t got;
    if (access(to, F_OK) == 0) return CLI_DONE;
    snprintf(part, sizeof part, "%s.part", to);
    FILE *in = fopen(from, "rb");
    if (!in)
        return cli_fail(call, "%s: cannot be opened: %s; check that anneal is completely installed", from,
                        strerror(errno));
    FILE *out = fopen(part, "wb");
    bool good = out != NULL;
    while (good && (got = fread(block, 1, sizeof block, in)) > 0) good = fwrite(block, 1, got, out) == got;
    good = good && !ferror(in);
    if (out && fclose(out) != 0) good = false;
    good = good && rename(part, to) == 0;
    const int error = errno;
    fclose(in);
    return good ? CLI_DONE : cli_fail(call, "%s: cannot be written: %s", to, strerror(error));
}

static int write_files(const cli_call *call, const demo *d, const char *folder) {
    static char examples[PATH], from[2 * PATH], to[2 * PATH]; /* the stack may be small, and the run comes on top */
    if (!find_examples(examples, sizeof examples))
        return cli_fail(call, "the examples are not in ../share/anneal/examples, relative to this program: check that "
                              "anneal is completely installed");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return cli_fail(call,
                        "%s: the folder cannot be created: %s; a demo is written to the working directory, so run it "
                        "where you may write",
                        folder, strerror(errno));
    for (int i = 0; i < (int)(sizeof d->files / sizeof *d->files) && d->files[i]; i++) {
        snprintf(from, sizeof from, "%s/%s/%s", examples, d->folder, d->files[i]);
        snprintf(to, sizeof to, "%s/%s", folder, d->files[i]);
        const int code = copy_file(call, from, to);
        if (code != CLI_DONE) return code;
    }
    return CLI_DONE;
}

/* ---- the command ---- */

static int list(const cli_call *call) {
    for (int i = 0; i < DEMOS; i++) printf("%-10s%s\n", demos[i].name, demos[i].summary);
    printf("\n'anneal demo NAME' writes the example to ./anneal-NAME and runs it.\n");
    return cli_finish(call);
}

static int run_demo(const cli_call *call, const demo *d) {
    char folder[64], config[128], dir[128];
    cli_training training;
    cli_call as_train = *call;
    snprintf(folder, sizeof folder, "anneal-%s", d->name);
    snprintf(config, sizeof config, "%s/%s", folder, d->config);
    snprintf(dir, sizeof dir, "%s=%s/run", AN_SETTING(run.dir), folder);
    int code = write_files(call, d, folder);
    if (code != CLI_DONE) return code;
    as_train.argument = config;
    as_train.sets[as_train.set_count++] = dir;
    for (int i = 0; i < (int)(sizeof d->settings / sizeof *d->settings) && d->settings[i]; i++)
        as_train.sets[as_train.set_count++] = d->settings[i];
    const cli_opening opening = {.file = config, .fresh = call->values[FRESH] != NULL, .traces = true};
    cli_watch_signals();
    code = cli_training_open(&as_train, &opening, &training);
    if (code == CLI_DONE) code = cli_training_run(&training, opening.fresh);
    if (code == CLI_DONE && d->prompt) {
        const cli_sampling sampling = {.prompt = d->prompt, .tokens = SAMPLE, .temperature = 0.5, .seed = 1};
        printf("\nA sample of what it writes now:\n\n");
        fflush(stdout);
        code = cli_sample(&training, &sampling);
    }
    cli_training_close(&training);
    if (code != CLI_DONE) return code;
    printf("\nNext: read %s, change it, and run 'anneal train %s --fresh'.\n", config, config);
    return cli_finish(call);
}

static int run(const cli_call *call) {
    const char *names[DEMOS + 1] = {NULL};
    if (!call->argument) return list(call);
    for (int i = 0; i < DEMOS; i++) {
        names[i] = demos[i].name;
        if (!strcmp(demos[i].name, call->argument)) return run_demo(call, &demos[i]);
    }
    return cli_misuse(call, "there is no demo '%s'%s", call->argument,
                      cli_did_you_mean("", call->argument, names).text);
}

const cli_command cli_demo = {
    .name = "demo",
    .argument = "[NAME]",
    .summary = "run an example that comes with anneal",
    .text = "Lists the examples that come with anneal, or writes one of them to the working directory, trains it, and "
            "shows what it has learned. A demo that was stopped continues when it is run again.",
    .options = options,
    .run = run,
};
