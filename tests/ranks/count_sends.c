/* Counts what a rank sends, between the program and MPI: preloaded, every MPI_Isend goes through here. When MPI ends,
 * it writes the bytes of gradients, of weights and of all else to SENDS.<rank>. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm/comm.h"

static long long gradients, weights, others;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the names in mpi.h are another's */
int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    int size = 0;
    MPI_Type_size(type, &size);
    long long *sent = &others;
    if ((tag >= AN_TAG_REDUCE && tag < AN_TAG_GATHER) || (tag >= AN_TAG_SCATTER && tag < AN_TAG_RECORD))
        sent = &gradients;
    else if (tag >= AN_TAG_GATHER && tag < AN_TAG_SCATTER)
        sent = &weights;
    *sent += (long long)count * size;
    return PMPI_Isend(bytes, count, type, to, tag, comm, request);
}

int MPI_Finalize(void) {
    char path[512];
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s.%d", getenv("SENDS") ? getenv("SENDS") : "sends", rank);
    FILE *file = fopen(path, "w");
    if (file) {
        fprintf(file, "%lld %lld %lld\n", gradients, weights, others);
        fclose(file);
    }
    return PMPI_Finalize();
}
