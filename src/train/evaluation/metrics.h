/* Metrics of evaluations, for use by other parts of the library. */
#ifndef AN_TRAIN_EVALUATION_METRICS_H
#define AN_TRAIN_EVALUATION_METRICS_H

#include "anneal/train.h"
#include "store/state_record.h"

enum { AN_MOST_METRICS = 12 + AN_MOST_OWN_METRICS };

/* Whether the trainer can have this metric; the error says why not. Its name in *known lives as long as the trainer. */
an_status an_metric_check(const an_trainer *t, const char *name, const char **known);
bool an_metric_rises(const an_trainer *t, const char *name); /* more is better */
/* A number of an evaluation, of the built-in metrics or of the program's; false: it has none of that name. */
bool an_metric_get(const an_evaluation *evaluation, const an_own_metrics *own, const char *name, double *value);
/* What the run's last evaluation adds to the chain of hashes: all metrics that it has, the built-in ones in the order
 * of the table and then the program's; how many. The accuracy of tokens is among them in runs that asked for it. */
int an_metrics_chained(const an_trainer *t, double values[AN_MOST_METRICS]);
bool an_metrics_chain_right(const an_trainer *t);

#endif
