/* Maps the fields of a dataset to the inputs of a program.
 *
 * An input takes the field with its name; the remaining inputs and fields are matched in order. The input "samples"
 * takes the global numbers of the samples. The first dimension of an input is the sample; a dimension that is a
 * symbol takes its size from the field.
 */
#ifndef AN_TRAIN_FEED_H
#define AN_TRAIN_FEED_H

#include "data/samples.h"
#include "exec/program.h"

enum { AN_MAX_FEED_SYMBOLS = 8 };

typedef struct an_feed_input {
    const char *name; /* of the input; in the graph's memory */
    int field;        /* of the dataset */
    an_dtype dtype;
    int ndims;                 /* with the sample */
    int64_t dims[AN_MAX_DIMS]; /* of one sample, from 1 on */
    size_t bytes;              /* of one sample */
} an_feed_input;

typedef struct an_feed {
    an_context *ctx;
    int count;
    an_feed_input inputs[AN_MAX_FEEDS];
    int targets;         /* which of them the loss counts; -1: none */
    const char *samples; /* the input of sample numbers; NULL: the model has none */
    const char *batch;   /* the symbol of samples */
    int symbol_count;    /* all others */
    const char *symbols[AN_MAX_FEED_SYMBOLS];
    int64_t values[AN_MAX_FEED_SYMBOLS];
} an_feed;

/* The graph and the dataset must outlive it. */
an_status an_feed_make(an_feed *feed, an_graph *graph, const an_dataset *dataset);
/* The symbol of samples, of a graph without data. */
an_status an_feed_find_batch(an_graph *graph, const char **batch);
/* Reading will refuse integers that the model has no row or class for. */
an_status an_feed_set_limits(const an_feed *feed, const an_program *program, an_dataset *dataset);
/* Gives the program samples first … first + count - 1 of what was read; `numbers` are the global
 * numbers of all that was. */
an_status an_feed_set(const an_feed *feed, an_program *program, void *const *fields, const int64_t *numbers,
                      int64_t first, int64_t count);
/* How many targets there are in samples first … first + count - 1 of what was read. */
an_status an_feed_count(const an_feed *feed, const an_program *program, void *const *fields, int64_t first,
                        int64_t count, int64_t *targets);

#endif
