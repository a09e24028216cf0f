/* Checks before the first step whether a run has enough disk space. */
#ifndef AN_RUN_DISK_ROOM_H
#define AN_RUN_DISK_ROOM_H

#include "train/trainer.h"

/* Compares the checkpoints that the run will keep with the free space of its folder's file system, the quota, and
 * ulimit -f. What cannot fit is AN_ERR_FILE; what may be tight is a note. */
an_status an_disk_room_check(an_trainer *t);

#endif
