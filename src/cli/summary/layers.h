/* The layers of a planned model: what each makes, and its part of parameters, memory and work. */
#ifndef AN_CLI_SUMMARY_LAYERS_H
#define AN_CLI_SUMMARY_LAYERS_H

#include "cli/plan/report.h"

typedef struct summary_layer {
    const char *path, *block;  /* as in an_plan_node */
    int64_t dims[AN_MAX_DIMS]; /* of its output */
    int ndims;                 /* -1: it has no output of its own */
    an_dtype dtype;
    int64_t parameters, trainable; /* elements */
    /* of its parameters, with their gradients and moments, and of its values at the fullest moment of a step */
    int64_t bytes;
    double flops; /* forward and backward */
} summary_layer;

typedef struct summary {
    const cli_report *report;
    summary_layer *layers;
    int count;
    summary_layer other; /* what belongs to no layer: the loss, inputs, tables, loaded samples */
    summary_layer total;
} summary;

/* The sum of all layers and of `other` is `total`, whose bytes are the peak of the plan. */
an_status summary_make(summary *s, const cli_report *report);
void summary_free(summary *s);

/* How many blocks in a row, from that of layer `first` on, have the same layers; 1 if the layer is in no
 * block. *layers: of one of them. */
int summary_repeats(const summary *s, int first, int *layers);

#endif
