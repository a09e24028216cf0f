/* A mistake that programs make: a collective call, an evaluation or a barrier, inside `if (rank == 0)`. Rank 0 then
 * waits for the others, and these wait for rank 0 in the next step.
 *
 *     mpirun -n 4 branched MPI REPORT_AFTER CONFIG evaluation|barrier
 *
 * Rank 0 prints a line before that call; reports go to standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/anneal.h"
#include "anneal/experimental.h"
#include "anneal/heartbeat.h"
#include "anneal/ranks.h"
#include "anneal/train.h"
#include "anneal/watch.h"

enum { STEPS = 10 };

static void report(void *user, an_watch_event event, const char *text, bool is_told) {
    (void)is_told;
    fprintf(stderr, "rank %d, event %d: %s\n", *(const int *)user, (int)event, text);
}

static int fail(const an_context *ctx) {
    fprintf(stderr, "%s\n", an_last_error(ctx));
    return 1;
}

int main(int argc, char **argv) {
    static an_heartbeat heartbeat;
    an_comm *comm = NULL;
    an_context *ctx = NULL;
    an_watch *watch = NULL;
    an_trainer *trainer = NULL;
    if (argc != 5) return 2;
    if (an_comm_start(&comm, argv[1]) != AN_OK) return fail(NULL);
    int rank = comm->rank;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_heartbeat_init(&heartbeat, sizeof heartbeat);
    options.communicator = comm;
    options.heartbeat = &heartbeat;
    options.threads = 1;
    if (an_context_create(&ctx, &options) != AN_OK) return fail(NULL);
    an_watch_options watching;
    an_watch_options_init(&watching, sizeof watching);
    watching.report_after = strtod(argv[2], NULL);
    watching.report = report;
    watching.user = &rank;
    if (an_watch_create(&watch, ctx, &watching) != AN_OK || an_trainer_open(&trainer, ctx, argv[3], NULL) != AN_OK)
        return fail(ctx);
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    for (int step = 1;; step++) {
        if (an_trainer_step(trainer, &metrics) != AN_OK) return fail(ctx);
        if (step < STEPS || rank != 0) continue;
        printf("step %d\n", step);
        fflush(stdout);
        if ((strcmp(argv[4], "barrier") != 0 ? an_trainer_evaluate(trainer, &evaluation) : an_ranks_barrier(ctx)) !=
            AN_OK)
            return fail(ctx);
    }
}
