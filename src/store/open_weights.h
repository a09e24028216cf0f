/* Weights that a new run starts from. */
#ifndef AN_STORE_OPEN_WEIGHTS_H
#define AN_STORE_OPEN_WEIGHTS_H

#include "anneal/anneal.h"
#include "formats/weights.h"

/* A checkpoint's folder, or a run's, whose newest is taken, or what an_weights_open_files opens. `choice`: of a
 * checkpoint. */
an_status an_weights_open(an_weights *weights, an_context *ctx, const char *path, an_model_weights choice);

#endif
