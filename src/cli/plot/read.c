/* Reads the metrics of a run, one JSON object per line. Nothing in the file is trusted: lines are read one by one,
 * their length is limited, and every number is checked. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/regular.h"
#include "base/text/json.h"
#include "cli/plot/plot.h"

static const char *const keys[PLOT_METRICS] = {
    [PLOT_LOSS] = "loss",
    [PLOT_LR] = "lr",
    [PLOT_GRAD_NORM] = "grad_norm",
    [PLOT_VAL_LOSS] = "val_loss",
    [PLOT_ACCURACY] = "accuracy",
    [PLOT_VAL_ACCURACY] = "val_accuracy",
    [PLOT_VAL_TOP5] = "val_top5",
    [PLOT_VAL_F1] = "val_f1",
    [PLOT_VAL_PRECISION] = "val_precision",
    [PLOT_VAL_RECALL] = "val_recall",
    [PLOT_VAL_AUC] = "val_auc",
    [PLOT_VAL_MAE] = "val_mae",
    [PLOT_VAL_R2] = "val_r2",
};

static const double most_step = 0x1p53; /* up to here a double has every whole number */
/* Beyond these a scale could overflow: such numbers are as good as infinite, or 0. */
static const double most_value = 1e100, least_value = 1e-100;

/* ---- lines ---- */

enum { LINE_BYTES = 1 << 20 }; /* a norm of each of some ten thousand parameters fits */

typedef struct lines {
    FILE *file;
    char *buffer;      /* LINE_BYTES */
    size_t begin, end; /* of what was read and not yet given */
    int64_t number;    /* of the line given last */
    bool is_ended;     /* the file is */
} lines;

typedef struct line {
    char *text; /* reading it changes it */
    size_t length;
    bool is_whole; /* a newline ended it */
} line;

typedef enum line_result { LINE_GIVEN, LINE_NONE, LINE_TOO_LONG, LINE_UNREADABLE } line_result;

static line_result next_line(lines *l, line *out) {
    for (;;) {
        char *text = l->buffer + l->begin;
        const char *newline = memchr(text, '\n', l->end - l->begin);
        if (newline || (l->is_ended && l->end > l->begin)) {
            *out = (line){text, newline ? (size_t)(newline - text) : l->end - l->begin, newline != NULL};
            l->begin += out->length + (newline ? 1 : 0);
            l->number++;
            return LINE_GIVEN;
        }
        if (l->is_ended) return LINE_NONE;
        memmove(l->buffer, text, l->end - l->begin);
        l->end -= l->begin;
        l->begin = 0;
        if (l->end == LINE_BYTES) return LINE_TOO_LONG;
        l->end += fread(l->buffer + l->end, 1, LINE_BYTES - l->end, l->file);
        if (ferror(l->file)) return LINE_UNREADABLE;
        l->is_ended = feof(l->file) != 0;
    }
}

static bool is_blank(const line *l) {
    for (size_t i = 0; i < l->length; i++)
        if (!strchr(" \t\r", l->text[i]) || !l->text[i]) return false;
    return true;
}

/* ---- objects ---- */

static int broken(const cli_call *call, const plot_run *run, int64_t number, const char *what) {
    return cli_fail(call, "%s:%lld: %s; remove that line, or plot a copy of the file without it", run->path,
                    (long long)number, what);
}

/* The members of an object that are drawn, and its step. */
enum { STEP = PLOT_METRICS, KEYS };
typedef enum value_kind { VALUE_MISSING, VALUE_NUMBER, VALUE_NULL, VALUE_OTHER } value_kind;
typedef struct member {
    value_kind kind;
    double number;
} member;

static bool read_value(an_json *json, member *m) {
    const int first = an_json_peek(json);
    m->kind = first == 'n' ? VALUE_NULL : first == '-' || (first >= '0' && first <= '9') ? VALUE_NUMBER : VALUE_OTHER;
    return m->kind == VALUE_NUMBER ? an_json_real(json, &m->number) : an_json_skip(json);
}

static bool read_object(an_json *json, member members[KEYS]) {
    an_json_string key;
    if (!an_json_object(json)) return false;
    while (an_json_member(json, &key)) {
        int i = 0;
        while (i < KEYS && strcmp(key.bytes, i == STEP ? "step" : keys[i]) != 0) i++;
        if (i < KEYS && members[i].kind != VALUE_MISSING)
            return an_json_refuse(json, (size_t)(key.bytes - json->text) - 1, "a key appears twice");
        if (!(i < KEYS ? read_value(json, &members[i]) : an_json_skip(json))) return false;
    }
    return an_json_end(json);
}

static int take_object(const cli_call *call, plot_run *run, int64_t number, const member members[KEYS]) {
    char what[96];
    const double at = members[STEP].number;
    if (members[STEP].kind == VALUE_MISSING) return broken(call, run, number, "the object has no 'step'");
    if (members[STEP].kind != VALUE_NUMBER || at < 0 || at > most_step || at != floor(at))
        return broken(call, run, number, "'step' is not a whole number from 0 to 2^53");
    for (int metric = 0; metric < PLOT_METRICS; metric++) {
        const member *m = &members[metric];
        if (m->kind == VALUE_MISSING) continue;
        if (m->kind == VALUE_OTHER) {
            snprintf(what, sizeof what, "'%s' is neither a number nor null", keys[metric]);
            return broken(call, run, number, what);
        }
        const double y = fabs(m->number) < least_value ? 0 : m->number;
        const bool is_norm = metric == PLOT_GRAD_NORM; /* a norm of 0 has no place on a logarithmic scale */
        const bool can_be_drawn = m->kind == VALUE_NUMBER && fabs(y) <= most_value && (!is_norm || y > 0);
        if (!plot_curve_add(&run->curves[metric], (int64_t)at, can_be_drawn ? y : NAN))
            return cli_fail(call, "out of memory");
    }
    if (run->last_step < 0 || (int64_t)at < run->first_step) run->first_step = (int64_t)at;
    if ((int64_t)at > run->last_step) run->last_step = (int64_t)at;
    return CLI_DONE;
}

static int take_line(const cli_call *call, plot_run *run, int64_t number, const line *l) {
    char what[128];
    an_json json;
    member members[KEYS] = {{.kind = VALUE_MISSING}};
    an_json_init(&json, l->text, l->length);
    const bool is_object = an_json_peek(&json) == '{';
    if (is_object ? read_object(&json, members) : an_json_skip(&json) && an_json_end(&json))
        return is_object ? take_object(call, run, number, members)
                         : broken(call, run, number, "this is JSON, but not an object");
    if (l->is_whole) {
        snprintf(what, sizeof what, "this is not a JSON object (%s, at byte %zu)", json.problem, json.at + 1);
        return broken(call, run, number, what);
    }
    fprintf(stderr,
            "anneal plot: note: %s:%lld is incomplete and was skipped: the run was killed there, or is still writing\n",
            run->path, (long long)number);
    return CLI_DONE;
}

static int read_lines(const cli_call *call, plot_run *run, lines *l) {
    line next;
    line_result result;
    int code = CLI_DONE;
    while (code == CLI_DONE && (result = next_line(l, &next)) == LINE_GIVEN)
        if (!is_blank(&next)) code = take_line(call, run, l->number, &next);
    if (code != CLI_DONE) return code;
    if (result == LINE_UNREADABLE) return cli_fail(call, "'%s' cannot be read: %s", run->path, strerror(errno));
    if (result == LINE_TOO_LONG) return broken(call, run, l->number + 1, "the line is longer than 1 MiB");
    return CLI_DONE;
}

/* ---- the file ---- */

static char *join(const char *folder, const char *file) {
    const size_t size = strlen(folder) + strlen(file) + 2;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s%s%s", folder, *file ? "/" : "", file);
    return path;
}

/* "runs/a" for runs/a/ and runs/a/metrics.jsonl. */
static void strip(char *name, const char *file) {
    size_t length = strlen(name);
    const size_t tail = strlen(file);
    if (length > tail + 1 && name[length - tail - 1] == '/' && !strcmp(name + length - tail, file)) length -= tail;
    while (length > 1 && name[length - 1] == '/') length--;
    name[length] = 0;
}

/* The config of a run folder. NULL: there is none that can be read, which only means that seeds are not recognized. */
static char *read_config(const char *folder) {
    char *path = join(folder, "config.yaml"), *text = NULL;
    FILE *file = path ? an_regular_read(path) : NULL;
    if (file) text = malloc(LINE_BYTES + 1);
    const size_t length = text ? fread(text, 1, LINE_BYTES, file) : 0;
    if (text) text[length] = 0;
    if (text && (ferror(file) || length == LINE_BYTES)) {
        free(text);
        text = NULL;
    }
    if (file) fclose(file);
    free(path);
    return text;
}

static int open_metrics(const cli_call *call, const char *argument, plot_run *run, FILE **file) {
    static const char name[] = "metrics.jsonl";
    struct stat about;
    const bool is_found = stat(argument, &about) == 0, is_folder = is_found && S_ISDIR(about.st_mode);
    if (!is_found)
        return cli_fail(call, "'%s' cannot be read: %s; give a run folder, or its %s", argument, strerror(errno), name);
    run->name = join(argument, "");
    run->path = join(argument, is_folder ? name : "");
    if (!run->name || !run->path) return cli_fail(call, "out of memory");
    strip(run->name, name);
    *file = is_folder ? an_regular_read(run->path) : fopen(run->path, "r");
    if (!*file && is_folder && errno == ENOENT)
        return cli_fail(call, "'%s' has no %s; give a run folder (run.dir) with at least one logged step", argument,
                        name);
    if (!*file || fstat(fileno(*file), &about) != 0)
        return cli_fail(call, "'%s' cannot be read: %s; check its permissions", run->path, strerror(errno));
    run->device = about.st_dev;
    run->inode = about.st_ino;
    if (is_folder) run->config = read_config(argument);
    return CLI_DONE;
}

int plot_run_read(const cli_call *call, const char *argument, plot_run *run) {
    lines l = {.buffer = calloc(1, LINE_BYTES)};
    run->last_step = -1;
    run->seeds = 1;
    if (!l.buffer) return cli_fail(call, "out of memory");
    int code = open_metrics(call, argument, run, &l.file);
    if (code == CLI_DONE) code = read_lines(call, run, &l);
    if (code == CLI_DONE && run->last_step < 0)
        code = cli_fail(call, "'%s' has no steps yet; plot it after the run has logged one (log.every)", run->path);
    if (l.file) fclose(l.file);
    free(l.buffer);
    return code;
}

void plot_run_free(plot_run *run) {
    for (int metric = 0; metric < PLOT_METRICS; metric++) {
        plot_curve_free(&run->curves[metric]);
        plot_curve_free(&run->spreads[metric]);
    }
    free(run->config);
    free(run->path);
    free(run->name);
    *run = (plot_run){0};
}
