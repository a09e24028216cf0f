/* anneal plot: the curves of runs as a picture. */
#include "cli/plot/plot.h"

#include <string.h>
#include <sys/stat.h>

enum { OUTPUT, WIDTH, SEPARATE };
static const cli_option options[] = {
    [OUTPUT] = {.name = "output", .argument = "FILE", .help = "file for the picture (default: standard output)"},
    [WIDTH] = {.name = "width", .argument = "N", .help = "width of the picture in pixels, 640 to 4000 (default 960)"},
    [SEPARATE] = {.name = "separate", .help = "draw runs that differ only in run.seed by themselves"},
    {0},
};

enum { MOST_FILES = 256 };

/* What is drawn, and the files that were read for it. */
typedef struct subject {
    plot_run runs[PLOT_MOST_RUNS];
    int run_count;
    struct {
        dev_t device;
        ino_t inode;
    } files[MOST_FILES];
    int file_count;
} subject;

/* Reads a run. It is added to the one that it is another seed of, or is drawn by itself. */
static int add_run(const cli_call *call, const char *argument, subject *s) {
    plot_run next = {0};
    int code = plot_run_read(call, argument, &next), of = 0;
    if (code == CLI_DONE) {
        s->files[s->file_count].device = next.device;
        s->files[s->file_count++].inode = next.inode;
        while (of < s->run_count && (call->values[SEPARATE] || !plot_run_is_seed_of(&next, &s->runs[of]))) of++;
        if (of == PLOT_MOST_RUNS)
            code = cli_misuse(call, "a picture can show at most %d runs, not %d", PLOT_MOST_RUNS, call->argument_count);
        else if (of < s->run_count && !plot_run_add_seed(&s->runs[of], &next))
            code = cli_fail(call, "out of memory");
    }
    if (code == CLI_DONE && of == s->run_count)
        s->runs[s->run_count++] = next;
    else
        plot_run_free(&next);
    return code;
}

/* Whether a path is a file that was read: nobody wants metrics to become a picture. */
static bool is_input(const char *path, const subject *s) {
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return false;
    for (int i = 0; i < s->file_count; i++)
        if (about.st_dev == s->files[i].device && about.st_ino == s->files[i].inode) return true;
    return false;
}

static int write_file(const cli_call *call, const subject *s, int width) {
    const char *path = call->values[OUTPUT];
    if (is_input(path, s))
        return cli_misuse(call, "'%s' holds the metrics of a run; choose another file for --output", path);
    FILE *file = cli_file_open(call, path, "w");
    if (!file) return CLI_FAILED;
    plot_draw(file, s->runs, s->run_count, width);
    return cli_file_close(call, path, file);
}

static int run(const cli_call *call) {
    static subject s;
    int64_t width = 960;
    int code = cli_number(call, WIDTH, PLOT_LEAST_WIDTH, &width);
    if (code != CLI_DONE) return code;
    if (width > PLOT_MOST_WIDTH) return cli_misuse(call, "--width takes at most %d pixels", PLOT_MOST_WIDTH);
    if (call->argument_count > MOST_FILES) return cli_misuse(call, "at most %d runs can be read at once", MOST_FILES);
    for (int i = 0; code == CLI_DONE && i < call->argument_count; i++) code = add_run(call, call->arguments[i], &s);
    for (int i = 0; code == CLI_DONE && i < s.run_count; i++)
        if (!plot_run_finish(&s.runs[i])) code = cli_fail(call, "out of memory");
    if (code == CLI_DONE && call->values[OUTPUT])
        code = write_file(call, &s, (int)width);
    else if (code == CLI_DONE) {
        plot_draw(stdout, s.runs, s.run_count, (int)width);
        code = cli_finish(call);
    }
    while (s.run_count > 0) plot_run_free(&s.runs[--s.run_count]);
    return code;
}

const cli_command cli_plot = {
    .name = "plot",
    .argument = "RUN...",
    .summary = "draw loss, accuracy and other metrics of runs",
    .text = "Draws the metrics of one or more runs as an SVG picture: training and evaluation loss, accuracy and other "
            "metrics of evaluations, learning rate and gradient norm, step by step. The loss of each step is pale, "
            "with a smoothed line above it. RUN is a run folder, or a file such as the metrics.jsonl in it. Runs that "
            "are still going can be drawn too.\n"
            "Run folders whose configs differ only in run.seed and run.dir are drawn as one: the mean of the seeds, in "
            "a band from the lowest to the highest.",
    .options = options,
    .run = run,
};
