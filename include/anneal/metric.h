/* Own metrics: numbers that the program measures at each evaluation of a run, in addition to the built-in metrics.
 *
 * An own metric is reported as val_NAME in metrics.jsonl, the event file and summary.json. eval.metrics, eval.best and
 * eval.early_stop of a config and an_run_options can name it. Its values belong to the state of a run, like those of
 * built-in metrics: they are part of state_hash and are stored in checkpoints. None of these functions is collective.
 */
#ifndef ANNEAL_METRIC_H
#define ANNEAL_METRIC_H

#include "anneal/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which of two values of a metric is better. */
typedef enum an_metric_better {
    /* lower for val_loss, val_perplexity and val_mae; own metrics: as their options say; higher for all others */
    AN_METRIC_BETTER_AUTO = 0,
    AN_METRIC_BETTER_LOWER = 1,
    AN_METRIC_BETTER_HIGHER = 2,
    AN_METRIC_BETTER_LIMIT = 0x7fffffff
} an_metric_better;

typedef struct an_metric_options {
    size_t size;
    const char *name; /* a lower-case letter, then lower-case letters, digits and underscores; at most 31 bytes */
    /* Measures the model as it is. Called at the end of each evaluation, after all samples. It may create and use
     * predictors and read parameters. It must not change anything in the trainer, and cannot step, evaluate or save it.
     * NaN is allowed and is never the best. A status other than AN_OK ends the run as failed. */
    an_status (*measure)(void *user, an_trainer *trainer, double *value);
    void *user;
    an_metric_better better; /* AUTO: lower */
    uint32_t reserved;
} an_metric_options;
AN_API void an_metric_options_init(an_metric_options *options, size_t size);

/* Adds a metric to every trainer with evaluation data that is made in this context from now on; at most 16. */
AN_API an_status an_context_add_metric(an_context *ctx, const an_metric_options *options);

/* Gives a number of the trainer's last evaluation by its name: "val_loss" and the like, or "val_NAME" of an own metric.
 * false: there was no evaluation yet, or this trainer has no such metric. */
AN_API bool an_trainer_metric_value(const an_trainer *trainer, const char *name, double *value);

#ifdef __cplusplus
}
#endif
#endif
