/* Where a run comes from that began with the state of another one (--restart). */
#ifndef AN_RUN_ORIGIN_H
#define AN_RUN_ORIGIN_H

#include "run/run.h"
#include "store/manifest.h"

/* Whether the run that saved this checkpoint began with what `requested` names: a checkpoint, or a run folder
 * that the checkpoint was in. */
bool an_origin_is(const an_manifest *manifest, const char *requested);

/* The trainer has a run. Makes the checkpoint in `folder` the origin of the trainer's run; or takes over the origin
 * of the run that saved it, if it has one. */
an_status an_origin_begin(an_trainer *t, const an_manifest *manifest, const char *folder);
an_status an_origin_continue(an_trainer *t, const an_manifest *manifest);

/* As the manifest has it; path NULL: none. */
an_saved_origin an_origin_of(const an_trainer *t);

#endif
