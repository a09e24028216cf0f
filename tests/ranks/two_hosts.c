/* Ranks of one machine that take themselves for ranks of two hosts, the first half on one: preloaded
 * between the program and MPI. */
#include <mpi.h>

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the names in mpi.h are another's */
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part) {
    int rank = 0, ranks = 0;
    if (type != MPI_COMM_TYPE_SHARED) return PMPI_Comm_split_type(comm, type, key, info, part);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    return PMPI_Comm_split(comm, 2 * rank >= ranks, key, part);
}
