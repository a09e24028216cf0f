/* The end of a Slurm job. Slurm says it to the job since version 23.02, as seconds since 1970. */
#include "run/limit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "config/config.h"

static const double least_seconds = 1e-3; /* one step, then stop */

an_status an_limit_slurm(an_context *ctx, const char *place, double *seconds) {
    static const char digits[] = "0123456789";
    const char *end = getenv("SLURM_JOB_END_TIME");
    int64_t at = 0;
    if (!end && !getenv("SLURM_JOB_ID"))
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "%s: run.max_time is slurm, but this is no Slurm job; start it in one, or give a time, as 3h50m", place);
    if (!end)
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "%s: run.max_time is slurm, but SLURM_JOB_END_TIME is not set, which Slurm does since 23.02; "
            "let the batch script do it: export SLURM_JOB_END_TIME=$(date -d \"$(squeue -h -j $SLURM_JOB_ID "
            "-o %%e)\" +%%s)",
            place);
    if (!*end || end[strspn(end, digits)] || !an_read_count(end, &at))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: run.max_time is slurm, but SLURM_JOB_END_TIME is '%s'; it is in seconds since 1970, as "
                        "date +%%s prints",
                        place, AN_QUOTE(end));
    const double left = (double)at - an_clock_of_day();
    if (left <= 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: run.max_time is slurm, but SLURM_JOB_END_TIME was %.0f seconds ago; it may be another "
                        "job's: unset it there, or set it anew",
                        place, -left);
    *seconds = left > AN_LIMIT_MARGIN + least_seconds ? left - AN_LIMIT_MARGIN : least_seconds;
    return AN_OK;
}
