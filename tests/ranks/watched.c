/* Ranks that do nothing but wait for each other, step after step, and watch each other meanwhile: what tests of hangs
 * stop and cut off.
 *
 *     mpirun -n 4 watched MPI REPORT_AFTER
 *
 * Rank 0 prints a line for each second; reports go to standard error. It ends with an error, or when it is killed. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "anneal/experimental.h"
#include "anneal/watch.h"
#include "base/heartbeat.h"
#include "base/system/clock.h"
#include "comm/comm.h"

static void report(void *user, an_watch_event event, const char *text, bool is_told) {
    (void)is_told;
    fprintf(stderr, "rank %d, event %d: %s\n", *(const int *)user, (int)event, text);
}

static int fail(const an_context *ctx) {
    fprintf(stderr, "%s\n", an_last_error(ctx));
    return 1;
}

static void merge(void *user, void *record, const void *next) {
    (void)user;
    *(int64_t *)record += *(const int64_t *)next;
}

static an_status step(an_context *ctx, an_comm *comm, int64_t number) {
    int64_t record = number, received;
    const an_comm_merger merger = {
        .bytes = sizeof record, .merge = merge, .received = &received, .what = "the step record of all ranks"};
    an_heartbeat_step_set(ctx, number);
    an_heartbeat_say_place(ctx, AN_HEARTBEAT_BACKWARD, "blocks.3.attention", "attention");
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* what takes time in a step */
    return an_comm_merge(ctx, comm, &merger, &record);
}

int main(int argc, char **argv) {
    static an_heartbeat heartbeat;
    an_comm *comm = NULL;
    an_context *ctx = NULL;
    an_watch *watch = NULL;
    if (argc < 3) return 2;
    if (an_comm_start(&comm, argv[1]) != AN_OK) return fail(NULL);
    int rank = comm->rank;
    an_heartbeat_init(&heartbeat, sizeof heartbeat);
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.communicator = comm;
    options.heartbeat = &heartbeat;
    options.threads = 1;
    if (an_context_create(&ctx, &options) != AN_OK) return fail(NULL);
    an_watch_options watching;
    an_watch_options_init(&watching, sizeof watching);
    watching.report_after = strtod(argv[2], NULL);
    watching.report = report;
    watching.user = &rank;
    if (an_watch_create(&watch, ctx, &watching) != AN_OK) return fail(ctx);
    double told = an_clock_seconds();
    an_status status = AN_OK;
    for (int64_t number = 1; status == AN_OK; number++) {
        const double now = an_clock_seconds();
        status = step(ctx, comm, number);
        if (rank == 0 && now - told > 1) {
            printf("step %lld\n", (long long)number);
            fflush(stdout);
            told = now;
        }
    }
    return fail(ctx);
}
