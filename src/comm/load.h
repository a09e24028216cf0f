/* Plugins for MPI libraries. A process has one MPI, and the plugin must be the one that was built for it. */
#ifndef AN_COMM_LOAD_H
#define AN_COMM_LOAD_H

#include "anneal/experimental.h"

/* A duplicate of the MPI communicator that has this Fortran handle, by the plugin for the MPI that this process has
 * loaded. Errors are the calling thread's: there is no context yet. */
an_status an_comm_create_mpi(an_comm **comm, int handle);

#endif
