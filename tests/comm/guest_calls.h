/* What a library does in MPI, seen by the program that it is a guest of.
 *
 * MPI has every function twice, as MPI_X and PMPI_X, so that a program can put its own in front. Here are those on a
 * communicator, and those that make or release something, of MPI 3.1; parameters have the names that MPI gives them.
 * Left out are processes that are started and connected later, and functions on topologies, windows and files: these
 * need a communicator, a window or a file that was made before, which is seen. */
#ifndef TESTS_COMM_GUEST_CALLS_H
#define TESTS_COMM_GUEST_CALLS_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef enum {
    COMMUNICATORS,
    REQUESTS,
    WINDOWS,
    FILES,
    DATATYPES,
    ERRHANDLERS,
    GROUPS,
    INFOS,
    OPERATIONS,
    ATTRIBUTES,
    HANDLES
} handle;

static const char *const handle_names[HANDLES] = {"communicators", "requests", "windows", "files",      "datatypes",
                                                  "errhandlers",   "groups",   "infos",   "operations", "attributes"};

static struct {
    pthread_t thread;                      /* the host's only one */
    MPI_Comm half;                         /* the host's communicator that the library was given */
    bool is_inside;                        /* of a call of the library */
    int duplications;                      /* of that communicator: one for a context */
    int calls;                             /* on any communicator */
    int foreign;                           /* on the host's, but for the duplication, and what starts or ends MPI */
    const char *which;                     /* was the first of them; NULL: none */
    atomic_int by_threads;                 /* calls from other threads than the host's */
    long made[HANDLES], released[HANDLES]; /* by the library */
} seen;

static void see_thread(void) {
    if (!pthread_equal(pthread_self(), seen.thread)) seen.by_threads++;
}

static void see_foreign(const char *function) {
    if (!seen.is_inside) return;
    seen.foreign++;
    if (!seen.which) seen.which = function;
}

static void see(const char *function, MPI_Comm comm) {
    see_thread();
    seen.calls += seen.is_inside;
    if (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF || comm == seen.half) see_foreign(function);
}

static void see_made(handle kind, bool is_one) {
    seen.made[kind] += seen.is_inside && is_one;
}

static void see_released(handle kind, long count) {
    if (seen.is_inside) seen.released[kind] += count;
}

static long count_requests(int count, const MPI_Request *requests) {
    long active = 0;
    for (int i = 0; i < count; i++) active += requests[i] != MPI_REQUEST_NULL;
    return active;
}

/* NOLINTBEGIN(bugprone-macro-parentheses,readability-non-const-parameter): whole lists of parameters, as MPI has
 * them */

/* A function, what is to be seen before it, and what after it if it has not failed. */
#define FUNCTION(name, parameters, arguments, before, after) \
    int MPI_##name parameters {                              \
        before;                                              \
        const int code_ = PMPI_##name arguments;             \
        if (code_ == MPI_SUCCESS) {                          \
            after;                                           \
        }                                                    \
        return code_;                                        \
    }

#define LIST(...) __VA_ARGS__

/* ---- on a communicator ---- Its place: ON is for (…, comm), THEN for (…, comm, …). */

#define THEN(name, first, first_arguments, rest, rest_arguments, after)                                       \
    FUNCTION(name, (LIST first, MPI_Comm comm, LIST rest), (LIST first_arguments, comm, LIST rest_arguments), \
             see("MPI_" #name, comm), after)

#define ON(name, first, arguments) \
    FUNCTION(name, (LIST first, MPI_Comm comm), (LIST arguments, comm), see("MPI_" #name, comm), )

#define STARTS(name, first, arguments) \
    THEN(name, first, arguments, (MPI_Request * request), (request), see_made(REQUESTS, *request != MPI_REQUEST_NULL))

#define BOTH(name, starts, first, arguments) ON(name, first, arguments) STARTS(starts, first, arguments)

/* (comm, …) */
#define OF(name, rest, arguments, after) \
    FUNCTION(name, (MPI_Comm comm, LIST rest), (comm, LIST arguments), see("MPI_" #name, comm), after)

/* Messages. */
#define SEND_PARAMETERS (const void *buf, int count, MPI_Datatype type, int dest, int tag)
#define SEND_ARGUMENTS (buf, count, type, dest, tag)
#define RECEIVE_PARAMETERS (void *buf, int count, MPI_Datatype type, int source, int tag)
#define RECEIVE_ARGUMENTS (buf, count, type, source, tag)
BOTH(Send, Isend, SEND_PARAMETERS, SEND_ARGUMENTS)
BOTH(Bsend, Ibsend, SEND_PARAMETERS, SEND_ARGUMENTS)
BOTH(Rsend, Irsend, SEND_PARAMETERS, SEND_ARGUMENTS)
BOTH(Ssend, Issend, SEND_PARAMETERS, SEND_ARGUMENTS)
STARTS(Send_init, SEND_PARAMETERS, SEND_ARGUMENTS)
STARTS(Bsend_init, SEND_PARAMETERS, SEND_ARGUMENTS)
STARTS(Rsend_init, SEND_PARAMETERS, SEND_ARGUMENTS)
STARTS(Ssend_init, SEND_PARAMETERS, SEND_ARGUMENTS)
STARTS(Irecv, RECEIVE_PARAMETERS, RECEIVE_ARGUMENTS)
STARTS(Recv_init, RECEIVE_PARAMETERS, RECEIVE_ARGUMENTS)
THEN(Recv, RECEIVE_PARAMETERS, RECEIVE_ARGUMENTS, (MPI_Status * status), (status), )
THEN(Sendrecv,
     (const void *sendbuf, int count, MPI_Datatype type, int dest, int tag, void *recvbuf, int recvcount,
      MPI_Datatype recvtype, int source, int recvtag),
     (sendbuf, count, type, dest, tag, recvbuf, recvcount, recvtype, source, recvtag), (MPI_Status * status),
     (status), )
THEN(Sendrecv_replace, (void *buf, int count, MPI_Datatype type, int dest, int tag, int source, int recvtag),
     (buf, count, type, dest, tag, source, recvtag), (MPI_Status * status), (status), )
THEN(Probe, (int source, int tag), (source, tag), (MPI_Status * status), (status), )
THEN(Iprobe, (int source, int tag), (source, tag), (int *flag, MPI_Status *status), (flag, status), )
THEN(Mprobe, (int source, int tag), (source, tag), (MPI_Message * message, MPI_Status *status), (message, status), )
THEN(Improbe, (int source, int tag), (source, tag), (int *flag, MPI_Message *message, MPI_Status *status),
     (flag, message, status), )

/* Collectives. */
#define EVEN_PARAMETERS \
    (const void *sendbuf, int count, MPI_Datatype type, void *recvbuf, int recvcount, MPI_Datatype recvtype)
#define EVEN_ARGUMENTS (sendbuf, count, type, recvbuf, recvcount, recvtype)
#define EVEN_ROOT_PARAMETERS (LIST EVEN_PARAMETERS, int root)
#define EVEN_ROOT_ARGUMENTS (LIST EVEN_ARGUMENTS, root)
#define REDUCE_PARAMETERS (const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op)
#define REDUCE_ARGUMENTS (sendbuf, recvbuf, count, type, op)
FUNCTION(Barrier, (MPI_Comm comm), (comm), see("MPI_Barrier", comm), )
OF(Ibarrier, (MPI_Request * request), (request), see_made(REQUESTS, *request != MPI_REQUEST_NULL))
BOTH(Bcast, Ibcast, (void *buffer, int count, MPI_Datatype type, int root), (buffer, count, type, root))
BOTH(Allgather, Iallgather, EVEN_PARAMETERS, EVEN_ARGUMENTS)
BOTH(Alltoall, Ialltoall, EVEN_PARAMETERS, EVEN_ARGUMENTS)
BOTH(Gather, Igather, EVEN_ROOT_PARAMETERS, EVEN_ROOT_ARGUMENTS)
BOTH(Scatter, Iscatter, EVEN_ROOT_PARAMETERS, EVEN_ROOT_ARGUMENTS)
BOTH(Allreduce, Iallreduce, REDUCE_PARAMETERS, REDUCE_ARGUMENTS)
BOTH(Scan, Iscan, REDUCE_PARAMETERS, REDUCE_ARGUMENTS)
BOTH(Exscan, Iexscan, REDUCE_PARAMETERS, REDUCE_ARGUMENTS)
BOTH(Reduce_scatter_block, Ireduce_scatter_block, REDUCE_PARAMETERS, REDUCE_ARGUMENTS)
BOTH(Reduce, Ireduce, (LIST REDUCE_PARAMETERS, int root), (LIST REDUCE_ARGUMENTS, root))
BOTH(Reduce_scatter, Ireduce_scatter,
     (const void *sendbuf, void *recvbuf, const int *counts, MPI_Datatype type, MPI_Op op),
     (sendbuf, recvbuf, counts, type, op))
BOTH(Allgatherv, Iallgatherv,
     (const void *sendbuf, int count, MPI_Datatype type, void *recvbuf, const int *counts, const int *displs,
      MPI_Datatype recvtype),
     (sendbuf, count, type, recvbuf, counts, displs, recvtype))
BOTH(Gatherv, Igatherv,
     (const void *sendbuf, int count, MPI_Datatype type, void *recvbuf, const int *counts, const int *displs,
      MPI_Datatype recvtype, int root),
     (sendbuf, count, type, recvbuf, counts, displs, recvtype, root))
BOTH(Scatterv, Iscatterv,
     (const void *sendbuf, const int *counts, const int *displs, MPI_Datatype type, void *recvbuf, int count,
      MPI_Datatype recvtype, int root),
     (sendbuf, counts, displs, type, recvbuf, count, recvtype, root))
BOTH(Alltoallv, Ialltoallv,
     (const void *sendbuf, const int *counts, const int *sdispls, MPI_Datatype type, void *recvbuf,
      const int *recvcounts, const int *rdispls, MPI_Datatype recvtype),
     (sendbuf, counts, sdispls, type, recvbuf, recvcounts, rdispls, recvtype))
BOTH(Alltoallw, Ialltoallw,
     (const void *sendbuf, const int *counts, const int *sdispls, const MPI_Datatype *types, void *recvbuf,
      const int *recvcounts, const int *rdispls, const MPI_Datatype *recvtypes),
     (sendbuf, counts, sdispls, types, recvbuf, recvcounts, rdispls, recvtypes))

/* Communicators from communicators. The library duplicates the host's, once for a context. */
#define MAKES_ONE(made) see_made(COMMUNICATORS, *(made) != MPI_COMM_NULL)
FUNCTION(Comm_dup, (MPI_Comm comm, MPI_Comm *newcomm), (comm, newcomm),
         if (seen.is_inside && comm == seen.half) seen.duplications++;
         else see("MPI_Comm_dup", comm), MAKES_ONE(newcomm))
OF(Comm_dup_with_info, (MPI_Info info, MPI_Comm *newcomm), (info, newcomm), MAKES_ONE(newcomm))
OF(Comm_idup, (MPI_Comm * newcomm, MPI_Request *request), (newcomm, request), see_made(COMMUNICATORS, true);
   see_made(REQUESTS, *request != MPI_REQUEST_NULL))
OF(Comm_split, (int color, int key, MPI_Comm *newcomm), (color, key, newcomm), MAKES_ONE(newcomm))
OF(Comm_split_type, (int type, int key, MPI_Info info, MPI_Comm *newcomm), (type, key, info, newcomm),
   MAKES_ONE(newcomm))
OF(Comm_create, (MPI_Group group, MPI_Comm *newcomm), (group, newcomm), MAKES_ONE(newcomm))
OF(Comm_create_group, (MPI_Group group, int tag, MPI_Comm *newcomm), (group, tag, newcomm), MAKES_ONE(newcomm))
OF(Cart_create, (int ndims, const int *dims, const int *periods, int reorder, MPI_Comm *comm_cart),
   (ndims, dims, periods, reorder, comm_cart), MAKES_ONE(comm_cart))
OF(Cart_sub, (const int *remain, MPI_Comm *newcomm), (remain, newcomm), MAKES_ONE(newcomm))
OF(Graph_create, (int nnodes, const int *indx, const int *edges, int reorder, MPI_Comm *comm_graph),
   (nnodes, indx, edges, reorder, comm_graph), MAKES_ONE(comm_graph))
OF(Dist_graph_create_adjacent,
   (int in, const int *sources, const int *sourceweights, int out, const int *destinations, const int *destweights,
    MPI_Info info, int reorder, MPI_Comm *comm_dist_graph),
   (in, sources, sourceweights, out, destinations, destweights, info, reorder, comm_dist_graph),
   MAKES_ONE(comm_dist_graph))
OF(Intercomm_create, (int leader, MPI_Comm peer_comm, int remote, int tag, MPI_Comm *newintercomm),
   (leader, peer_comm, remote, tag, newintercomm), MAKES_ONE(newintercomm))
FUNCTION(Comm_free, (MPI_Comm * comm), (comm), see("MPI_Comm_free", *comm), see_released(COMMUNICATORS, 1))
FUNCTION(Comm_disconnect, (MPI_Comm * comm), (comm), see("MPI_Comm_disconnect", *comm), see_released(COMMUNICATORS, 1))

/* What a communicator has. */
OF(Comm_rank, (int *rank), (rank), )
OF(Comm_size, (int *size), (size), )
OF(Comm_compare, (MPI_Comm comm2, int *result), (comm2, result), )
OF(Comm_test_inter, (int *flag), (flag), )
OF(Comm_remote_size, (int *size), (size), )
OF(Comm_get_name, (char *name, int *resultlen), (name, resultlen), )
OF(Comm_set_name, (const char *name), (name), )
OF(Comm_get_attr, (int comm_keyval, void *attribute_val, int *flag), (comm_keyval, attribute_val, flag), )
OF(Comm_set_attr, (int comm_keyval, void *attribute_val), (comm_keyval, attribute_val), )
OF(Comm_delete_attr, (int comm_keyval), (comm_keyval), )
OF(Comm_set_info, (MPI_Info info), (info), )
OF(Comm_get_info, (MPI_Info * info), (info), see_made(INFOS, true))
OF(Comm_group, (MPI_Group * group), (group), see_made(GROUPS, true))
OF(Comm_remote_group, (MPI_Group * group), (group), see_made(GROUPS, true))
OF(Comm_set_errhandler, (MPI_Errhandler handler), (handler), )
OF(Comm_get_errhandler, (MPI_Errhandler * handler), (handler), see_made(ERRHANDLERS, true))
OF(Comm_call_errhandler, (int code), (code), )
OF(Topo_test, (int *status), (status), )
ON(Pack, (const void *inbuf, int count, MPI_Datatype type, void *outbuf, int outsize, int *position),
   (inbuf, count, type, outbuf, outsize, position))
ON(Unpack, (const void *inbuf, int insize, int *position, void *outbuf, int count, MPI_Datatype type),
   (inbuf, insize, position, outbuf, count, type))
THEN(Pack_size, (int count, MPI_Datatype type), (count, type), (int *size), (size), )
OF(Abort, (int code), (code), )

/* Windows and files. */
THEN(Win_create, (void *base, MPI_Aint size, int unit, MPI_Info info), (base, size, unit, info), (MPI_Win * window),
     (window), see_made(WINDOWS, true))
THEN(Win_allocate, (MPI_Aint size, int unit, MPI_Info info), (size, unit, info), (void *base, MPI_Win *window),
     (base, window), see_made(WINDOWS, true))
THEN(Win_allocate_shared, (MPI_Aint size, int unit, MPI_Info info), (size, unit, info), (void *base, MPI_Win *window),
     (base, window), see_made(WINDOWS, true))
THEN(Win_create_dynamic, (MPI_Info info), (info), (MPI_Win * window), (window), see_made(WINDOWS, true))
OF(File_open, (const char *filename, int mode, MPI_Info info, MPI_File *fh), (filename, mode, info, fh),
   see_made(FILES, true))

/* ---- on none ---- */

#define MAKES(name, parameters, arguments, kind) FUNCTION(name, parameters, arguments, see_thread(), see_made(kind, 1))
#define RELEASES(name, parameters, arguments, kind) \
    FUNCTION(name, parameters, arguments, see_thread(), see_released(kind, 1))

RELEASES(Win_free, (MPI_Win * window), (window), WINDOWS)
RELEASES(File_close, (MPI_File * fh), (fh), FILES)
MAKES(Type_contiguous, (int count, MPI_Datatype type, MPI_Datatype *newtype), (count, type, newtype), DATATYPES)
MAKES(Type_vector, (int count, int length, int stride, MPI_Datatype type, MPI_Datatype *newtype),
      (count, length, stride, type, newtype), DATATYPES)
MAKES(Type_indexed,
      (int count, const int *lengths, const int *array_of_displacements, MPI_Datatype type, MPI_Datatype *newtype),
      (count, lengths, array_of_displacements, type, newtype), DATATYPES)
MAKES(Type_create_struct,
      (int count, const int *lengths, const MPI_Aint *array_of_displacements, const MPI_Datatype *types,
       MPI_Datatype *newtype),
      (count, lengths, array_of_displacements, types, newtype), DATATYPES)
MAKES(Type_create_resized, (MPI_Datatype type, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *newtype),
      (type, lb, extent, newtype), DATATYPES)
MAKES(Type_dup, (MPI_Datatype type, MPI_Datatype *newtype), (type, newtype), DATATYPES)
RELEASES(Type_free, (MPI_Datatype * type), (type), DATATYPES)
MAKES(Comm_create_errhandler, (MPI_Comm_errhandler_function * comm_errhandler_fn, MPI_Errhandler *errhandler),
      (comm_errhandler_fn, errhandler), ERRHANDLERS)
RELEASES(Errhandler_free, (MPI_Errhandler * handler), (handler), ERRHANDLERS)
MAKES(Group_incl, (MPI_Group group, int n, const int *ranks, MPI_Group *newgroup), (group, n, ranks, newgroup), GROUPS)
MAKES(Group_excl, (MPI_Group group, int n, const int *ranks, MPI_Group *newgroup), (group, n, ranks, newgroup), GROUPS)
RELEASES(Group_free, (MPI_Group * group), (group), GROUPS)
MAKES(Info_create, (MPI_Info * info), (info), INFOS)
MAKES(Info_dup, (MPI_Info info, MPI_Info *newinfo), (info, newinfo), INFOS)
RELEASES(Info_free, (MPI_Info * info), (info), INFOS)
MAKES(Op_create, (MPI_User_function * user_fn, int commutes, MPI_Op *op), (user_fn, commutes, op), OPERATIONS)
RELEASES(Op_free, (MPI_Op * op), (op), OPERATIONS)
MAKES(Comm_create_keyval,
      (MPI_Comm_copy_attr_function * comm_copy_attr_fn, MPI_Comm_delete_attr_function *comm_delete_attr_fn,
       int *comm_keyval, void *extra_state),
      (comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval, extra_state), ATTRIBUTES)
RELEASES(Comm_free_keyval, (int *comm_keyval), (comm_keyval), ATTRIBUTES)

/* Requests that end: those that are none afterwards. */
#define ENDS(name, parameters, arguments, count, requests)        \
    FUNCTION(name, parameters, arguments, see_thread();           \
             const long before = count_requests(count, requests), \
             see_released(REQUESTS, before - count_requests(count, requests)))
ENDS(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status), 1, request)
ENDS(Testall, (int count, MPI_Request *requests, int *flag, MPI_Status *statuses), (count, requests, flag, statuses),
     count, requests)
ENDS(Testany, (int count, MPI_Request *requests, int *indx, int *flag, MPI_Status *status),
     (count, requests, indx, flag, status), count, requests)
ENDS(Testsome, (int count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses),
     (count, requests, outcount, indices, statuses), count, requests)
ENDS(Wait, (MPI_Request * request, MPI_Status *status), (request, status), 1, request)
ENDS(Waitall, (int count, MPI_Request *requests, MPI_Status *statuses), (count, requests, statuses), count, requests)
ENDS(Waitany, (int count, MPI_Request *requests, int *indx, MPI_Status *status), (count, requests, indx, status), count,
     requests)
ENDS(Waitsome, (int count, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses),
     (count, requests, outcount, indices, statuses), count, requests)
ENDS(Request_free, (MPI_Request * request), (request), 1, request)
FUNCTION(Cancel, (MPI_Request * request), (request), see_thread(), )

/* MPI is the host's to start and to end. */
FUNCTION(Init, (int *argc, char ***argv), (argc, argv), see_foreign("MPI_Init"), )
FUNCTION(Init_thread, (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided),
         see_foreign("MPI_Init_thread"), )
FUNCTION(Finalize, (void), (), see_foreign("MPI_Finalize"), )

/* NOLINTEND(bugprone-macro-parentheses,readability-non-const-parameter) */

#endif
