#include "cli/train/trace.h"

#include <stdlib.h>
#include <string.h>

/* Rows of the table. */
enum {
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

const cli_trace_row cli_trace_rows[ROWS] = {
    [STEP] = {"training", "step", CLI_TRACE_NO_ROW, 0, NULL},
    [DATA] = {"training", "data", STEP, 1, NULL},
    [PASSES] = {"training", "forward and backward", STEP, 1, NULL},
    [REDUCE] = {"training", "reduce", STEP, 1, NULL},
    [OPTIMIZER] = {"training", "optimizer", STEP, 1, NULL},
    [NORM] = {"training", "gradient norm", OPTIMIZER, 2, NULL},
    [UPDATE] = {"training", "update", OPTIMIZER, 2, NULL},
    [EVALUATION] = {"training", "evaluation", CLI_TRACE_NO_ROW, 0, NULL},
    [EVALUATION_DATA] = {"training", "evaluation data", EVALUATION, 1, "data"},
    [EVALUATION_PASSES] = {"training", "evaluation forward", EVALUATION, 1, "forward"},
    [SAVE] = {"training", "save", CLI_TRACE_NO_ROW, 0, "save: copy"},
    [WAIT] = {"training", "wait for the save", CLI_TRACE_NO_ROW, 0, "save: wait"},
    [LOAD] = {"loader", "load", CLI_TRACE_NO_ROW, 0, "loader threads"},
    [EVALUATION_LOAD] = {"evaluation loader", "load", CLI_TRACE_NO_ROW, 0, "loader threads of evaluations"},
    [WRITE] = {"save", "write", CLI_TRACE_NO_ROW, 0, "save thread: write"},
};

_Static_assert((int)ROWS == (int)CLI_TRACE_ROWS, "the header says how many");

static int row_of(const an_span *span) {
    for (int r = 0; r < ROWS; r++)
        if (!strcmp(cli_trace_rows[r].name, span->name) && !strcmp(cli_trace_rows[r].thread, span->thread)) return r;
    return CLI_TRACE_NO_ROW;
}

static void take(void *user, const an_span *span) {
    cli_trace *trace = user;
    const int row = row_of(span);
    pthread_mutex_lock(&trace->mutex);
    trace->spans[trace->count++ % CLI_TRACE_KEPT] = *span;
    if (row != CLI_TRACE_NO_ROW) {
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
