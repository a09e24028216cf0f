/* A context on an MPI communicator: all of its ranks train one model together.
 *
 * Only this header includes mpi.h. The library does not contain MPI: it loads a plugin that was built for the MPI
 * library of this program, Open MPI or MPICH.
 */
#ifndef ANNEAL_MPI_H
#define ANNEAL_MPI_H

#include <mpi.h>

#include "anneal/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a context on the ranks of a communicator. MPI must be initialized, with any level of thread support: only the
 * thread that calls anneal calls MPI. The communicator is duplicated, so it stays the caller's. Destroy the context
 * before MPI_Finalize. Collective over the communicator. */
static inline an_status an_context_create_mpi(an_context **context, MPI_Comm comm, const an_context_options *options) {
    return an_context_create_mpi_f(context, MPI_Comm_c2f(comm), options);
}

#ifdef __cplusplus
}
#endif
#endif
