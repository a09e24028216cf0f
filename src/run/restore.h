/* Reading a checkpoint into a trainer. */
#ifndef AN_RUN_RESTORE_H
#define AN_RUN_RESTORE_H

#include "train/trainer.h"

/* Whether the context has the optimizer of a checkpoint, by name and version; then, whether it is the trainer's.
 * Checkpoints that do not name theirs pass. */
an_status an_load_check_known(an_context *ctx, const an_manifest *manifest, const char *folder);
an_status an_load_check_optimizer(const an_trainer *t, const an_manifest *manifest, const char *folder);

/* Whether both or neither of them have a moving average of the weights. */
an_status an_load_check_average(const an_trainer *t, const an_manifest *manifest, const char *folder);

/* Whether an adapter was trained on the weights that the trainer has, by their hash, and is of the same kind; or
 * whether there is none in either. */
an_status an_load_check_base(an_trainer *t, const an_manifest *manifest, const char *folder);

/* Every tensor of the trainer's state, and the numbers of its run, from a folder whose manifest was read. Every byte of
 * every file is held against its hash: AN_ERR_DAMAGED where one is not as it was written, and the trainer is then good
 * for nothing but being destroyed. A checkpoint of another model is AN_ERR_SHAPE, and all that does not fit is
 * named. Collective: ranks read it together, and all return the same error. */
an_status an_load(an_trainer *t, const an_manifest *manifest, const char *folder);
/* The same for a new run that begins with this state: its tensors, and how many updates the moments
 * and the average come from. */
an_status an_load_restart(an_trainer *t, const an_manifest *manifest, const char *folder);

#endif
