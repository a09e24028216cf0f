/* A context on an MPI communicator of its host (anneal/mpi.h). No MPI type is in sight: the handle is Fortran's. */
#include "anneal/ranks.h"
#include "base/status.h"
#include "base/structs.h"
#include "comm/load.h"
#include "comm/mesh.h"

an_status an_context_create_mpi_f(an_context **context, int comm, const an_context_options *options) {
    AN_NEED_IN(NULL, context);
    an_context_options with;
    an_comm *ours = NULL;
    *context = NULL;
    AN_TRY_RETURN(an_context_options_read(NULL, &with, options));
    if (with.communicator)
        return AN_ERROR(NULL, AN_ERR_ARGUMENT,
                        "an_context_options.communicator is set, but the context gets the MPI communicator");
    AN_TRY_RETURN(an_comm_create_mpi(&ours, comm));
    with.communicator = ours;
    const an_status status = an_context_create(context, &with);
    if (status == AN_OK)
        an_mesh_own(*context);
    else
        ours->destroy(&ours);
    return status;
}
