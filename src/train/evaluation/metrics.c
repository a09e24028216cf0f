/* Metrics of evaluations: which exist, built in or added by the program, which a model can compute,
 * and which a run reports. */
#include "train/evaluation/metrics.h"

#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/text/nearest.h"
#include "train/evaluation/own_metrics.h"
#include "train/structs.h"
#include "train/trainer.h"

/* What a model must do, or a trainer keep, to have a metric. */
typedef enum { NOTHING, COMPARES, CLASSIFIES, MEASURES, COUNTS, SCORES, PREFERS, NEEDS } need;

/* ---- which models report a metric unasked, if they have what it needs ---- */

static bool every_model(const an_trainer *t, const an_result *targets) {
    (void)t;
    (void)targets;
    return true;
}

static bool models_of_tokens(const an_trainer *t, const an_result *targets) {
    (void)t;
    return targets && an_dtype_is_index(targets->dtype) && targets->ndims > 1;
}

/* The right class is always among so few as five. */
static bool models_of_many_classes(const an_trainer *t, const an_result *targets) {
    enum { TOP = 5 };
    (void)targets;
    return t->evaluator.classes <= 0 || t->evaluator.classes > TOP;
}

/* Around one mean of all targets: if some are near 1000 and others near 0, r2 is 1 for any model. */
static bool models_of_one_number(const an_trainer *t, const an_result *targets) {
    (void)t;
    return !targets || targets->ndims <= 1 || (targets->ndims == 2 && targets->dims[1] == 1);
}

/* Means over kinds of tokens are for who asks. */
static bool models_of_samples(const an_trainer *t, const an_result *targets) {
    return !targets || targets->ndims <= 1 || t->evaluator.labels > 0;
}

/* ---- the table ---- */

static const struct {
    const char *name;
    size_t offset;
    need needs;
    bool up; /* more is better */
    bool (*suits)(const an_trainer *t, const an_result *targets);
} metrics[] = {
#define AN_METRIC(name, member, needs, better, detail, suits) \
    {AN_METRIC_PREFIX #name, offsetof(an_evaluation, member), needs, (better) > 0, suits},
#include "base/metrics.def"
#undef AN_METRIC
};
enum { METRICS = sizeof metrics / sizeof *metrics };

_Static_assert((int)METRICS + (int)AN_MOST_OWN_METRICS <= (int)AN_MOST_METRICS, "room for the values of all");
_Static_assert((int)AN_MOST_METRICS <= (int)AN_MOST_CHAINED, "all are part of the state's hash");

static int find_metric(const char *name) {
    for (int i = 0; i < METRICS; i++)
        if (!strcmp(metrics[i].name, name)) return i;
    return -1;
}

static bool get(const an_evaluation *evaluation, const char *name, double *value) {
    const int i = find_metric(name);
    const bool has[NEEDS] = {[NOTHING] = true,
                             [COMPARES] = evaluation->classifies || evaluation->counts_right,
                             [CLASSIFIES] = evaluation->classifies,
                             [MEASURES] = evaluation->measures,
                             [COUNTS] = evaluation->counts_classes,
                             [SCORES] = evaluation->scores_classes,
                             [PREFERS] = evaluation->prefers};
    if (i < 0 || !has[metrics[i].needs]) return false;
    memcpy(value, (const char *)evaluation + metrics[i].offset, sizeof *value);
    return true;
}

bool an_evaluation_metric(const an_evaluation *evaluation, const char *name, double *value) {
    AN_GUARD;
    AN_NEED_OR(false, evaluation, name, value);
    an_evaluation own;
    return an_evaluation_read(NULL, &own, evaluation) == AN_OK && get(&own, name, value);
}

bool an_metric_get(const an_evaluation *evaluation, const an_own_metrics *own, const char *name, double *value) {
    return get(evaluation, name, value) || an_own_metrics_get(own, name, value);
}

bool an_trainer_metric_value(const an_trainer *trainer, const char *name, double *value) {
    AN_GUARD;
    AN_NEED_OR(false, trainer, name, value);
    return trainer->evaluator.last.samples > 0 &&
           an_metric_get(&trainer->evaluator.last, &trainer->evaluator.measured, name, value);
}

/* Runs of earlier versions had no accuracy of tokens, and their hashes stay what they were. */
bool an_metrics_chain_right(const an_trainer *t) {
    return t->evaluator.labels > 0 || (t->evaluator.counts_right && t->evaluator.asked_details & AN_DETAIL_TOKENS);
}

int an_metrics_chained(const an_trainer *t, double values[AN_MOST_METRICS]) {
    an_evaluation evaluation = t->record.progress.evaluation;
    const an_own_metrics *own = &t->record.progress.own;
    int count = 0;
    if (!an_metrics_chain_right(t)) evaluation.counts_right = false;
    for (int i = 0; i < METRICS; i++)
        if (get(&evaluation, metrics[i].name, &values[count])) count++;
    for (int64_t i = 0; i < own->count; i++) values[count++] = own->items[i].value;
    return count;
}

/* ---- adding ---- */

/* Names and words that mean something else where a config names a metric. */
static bool is_taken(const an_own_metric_record *metric) {
    const char *name = metric->options.name;
    return find_metric(metric->reported) >= 0 || !strcmp(name, "auto") || !strcmp(name, "off") ||
           !strncmp(name, AN_METRIC_PREFIX, sizeof AN_METRIC_PREFIX - 1);
}

an_status an_context_add_metric(an_context *ctx, const an_metric_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, given);
    an_status status;
    an_metric_options options;
    const an_metric_options *const o = &options;
    an_added *added;
    AN_TRY(an_metric_options_read(ctx, &options, given));
    AN_CHECK(ctx, o->name && an_added_is_name(o->name), AN_ERR_ARGUMENT,
             "a metric cannot be called '%s': a name is a lower-case letter, then lower-case letters, digits and "
             "underscores, at most %d",
             o->name ? AN_QUOTE(o->name) : "NULL", AN_ADDED_NAME - 1);
    an_own_metric_record record = {.options = *o};
    snprintf(record.reported, sizeof record.reported, AN_METRIC_PREFIX "%s", o->name);
    AN_CHECK(ctx, !is_taken(&record), AN_ERR_ARGUMENT,
             "a metric cannot be called '%s', which has a meaning already; it is reported with val_ before its name",
             o->name);
    AN_CHECK(ctx, !an_added_find(ctx, AN_ADDED_METRIC, o->name), AN_ERR_ARGUMENT,
             "there already is a metric '%s'; give this one another name", o->name);
    AN_CHECK(ctx, o->better >= AN_METRIC_BETTER_AUTO && o->better <= AN_METRIC_BETTER_HIGHER, AN_ERR_ARGUMENT,
             "better of metric '%s' is %d, which is no value of an_metric_better", o->name, (int)o->better);
    AN_CHECK(ctx, o->measure, AN_ERR_ARGUMENT, "metric '%s' needs a function that measures it", o->name);
    AN_CHECK(ctx, an_own_metrics_count(ctx) < AN_MOST_OWN_METRICS, AN_ERR_ARGUMENT,
             "metric '%s' is one too many: a context has at most %d", o->name, AN_MOST_OWN_METRICS);
    AN_TRY(an_added_add(ctx, AN_ADDED_METRIC, o->name, &record, sizeof record, &added));
    ((an_own_metric_record *)added->record)->options.name = added->name;
    return AN_OK;
fail:
    return status;
}

/* ---- which are reported ---- */

an_status an_trainer_set_metrics(an_trainer *trainer, int count, const char *const *names) {
    AN_NEED(trainer);
    if (count > 0) AN_NEED(trainer, names);
    an_trainer *t = trainer;
    unsigned chosen = 0;
    const char *known;
    for (int i = 0; i < count; i++) {
        AN_TRY_RETURN(an_metric_check(t, names[i], &known));
        const int own = an_own_metric_find(t, names[i]);
        chosen |= 1U << (own < 0 ? find_metric(names[i]) : METRICS + own);
    }
    t->evaluator.metrics = chosen;
    return AN_OK;
}

/* What every evaluation of the trainer has. */
static an_evaluation possible(const an_trainer *t) {
    return (an_evaluation){.classifies = t->evaluator.output && t->evaluator.classifies,
                           .counts_right = t->evaluator.counts_right || t->evaluator.labels > 0,
                           .measures = t->evaluator.output && !t->evaluator.classifies && t->evaluator.labels == 0,
                           .prefers = t->evaluator.prefers,
                           .counts_classes = t->evaluator.details.classes > 0 || t->evaluator.details.labels > 0,
                           .scores_classes = t->evaluator.keeps_scores};
}

static bool is_useful(const an_trainer *t, int metric) {
    const an_evaluation has = possible(t);
    double value;
    return metrics[metric].suits(t, an_graph_result(t->graph, t->graph->targets)) &&
           get(&has, metrics[metric].name, &value);
}

static bool is_reported(const an_trainer *t, int number) {
    if (t->evaluator.metrics) return t->evaluator.metrics >> number & 1U;
    return number >= METRICS || is_useful(t, number);
}

const char *an_trainer_metric(const an_trainer *trainer, int index) {
    AN_NEED_OR(NULL, trainer);
    const an_trainer *t = trainer;
    for (int i = 0; i < METRICS && t->evaluator.data; i++)
        if (is_reported(t, i) && index-- == 0) return metrics[i].name;
    for (int i = 0; i < t->evaluator.own_metric_count; i++)
        if (is_reported(t, METRICS + i) && index-- == 0) return an_own_metric_at(t, i)->reported;
    return NULL;
}

bool an_metric_rises(const an_trainer *t, const char *name) {
    const int i = find_metric(name), own = an_own_metric_find(t, name);
    return own >= 0 ? an_own_metric_at(t, own)->options.better == AN_METRIC_BETTER_HIGHER : i >= 0 && metrics[i].up;
}

/* "there is no metric 'x'; the metrics are val_loss, …" with the program's own. */
static an_status refuse_name(const an_trainer *t, const char *name) {
    enum { MOST_TEXT = 512 };
    char names[MOST_TEXT] = "";
    size_t used = 0;
    an_nearest nearest;
    an_nearest_init(&nearest, name, strlen(name));
    for (int i = 0; i < METRICS + t->evaluator.own_metric_count && used < sizeof names; i++) {
        const char *known = i < METRICS ? metrics[i].name : an_own_metric_at(t, i - METRICS)->reported;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", known);
        an_nearest_consider(&nearest, known, strlen(known));
    }
    return AN_ERROR(t->ctx, AN_ERR_UNKNOWN, "there is no metric '%s'; the metrics are %s%s", AN_QUOTE(name), names,
                    AN_NEAREST(&nearest));
}

/* The end of "this model cannot compute 'x': it …"; NULL: it could, but the trainer was not asked to. */
static const char *reason_of(const an_trainer *t, need needs) {
    if (needs == PREFERS) return "does not learn from pairs of answers";
    if (needs == MEASURES && t->evaluator.labels > 0) return "predicts probabilities of labels";
    if (needs >= COUNTS && t->evaluator.labels > 0)
        return an_details_reason(t, needs == SCORES ? AN_DETAIL_SCORES : AN_DETAIL_CLASSES);
    if (needs == MEASURES) return "has no output with the shape of its targets";
    if (needs == CLASSIFIES && t->evaluator.counts_right)
        return "does not store its logits, and counts only the largest of them";
    if (needs <= CLASSIFIES || !t->evaluator.output || !t->evaluator.classifies)
        return "has no output with a number for each class in evaluation";
    return an_details_reason(t, needs == SCORES ? AN_DETAIL_SCORES : AN_DETAIL_CLASSES);
}

an_status an_metric_check(const an_trainer *t, const char *name, const char **known) {
    const an_evaluation has = possible(t);
    double value;
    const int i = find_metric(name), own = an_own_metric_find(t, name);
    if (i < 0 && own < 0) return refuse_name(t, name);
    if (i >= 0 && !get(&has, name, &value)) {
        const char *reason = reason_of(t, metrics[i].needs);
        if (reason) return AN_ERROR(t->ctx, AN_ERR_ARGUMENT, "this model cannot compute '%s': it %s", name, reason);
        return AN_ERROR(t->ctx, AN_ERR_ARGUMENT,
                        "this trainer does not compute '%s': ask for it in eval.metrics of the config, or create the "
                        "trainer with %s in its option details",
                        name, metrics[i].needs == SCORES ? "AN_DETAIL_SCORES" : "AN_DETAIL_CLASSES");
    }
    *known = i >= 0 ? metrics[i].name : an_own_metric_at(t, own)->reported;
    return AN_OK;
}

an_status an_trainer_check_metric(const an_trainer *trainer, const char *name) {
    AN_NEED(trainer, name);
    const char *known;
    return an_metric_check(trainer, name, &known);
}
