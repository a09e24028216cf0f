/* The profile of a run: a Chrome trace of what its threads did, with the nodes of its last passes, and a
 * table of where the time went. */
#ifndef AN_CLI_TRAIN_TRACE_H
#define AN_CLI_TRAIN_TRACE_H

#include <pthread.h>
#include <stdio.h>

#include "cli/train/open.h"

/* KEPT: spans in the file, some ten megabytes, thousands of steps. */
enum { CLI_TRACE_KEPT = 1 << 16, CLI_TRACE_ROWS = 15, CLI_TRACE_NO_ROW = -1 };

/* What the table has: spans of a thread by their name, each under the one that it is a part of. */
typedef struct cli_trace_row {
    const char *thread, *name;
    int outer;         /* NO_ROW: of the run */
    int depth;         /* of the rows around it */
    const char *label; /* NULL: the name */
} cli_trace_row;
extern const cli_trace_row cli_trace_rows[CLI_TRACE_ROWS];

struct cli_trace {
    pthread_mutex_t mutex; /* spans come from several threads */
    int64_t count;         /* spans so far: span i lies at i mod CLI_TRACE_KEPT */
    int64_t times[CLI_TRACE_ROWS];
    double seconds[CLI_TRACE_ROWS];
    an_span spans[CLI_TRACE_KEPT];
};

/* Takes the spans of a context from now on; NULL: out of memory. Nothing may have been made from the context, and
 * the context is destroyed first. */
cli_trace *cli_trace_create(an_context *ctx);
void cli_trace_destroy(cli_trace **trace);

/* Writes the trace and closes the file. An exit code, after a message. */
int cli_trace_write(cli_trace *trace, cli_training *training, FILE *file, const char *path);
/* The table; `seconds`: how long the run took. */
void cli_trace_say(const cli_trace *trace, cli_training *training, double seconds, const char *path);

#endif
