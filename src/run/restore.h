/* Reading a checkpoint into a trainer. */
#ifndef AN_RUN_RESTORE_H
#define AN_RUN_RESTORE_H

#include "train/trainer.h"

/* Every tensor of the trainer's state, and the numbers of its run, from a folder whose manifest was read. Every byte of every file is held
 * against its hash: AN_ERR_DAMAGED where one is not as it was written, and the trainer is then good for nothing but being destroyed. A
 * checkpoint of another model is AN_ERR_SHAPE, and all that does not fit is named. */
an_status an_load(an_trainer *t, const an_manifest *manifest, const char *folder);

#endif
