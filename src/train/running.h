/* Means and scales of a stream, which nobody knows before its samples come (an_normalize_options.running).
 *
 * The first step has those of its own samples. After each later step, its samples are taken in: every step has the same
 * weight, so a trainer knows from the number of the step how much its states already stand for, and a checkpoint needs
 * nothing more than them. The samples of a leaf are summed up by the rank that has them; leaves are combined on
 * every rank in one binary tree over their numbers. So the states depend neither on threads nor on ranks, and a run
 * that was killed goes on with the same ones. */
#ifndef AN_TRAIN_RUNNING_H
#define AN_TRAIN_RUNNING_H

#include "anneal/train.h"
#include "data/loader.h"

typedef struct an_running an_running;

/* On a stream, before the first step or after a resume. */
an_status an_running_make(an_trainer *t, const an_normalize_options *options);
void an_running_destroy(an_trainer *t);

/* Before a step: what the states will be after it; before the first one, they are set as well. Nothing if
 * the trainer keeps no such states. Collective: a rank that has failed (status) takes part without
 * samples, and has its status back. */
an_status an_running_look(an_trainer *t, an_status status, const an_batch *samples);
/* After a step that was taken: sets them, unless it was skipped. */
an_status an_running_keep(an_trainer *t);

#endif
