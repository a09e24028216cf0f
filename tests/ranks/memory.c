/* What a rank holds: planned, allocated, and taken of the machine. Every rank writes a line, "rank N planned N
 * allocated N taken N …".
 *
 *     mpirun -n 4 memory MPI SMALL-CONFIG CONFIG
 *
 * Taken is the proportional set size, in which a page that several ranks share counts in parts: what it is after two
 * steps, less what it was before the run was opened. By then a run of another, small model has gone through the same
 * calls, so that code, MPI and its buffers are there already. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/anneal.h"
#include "anneal/experimental.h"
#include "anneal/plan.h"
#include "anneal/ranks.h"
#include "anneal/train.h"
#include "base/context.h"

enum { STEPS = 2 };

static int fail(const an_context *ctx) {
    fprintf(stderr, "%s\n", an_last_error(ctx));
    return 1;
}

/* -1: the system does not say. */
static int64_t proportional_bytes(void) {
    char line[256];
    int64_t kilobytes = -1;
    malloc_trim(0); /* what is free is nobody's */
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && kilobytes < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, "Pss:", 4)) kilobytes = strtoll(line + 4, NULL, 10);
    if (file) fclose(file);
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

static an_status train(an_trainer **trainer, an_context *ctx, const char *config) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_status status = an_trainer_open(trainer, ctx, config, NULL);
    for (int i = 0; i < STEPS && status == AN_OK; i++) status = an_trainer_step(*trainer, &metrics);
    return status == AN_OK ? an_ranks_barrier(ctx) : status; /* others' shares of pages count, too */
}

int main(int argc, char **argv) {
    an_comm *comm = NULL;
    an_context *ctx = NULL;
    an_trainer *trainer = NULL;
    if (argc != 4) return 2;
    if (an_comm_start(&comm, argv[1]) != AN_OK) return fail(NULL);
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.communicator = comm;
    options.threads = 1;
    if (an_context_create(&ctx, &options) != AN_OK || train(&trainer, ctx, argv[2]) != AN_OK) return fail(ctx);
    an_trainer_destroy(&trainer);
    if (an_ranks_barrier(ctx) != AN_OK) return fail(ctx);
    const int64_t before = proportional_bytes(), bytes_before = (int64_t)an_context_bytes(ctx);
    if (an_ranks_barrier(ctx) != AN_OK || train(&trainer, ctx, argv[3]) != AN_OK) return fail(ctx);
    const int64_t after = proportional_bytes(), allocated = (int64_t)an_context_bytes(ctx) - bytes_before;
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    if (an_ranks_barrier(ctx) != AN_OK || an_plan_memory_get(an_trainer_plan(trainer), &memory) != AN_OK)
        return fail(ctx);
    if (before < 0 || after < 0) return 77;
    printf("rank %d planned %" PRId64 " allocated %" PRId64 " taken %" PRId64 " before %" PRId64 " weights %" PRId64
           " gradients %" PRId64 " moments %" PRId64 " leaves %" PRId64 " arena %" PRId64 "\n",
           an_context_rank(ctx), memory.peak - memory.checkpoint, allocated, after - before, before, memory.weights,
           memory.gradients, memory.optimizer, memory.leaves, memory.activations + memory.scratch);
    an_trainer_destroy(&trainer);
    an_context_destroy(&ctx);
    return an_comm_finish(&comm, argv[1]) == AN_OK ? 0 : 1;
}
