/* How much time a launch has, if something outside limits it: the end of a Slurm job. Since version 23.02, Slurm
 * tells the job, in seconds since 1970. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/run.h"
#include "base/guard.h"
#include "base/system/clock.h"
#include "config/config.h"

/* Seconds that a run keeps free at the end of its job: for the step that is running and the checkpoint after it. */
enum { MARGIN = 60 };

static const double least_seconds = 1e-3; /* one step, then stop */

an_status an_job_seconds(an_context *ctx, double *seconds) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, seconds);
    static const char digits[] = "0123456789";
    const char *end = getenv("SLURM_JOB_END_TIME");
    int64_t at = 0;
    if (!end && !getenv("SLURM_JOB_ID"))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "this is not a Slurm job; start it in one, or set a time such as 3h50m");
    if (!end)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "SLURM_JOB_END_TIME is not set (Slurm sets it since 23.02); set it in the batch script: export "
                        "SLURM_JOB_END_TIME=$(date -d \"$(squeue -h -j $SLURM_JOB_ID -o %%e)\" +%%s)");
    if (!*end || end[strspn(end, digits)] || !an_read_count(end, &at))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "SLURM_JOB_END_TIME is '%s'; it must be in seconds since 1970, as printed by date +%%s",
                        AN_QUOTE(end));
    const double left = (double)at - an_clock_of_day();
    if (left <= 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "SLURM_JOB_END_TIME was %.0f seconds ago; it may belong to another job: unset it, or set it to "
                        "the end of this job",
                        -left);
    *seconds = left > MARGIN + least_seconds ? left - MARGIN : least_seconds;
    return AN_OK;
}
