/* anneal: train neural networks from C.
 *
 * This header is enough to train a model that a config describes, from your own program and at its own pace:
 *
 *     an_context *ctx = NULL;
 *     an_trainer *trainer = NULL;
 *     an_step_metrics metrics;
 *     an_step_metrics_init(&metrics, sizeof metrics);
 *     int ok = an_context_create(&ctx, NULL) == AN_OK && an_trainer_open(&trainer, ctx, "run.yaml", NULL) == AN_OK;
 *     while (ok && an_trainer_next_step(trainer) < an_trainer_steps(trainer))
 *         ok = an_trainer_step(trainer, &metrics) == AN_OK;
 *     if (!ok) fprintf(stderr, "%s\n", an_last_error(ctx));
 *     an_trainer_destroy(&trainer);
 *     an_context_destroy(&ctx);
 *
 * core.h explains errors, threads and structs. To build and train a model without a config, use graph.h, models.h,
 * pretrained.h, data.h, plan.h, optimizer.h, step.h, train.h, run.h, predict.h, checkpoint.h and open.h. Own ops,
 * kernels and devices are in experimental.h.
 *
 * With several ranks (ranks.h, mpi.h), opening, steps and saves are collective: every rank calls them, in the same
 * order, and all of them return the same status.
 */
#ifndef ANNEAL_ANNEAL_H
#define ANNEAL_ANNEAL_H

#include "anneal/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

/* ---- training ---- */

typedef struct an_trainer an_trainer;

struct an_open_options; /* open.h */

/* Opens the run that a config file describes. The trainer owns its model and data. `options` may be NULL.
 *
 * This call RESUMES. If the run's folder (run.dir) has checkpoints, the trainer continues from the newest good one:
 * weights, optimizer, step and place in the data. Only a folder without checkpoints gives a new run.
 * an_trainer_resumed (checkpoint.h) returns the checkpoint's path, or NULL for a new run. The options (open.h) can name
 * another checkpoint, or start a new run in any case. */
AN_API an_status an_trainer_open(an_trainer **trainer, an_context *ctx, const char *file,
                                 const struct an_open_options *options);
/* Destroys a trainer, with the model and data that it owns, and sets the pointer to NULL. */
AN_API void an_trainer_destroy(an_trainer **trainer);

/* The number of steps of the whole run; INT64_MAX: a stream without a length. Not collective. */
AN_API int64_t an_trainer_steps(const an_trainer *trainer);
/* The number of steps that have been taken, which is also the next step's number, counted from 0. It equals
 * an_trainer_steps when the run is done. Not collective. */
AN_API int64_t an_trainer_next_step(const an_trainer *trainer);

/* The numbers of a step. */
typedef struct an_step_metrics {
    size_t size;
    int64_t step; /* of the run; counts from 1 */
    double loss;  /* mean over the targets of the step */
    double rate;  /* learning rate of the step */
    double norm;  /* L2 norm of the gradients, before clipping */
    double scale; /* loss scale */
    int64_t targets, samples;
    int64_t skips;     /* skipped steps of the run so far, including this one */
    int64_t epoch;     /* epoch of the step; counts from 1; 0: a stream has no epochs */
    double epoch_loss; /* mean over the targets of the epoch's steps so far; skipped steps do not count */
    bool skipped;
    bool ends_epoch; /* the last step of its epoch */
    uint8_t reserved[6];
} an_step_metrics;
AN_API void an_step_metrics_init(an_step_metrics *metrics, size_t size);

/* Takes one optimizer step on the next samples. `metrics` may be NULL. AN_ERR_STATE: the run has no more steps.
 * AN_ERR_NONFINITE: the loss or a gradient is not finite and such steps are not skipped, or too many steps in a row
 * were skipped, or the f16 loss scale would fall below 1; the message says which, and names the first value that is not
 * finite. After an error the weights are as they were before the call. Collective. */
AN_API an_status an_trainer_step(an_trainer *trainer, an_step_metrics *metrics);

/* Saves the run under the caller's own step number, and returns when the checkpoint is durable. All of these
 * checkpoints are kept, or the newest `save.keep_named` of them. AN_ERR_STATE: the run already has a checkpoint of this
 * user step; nothing is written. Collective. */
AN_API an_status an_trainer_save(an_trainer *trainer, int64_t user_step);
/* The user step of the last such save, in this process or an earlier one; 0: there was none. Not collective. */
AN_API int64_t an_trainer_user_step(const an_trainer *trainer);

/* ---- prediction ---- */

/* Which weights evaluation, prediction and export use. A run may keep a moving average of its weights (train.ema). */
typedef enum an_model_weights {
    AN_MODEL_WEIGHTS_AUTO = 0,    /* the moving average if there is one, or else the weights */
    AN_MODEL_WEIGHTS_RAW = 1,     /* the weights that the optimizer updates */
    AN_MODEL_WEIGHTS_AVERAGE = 2, /* the moving average; an error if there is none */
    AN_MODEL_WEIGHTS_LIMIT = 0x7fffffff
} an_model_weights;

typedef struct an_predictor an_predictor;
struct an_predictor_options; /* predict.h */

/* Creates a predictor with a copy of the trainer's present weights, or of their moving average if the trainer keeps
 * one. `options` may be NULL: one sample per call. */
AN_API an_status an_predictor_create(an_predictor **predictor, an_trainer *trainer,
                                     const struct an_predictor_options *options);
AN_API void an_predictor_destroy(an_predictor **predictor);
/* Predicts n dense samples, for models with one input of real numbers. n is at most
 * an_predictor_options.max_samples. */
AN_API an_status an_predictor_run_f32(an_predictor *predictor, int64_t n, const float *inputs, float *outputs);
AN_API an_status an_predictor_run_f64(an_predictor *predictor, int64_t n, const double *inputs, double *outputs);

/* ==== details ==== the rest of the interface */

/* Takes one step on n samples of the caller, instead of the next samples of the data. The samples are read before the
 * call returns; the arrays stay the caller's. The first dimension of both arrays is n (the last one in Fortran). The
 * other dimensions are those of the model's only input and of its targets. Any strides are allowed. f32 and f64 are
 * converted to the model's type. n may be larger than a micro-batch or than batch.global: the samples are cut into
 * leaves and micro-batches as in any step, and the loss is the mean over all of them. Fails as an_trainer_step does.
 * Collective. */
AN_API an_status an_trainer_step_on(an_trainer *trainer, int64_t n, const an_array *inputs, const an_array *targets,
                                    an_step_metrics *metrics);
/* The same with dense arrays, for models whose targets are real numbers. */
AN_API an_status an_trainer_step_on_f32(an_trainer *trainer, int64_t n, const float *inputs, const float *targets,
                                        an_step_metrics *metrics);
AN_API an_status an_trainer_step_on_f64(an_trainer *trainer, int64_t n, const double *inputs, const double *targets,
                                        an_step_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
