/* A host that has MPI of its own, built with each MPI library:
 *
 *     mpirun.sh openmpi 4 guest_openmpi single|multiple
 *
 * It initializes MPI with this level of threads, gives each half of its processes a context of its own, and computes in both at the same time while its own messages, with
 * the same tags, are under way. Meanwhile functions of MPI are watched (by PMPI): the library makes no call on the host's own communicators but the one that duplicates.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/anneal.h"
#include "anneal/mpi.h"

static int rank, is_inside; /* of a call of the library */
static int foreign_calls, duplications, messages, aborts;
static MPI_Comm half;

#define CHECK(condition)                                                                             \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "rank %d: %s:%d: not true: %s\n", rank, __FILE__, __LINE__, #condition); \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

#define INSIDE(call)                                                                               \
    do {                                                                                           \
        is_inside = 1;                                                                             \
        const an_status status_ = (call);                                                          \
        is_inside = 0;                                                                             \
        if (status_ != AN_OK) {                                                                    \
            fprintf(stderr, "rank %d: %s:%d: %s\n", rank, __FILE__, __LINE__, an_last_error(ctx)); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* ---- what the library calls ---- */

static void watch(MPI_Comm comm) {
    if (is_inside && (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF || comm == half)) foreign_calls++;
}

int MPI_Isend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
              MPI_Request *request) {
    watch(comm);
    messages += is_inside;
    return PMPI_Isend(buf, count, datatype, dest, tag, comm, request);
}

int MPI_Irecv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request) {
    watch(comm);
    return PMPI_Irecv(buf, count, datatype, source, tag, comm, request);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm) {
    duplications += is_inside && comm == half;
    if (comm != half) watch(comm);
    return PMPI_Comm_dup(comm, newcomm);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm) {
    watch(comm);
    return PMPI_Comm_split(comm, color, key, newcomm);
}

int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm) {
    watch(comm);
    return PMPI_Comm_split_type(comm, split_type, key, info, newcomm);
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler) {
    watch(comm);
    return PMPI_Comm_set_errhandler(comm, errhandler);
}

int MPI_Comm_free(MPI_Comm *comm) {
    watch(*comm);
    return PMPI_Comm_free(comm);
}

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
    watch(comm);
    return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

int MPI_Barrier(MPI_Comm comm) {
    watch(comm);
    return PMPI_Barrier(comm);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
    watch(comm);
    return PMPI_Bcast(buffer, count, datatype, root, comm);
}

/* The library never ends the program. */
int MPI_Abort(MPI_Comm comm, int errorcode) {
    aborts += is_inside;
    return PMPI_Abort(comm, errorcode);
}

/* ---- the host ---- */

int main(int count, char **arguments) {
    const int wanted = count > 1 && !strcmp(arguments[1], "multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    int level, ranks, mine = -1, peers, finalized;
    an_context *ctx = NULL;
    MPI_Init_thread(&count, &arguments, wanted, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half); /* in the opposite order */
    MPI_Comm_rank(half, &mine);
    MPI_Comm_size(half, &peers);

    INSIDE(an_context_create_mpi(&ctx, half, NULL));
    CHECK(an_rank(ctx) == mine && an_ranks(ctx) == peers && duplications == 1);
    for (int round = 0; round < 50; round++) {
        /* The host's own message, with a tag that the library uses too, is on its way during the library's call. */
        int sent = round * 100 + mine, received = -1;
        int64_t sum = mine + 1;
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Irecv(&received, 1, MPI_INT, (mine + peers - 1) % peers, round % 5 + 1, half, &requests[0]);
        MPI_Isend(&sent, 1, MPI_INT, (mine + 1) % peers, round % 5 + 1, half, &requests[1]);
        INSIDE(an_all_reduce(ctx, &sum, 1, AN_DTYPE_I64, AN_REDUCE_SUM));
        CHECK(sum == (int64_t)peers * (peers + 1) / 2);
        MPI_Waitall(2, requests, statuses);
        CHECK(received == round * 100 + (mine + peers - 1) % peers);
    }
    CHECK(peers == 1 || messages > 0); /* else nothing was watched */
    /* The other half may be in the middle of its work. */
    is_inside = 1;
    an_context_destroy(&ctx);
    is_inside = 0;
    CHECK(foreign_calls == 0 && aborts == 0);

    /* One process alone, and a communicator that is none. */
    INSIDE(an_context_create_mpi(&ctx, MPI_COMM_SELF, NULL));
    CHECK(an_ranks(ctx) == 1);
    an_context_destroy(&ctx);
    CHECK(an_context_create_mpi(&ctx, MPI_COMM_NULL, NULL) == AN_ERR_ARGUMENT && !ctx);
    CHECK(strstr(an_last_error(NULL), "MPI_COMM_NULL"));

    const MPI_Fint handle = MPI_Comm_c2f(MPI_COMM_WORLD);
    MPI_Comm_free(&half);
    MPI_Finalized(&finalized);
    CHECK(!finalized);
    MPI_Finalize();
    CHECK(an_context_create_mpi_f(&ctx, handle, NULL) == AN_ERR_STATE);
    if (rank == 0) printf("%d ranks with %s: all tests passed\n", ranks, count > 1 ? arguments[1] : "single");
    return 0;
}
