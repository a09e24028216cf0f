/* What every communicator must do: the one of a process with itself, and those of both MPI libraries. The same program
 * runs on any of them.
 *
 *     conformance self
 *     mpirun.sh openmpi 3 conformance openmpi [large]
 */
#include <sched.h>

#include "anneal/anneal.h"
#include "comm/ranks.h"

#include "comm/conformance_record.h"

#include "comm/conformance_collectives.h"
#include "comm/conformance_gather.h"
#include "comm/conformance_layer.h"
#include "comm/conformance_scatter.h"

typedef struct {
    const char *name;
    void (*run)(an_comm *comm);
} test;
#define TEST(name) \
    { #name, test_##name }

static const test tests[] = {
    TEST(order),          TEST(any),           TEST(long),       TEST(too_long), TEST(no_such_rank),  TEST(cancel),
    TEST(split),          TEST(share),         TEST(leaves),     TEST(pieces),   TEST(merge),         TEST(merge_sends),
    TEST(moves),          TEST(sums),          TEST(reductions), TEST(rounding), TEST(disagreements), TEST(abort),
    TEST(abort_together), TEST(abort_hostile), TEST(faults),     TEST(progress), TEST(timeout),       TEST(mistakes),
    TEST(leaks),          TEST(gather),        TEST(scatter),
};
static const test large[] = {TEST(huge)};

static void run(an_comm *comm, const test *list, size_t count) {
    this_rank = comm->rank;
    CHECK(comm->size == sizeof *comm && *comm->name && comm->rank >= 0 && comm->rank < comm->ranks);
    for (size_t i = 0; i < count; i++) {
        const double begin = an_clock_seconds();
        list[i].run(comm);
        meet(comm);
        if (comm->rank == 0) printf("%-16s %6.3f s\n", list[i].name, an_clock_seconds() - begin);
    }
    if (comm->rank == 0) printf("%s, %d ranks: all tests passed\n", comm->name, comm->ranks);
}

int main(int count, char **arguments) {
    const char *mpi = count > 1 ? arguments[1] : "self";
    const bool is_self = !strcmp(mpi, "self"), is_large = count > 2 && !strcmp(arguments[2], "large");
    an_context *ctx = NULL;
    an_comm *comm = NULL;
    if (is_self) {
        OK(NULL, an_context_create(&ctx, NULL));
        OK(ctx, an_self_create(ctx, &comm));
    } else {
        OK(NULL, an_comm_start(&comm, mpi));
    }
    if (is_large)
        run(comm, large, sizeof large / sizeof *large);
    else
        run(comm, tests, sizeof tests / sizeof *tests);
    fflush(stdout);
    if (is_self) {
        comm->destroy(&comm);
        an_context_destroy(&ctx);
    } else {
        OK(NULL, an_comm_finish(&comm, mpi));
    }
    return 0;
}
