/* A trainer on arrays that a test has: inputs and targets. It also evaluates them. Include this last,
 * as ctx would be shadowed. */
#ifndef TESTS_TRAIN_ARRAY_TRAINER_H
#define TESTS_TRAIN_ARRAY_TRAINER_H

#include "anneal/models.h"
#include "anneal/train.h"
#include "models/small_models.h"

typedef struct {
    an_graph *graph;
    an_dataset *dataset;
    an_trainer *trainer;
} array_trainer;

/* The class of a sample, one of three. Not all are as frequent. */
static inline int32_t class_of(int sample) {
    return sample % 5 % 3;
}

/* The small MLP in f64, for classes or for numbers. */
static inline an_graph *f64_mlp(an_loss_kind loss) {
    an_mlp_options model = small_mlp_options();
    an_graph *graph = NULL;
    model.dtype = AN_DTYPE_F64;
    model.loss = loss;
    OK(ctx, an_model_mlp(&graph, ctx, &model));
    return graph;
}

/* A few steps, whose gradients are not clipped. */
static inline an_trainer_options few_steps(int64_t steps, const an_batch_options *batch) {
    an_trainer_options options;
    an_trainer_options_init(&options, sizeof options);
    options.batch = batch;
    options.steps = steps;
    options.clip_norm = 0;
    return options;
}

/* The graph then belongs to it. Destroyed also if it fails. */
static inline an_status array_trainer_try(array_trainer *a, an_graph *graph, an_array inputs, an_array targets,
                                          const an_trainer_options *options) {
    const an_array arrays[] = {inputs, targets};
    const an_array_source source = {DEFAULTS(an_array_source), .array_count = 2, .arrays = arrays};
    *a = (array_trainer){.graph = graph};
    OK(ctx, an_dataset_create_arrays(&a->dataset, ctx, &source));
    return an_trainer_create(&a->trainer, graph, a->dataset, a->dataset, options);
}

static inline array_trainer array_trainer_create(an_graph *graph, an_array inputs, an_array targets,
                                                 const an_trainer_options *options) {
    array_trainer a;
    OK(ctx, array_trainer_try(&a, graph, inputs, targets, options));
    return a;
}

static inline an_step_metrics array_trainer_step(const array_trainer *a) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, an_trainer_step(a->trainer, &metrics));
    return metrics;
}

static inline an_evaluation array_trainer_evaluate(const array_trainer *a) {
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    OK(ctx, an_trainer_evaluate(a->trainer, &evaluation));
    return evaluation;
}

static inline void array_trainer_destroy(array_trainer *a) {
    an_trainer_destroy(&a->trainer);
    an_graph_destroy(&a->graph);
    an_dataset_destroy(&a->dataset);
}

#endif
