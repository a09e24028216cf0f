/* Explains why a step was not finite: the first value that is not, the samples in its micro-batch, and the steps
 * before it. */
#ifndef AN_TRAIN_NONFINITE_H
#define AN_TRAIN_NONFINITE_H

#include "data/loader.h"
#include "train/trainer.h"

/* Leaves the whole explanation as the context's error, and returns AN_ERR_NONFINITE (or what went wrong on the way).
 * Runs the step's micro-batches again, with a look at every value: it takes a step's time and more. `reason` is why the
 * run cannot go on, as part of the message, with "; " at its end; "": because it is not finite. */
an_status an_nonfinite_explain(an_trainer *t, const an_batch *samples, const char *reason);

#endif
