/* The rank ends itself at the message that has the hash of its file of a save, preloaded between the program and MPI:
 * right before HASH_MODE=before, or right after, it sends or begins to receive the HASH_NTH of them. Such a message
 * has 16 bytes where every rank has one file; parts of the state are longer. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm.h"

enum { HASH_BYTES = 16 };

static void look(const char *moment, int count, int tag, int times) {
    static long seen;
    const char *nth = getenv("HASH_NTH"), *mode = getenv("HASH_MODE");
    if (tag != AN_TAG_CHECKPOINT || count != HASH_BYTES || !nth || !mode) return;
    seen += times;
    if (seen == strtol(nth, NULL, 10) && !strcmp(mode, moment)) kill(getpid(), SIGKILL);
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the names in mpi.h are another's */
int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    look("before", count, tag, 1);
    const int result = PMPI_Isend(bytes, count, type, to, tag, comm, request);
    look("after", count, tag, 0);
    return result;
}

int MPI_Irecv(void *bytes, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
    look("before", count, tag, 1);
    const int result = PMPI_Irecv(bytes, count, type, from, tag, comm, request);
    look("after", count, tag, 0);
    return result;
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
