/* anneal plot: the curves of runs as a picture. */
#include "cli/plot/plot.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { OUTPUT, WIDTH };
static const cli_option options[] = {
    [OUTPUT] = {.name = "output", .argument = "FILE", .help = "file for the picture (default: standard output)"},
    [WIDTH] = {.name = "width", .argument = "N", .help = "width of the picture in pixels, 640 to 4000 (default 960)"},
    {0},
};

/* Whether a path is a file that was read: nobody wants metrics to become a picture. */
static bool is_input(const char *path, const plot_run *runs, int count) {
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return false;
    for (int i = 0; i < count; i++)
        if (about.st_dev == runs[i].device && about.st_ino == runs[i].inode) return true;
    return false;
}

static int write_file(const cli_call *call, const plot_run *runs, int count, int width) {
    const char *path = call->values[OUTPUT];
    if (is_input(path, runs, count))
        return cli_misuse(call, "'%s' holds the metrics of a run; choose another file for --output", path);
    FILE *file = fopen(path, "w");
    if (!file) return cli_fail(call, "'%s' cannot be written: %s", path, strerror(errno));
    plot_draw(file, runs, count, width);
    const bool failed = ferror(file) != 0, closed = fclose(file) == 0;
    return closed && !failed ? CLI_DONE : cli_fail(call, "'%s' could not be written", path);
}

static int run(const cli_call *call) {
    static plot_run runs[PLOT_MOST_RUNS];
    int64_t width = 960;
    int code = cli_number(call, WIDTH, PLOT_LEAST_WIDTH, &width), count = 0;
    if (code != CLI_DONE) return code;
    if (width > PLOT_MOST_WIDTH) return cli_misuse(call, "--width takes at most %d pixels", PLOT_MOST_WIDTH);
    if (call->argument_count > PLOT_MOST_RUNS)
        return cli_misuse(call, "a picture can show at most %d runs, not %d", PLOT_MOST_RUNS, call->argument_count);
    for (; code == CLI_DONE && count < call->argument_count; count++)
        code = plot_run_read(call, call->arguments[count], &runs[count]);
    if (code == CLI_DONE && call->values[OUTPUT])
        code = write_file(call, runs, count, (int)width);
    else if (code == CLI_DONE) {
        plot_draw(stdout, runs, count, (int)width);
        code = cli_finish(call);
    }
    while (count > 0) plot_run_free(&runs[--count]);
    return code;
}

const cli_command cli_plot = {
    .name = "plot",
    .argument = "RUN...",
    .summary = "draw loss, learning rate and gradient norm of runs",
    .text = "Draws the metrics of one or more runs as an SVG picture: training and evaluation loss, learning rate and "
            "gradient norm, step by step. RUN is a run folder, or a file such as the metrics.jsonl in it. Runs that "
            "are still going can be drawn too.",
    .options = options,
    .run = run,
};
