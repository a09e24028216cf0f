/* Prediction of the MLP of models.c, timed when it is asked for.
 *
 *     predict f32|f64 THREADS SAMPLES CALLS      predict f32 2 64 100
 *
 * How it is asked: serve.h. A pass is CALLS calls, each with SAMPLES samples.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <anneal/predict.h>
#include <anneal/train.h>

#include "models.h"
#include "serve.h"

enum { INPUTS = 32, OUTPUTS = 8, BATCH = 64 };

typedef struct prediction {
    an_dataset *dataset;
    an_graph *graph;
    an_trainer *trainer;
    an_predictor *predictor;
    an_dtype dtype;
    int64_t samples, calls;
    void *inputs, *outputs;
} prediction;

/* Returns the status of a call that fails. */
#define TRY(call)                             \
    do {                                      \
        an_status status_ = (call);           \
        if (status_ != AN_OK) return status_; \
    } while (0)

static an_array array_of(void *data, an_dtype dtype, int64_t rows, int64_t columns) {
    an_array a = {0};
    a.data = data;
    a.dtype = dtype;
    a.ndims = 2;
    a.dims[0] = rows;
    a.dims[1] = columns;
    return a;
}

/* Numbers between -1 and 1. */
static void fill_inputs(prediction *p) {
    for (int64_t i = 0; i < p->samples * INPUTS; i++) {
        const double x = (double)(i * 7919 % 2003 - 1001) / 1001;
        if (p->dtype == AN_DTYPE_F64)
            ((double *)p->inputs)[i] = x;
        else
            ((float *)p->inputs)[i] = (float)x;
    }
}

static an_status make(prediction *p, an_context *ctx, int threads) {
    const size_t size = p->dtype == AN_DTYPE_F64 ? sizeof(double) : sizeof(float);
    const int64_t rows = p->samples > BATCH ? p->samples : BATCH;
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    an_trainer_options training;
    an_trainer_options_init(&training, sizeof training);
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    p->inputs = calloc((size_t)rows * INPUTS, size);
    p->outputs = calloc((size_t)rows * OUTPUTS, size);
    if (!p->inputs || !p->outputs) return AN_ERR_MEMORY;
    fill_inputs(p);
    const an_array arrays[] = {array_of(p->inputs, p->dtype, rows, INPUTS),
                               array_of(p->outputs, p->dtype, rows, OUTPUTS)};
    source.array_count = sizeof arrays / sizeof *arrays;
    source.arrays = arrays;
    an_batch_options batch;
    an_batch_options_init(&batch, sizeof batch);
    batch.global = BATCH;
    training.batch = &batch;
    options.max_samples = p->samples;
    options.threads = threads;
    TRY(an_dataset_create_arrays(&p->dataset, ctx, &source));
    TRY(bench_model(&p->graph, ctx, "mlp", p->dtype));
    TRY(an_trainer_create(&p->trainer, p->graph, p->dataset, NULL, &training));
    return an_predictor_create(&p->predictor, p->trainer, &options);
}

static void destroy(prediction *p) {
    an_predictor_destroy(&p->predictor);
    an_trainer_destroy(&p->trainer);
    an_graph_destroy(&p->graph);
    an_dataset_destroy(&p->dataset);
    free(p->inputs);
    free(p->outputs);
}

static an_status pass(void *user) {
    const prediction *p = user;
    for (int64_t i = 0; i < p->calls; i++) {
        if (p->dtype == AN_DTYPE_F64)
            TRY(an_predictor_run_f64(p->predictor, p->samples, p->inputs, p->outputs));
        else
            TRY(an_predictor_run_f32(p->predictor, p->samples, p->inputs, p->outputs));
    }
    return AN_OK;
}

int main(int argc, char **argv) {
    enum { PRECISION = 1, THREADS, SAMPLES, CALLS, ARGUMENTS };
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_context *ctx = NULL;
    if (argc != ARGUMENTS) {
        fprintf(stderr, "usage: predict f32|f64 THREADS SAMPLES CALLS\n");
        return 2;
    }
    prediction p = {.dtype = strcmp(argv[PRECISION], "f64") ? AN_DTYPE_F32 : AN_DTYPE_F64,
                    .samples = strtoll(argv[SAMPLES], NULL, 10),
                    .calls = strtoll(argv[CALLS], NULL, 10)};
    options.threads = (int)strtol(argv[THREADS], NULL, 10);
    an_status status = an_context_create(&ctx, &options);
    if (status == AN_OK) status = make(&p, ctx, options.threads);
    if (status == AN_OK) status = bench_serve(pass, &p);
    if (status != AN_OK) fprintf(stderr, "predict: %s: %s\n", an_status_name(status), an_last_error(ctx));
    destroy(&p);
    an_context_destroy(&ctx);
    return status == AN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
