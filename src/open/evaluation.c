/* What a config says of evaluations and of the metrics in them. */
#include <stdio.h>
#include <string.h>

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

/* What the metrics that the config names need. */
static an_status get_details(an_config *config, an_context *ctx, an_trainer_options *options) {
    static const char *const paths[] = {"eval.best.metric", "eval.early_stop.metric"};
    const char *name;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (an_config_string(config, paths[i], &name) == AN_OK) options->details |= details_for(name);
    for (int i = 0; i < an_config_size(config, "eval.metrics"); i++) {
        char path[64];
        snprintf(path, sizeof path, "eval.metrics[%d]", i);
        AN_TRY_RETURN(an_config_string(config, path, &name));
        options->details |= details_for(name);
    }
    return AN_OK;
}

an_status an_open_evaluation(an_config *config, an_context *ctx, uint32_t details, an_trainer_options *options) {
    options->details = details;
    return get_details(config, ctx, options);
}

an_status an_open_metrics(an_config *config, an_context *ctx, an_trainer *trainer) {
    enum { MOST_METRICS = 32, NAME = 64 };
    char texts[MOST_METRICS][NAME], path[NAME];
    const char *names[MOST_METRICS], *name;
    const int count = an_config_size(config, "eval.metrics");
    if (an_config_is(config, "eval.metrics", "auto")) return AN_OK;
    for (int i = 0; i < count && i < MOST_METRICS; i++) {
        snprintf(path, sizeof path, "eval.metrics[%d]", i);
        AN_TRY_RETURN(an_config_string(config, path, &name));
        snprintf(texts[i], NAME, "val_%s", name);
        names[i] = texts[i];
    }
    const an_status status = an_trainer_set_metrics(trainer, count < MOST_METRICS ? count : MOST_METRICS, names);
    if (status == AN_OK) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: eval.metrics: %s", an_config_place(config, "eval.metrics"),
                    an_last_error(ctx));
}
