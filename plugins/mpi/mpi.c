/* A communicator (an_comm of anneal/experimental.h) on MPI 3.1. Built once for each MPI library, against anneal's public headers only.
 *
 * The caller's communicator is duplicated, so no message of anneal meets one of the host, and errors are returned on the duplicate whatever the host's handler does. Nothing
 * but `start` touches MPI_COMM_WORLD. Only the functions that the record calls collective, and `finish`, may block. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_window.h"

enum { NAME_BYTES = 64, SEND = 1, RECEIVE = 2 };

static const double seconds_to_cancel = 0.25; /* for the messages of a communicator that are given up */

typedef struct {
    an_comm comm;
    MPI_Comm mpi;
    char name[NAME_BYTES];
    double cancel_until; /* 0: nothing was given up yet */
} communicator;

static MPI_Comm mpi_of(const an_comm *comm) {
    return ((const communicator *)comm->data)->mpi;
}

/* ---- errors ---- */

static an_status explain(char note[AN_COMM_NOTE], const char *function, int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS) return AN_OK;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) snprintf(text, sizeof text, "error %d", code);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
    snprintf(note, AN_COMM_NOTE, "%s: %.200s", function, text); /* of which the beginning says most */
    return AN_ERR_COMMUNICATION;
}
#define EXPLAIN(comm, function, ...) explain((comm)->note, #function, function(__VA_ARGS__))

/* Whether MPI can be called: from MPI_Init to MPI_Finalize. A host may destroy its context after that. */
static bool is_running(void) {
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    return initialized && !finalized;
}

/* ---- messages ---- A request has MPI's own in word 0 and its direction in word 1, which is never 0. */

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request holds MPI's");

static MPI_Request request_of(const an_comm_request *request) {
    MPI_Request mpi;
    memcpy(&mpi, &request->words[0], sizeof mpi);
    return mpi;
}

static void set_request(an_comm_request *request, MPI_Request mpi, uint64_t direction) {
    memset(request, 0, sizeof *request);
    if (mpi == MPI_REQUEST_NULL) return;
    memcpy(&request->words[0], &mpi, sizeof mpi);
    request->words[1] = direction;
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): requests are waited for elsewhere */

/* MPI counts in int: the library sends no more than AN_COMM_MAX_BYTES at once. */
static bool is_too_long(an_comm *comm, size_t count) {
    if (count <= AN_COMM_MAX_BYTES) return false;
    snprintf(comm->note, sizeof comm->note, "%zu bytes are too many for one message", count);
    return true;
}

static an_status mpi_send(an_comm *comm, const void *bytes, size_t count, int to, int tag, an_comm_request *request) {
    MPI_Request mpi = MPI_REQUEST_NULL;
    if (is_too_long(comm, count)) return AN_ERR_ARGUMENT;
    const an_status status = EXPLAIN(comm, MPI_Isend, bytes, (int)count, MPI_BYTE, to, tag, mpi_of(comm), &mpi);
    set_request(request, status == AN_OK ? mpi : MPI_REQUEST_NULL, SEND);
    return status;
}

static an_status mpi_receive(an_comm *comm, void *bytes, size_t count, int from, int tag, an_comm_request *request) {
    MPI_Request mpi = MPI_REQUEST_NULL;
    const int source = from == AN_COMM_ANY ? MPI_ANY_SOURCE : from;
    if (is_too_long(comm, count)) return AN_ERR_ARGUMENT;
    const an_status status = EXPLAIN(comm, MPI_Irecv, bytes, (int)count, MPI_BYTE, source, tag, mpi_of(comm), &mpi);
    set_request(request, status == AN_OK ? mpi : MPI_REQUEST_NULL, RECEIVE);
    return status;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

static an_status mpi_test(an_comm *comm, an_comm_request *request, bool *done) {
    MPI_Request mpi = request_of(request);
    int flag = 0;
    *done = !request->words[1];
    if (*done) return AN_OK;
    const an_status status = EXPLAIN(comm, MPI_Test, &mpi, &flag, MPI_STATUS_IGNORE);
    *done = status == AN_OK && flag;
    if (status != AN_OK && mpi != MPI_REQUEST_NULL) MPI_Request_free(&mpi);
    set_request(request, status == AN_OK && !flag ? mpi : MPI_REQUEST_NULL, request->words[1]);
    return status;
}

/* MPI takes back a receive that nothing has come for, at once. It cannot take back one that has begun to arrive, nor a send. These get a moment to end, all of a communicator
 * together, as the other side gives up too and then serves them in its own moment. What is left after that has lost its other side, and is only forgotten: MPI would touch its
 * bytes again only if more of it came. */
static void mpi_cancel(an_comm *comm, an_comm_request *request) {
    communicator *c = comm->data;
    MPI_Request mpi = request_of(request);
    int done = 0;
    const bool is_receive = request->words[1] == RECEIVE;
    if (!request->words[1]) return;
    memset(request, 0, sizeof *request);
    if (!is_running()) return;
    if (is_receive) MPI_Cancel(&mpi);
    if (MPI_Test(&mpi, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) return;
    if (c->cancel_until == 0) c->cancel_until = MPI_Wtime() + seconds_to_cancel;
    while (!done && MPI_Wtime() < c->cancel_until)
        if (MPI_Test(&mpi, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    if (!done) MPI_Request_free(&mpi);
}

/* ---- communicators ---- */

static an_status take(an_comm **comm, MPI_Comm mpi, char note[AN_COMM_NOTE]);

static an_status mpi_split(an_comm *comm, int color, an_comm **part) {
    MPI_Comm mpi = MPI_COMM_NULL;
    *part = NULL;
    const an_status status =
        EXPLAIN(comm, MPI_Comm_split, mpi_of(comm), color < 0 ? MPI_UNDEFINED : color, comm->rank, &mpi);
    return status != AN_OK || mpi == MPI_COMM_NULL ? status : take(part, mpi, comm->note);
}

static an_status mpi_split_hosts(an_comm *comm, an_comm **part) {
    MPI_Comm mpi = MPI_COMM_NULL;
    *part = NULL;
    const an_status status =
        EXPLAIN(comm, MPI_Comm_split_type, mpi_of(comm), MPI_COMM_TYPE_SHARED, comm->rank, MPI_INFO_NULL, &mpi);
    return status == AN_OK ? take(part, mpi, comm->note) : status;
}

/* MPI_Comm_free is collective by name only: both libraries release what is local, and wait for nobody. But they give the number of a communicator that was freed to a later one,
 * which would receive the messages that are still on their way in a broken one. That number is not given back. */
static void mpi_destroy(an_comm **comm) {
    if (!*comm) return;
    communicator *c = (*comm)->data;
    *comm = NULL;
    if (is_running() && !c->comm.broken) MPI_Comm_free(&c->mpi);
    free(c);
}

/* ---- shared memory ---- */

static an_status mpi_share(an_comm *comm, size_t bytes, an_comm_window *window) {
    return an_mpi_window_open(mpi_of(comm), bytes, window, comm->note);
}

static void mpi_unshare(an_comm *comm, an_comm_window *window) {
    (void)comm;
    an_mpi_window_close(window);
}

/* ---- the record ---- */

/* "Open MPI v4.1.4, package: …" and "MPICH Version:\t4.0.2\n…": name and version. */
static void name_library(char name[NAME_BYTES]) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "", version[16] = "";
    int length;
    MPI_Get_library_version(text, &length);
#ifdef OPEN_MPI
    sscanf(text, "Open MPI v%15[0-9.]", version);
    snprintf(name, NAME_BYTES, "Open MPI %s", version);
#else
    sscanf(text, "MPICH Version: %15[0-9.]", version);
    snprintf(name, NAME_BYTES, "MPICH %s", version);
#endif
}

/* A communicator that is ours: duplicated or split. Takes it, also on an error. */
static an_status take(an_comm **comm, MPI_Comm mpi, char note[AN_COMM_NOTE]) {
    communicator *c = calloc(1, sizeof *c);
    if (!c) {
        snprintf(note, AN_COMM_NOTE, "out of memory");
        MPI_Comm_free(&mpi);
        return AN_ERR_MEMORY;
    }
    MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN);
    c->mpi = mpi;
    name_library(c->name);
    c->comm = (an_comm){.size = sizeof c->comm,
                        .name = c->name,
                        .data = c,
                        .send = mpi_send,
                        .receive = mpi_receive,
                        .test = mpi_test,
                        .cancel = mpi_cancel,
                        .split = mpi_split,
                        .split_hosts = mpi_split_hosts,
                        .share = mpi_share,
                        .unshare = mpi_unshare,
                        .destroy = mpi_destroy};
    MPI_Comm_rank(mpi, &c->comm.rank);
    MPI_Comm_size(mpi, &c->comm.ranks);
    *comm = &c->comm;
    return AN_OK;
}

static an_status duplicate(an_comm **comm, MPI_Comm mpi, char note[AN_COMM_NOTE]) {
    MPI_Comm ours = MPI_COMM_NULL;
    const an_status status = explain(note, "MPI_Comm_dup", MPI_Comm_dup(mpi, &ours));
    return status == AN_OK ? take(comm, ours, note) : status;
}

static an_status create(an_comm **comm, int handle, char note[AN_COMM_NOTE]) {
    *comm = NULL;
    if (!is_running()) {
        snprintf(note, AN_COMM_NOTE, "MPI is not running: call this between MPI_Init and MPI_Finalize");
        return AN_ERR_STATE;
    }
    MPI_Comm mpi = MPI_Comm_f2c((MPI_Fint)handle);
    if (mpi == MPI_COMM_NULL) {
        snprintf(note, AN_COMM_NOTE, "the communicator is MPI_COMM_NULL");
        return AN_ERR_ARGUMENT;
    }
    return duplicate(comm, mpi, note);
}

/* MPI is one for the whole process, and so is who has to end it. */
static bool was_started_here;

static an_status start(an_comm **comm, char note[AN_COMM_NOTE]) {
    int initialized = 0, level;
    *comm = NULL;
    MPI_Initialized(&initialized);
    if (!initialized) {
        const an_status status =
            explain(note, "MPI_Init_thread", MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level));
        if (status != AN_OK) return status;
        was_started_here = true;
        /* MPICH 4.0 raises errors of MPI_Test here and not on the communicator of the message. In a program of its own right, whose handler is not ours to change, such an error
         * (a message of a length that its receiver does not expect) ends the process. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    return duplicate(comm, MPI_COMM_WORLD, note);
}

static an_status finish(char note[AN_COMM_NOTE]) {
    if (!was_started_here || !is_running()) return AN_OK;
    return explain(note, "MPI_Finalize", MPI_Finalize());
}

AN_API extern const an_comm_plugin an_comm_plugin_record;
const an_comm_plugin an_comm_plugin_record = {.size = sizeof an_comm_plugin_record,
                                              .version = AN_COMM_PLUGIN_VERSION,
                                              .create = create,
                                              .start = start,
                                              .finish = finish};
