/* What a run folder says to a process that does not train in it: who trains, what was saved, how it ended. Nothing in
 * it is trusted. */
#ifndef AN_CLI_SUPERVISE_FOLDER_H
#define AN_CLI_SUPERVISE_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { CLI_RUN_PATH = 4200 };

/* The last launch of the run, and the process that it was, as its file says; 0: there is none. */
int64_t cli_run_launch(const char *folder, long *process);
/* The path of that file. */
void cli_run_launch_path(const char *folder, int64_t launch, char path[CLI_RUN_PATH]);

/* The name of the newest checkpoint, "step-120-1"; "": there is none. */
void cli_run_checkpoint(const char *folder, char name[NAME_MAX + 1]);

typedef struct cli_run_end {
    char name[32]; /* "done", "stopped on request"; "running": none yet */
    int64_t launch, step;
} cli_run_end;
/* What outcome.json says; false: there is none that can be read. */
bool cli_run_outcome(const char *folder, cli_run_end *end);

#endif
