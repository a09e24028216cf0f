/* Metrics of evaluations: which there are, which a model can have, and which of them a run reports. */
#include "train/metrics.h"

#include <string.h>

#include "base/guard.h"
#include "train/trainer.h"

static const struct {
    const char *name;
    size_t offset;
    bool classifies, measures; /* what a model must do to have it */
    bool up;                   /* more is better */
} metrics[] = {
    {"val_loss", offsetof(an_evaluation, loss), false, false, false},
    {"val_perplexity", offsetof(an_evaluation, perplexity), false, false, false},
    {"val_accuracy", offsetof(an_evaluation, accuracy), true, false, true},
    {"val_top5", offsetof(an_evaluation, top5), true, false, true},
    {"val_mae", offsetof(an_evaluation, mean_absolute_error), false, true, false},
    {"val_r2", offsetof(an_evaluation, r2), false, true, true},
};
enum { METRICS = sizeof metrics / sizeof *metrics, TOP = 5 };

_Static_assert((int)METRICS <= (int)AN_MOST_METRICS, "room for the values of all");

static int find_metric(const char *name) {
    for (int i = 0; i < METRICS; i++)
        if (!strcmp(metrics[i].name, name)) return i;
    return -1;
}

bool an_evaluation_metric(const an_evaluation *evaluation, const char *name, double *value) {
    AN_GUARD;
    AN_NEED_OR(false, evaluation, name, value);
    const int i = find_metric(name);
    if (i < 0 || (metrics[i].classifies && !evaluation->classifies) || (metrics[i].measures && !evaluation->measures))
        return false;
    memcpy(value, (const char *)evaluation + metrics[i].offset, sizeof *value);
    return true;
}

/* ---- which are reported ---- */

an_status an_trainer_set_metrics(an_trainer *trainer, int count, const char *const *names) {
    AN_NEED(trainer);
    if (count > 0) AN_NEED(trainer, names);
    an_trainer *t = trainer;
    an_context *ctx = t->ctx;
    unsigned chosen = 0;
    const char *known;
    for (int i = 0; i < count; i++) {
        AN_TRY_RETURN(an_metric_check(t, names[i], &known));
        chosen |= 1U << find_metric(names[i]);
    }
    t->metrics = chosen;
    return AN_OK;
}

/* The loss; perplexity where there are tokens; what the outputs can be compared by. */
static bool is_useful(const an_trainer *t, int metric) {
    const an_result *targets = an_graph_result(t->graph, t->graph->targets);
    const bool compares = metrics[metric].classifies || metrics[metric].measures;
    if (!strcmp(metrics[metric].name, "val_perplexity"))
        return targets && an_dtype_is_index(targets->dtype) && targets->ndims > 1;
    if (!strcmp(metrics[metric].name, "val_top5") && t->classes > 0 && t->classes <= TOP)
        return false; /* the right class is always among so few */
    return !compares || (t->output && t->classifies == metrics[metric].classifies);
}

const char *an_trainer_metric(const an_trainer *trainer, int index) {
    AN_NEED_OR(NULL, trainer);
    for (int i = 0; i < METRICS && trainer->evaluation; i++) {
        const bool reported = trainer->metrics ? trainer->metrics >> i & 1U : is_useful(trainer, i);
        if (reported && index-- == 0) return metrics[i].name;
    }
    return NULL;
}

bool an_metric_rises(const char *name) {
    const int i = find_metric(name);
    return i >= 0 && metrics[i].up;
}

int an_evaluation_values(const an_evaluation *evaluation, double values[AN_MOST_METRICS]) {
    int count = 0;
    for (int i = 0; i < METRICS; i++)
        if (an_evaluation_metric(evaluation, metrics[i].name, &values[count])) count++;
    return count;
}

an_status an_metric_check(const an_trainer *t, const char *name, const char **known) {
    const an_evaluation possible = {.classifies = t->output && t->classifies, .measures = t->output && !t->classifies};
    double value;
    const int i = find_metric(name);
    if (i < 0)
        return AN_ERROR(t->ctx, AN_ERR_UNKNOWN,
                        "there is no metric '%s': val_loss, val_perplexity, val_accuracy, val_top5, val_mae, val_r2",
                        name);
    if (!an_evaluation_metric(&possible, name, &value))
        return AN_ERROR(t->ctx, AN_ERR_ARGUMENT, "this model has no '%s': it %s", name,
                        metrics[i].classifies ? "gives no numbers for classes in evaluation"
                                              : "gives no numbers like its targets");
    *known = metrics[i].name;
    return AN_OK;
}

an_status an_trainer_check_metric(const an_trainer *trainer, const char *name) {
    AN_NEED(trainer, name);
    const char *known;
    return an_metric_check(trainer, name, &known);
}
