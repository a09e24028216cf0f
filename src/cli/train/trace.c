#include "cli/train/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/profile.h"

enum { KEPT = 1 << 16 }; /* spans in the file: some ten megabytes, thousands of steps */

/* What the table has: spans of a thread by their name, each under the one that it is a part of. */
enum {
    NO_ROW = -1,
    STEP,
    DATA,
    PASSES,
    REDUCE,
    OPTIMIZER,
    NORM,
    UPDATE,
    EVALUATION,
    EVALUATION_DATA,
    EVALUATION_PASSES,
    SAVE,
    WAIT,
    LOAD,
    EVALUATION_LOAD,
    WRITE,
    ROWS
};

static const struct {
    const char *thread, *name;
    int outer;         /* NO_ROW: of the run */
    int depth;         /* of the rows around it */
    const char *label; /* NULL: the name */
} rows[ROWS] = {
    [STEP] = {"training", "step", NO_ROW, 0, NULL},
    [DATA] = {"training", "data", STEP, 1, NULL},
    [PASSES] = {"training", "forward and backward", STEP, 1, NULL},
    [REDUCE] = {"training", "reduce", STEP, 1, NULL},
    [OPTIMIZER] = {"training", "optimizer", STEP, 1, NULL},
    [NORM] = {"training", "gradient norm", OPTIMIZER, 2, NULL},
    [UPDATE] = {"training", "update", OPTIMIZER, 2, NULL},
    [EVALUATION] = {"training", "evaluation", NO_ROW, 0, NULL},
    [EVALUATION_DATA] = {"training", "evaluation data", EVALUATION, 1, "data"},
    [EVALUATION_PASSES] = {"training", "evaluation forward", EVALUATION, 1, "forward"},
    [SAVE] = {"training", "save", NO_ROW, 0, "save: copy"},
    [WAIT] = {"training", "wait for the save", NO_ROW, 0, "save: wait"},
    [LOAD] = {"loader", "load", NO_ROW, 0, "loader threads"},
    [EVALUATION_LOAD] = {"evaluation loader", "load", NO_ROW, 0, "loader threads of evaluations"},
    [WRITE] = {"save", "write", NO_ROW, 0, "save thread: write"},
};

struct cli_trace {
    pthread_mutex_t mutex; /* spans come from several threads */
    int64_t count;         /* spans so far: span i lies at i mod KEPT */
    int64_t times[ROWS];
    double seconds[ROWS];
    an_span spans[KEPT];
};

static int row_of(const an_span *span) {
    for (int r = 0; r < ROWS; r++)
        if (!strcmp(rows[r].name, span->name) && !strcmp(rows[r].thread, span->thread)) return r;
    return NO_ROW;
}

static void take(void *user, const an_span *span) {
    cli_trace *trace = user;
    const int row = row_of(span);
    pthread_mutex_lock(&trace->mutex);
    trace->spans[trace->count++ % KEPT] = *span;
    if (row != NO_ROW) {
        trace->times[row]++;
        trace->seconds[row] += span->end - span->begin;
    }
    pthread_mutex_unlock(&trace->mutex);
}

cli_trace *cli_trace_create(an_context *ctx) {
    cli_trace *trace = calloc(1, sizeof *trace);
    if (trace && pthread_mutex_init(&trace->mutex, NULL)) {
        free(trace);
        trace = NULL;
    }
    if (trace) an_context_set_span(ctx, take, trace);
    return trace;
}

void cli_trace_destroy(cli_trace **trace) {
    if (*trace) pthread_mutex_destroy(&(*trace)->mutex);
    free(*trace);
    *trace = NULL;
}

/* ---- the file ---- */

enum { MOST_THREADS = 1024 };

/* The threads that have spans: a row of the trace each. */
typedef struct {
    int count;
    struct {
        const char *name;
        int64_t index;
    } threads[MOST_THREADS];
} thread_rows;

/* That of the training thread is there from the beginning. Threads that there is no row for share the last one. */
static int64_t thread_of(thread_rows *list, const an_span *span) {
    int i = 0;
    while (i < list->count && (strcmp(list->threads[i].name, span->thread) || list->threads[i].index != span->index))
        i++;
    if (i == MOST_THREADS) i--;
    if (i == list->count) {
        list->threads[i].name = span->thread;
        list->threads[i].index = span->index;
        list->count++;
    }
    return CLI_TRACE_FIRST_ROW + i;
}

static void write_spans(const cli_trace *trace, cli_trace_file *file, thread_rows *list) {
    for (int64_t i = trace->count > KEPT ? trace->count - KEPT : 0; i < trace->count; i++) {
        const an_span *span = &trace->spans[i % KEPT];
        const cli_trace_bar bar = {.name = span->name,
                                   .category = span->thread,
                                   .row = thread_of(list, span),
                                   .begin = span->begin,
                                   .end = span->end};
        an_json_writer j;
        cli_trace_event(file, &bar, &j);
        if (span->number >= 0) an_json_write_integer(&j, "number", span->number);
        an_json_write_end(&j);
        an_json_write_finish(&j);
    }
}

/* What the viewer calls the rows. */
static void write_names(cli_trace_file *file, const thread_rows *list) {
    for (int i = 0; i < list->count; i++) {
        char name[64];
        snprintf(name, sizeof name, i == 0 ? "%s" : "%s %lld", list->threads[i].name,
                 (long long)list->threads[i].index);
        an_json_writer j = an_json_to_file(file->file, AN_JSON_FLAT);
        fputs(file->events++ ? "," : "[\n", file->file);
        an_json_write_object(&j, NULL);
        an_json_write_string(&j, "name", "thread_name");
        an_json_write_string(&j, "ph", "M"); /* metadata */
        an_json_write_integer(&j, "pid", 1);
        an_json_write_integer(&j, "tid", CLI_TRACE_FIRST_ROW + i);
        an_json_write_object(&j, "args");
        an_json_write_string(&j, "name", name);
        an_json_write_end(&j);
        an_json_write_finish(&j);
    }
}

/* The nodes of the last pass of each kind, where the run made one. */
static an_status write_nodes(cli_training *t, cli_trace_file *file) {
    static const an_form forms[] = {AN_FORM_TRAIN_FIRST, AN_FORM_TRAIN_NEXT, AN_FORM_EVALUATE};
    cli_profile profile = {0};
    an_status status = cli_machine_measure(&profile.machine, an_context_threads(t->ctx), an_context_isa(t->ctx));
    for (size_t i = 0; i < sizeof forms / sizeof *forms && status == AN_OK; i++) {
        status = cli_profile_take(&profile, an_trainer_program(t->trainer), forms[i], 0);
        if (status == AN_OK && profile.entry_count > 0 && profile.entries[0].runs > 0)
            cli_profile_write_nodes(&profile, file);
    }
    cli_profile_free(&profile);
    return status;
}

static double find_origin(const cli_trace *trace) {
    const int64_t kept = trace->count < KEPT ? trace->count : KEPT;
    double origin = kept ? trace->spans[0].begin : 0;
    for (int64_t i = 1; i < kept; i++)
        if (trace->spans[i].begin < origin) origin = trace->spans[i].begin;
    return origin;
}

int cli_trace_write(cli_trace *trace, cli_training *t, FILE *file, const char *path) {
    thread_rows *list = calloc(1, sizeof *list);
    an_status status = list ? AN_OK : AN_ERR_MEMORY;
    pthread_mutex_lock(&trace->mutex); /* a thread that still loads may have something to say */
    cli_trace_file out = {.file = file, .origin = find_origin(trace)};
    if (list) {
        list->threads[list->count++].name = "training";
        write_spans(trace, &out, list);
        write_names(&out, list);
        status = write_nodes(t, &out);
    }
    cli_trace_end(&out);
    pthread_mutex_unlock(&trace->mutex);
    free(list);
    const bool failed = ferror(file);
    if (fclose(file) != 0 || failed) return cli_fail(t->call, "%s: cannot be written: %s", path, strerror(errno));
    return status == AN_OK ? CLI_DONE : cli_fail(t->call, "not enough memory for a profile");
}

/* ---- the table ---- */

void cli_trace_say(const cli_trace *trace, cli_training *t, double seconds, const char *path) {
    enum { LABEL = 32, INDENT = 2 };
    static const double milli = 1e3, percent = 100;
    cli_say(t, "%s", "");
    cli_say(t, "%-*s%9s%12s%12s%9s", LABEL, "where the time went", "times", "each, ms", "total, s", "share");
    for (int r = 0; r < ROWS; r++) {
        if (trace->times[r] == 0) continue;
        const double whole = rows[r].outer == NO_ROW ? seconds : trace->seconds[rows[r].outer];
        cli_say(t, "%*s%-*s%9lld%12.3f%12.3f%7.1f %%", rows[r].depth * INDENT, "", LABEL - rows[r].depth * INDENT,
                rows[r].label ? rows[r].label : rows[r].name, (long long)trace->times[r],
                milli * trace->seconds[r] / (double)trace->times[r], trace->seconds[r],
                whole > 0 ? percent * trace->seconds[r] / whole : 0);
    }
    cli_say(t, "(share: of the row that it is indented under, or of the run; the trace is in %s)", path);
}
