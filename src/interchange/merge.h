/* The change that an adapter makes to the weights of its model. Whatever writes a merged model adds it
 * while the weights are read. */
#ifndef AN_INTERCHANGE_MERGE_H
#define AN_INTERCHANGE_MERGE_H

#include "ir/graph.h"
#include "store/inspect.h"

typedef struct an_merge {
    const an_checkpoint *checkpoint;
    an_context *ctx;
    an_graph *graph;
    double scale;
    bool average;
    size_t layers, applied; /* of the adapter; those that were found */
    double *first, *second; /* A and B of the layer that was found last */
    size_t first_count, second_count;
    double *
        /* of DoRA: of every row of every layer that it changes, in the order of the model; NULL: it is not DoRA */
        factors;
    size_t *places; /* of each parameter in them + 1; 0: it has none */
    size_t factor_count;
    an_params *params; /* of the model, if some are stored in q8_0; else NULL */
    void *blocks;      /* of the weight that was found last */
    size_t block_bytes;
    const struct an_family *family; /* whose files have several layers in one tensor; NULL: the base has none such */
} an_merge;

/* A weight with another value than in the file of the model. */
typedef struct an_merge_layer {
    int64_t inputs, outputs; /* the model has [out, in] */
    bool transposed;         /* what is merged has [in, out] */
    bool adapted;            /* the adapter changes it */
    const double *factors;   /* of DoRA, one for each output; NULL: none */
    bool stored;             /* the run has it in q8_0, so the adapter was trained on other numbers */
} an_merge_layer;

/* Checks the checkpoint, and that the model is still the one that its adapter was trained on: for their hash, all of
 * its weights are in memory until this returns, and until an_merge_end if the run stores some in q8_0. Call
 * an_merge_end also if this fails. */
an_status an_merge_begin(an_merge *merge, const an_checkpoint *checkpoint);
void an_merge_end(an_merge *merge);

/* The dimensions of a matrix, [out, in], by the name of the model; NULL: it has none of this name. */
const int64_t *an_merge_matrix(const an_merge *merge, const char *name);
/* Reads the change of a weight, by the name of the model; *changes: there is one. */
an_status an_merge_find(an_merge *merge, const char *name, an_merge_layer *layer, bool *changes);
/* Makes the change that was found last in elements `first` and following. */
void an_merge_add(const an_merge *merge, const an_merge_layer *layer, int64_t first, int64_t count, double *numbers);
/* Refuses weights in which not every layer of the adapter was found. */
an_status an_merge_check(const an_merge *merge);

/* Takes tensors with several layers apart, and puts the layers that were trained whole beside the adapter into the
 * weights of its model: in the place of theirs, or behind them. Needs no an_merge_find, as they are not changed but
 * other. */
an_status an_weights_add_trained(an_weights *weights, an_merge *merge);

/* Puts the merged weights in the place of weights under the names and in the layout of the model. Layers with a change
 * are read as F32, or F64 if they are; `merge` must outlive them. */
an_status an_weights_merge(an_weights *weights, an_merge *merge);

#endif
