/* Whether a run has the memory and the disk space that it will need, before its first step. */
#ifndef AN_TRAIN_ROOM_H
#define AN_TRAIN_ROOM_H

#include "train/trainer.h"

/* Compares the bytes of the plan with what the machine, the cgroup and ulimit offer. What cannot fit is AN_ERR_UNSUPPORTED, and the message
 * names a batch.micro and a recompute that would fit; for a trainer that is only planned it is a note. What may be tight is a note. */
an_status an_room_check_memory(an_trainer *t, const an_trainer_options *options);

/* Compares the checkpoints that the run will keep with the free space of its folder's file system, the quota, and ulimit -f. What cannot
 * fit is AN_ERR_FILE; what may be tight is a note. */
an_status an_room_check_disk(an_trainer *t);

#endif
