/* Sinks: the results of a program. */
#ifndef AN_OPS_SINK_H
#define AN_OPS_SINK_H

#include "kernels/sink/sink.h"
#include "ops/ops.h"

typedef struct an_output_attributes {
    const char *name;
    bool training;   /* part of the training program too */
    bool prediction; /* part of the prediction program only */
    bool state;      /* a statistic that updates the run state of this name; training only */
} an_output_attributes;

bool an_graph_has_output(const an_graph *g, const char *name);

/* Names the statistic that updates a run state, once a step, over all micro-batches. Training programs only. */
void an_state_output(an_graph *g, an_value value, an_value state);

/* g ← c or g ← g + c for a parameter's gradient (`extra` 0), or one of its extra regions. */
void an_grad(an_graph *g, an_value contribution, int64_t parameter, int64_t extra, bool add);

#endif
