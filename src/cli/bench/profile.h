/* Where the time of the best pass went: by node as a trace, and by op and kernel as a table that compares it with the
 * peak speed of the machine. The best pass is used because other programs disturb the rest. */
#ifndef AN_CLI_BENCH_PROFILE_H
#define AN_CLI_BENCH_PROFILE_H

#include <stdio.h>

#include "anneal/plan.h"
#include "base/text/json_write.h"
#include "cli/bench/machine.h"

/* The nodes of one op that ran in one kernel on one type: their sums. */
typedef struct cli_profile_row {
    const char *op, *kernel;
    an_dtype dtype; /* of the first operand, which decides which roof there is */
    int64_t nodes;
    double seconds;
    double flops, bytes;
    double attainable; /* seconds: each node at the roof */
} cli_profile_row;

typedef struct cli_profile {
    cli_machine machine;
    int64_t entry_count;
    an_profile_entry *entries; /* by instruction */
    int row_count;
    cli_profile_row *rows; /* most time first */
    double pass;           /* seconds */
} cli_profile;

/* Takes what a program noted in its last pass, which took `seconds`, instead of what was there. A profile begins as
 * zeros and is freed by cli_profile_free, whatever this returns; AN_ERR_MEMORY has no message on the context. */
an_status cli_profile_take(cli_profile *profile, const an_program *program, an_form form, double seconds);
void cli_profile_free(cli_profile *profile);

/* Seconds that an instruction takes at the roof: its arithmetic at the machine's speed or its bytes at that of memory,
 * whichever is longer. */
double cli_profile_attainable(const cli_machine *machine, const an_profile_entry *entry);

void cli_profile_print(const cli_profile *profile);
void cli_profile_write_json(const cli_profile *profile, an_json_writer *j);
/* A bar for each node, in the format that chrome://tracing and Perfetto read. */
void cli_profile_write_trace(const cli_profile *profile, FILE *file);

/* ---- the same among other bars ---- */

enum { CLI_TRACE_FIRST_ROW = 1 }; /* of the thread that runs programs */

typedef struct cli_trace_file {
    FILE *file;
    double origin; /* seconds, on the clock of an_span, that are 0 in it */
    int64_t events;
} cli_trace_file;

typedef struct cli_trace_bar {
    const char *name, *category;
    int64_t row;
    double begin, end;
} cli_trace_bar;

/* Begins an event, in its "args": the caller writes these, and ends it with an_json_write_end and
 * an_json_write_finish. */
void cli_trace_event(cli_trace_file *trace, const cli_trace_bar *bar, an_json_writer *j);
void cli_profile_write_nodes(const cli_profile *profile, cli_trace_file *trace);
void cli_trace_end(const cli_trace_file *trace);

#endif
