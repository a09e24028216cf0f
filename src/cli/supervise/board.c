#define _GNU_SOURCE /* memfd_create, seals; NOLINT(bugprone-reserved-identifier) */
#include "cli/supervise/board.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char variable[] = "ANNEAL_BOARD"; /* the path of the memory, which is a descriptor of the leader */
/* A file whose size nobody can change never raises SIGBUS. */
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

struct board_memory {
    uint64_t length; /* of the folder's path; 0: it was not told yet */
    char folder[BOARD_PATH];
    an_heartbeat heartbeats[]; /* by rank; size 0: the rank has not begun */
};

static size_t bytes_of(int ranks) {
    return sizeof(board_memory) + (size_t)ranks * sizeof(an_heartbeat);
}

/* ---- the leader's side ---- */

static board_memory *make_memory(int ranks, int *file) {
    *file = memfd_create("anneal-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*file < 0 || ftruncate(*file, (off_t)bytes_of(ranks)) != 0 || fcntl(*file, F_ADD_SEALS, SEALS) != 0)
        return NULL;
    board_memory *memory = mmap(NULL, bytes_of(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void supervise_board_open(supervise_board *board, int ranks) {
    char path[64];
    *board = (supervise_board){.ranks = ranks, .file = -1, .deaths = epoll_create1(EPOLL_CLOEXEC)};
    board->memory = make_memory(ranks, &board->file);
    board->processes = malloc((size_t)ranks * sizeof *board->processes);
    for (int rank = 0; board->processes && rank < ranks; rank++) board->processes[rank] = -1;
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getpid(), board->file);
    if (board->memory) setenv(variable, path, 1);
}

void supervise_board_close(supervise_board *board) {
    for (int rank = 0; board->processes && rank < board->ranks; rank++)
        if (board->processes[rank] >= 0) close(board->processes[rank]);
    free(board->processes);
    if (board->memory) munmap(board->memory, bytes_of(board->ranks));
    if (board->file >= 0) close(board->file);
    if (board->deaths >= 0) close(board->deaths);
    unsetenv(variable);
    *board = (supervise_board){.file = -1, .deaths = -1};
}

/* Linux 5.3 has descriptors of processes. */
void supervise_board_follow(supervise_board *board, int rank, pid_t process) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = (uint32_t)rank};
    if (!board->processes || board->processes[rank] >= 0 || process <= 0) return;
    board->processes[rank] = (int)syscall(SYS_pidfd_open, process, 0);
    if (board->processes[rank] >= 0) epoll_ctl(board->deaths, EPOLL_CTL_ADD, board->processes[rank], &event);
}

bool supervise_board_follows(const supervise_board *board, int rank) {
    return board->processes && board->processes[rank] >= 0;
}

/* The kernel lists events in the order in which they came. */
int supervise_board_next_end(const supervise_board *board) {
    struct epoll_event event;
    return board->deaths >= 0 && epoll_wait(board->deaths, &event, 1, 0) == 1 ? (int)event.data.u32 : -1;
}

bool supervise_board_read(const supervise_board *board, int rank, an_heartbeat *heartbeat) {
    if (!board->memory || rank < 0 || rank >= board->ranks || !board->memory->heartbeats[rank].size) return false;
    an_heartbeat_read(&board->memory->heartbeats[rank], heartbeat);
    return true;
}

bool supervise_board_folder(const supervise_board *board, char folder[BOARD_PATH]) {
    const uint64_t length = board->memory ? __atomic_load_n(&board->memory->length, __ATOMIC_ACQUIRE) : 0;
    if (length == 0 || length >= BOARD_PATH) return false;
    memcpy(folder, board->memory->folder, length);
    folder[length] = 0;
    return true;
}

/* ---- a rank's side ---- */

static board_memory *own; /* NULL: there is none */

/* The variable may come from anybody. */
static board_memory *map(const char *path, int rank) {
    struct stat state;
    const int file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    const int seals = file >= 0 ? fcntl(file, F_GET_SEALS) : -1; /* negative: it is no file that has them */
    void *memory = MAP_FAILED;
    if (seals >= 0 && (seals & SEALS) == SEALS && fstat(file, &state) == 0 && S_ISREG(state.st_mode) &&
        state.st_size >= (off_t)bytes_of(rank + 1))
        memory = mmap(NULL, bytes_of(rank + 1), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

an_heartbeat *cli_board_heartbeat(int rank) {
    const char *path = getenv(variable);
    if (!path || rank < 0) return NULL;
    if (!own) own = map(path, rank);
    unsetenv(variable); /* it is not for programs that this one may start */
    if (!own) return NULL;
    an_heartbeat_init(&own->heartbeats[rank], sizeof own->heartbeats[rank]);
    return &own->heartbeats[rank];
}

void cli_board_tell_folder(const char *folder) {
    const size_t length = strlen(folder);
    if (!own || length >= BOARD_PATH) return;
    memcpy(own->folder, folder, length);
    __atomic_store_n(&own->length, length, __ATOMIC_RELEASE);
}
