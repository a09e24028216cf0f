/* The profile of a run as a file and as a table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/profile.h"
#include "cli/train/trace.h"

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
    for (int64_t i = trace->count > CLI_TRACE_KEPT ? trace->count - CLI_TRACE_KEPT : 0; i < trace->count; i++) {
        const an_span *span = &trace->spans[i % CLI_TRACE_KEPT];
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
    const int64_t kept = trace->count < CLI_TRACE_KEPT ? trace->count : CLI_TRACE_KEPT;
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
    for (int r = 0; r < CLI_TRACE_ROWS; r++) {
        if (trace->times[r] == 0) continue;
        const double whole =
            cli_trace_rows[r].outer == CLI_TRACE_NO_ROW ? seconds : trace->seconds[cli_trace_rows[r].outer];
        cli_say(t, "%*s%-*s%9lld%12.3f%12.3f%7.1f %%", cli_trace_rows[r].depth * INDENT, "",
                LABEL - cli_trace_rows[r].depth * INDENT,
                cli_trace_rows[r].label ? cli_trace_rows[r].label : cli_trace_rows[r].name, (long long)trace->times[r],
                milli * trace->seconds[r] / (double)trace->times[r], trace->seconds[r],
                whole > 0 ? percent * trace->seconds[r] / whole : 0);
    }
    cli_say(t, "(share: of the row that it is indented under, or of the run; the trace is in %s)", path);
}
