/* Metrics of evaluations, as other parts of the library use them. */
#ifndef AN_TRAIN_METRICS_H
#define AN_TRAIN_METRICS_H

#include "anneal/train.h"

enum { AN_MOST_METRICS = 8 };

/* Whether the model can have this metric; the error says why not. Its name in *known lives for ever. */
an_status an_metric_check(const an_trainer *t, const char *name, const char **known);
bool an_metric_rises(const char *name); /* more is better */
/* All that an evaluation has, in the order of the table; how many. */
int an_evaluation_values(const an_evaluation *evaluation, double values[AN_MOST_METRICS]);

#endif
