/* The profile of a run: a Chrome trace of what its threads did, with the nodes of its last passes, and a table of where the time went. */
#ifndef AN_CLI_TRAIN_TRACE_H
#define AN_CLI_TRAIN_TRACE_H

#include <stdio.h>

#include "cli/train/open.h"

/* Takes the spans of a context from now on; NULL: out of memory. Nothing may have been made from the context, and the context is destroyed first. */
cli_trace *cli_trace_create(an_context *ctx);
void cli_trace_destroy(cli_trace **trace);

/* Writes the trace and closes the file. An exit code, after a message. */
int cli_trace_write(cli_trace *trace, cli_training *training, FILE *file, const char *path);
/* The table; `seconds`: how long the run took. */
void cli_trace_say(const cli_trace *trace, cli_training *training, double seconds, const char *path);

#endif
