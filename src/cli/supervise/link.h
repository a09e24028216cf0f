/* A rank's connection to the process that started its launcher, from before MPI starts to the end of the run.
 *
 * MPI says nothing about a rank that does not get through MPI_Init, and not every launcher passes signals on. So each
 * rank tells its leader (`anneal train -n`, with or without --supervise) how far it is, over TCP, and gets requests to
 * stop the same way. A rank ends when its leader is gone. */
#ifndef AN_CLI_SUPERVISE_LINK_H
#define AN_CLI_SUPERVISE_LINK_H

#include "launch/rank_state.h"

/* Starts the thread that keeps the connection. `supervisor`: the leader's address, which has been checked; `leader`:
 * who it is (base/system/process.h), or NULL. A rank that cannot connect, as on another host, trains all the same. */
void cli_link_begin(const char *supervisor, const char *leader);
/* How far this rank is. */
void cli_link_tell(an_rank_stage stage);
/* Tells that this rank ends with `code`, and ends the connection. Waits two seconds at most. */
void cli_link_end(int code);

#endif
