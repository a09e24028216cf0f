/* Ranks: several processes that train one model together.
 *
 * All ranks of the context must call the functions that say "collective", in the same order and with arguments that
 * agree. Otherwise every rank gets an error that names the rank that differs. A collective that only some ranks call
 * (inside `if (rank == 0)`) waits for the others, up to the limit of a wait.
 */
#ifndef ANNEAL_RANKS_H
#define ANNEAL_RANKS_H

#include "anneal/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

/* Creates a context on an MPI communicator, given by its Fortran handle; C programs call an_context_create_mpi (mpi.h).
 * Collective over the communicator. */
AN_API an_status an_context_create_mpi_f(an_context **context, int comm, const an_context_options *options);

/* The rank of this process, from 0, and the number of ranks. Not collective. */
AN_API int an_context_rank(const an_context *ctx);
AN_API int an_context_ranks(const an_context *ctx);

/* Gives the error of one rank to all ranks. Call it with the status of this rank, after work that may fail on one rank,
 * such as reading a file. Returns AN_OK if all ranks passed AN_OK, otherwise the error of the lowest rank that has one,
 * with its message. Collective. */
AN_API an_status an_ranks_agree(an_context *ctx, an_status status);

/* ==== details ==== the rest of the interface */

/* The ranks and the hosts that they run on. */
typedef struct an_ranks_info {
    size_t size;
    const char *mpi;     /* the MPI library: "Open MPI 4.1.4"; "" for one process by itself */
    int rank, ranks;     /* rank of this process; number of ranks */
    int hosts;           /* hosts of all ranks */
    int host_ranks;      /* ranks on this host */
    int host_threads;    /* threads of the ranks on this host */
    int host_processors; /* processors that the ranks on this host may use */
} an_ranks_info;
AN_API void an_ranks_info_init(an_ranks_info *info, size_t size);
/* Not collective. */
AN_API an_status an_context_ranks_info(const an_context *ctx, an_ranks_info *info);

/* ---- collectives for a program's own numbers ----
 *
 * Training needs none of them. All are collective. `count` is in elements, the same on all ranks, and may be 0. After
 * an error, arrays that the call writes hold anything. */

typedef enum an_reduce_kind {
    AN_REDUCE_SUM = 1, /* integers wrap around */
    AN_REDUCE_MIN = 2, /* NaN if a number is NaN */
    AN_REDUCE_MAX = 3, /* the same */
    AN_REDUCE_LIMIT = 0x7fffffff
} an_reduce_kind;

/* Returns when all ranks have called it. */
AN_API an_status an_ranks_barrier(an_context *ctx);

/* Copies the data of rank `root` to all ranks. */
AN_API an_status an_ranks_broadcast(an_context *ctx, void *data, int64_t count, an_dtype dtype, int root);

/* Collects `count` elements of every rank, in the order of ranks, in `dst` of rank `root`, which has room for `count`
 * times the number of ranks; dst of other ranks may be NULL. (an_gather is an op.) */
AN_API an_status an_ranks_gather(an_context *ctx, const void *src, void *dst, int64_t count, an_dtype dtype, int root);
/* Collects the same in `dst` of every rank. */
AN_API an_status an_ranks_all_gather(an_context *ctx, const void *src, void *dst, int64_t count, an_dtype dtype);

/* Combines the arrays of all ranks, element by element, and leaves the result in the array of every rank. Types: f32,
 * f64, i32, i64.
 *
 * Floating-point sums are added in one binary tree over the ranks, (0 + 1) + (2 + 3) and so on. So the same ranks
 * always give the same bits, but another number of ranks gives others. (Training adds by leaves, which makes its
 * results independent of ranks.) */
AN_API an_status an_ranks_all_reduce(an_context *ctx, void *data, int64_t count, an_dtype dtype, an_reduce_kind kind);
/* The same result divided among ranks: `src` has `count` times the number of ranks, and rank i gets elements i·count
 * … (i + 1)·count - 1 of the result. */
AN_API an_status an_ranks_reduce_scatter(an_context *ctx, const void *src, void *dst, int64_t count, an_dtype dtype,
                                         an_reduce_kind kind);

#ifdef __cplusplus
}
#endif
#endif
