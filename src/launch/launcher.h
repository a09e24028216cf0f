/* Detects launchers such as mpirun and srun by the variables that they set for the processes they start.
 *
 * Processes that were started together and do not know of each other would each train the whole model and write to the
 * same folder. That happens without MPI, and with an MPI library that is not the launcher's: it silently gives every
 * process a world of its own. */
#ifndef AN_LAUNCH_LAUNCHER_H
#define AN_LAUNCH_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "anneal/core.h"

typedef struct an_launcher {
    const char *name; /* "mpirun of Open MPI" */
    const char *mpi;  /* whose processes find each other: "openmpi", "mpich"; "": any, if it was told to; NULL: none */
    const char *variable; /* that tells: the number of processes, or the rank of this one */
    int64_t value;        /* of the variable */
    int64_t rank;         /* of this process */
    int64_t processes;    /* that were started; at least so many where only the rank is known */
    bool is_exact;        /* that is their number */
} an_launcher;

/* Whether a launcher started this process as one of several, or as one of a number that it does not say. */
bool an_launcher_find(an_launcher *launcher);

/* An error if a launcher started several processes, but the context has no other rank than this one; unless
 * the context's options say that this process trains alone. A communicator that has some of the processes
 * is what the program wants. */
an_status an_launcher_check(an_context *ctx);

#endif
