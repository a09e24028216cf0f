/* A small trainer on data of three classes, for tests. */
#ifndef TESTS_TRAIN_TRAINER_SUPPORT_H
#define TESTS_TRAIN_TRAINER_SUPPORT_H

#include "anneal/models.h"
#include "anneal/train.h"
#include "models/small_models.h"

enum { INPUTS = 4, CLASSES = 3, TRAINING = 103, EVALUATION = 29 };

/* ---- data: class c lies around a point of its own ---- */

static float inputs[TRAINING + EVALUATION][INPUTS];
static int32_t classes[TRAINING + EVALUATION];

static inline void make_data(void) {
    for (int i = 0; i < TRAINING + EVALUATION; i++) {
        classes[i] = i * 7 % CLASSES;
        for (int k = 0; k < INPUTS; k++)
            inputs[i][k] = (float)(((classes[i] + k) % CLASSES) - 1) + (float)(i * (k + 3) % 11 - 5) / 10;
    }
}

static inline an_dataset *make_dataset(int begin, int count) {
    const int64_t dims[] = {count, INPUTS};
    an_dataset *dataset = NULL;
    const an_array arrays[] = {array_of(inputs[begin], AN_DTYPE_F32, 2, dims),
                               array_of(classes + begin, AN_DTYPE_I32, 1, dims)};
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    source.array_count = 2;
    source.arrays = arrays;
    OK(ctx, an_dataset_create_arrays(&dataset, ctx, &source));
    return dataset;
}

/* ---- a run ---- */

typedef struct {
    an_graph *graph;
    an_dataset *training, *evaluation;
    an_trainer *trainer;
} run;

static const an_batch_options usual_batch = {.size = sizeof usual_batch, .global = 16};

static inline an_trainer_options usual_options(void) {
    an_trainer_options o;
    an_trainer_options_init(&o, sizeof o);
    o.seed = 11;
    o.epochs = 3;
    o.batch = &usual_batch;
    o.rate = 1e-2;
    return o;
}

static inline void run_create(run *r, const an_trainer_options *options, double dropout) {
    an_mlp_options model = small_mlp_options();
    model.dropout = dropout;
    r->training = make_dataset(0, TRAINING);
    r->evaluation = make_dataset(TRAINING, EVALUATION);
    OK(ctx, an_model_mlp(&r->graph, ctx, &model));
    OK(ctx, an_trainer_create(&r->trainer, r->graph, r->training, r->evaluation, options));
}

static inline void run_destroy(run *r) {
    an_trainer_destroy(&r->trainer);
    an_graph_destroy(&r->graph);
    an_dataset_destroy(&r->training);
    an_dataset_destroy(&r->evaluation);
}

typedef struct {
    char text[AN_HASH_TEXT];
} hash;

/* All steps, with an evaluation after every `every` of them. */
static inline hash train(const an_trainer_options *options, double dropout, int64_t every, double *last_loss) {
    run r;
    hash h;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    run_create(&r, options, dropout);
    while (an_trainer_next_step(r.trainer) < an_trainer_steps(r.trainer)) {
        OK(ctx, an_trainer_step(r.trainer, &metrics));
        if (every && metrics.step % every == 0) OK(ctx, an_trainer_evaluate(r.trainer, &evaluation));
    }
    if (last_loss) *last_loss = metrics.loss;
    OK(ctx, an_trainer_weights_hash(r.trainer, h.text));
    run_destroy(&r);
    return h;
}

#endif
