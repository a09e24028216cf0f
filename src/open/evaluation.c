/* What a config says of evaluations and of the metrics in them. */
#include <stdio.h>
#include <string.h>

#include "kinds/keys.h"
#include "open/open.h"

/* What an evaluation must keep for a metric, with or without the prefix of its report. */
static uint32_t details_for(const char *metric) {
    static const struct {
        const char *metric;
        uint32_t detail;
    } metrics[] = {
#define AN_METRIC(name, member, needs, better, detail, suits) {#name, detail},
#include "base/metrics.def"
#undef AN_METRIC
    };
    const char *name = strncmp(metric, "val_", 4) ? metric : metric + 4;
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        if (!strcmp(metrics[i].metric, name)) return metrics[i].detail;
    return 0;
}

uint32_t an_open_details(const an_config *config) {
    const an_settings *s = config->settings;
    uint32_t details = details_for(s->eval.best.metric) | details_for(s->eval.early_stop.metric);
    for (int i = 0; i < s->eval.metrics_count; i++) details |= details_for(s->eval.metrics[i]);
    return details;
}

an_status an_open_metrics(an_config *config, an_context *ctx, an_trainer *trainer) {
    enum { MOST_METRICS = 32, NAME = 64 };
    static const char *const key = AN_SETTING(eval.metrics);
    char texts[MOST_METRICS][NAME];
    const char *names[MOST_METRICS];
    const int count = config->settings->eval.metrics_count;
    if (an_config_is(config, key, "auto")) return AN_OK;
    for (int i = 0; i < count && i < MOST_METRICS; i++) {
        snprintf(texts[i], NAME, "val_%s", config->settings->eval.metrics[i]);
        names[i] = texts[i];
    }
    const an_status status = an_trainer_set_metrics(trainer, count < MOST_METRICS ? count : MOST_METRICS, names);
    return an_key_blame_named(config, ctx, status == AN_OK ? AN_OK : AN_ERR_ARGUMENT, key);
}
