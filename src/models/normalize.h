/* Physical units outside of a model, numbers around 1 inside. */
#ifndef AN_MODELS_NORMALIZE_H
#define AN_MODELS_NORMALIZE_H

#include "anneal/graph.h"

/* What a model may normalise, and the run states of each, which whoever sets or reads them finds by name. The least and
 * the most number are those that training has seen; no node reads them. A scale of 0, which all have at first, says
 * that nobody has set the states. */
enum { AN_NORMALIZED_INPUT, AN_NORMALIZED_TARGET, AN_NORMALIZED_ENDS };
enum { AN_NORMALIZE_MEAN, AN_NORMALIZE_SCALE, AN_NORMALIZE_LEAST, AN_NORMALIZE_MOST, AN_NORMALIZE_STATES };
extern const char *const an_normalize_names[AN_NORMALIZED_ENDS][AN_NORMALIZE_STATES];

/* (x - mean) ÷ scale of a model's input. Features are the channels of images (batch, channels, height, width), else
 * all elements of a sample. */
an_value an_model_normalize(an_graph *g, an_value x);

/* The end of a model of numbers: output "y", and the squared error between it and the targets. With `normalize`, y is
 * what layers give · scale + mean, and the error is of what layers give and the normalised targets. */
void an_model_end_squared(an_graph *g, an_value y, an_value targets, bool normalize);

#endif
