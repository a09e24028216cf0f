/* What ranks share with the process on their host that started them: memory with a heartbeat of each, which outlives
 * them, so that what a rank was doing when it was killed can be told; and the order in which their processes ended,
 * because launchers kill all others soon after the first. A rank that cannot open the memory, as on another host,
 * trains all the same. */
#ifndef AN_CLI_SUPERVISE_BOARD_H
#define AN_CLI_SUPERVISE_BOARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "anneal/heartbeat.h"

enum { BOARD_PATH = 4096 };
typedef struct board_memory board_memory;

typedef struct supervise_board {
    int ranks;
    int file;             /* of the memory; -1: there is none */
    board_memory *memory; /* NULL: there is none */
    int deaths;           /* an epoll of the ranks' processes; -1: there is none */
    int *processes;       /* descriptors of these, by rank; -1: not known yet */
} supervise_board;

/* ---- for the process that starts the ranks ---- */

/* Without memory or descriptors the board stays empty, and knows nothing. Ranks find it through the environment. */
void supervise_board_open(supervise_board *board, int ranks);
void supervise_board_close(supervise_board *board);
/* Which process a rank is; each is followed once. */
void supervise_board_follow(supervise_board *board, int rank, pid_t process);
bool supervise_board_follows(const supervise_board *board, int rank);
/* The next rank whose process has ended, in the order of their ends, each once; -1: no more. */
int supervise_board_next_end(const supervise_board *board);
/* What a rank was doing last; false: it has not begun, or is not seen. */
bool supervise_board_read(const supervise_board *board, int rank, an_heartbeat *heartbeat);
/* The folder that rank 0 trains in; false: it did not say. */
bool supervise_board_folder(const supervise_board *board, char folder[BOARD_PATH]);

/* ---- for a rank ---- */

/* The heartbeat of this rank on its leader's board; NULL: it has none. */
an_heartbeat *cli_board_heartbeat(int rank);
/* In rank 0, once the run has a folder. */
void cli_board_tell_folder(const char *folder);

#endif
