/* A model in training: everything that a run is made of. */
#ifndef AN_TRAIN_TRAINER_H
#define AN_TRAIN_TRAINER_H

#include <stdatomic.h>

#include "train/batches.h"
#include "train/feed.h"
#include "train/step.h"

/* Samples in memory, dense by field. */
typedef struct an_sample_buffer {
    int64_t capacity, count;
    int field_count;
    void *fields[AN_MAX_FEEDS];
    size_t bytes[AN_MAX_FEEDS]; /* of a sample */
    int64_t *indices, *numbers; /* in the dataset; in the run */
} an_sample_buffer;

enum { AN_HISTORY = 10, AN_MOST_SOURCES = 64 };

/* Datasets that a config names, those that a mixture is made of too. */
typedef struct an_sources {
    int count;
    an_dataset *datasets[AN_MOST_SOURCES];
} an_sources;

struct an_trainer {
    an_context *ctx;
    an_graph *graph;
    an_dataset *training, *evaluation; /* evaluation NULL: none */
    bool owns;                         /* the graph, and the data in `sources` */
    an_sources sources;
    an_feed feed, evaluation_feed;
    an_batches batches;
    int64_t steps, next, seed;
    atomic_bool stop; /* a request: the run ends after the step under way */

    an_groups *groups;
    an_params *params;
    an_plan *plan;
    an_program *program;
    an_optimizer *optimizer;
    an_schedule *schedule;
    an_stepper *stepper;
    an_step_metrics history[AN_HISTORY]; /* the last steps, by number */
    int64_t history_count;

    struct an_loader *loader;            /* of the training samples */
    int64_t *numbers;                    /* of a step's samples, in the run */
    an_sample_buffer evaluation_samples; /* a micro-batch of them */
    const char *output;                  /* what evaluation compares with the targets; NULL: nothing does */
    bool classifies;
    double *output_values; /* a micro-batch of it */
    size_t output_count;
};

an_status an_sample_buffer_create(an_sample_buffer *b, an_context *ctx, const an_dataset *dataset, int64_t capacity);
void an_sample_buffer_destroy(an_sample_buffer *b, an_context *ctx);

/* Makes everything but the graph and the data, which are there. On error the trainer is to be destroyed. */
an_status an_trainer_fill(an_trainer *t, const an_trainer_options *options);

/* What evaluation compares, found once. */
an_status an_evaluation_prepare(an_trainer *t);

#endif
