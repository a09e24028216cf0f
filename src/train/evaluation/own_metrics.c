#include "train/evaluation/own_metrics.h"

#include <string.h>

#include "base/guard.h"
#include "train/trainer.h"

const an_own_metric_record *an_own_metric_at(const an_trainer *t, int index) {
    const an_added *added = index < t->evaluator.own_metric_count ? an_added_at(t->ctx, AN_ADDED_METRIC, index) : NULL;
    return added ? (const an_own_metric_record *)added->record : NULL;
}

int an_own_metric_find(const an_trainer *t, const char *name) {
    const an_own_metric_record *metric;
    for (int i = 0; (metric = an_own_metric_at(t, i)); i++)
        if (!strcmp(metric->reported, name)) return i;
    return -1;
}

int an_own_metrics_count(const an_context *ctx) {
    int count = 0;
    while (an_added_at(ctx, AN_ADDED_METRIC, count)) count++;
    return count;
}

an_status an_own_metrics_measure(an_trainer *t) {
    const an_own_metric_record *metric;
    t->evaluator.measured.count = 0;
    for (int i = 0; (metric = an_own_metric_at(t, i)); i++) {
        const an_metric_options *o = &metric->options;
        an_own_metric *measured = &t->evaluator.measured.items[i];
        an_status status;
        double value = __builtin_nan("");
        t->evaluator.measuring = true;
        AN_HOST(status = o->measure(o->user, t, &value));
        t->evaluator.measuring = false;
        if (status != AN_OK)
            return AN_ERROR(t->ctx, status, "the program's metric '%s' failed after step %lld with %s",
                            metric->reported, (long long)t->next, an_status_name(status));
        memcpy(measured->name, metric->reported, sizeof measured->name);
        measured->value = value;
        t->evaluator.measured.count++;
    }
    return AN_OK;
}

an_status an_trainer_check_idle(const an_trainer *t, const char *what) {
    if (!t->evaluator.measuring) return AN_OK;
    return AN_ERROR(t->ctx, AN_ERR_ORDER,
                    "a metric measures the trainer inside an evaluation and cannot %s it: do that after the evaluation",
                    what);
}

bool an_own_metrics_get(const an_own_metrics *metrics, const char *name, double *value) {
    for (int64_t i = 0; i < metrics->count; i++)
        if (!strcmp(metrics->items[i].name, name)) {
            *value = metrics->items[i].value;
            return true;
        }
    return false;
}
