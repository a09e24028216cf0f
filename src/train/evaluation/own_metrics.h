/* Metrics that the program has added to the context. */
#ifndef AN_TRAIN_EVALUATION_OWN_METRICS_H
#define AN_TRAIN_EVALUATION_OWN_METRICS_H

#include "anneal/metric.h"
#include "base/added.h"
#include "store/state_record.h"

/* What the context keeps of one. */
typedef struct an_own_metric_record {
    an_metric_options options;
    char reported[AN_METRIC_NAME]; /* its name with the prefix */
} an_own_metric_record;

/* The index-th of those that the trainer has; NULL: there is none. */
const an_own_metric_record *an_own_metric_at(const an_trainer *t, int index);
/* By the name that reports have, "val_x"; -1: the trainer has no such metric. */
int an_own_metric_find(const an_trainer *t, const char *name);

/* How many metrics a trainer that is made now has. */
int an_own_metrics_count(const an_context *ctx);
/* Measures all of them, in the order in which they were added, into t->evaluator.measured. */
an_status an_own_metrics_measure(an_trainer *t);

/* A value by the name that reports have; false: there is none. */
bool an_own_metrics_get(const an_own_metrics *metrics, const char *name, double *value);

#endif
