/* Detects launchers such as mpirun and srun by the variables that they set for the processes they start.
 *
 * A run has one rank, so several processes would each train the whole model and write to the same folder.
 */
#ifndef AN_BASE_LAUNCHER_H
#define AN_BASE_LAUNCHER_H

#include "base/status.h"

typedef struct an_launcher {
    const char *name;     /* "mpirun of Open MPI" */
    const char *variable; /* that tells: the number of processes, or the rank of this one */
    int64_t value;        /* of the variable */
    int64_t processes;    /* that were started; at least so many where only the rank is known */
} an_launcher;

/* Whether a launcher started this process as one of several. */
bool an_launcher_find(an_launcher *launcher);

/* AN_ERR_UNSUPPORTED if so, unless the context's options say that this process trains alone. */
an_status an_launcher_check(an_context *ctx);

#endif
