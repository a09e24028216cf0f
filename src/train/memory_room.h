/* Checks before the first step whether a run has enough memory. */
#ifndef AN_TRAIN_MEMORY_ROOM_H
#define AN_TRAIN_MEMORY_ROOM_H

#include "train/trainer.h"

/* Where the run leaves the size of micro-batches or recompute to the library: if it does not fit, it is planned again
 * with smaller micro-batches, of a leaf at least, or recompute, which change no bit. Collective. */
an_status an_memory_room_choose(an_trainer *t, const an_trainer_options *options, bool *settled);

/* Compares the bytes of the plan with what the machine, the cgroup and ulimit offer. What cannot fit is
 * AN_ERR_UNSUPPORTED, and the message names a batch.micro and a recompute that would fit; for a trainer that is only
 * planned it is a note. What may be tight is a note. */
an_status an_memory_room_check(an_trainer *t, const an_trainer_options *options);

#endif
