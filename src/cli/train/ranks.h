/* The ranks of a run of the command: starting them (launch.c), and being one of them (ranks.c). */
#ifndef AN_CLI_TRAIN_RANKS_H
#define AN_CLI_TRAIN_RANKS_H

#include "anneal/experimental.h"
#include "cli/main/cli.h"

/* ---- starting them ---- */

enum { CLI_LAUNCHER_WORDS = 16, CLI_LAUNCHER_PATH = 512 };

/* How local ranks are started: a launcher and its words, after which those of the program come. */
typedef struct cli_launcher {
    const char *mpi;                       /* "openmpi" or "mpich" */
    char path[CLI_LAUNCHER_PATH];          /* of the launcher */
    char number[16];                       /* of ranks, in digits */
    const char *words[CLI_LAUNCHER_WORDS]; /* the first is the launcher's name; they point into this record */
    int word_count;
} cli_launcher;

/* Finds the launcher of an MPI that anneal has a plugin for; `mpi` NULL: of any. An exit code, after a message. The
 * environment gets what the launcher needs as root. */
int cli_launcher_find(const cli_call *call, const char *mpi, int64_t ranks, cli_launcher *launcher);

/* Runs so many ranks of this command with the same arguments, but for the options whose names are in `without`, which
 * ends with NULL; the exit code of rank 0. It watches their start, passes requests to stop on to them, and leaves none
 * of them behind. */
int cli_launch(const cli_call *call, const char *mpi, int64_t ranks, const char *const *without);

/* ---- being one ---- */

typedef struct cli_ranks {
    const cli_call *call;
    an_comm *comm;   /* NULL: this process trains by itself */
    const char *mpi; /* that was started */
} cli_ranks;

/* Joins the other processes that a launcher started, if one did; `mpi` NULL: by the MPI of that launcher. From
 * then on only rank 0 prints. */
int cli_ranks_begin(const cli_call *call, const char *mpi, cli_ranks *ranks);
/* Tells the leader, if there is one, how this rank ends; ends MPI, after the context of its communicator; and gives the
 * exit code of this rank. If another rank is gone, MPI would wait for ever, so the process ends with that code after
 * one minute, or after ten seconds if the run failed. */
int cli_ranks_end(cli_ranks *ranks, int code);

#endif
