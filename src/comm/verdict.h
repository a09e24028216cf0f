/* One rank's error is everyone's, before there is a context whose messages could say so. */
#ifndef AN_COMM_VERDICT_H
#define AN_COMM_VERDICT_H

#include "anneal/experimental.h"

/* `status` is how this rank has fared, with the message of the calling thread (an_last_error(NULL)). Every rank gets
 * the error of the lowest rank that has one. Collective, and for starting only: the wait has no limit, as no wait
 * within MPI's own start has. */
an_status an_comm_vote(an_comm *comm, an_status status);

#endif
