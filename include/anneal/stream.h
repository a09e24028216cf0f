/* Streams: training on samples that the program makes while it runs, such as those of a simulation. Pass them to
 * an_trainer_step_on (anneal.h). */
#ifndef ANNEAL_STREAM_H
#define ANNEAL_STREAM_H

#include "anneal/data.h"
#include "anneal/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a dataset without samples, for programs that pass samples to each step (an_trainer_step_on). It has the
 * fields that the graph reads. A dimension that is a symbol, except the number of samples, has `symbol_size` elements;
 * 0: such a dimension is refused. Not collective. */
AN_API an_status an_dataset_create_stream(an_dataset **dataset, const an_graph *graph, int64_t symbol_size);

#ifdef __cplusplus
}
#endif
#endif
