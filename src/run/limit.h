/* How much time a launch has, where something outside says so. */
#ifndef AN_RUN_LIMIT_H
#define AN_RUN_LIMIT_H

#include "base/status.h"

/* Seconds that a run keeps free at the end of its job: for the step that is running and the checkpoint after it. */
enum { AN_LIMIT_MARGIN = 60 };

/* Seconds until the Slurm job that this process is in ends, less the margin; above 0, as 0 is no limit: a run that starts too late
 * stops after its first step. `place` begins the message if there is no such job, or nobody says when it ends. */
an_status an_limit_slurm(an_context *ctx, const char *place, double *seconds);

#endif
