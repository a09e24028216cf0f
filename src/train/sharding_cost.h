/* How long a step of a rank takes, estimated, to compare the ways in which ranks can divide the state of a run. */
#ifndef AN_TRAIN_SHARDING_COST_H
#define AN_TRAIN_SHARDING_COST_H

#include <stdbool.h>
#include <stdint.h>

/* What one rank does in a step, as its plan has it. */
typedef struct an_step_work {
    double seconds;                   /* of its forward and backward passes, if it had its host to itself */
    int64_t updated;                  /* bytes that the norm and the update read and write */
    int64_t sent, received, messages; /* bytes; messages sent */
    int64_t read, written;            /* bytes of other ranks' gradients in memory that ranks share */
    int host_ranks;                   /* ranks of its host */
    int64_t linked;                   /* bytes of those sent that go to other hosts */
} an_step_work;

/* Every host is the machine of pass/cost.c, whose ranks divide its cores, its memory's bandwidth and its link, and
 * messages overlap with nothing:
 *
 *     host_ranks · (seconds + (updated + read + written + 2 · (sent + received)) ÷ 20 GB/s) + messages · 10 µs,
 *     and between hosts host_ranks · linked ÷ 1.25 GB/s (10 Gbit/s)
 *
 * A byte of a message counts twice on both sides, as it is copied into a buffer of MPI and out of it. Where ranks of
 * all hosts divide the state, all that is sent counts as if it went over the link; in a hybrid it is what owners add
 * across hosts. The numbers are the same on every machine, so that the choice is. */
double an_step_work_seconds(const an_step_work *work);

#endif
