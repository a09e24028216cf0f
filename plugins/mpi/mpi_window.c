/* Every rank has a part of its own, a sealed memfd, which the others open through /proc.
 *
 * MPI_Win_allocate_shared would do the same, but MPI_Win_free waits for all ranks: one that failed or left early would leave the others hanging. Its memory also comes from
 * /dev/shm, which containers keep small, and a process that touches more than fits there is killed. A memfd has no such limit, and goes with its last user.
 */
#define _GNU_SOURCE /* memfd_create, F_ADD_SEALS; NOLINT(bugprone-reserved-identifier) */
#include "mpi_window.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where a rank's part is. The inode tells whether the process of that number is the one: in a container of its own, a rank has other numbers. */
typedef struct {
    long long process, file, inode, bytes;
} part_place;

enum { PLACE_NUMBERS = sizeof(part_place) / sizeof(long long) };

/* A window's words: ranks, and where the list of places is. parts[i] and places[i] belong together. */
static part_place *places_of(const an_comm_window *window) {
    return (part_place *)(void *)(window->parts + window->words[0]); /* behind the parts, in the same memory */
}

static an_status failed(char note[AN_COMM_NOTE], const char *what) {
    snprintf(note, AN_COMM_NOTE, "shared memory: %s: %s", what, strerror(errno));
    return errno == ENOMEM ? AN_ERR_MEMORY : AN_ERR_UNSUPPORTED;
}

/* This rank's own part. Nobody can change its size, so nobody is killed for touching it. */
static an_status make_part(size_t bytes, part_place *place, char note[AN_COMM_NOTE]) {
    struct stat status;
    place->process = getpid();
    place->file = memfd_create("anneal", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (place->file < 0) return failed(note, "memfd_create");
    const int file = (int)place->file;
    if (ftruncate(file, (off_t)bytes) != 0) return failed(note, "ftruncate");
    if (fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return failed(note, "sealing");
    if (fstat(file, &status) != 0) return failed(note, "fstat");
    place->inode = (long long)status.st_ino;
    place->bytes = (long long)bytes;
    return AN_OK;
}

static an_status map_part(const part_place *place, void **part, char note[AN_COMM_NOTE]) {
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", place->process, place->file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return failed(note, path);
    const bool is_it = fstat(file, &status) == 0 && (long long)status.st_ino == place->inode &&
                       (long long)status.st_size == place->bytes;
    void *memory = is_it ? mmap(NULL, (size_t)place->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    const an_status result = memory != MAP_FAILED ? AN_OK
                             : is_it              ? failed(note, "mmap")
                                                  : (errno = ESTALE, failed(note, path));
    close(file);
    if (result == AN_OK) *part = memory;
    return result;
}

/* The worst of all ranks; one that is well itself says that another is not. */
static an_status agree(MPI_Comm comm, an_status mine, char note[AN_COMM_NOTE]) {
    int worst = (int)mine, all = 0;
    if (MPI_Allreduce(&worst, &all, 1, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS) {
        snprintf(note, AN_COMM_NOTE, "shared memory: MPI_Allreduce failed");
        return AN_ERR_COMMUNICATION;
    }
    if (mine == AN_OK && all != AN_OK)
        snprintf(note, AN_COMM_NOTE, "shared memory: another rank of this host has none");
    return mine == AN_OK ? (an_status)all : mine;
}

an_status an_mpi_window_open(MPI_Comm comm, size_t bytes, an_comm_window *window, char note[AN_COMM_NOTE]) {
    int rank, ranks;
    part_place mine = {.file = -1};
    an_status status;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    memset(window, 0, sizeof *window);
    window->words[0] = (uint64_t)ranks;
    window->parts = calloc((size_t)ranks, sizeof *window->parts + sizeof(part_place)); /* O(ranks of a host) */
    status = make_part(bytes ? bytes : 1, &mine, note);
    if (!window->parts) {
        snprintf(note, AN_COMM_NOTE, "out of memory");
        status = AN_ERR_MEMORY;
    }
    status = agree(comm, status, note);
    if (status == AN_OK) {
        part_place *places = places_of(window);
        const int code = MPI_Allgather(&mine, PLACE_NUMBERS, MPI_LONG_LONG, places, PLACE_NUMBERS, MPI_LONG_LONG, comm);
        if (code != MPI_SUCCESS) snprintf(note, AN_COMM_NOTE, "shared memory: MPI_Allgather failed");
        status = code == MPI_SUCCESS ? AN_OK : AN_ERR_COMMUNICATION;
        for (int i = 0; status == AN_OK && i < ranks; i++) status = map_part(&places[i], &window->parts[i], note);
        /* It gets its pages here, near this rank. */
        if (status == AN_OK) memset(window->parts[rank], 0, bytes);
        status = agree(comm, status, note);
    }
    if (mine.file >= 0) close((int)mine.file); /* all have mapped it, or nobody will */
    if (status != AN_OK) an_mpi_window_close(window);
    return status;
}

void an_mpi_window_close(an_comm_window *window) {
    for (uint64_t i = 0; window->parts && i < window->words[0]; i++)
        if (window->parts[i]) munmap(window->parts[i], (size_t)places_of(window)[i].bytes);
    free(window->parts);
    memset(window, 0, sizeof *window);
}
