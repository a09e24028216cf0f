/* In each rank of the command: its watch, and its supervisor if it has one. */
#ifndef AN_CLI_SUPERVISE_RANK_H
#define AN_CLI_SUPERVISE_RANK_H

#include "anneal/config.h"
#include "anneal/experimental.h"
#include "anneal/watch.h"

/* First of all: takes the supervisor's address from the environment. If there is one, begins the link with it (link.h),
 * and dies with the launcher from then on. */
void cli_rank_begin(void);
/* For the context: the one that a supervisor shares, or one of this process's own if it is one of
 * several ranks; NULL: neither. */
an_heartbeat *cli_rank_heartbeat(const an_comm *comm);
/* Starts the watch of the ranks, with the limits of the config; reports go to the supervisor, or to standard error.
 * Nothing if this process trains by itself. Collective. */
void cli_rank_watch(an_watch **watch, an_context *ctx, an_config *config, const an_comm *comm);

#endif
