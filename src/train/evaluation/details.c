#include "train/evaluation/details.h"

#include <string.h>

#include "base/guard.h"
#include "comm/comm.h"
#include "train/structs.h"
#include "train/trainer.h"

/* ---- what is kept ---- */

/* Targets of a sample. */
static int64_t targets_of(const an_feed *feed) {
    const an_feed_input *input = &feed->inputs[feed->targets];
    int64_t each = 1;
    for (int d = 1; d < input->ndims; d++) each *= input->dims[d];
    return each;
}

static bool fits_scores(const an_trainer *t) {
    size_t targets;
    return an_multiply_sizes((size_t)an_evaluation_samples(t), (size_t)targets_of(&t->evaluator.feed), &targets) &&
           targets <= (size_t)AN_MOST_SCORES;
}

void an_details_find(an_trainer *t, unsigned asked) {
    an_details *d = &t->evaluator.details;
    const an_feed *feed = &t->evaluator.feed;
    *d = (an_details){0};
    if (!t->evaluator.data || !t->evaluator.output || feed->targets < 0) return;
    const bool classifies =
        t->evaluator.classifies && t->evaluator.classes > 0 && t->evaluator.classes <= AN_MOST_COUNTED;
    if (asked & AN_DETAIL_CLASSES && classifies) d->classes = t->evaluator.classes;
    if (asked & (AN_DETAIL_CLASSES | AN_DETAIL_SCORES) && t->evaluator.labels <= AN_MOST_COUNTED)
        d->labels = t->evaluator.labels;
    t->evaluator.keeps_scores =
        asked & AN_DETAIL_SCORES && ((classifies && t->evaluator.classes == 2) || d->labels > 0) && fits_scores(t);
    const an_feed_input *input = &feed->inputs[feed->targets];
    const int64_t outputs = input->ndims > 1 ? input->dims[input->ndims - 1] : 1;
    if (asked & AN_DETAIL_OUTPUTS && !t->evaluator.classifies && t->evaluator.labels == 0 && t->ranks == 1 &&
        outputs <= AN_MOST_OUTPUTS)
        d->outputs = outputs;
}

const char *an_details_reason(const an_trainer *t, an_detail detail) {
    if (t->evaluator.labels > AN_MOST_COUNTED) return "has more than 1,000 labels, which are not counted";
    if (detail == AN_DETAIL_SCORES && t->evaluator.classes != 2 && t->evaluator.labels == 0)
        return "does not tell exactly two classes apart, and the area under the ROC curve is for two classes";
    if (t->evaluator.labels == 0 && (t->evaluator.classes == 0 || t->evaluator.classes > AN_MOST_COUNTED))
        return "has more than 1,000 classes, which are not counted";
    if (detail == AN_DETAIL_SCORES && !fits_scores(t))
        return "has too many targets in an evaluation: their scores would take more than 1 GiB. Evaluate fewer samples "
               "(eval.samples)";
    return NULL;
}

/* Scores that this rank has room for: its own, or on rank 0 all. */
static int64_t score_room(const an_trainer *t) {
    const int64_t batches = an_evaluation_first_batch(t, t->rank + 1) - an_evaluation_first_batch(t, t->rank);
    if (!t->evaluator.keeps_scores) return 0;
    return (t->rank == 0 ? an_evaluation_samples(t) : batches * an_evaluation_micro(t)) *
           targets_of(&t->evaluator.feed);
}

enum { LABEL_CELLS = 4 }; /* of a label: [target][predicted] */

static size_t cells(const an_trainer *t) {
    const an_details *d = &t->evaluator.details;
    return (size_t)(d->labels > 0 ? d->labels * LABEL_CELLS : d->classes * d->classes);
}

static size_t received_cells(const an_trainer *t) {
    return t->ranks > 1 ? cells(t) : 0;
}

bool an_details_bytes(const an_trainer *t, size_t *bytes) {
    const an_details *d = &t->evaluator.details;
    return an_add_elements(bytes, cells(t), sizeof *d->confusion) &&
           an_add_elements(bytes, received_cells(t), sizeof *d->received) &&
           an_add_elements(bytes, (size_t)score_room(t), sizeof *d->scores.values) &&
           an_add_elements(bytes, (size_t)d->labels, sizeof *d->label_scores + sizeof *d->areas) &&
           an_add_elements(bytes, (size_t)d->outputs, sizeof *d->sums);
}

an_status an_details_create(an_trainer *t) {
    an_context *ctx = t->ctx;
    an_details *d = &t->evaluator.details;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&d->confusion, cells(t), sizeof *d->confusion));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&d->received, received_cells(t), sizeof *d->received));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&d->sums, (size_t)d->outputs, sizeof *d->sums));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&d->label_scores, (size_t)d->labels, sizeof *d->label_scores));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&d->areas, (size_t)d->labels, sizeof *d->areas));
    d->scores.room = score_room(t);
    AN_TRY_RETURN(an_alloc(ctx, (void **)&d->scores.values, (size_t)d->scores.room, sizeof *d->scores.values));
    for (int64_t i = 0; i < d->labels; i++) {
        const int64_t room = d->scores.room / d->labels;
        d->label_scores[i] = (an_scores){.values = d->scores.values + i * room, .room = room};
    }
    return AN_OK;
}

void an_details_destroy(an_trainer *t) {
    an_context *ctx = t->ctx;
    an_details *d = &t->evaluator.details;
    an_release(ctx, (void **)&d->scores.values, (size_t)d->scores.room, sizeof *d->scores.values);
    an_release(ctx, (void **)&d->areas, (size_t)d->labels, sizeof *d->areas);
    an_release(ctx, (void **)&d->label_scores, (size_t)d->labels, sizeof *d->label_scores);
    an_release(ctx, (void **)&d->sums, (size_t)d->outputs, sizeof *d->sums);
    an_release(ctx, (void **)&d->received, received_cells(t), sizeof *d->received);
    an_release(ctx, (void **)&d->confusion, cells(t), sizeof *d->confusion);
}

/* ---- an evaluation ---- */

void an_details_begin(an_trainer *t) {
    an_details *d = &t->evaluator.details;
    d->complete = false;
    if (cells(t) > 0) memset(d->confusion, 0, cells(t) * sizeof *d->confusion);
    for (int64_t i = 0; i < d->labels; i++) an_scores_clear(&d->label_scores[i]);
    if (d->outputs > 0) memset(d->sums, 0, (size_t)d->outputs * sizeof *d->sums);
    an_scores_clear(&d->scores);
    d->samples = 0;
}

/* Of equal numbers, the first is predicted. */
void an_details_add_class(an_trainer *t, int64_t target, const double *numbers) {
    an_details *d = &t->evaluator.details;
    int64_t predicted = 0;
    for (int64_t c = 1; c < d->classes; c++)
        if (numbers[c] > numbers[predicted]) predicted = c;
    if (d->classes > 0) d->confusion[target * d->classes + predicted]++;
    if (t->evaluator.keeps_scores) an_scores_add(&d->scores, target == 1, numbers[1] - numbers[0]);
}

void an_details_add_label(an_trainer *t, int64_t label, bool target, double logit) {
    an_details *d = &t->evaluator.details;
    d->confusion[label * LABEL_CELLS + target * 2 + (logit > 0)]++;
    if (t->evaluator.keeps_scores) an_scores_add(&d->label_scores[label], target, logit);
}

void an_details_add_value(an_trainer *t, int64_t output, double target, double number) {
    an_details *d = &t->evaluator.details;
    an_output_sums *s = &d->sums[output];
    const double error = number - target;
    if (d->samples == 0) s->first = target;
    if (output == d->outputs - 1) d->samples++;
    const double relative = target - s->first;
    s->absolute += error < 0 ? -error : error;
    s->squared += error * error;
    s->sum += relative;
    s->squares += relative * relative;
}

static void add_counts(void *user, void *record, const void *next) {
    const an_trainer *t = user;
    int64_t *sum = record;
    const int64_t *more = next;
    for (size_t i = 0; i < cells(t); i++) sum[i] += more[i];
}

static void keep_first(void *user, void *record, const void *next) {
    (void)user, (void)record, (void)next; /* rank 0's */
}

/* Of labels, the mean of those that have an area: a label that all samples have, or none, has no curve. */
static void find_areas(an_trainer *t, double *area) {
    an_details *d = &t->evaluator.details;
    double sum = 0;
    int64_t count = 0;
    if (d->labels == 0) {
        an_scores_sort(&d->scores);
        *area = an_scores_area(&d->scores);
        return;
    }
    for (int64_t i = 0; i < d->labels; i++) {
        an_scores_sort(&d->label_scores[i]);
        d->areas[i] = an_scores_area(&d->label_scores[i]);
        if (d->areas[i] != d->areas[i]) continue;
        sum += d->areas[i];
        count++;
    }
    *area = count > 0 ? sum / (double)count : __builtin_nan("");
}

static an_status gather_scores(an_trainer *t) {
    an_details *d = &t->evaluator.details;
    if (d->labels == 0) return an_scores_gather(&d->scores, t);
    for (int64_t i = 0; i < d->labels; i++) AN_TRY_RETURN(an_scores_gather(&d->label_scores[i], t));
    return AN_OK;
}

static an_status merge_ranks(an_trainer *t, double *area) {
    an_context *ctx = t->ctx;
    an_details *d = &t->evaluator.details;
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_DATA);
    double received;
    const an_comm_merger counts = {.bytes = cells(t) * sizeof *d->confusion,
                                   .merge = add_counts,
                                   .user = t,
                                   .received = d->received,
                                   .what = "the classes that other ranks counted"};
    const an_comm_merger first = {.bytes = sizeof *area,
                                  .merge = keep_first,
                                  .received = &received,
                                  .what = "the area under the ROC curve from rank 0"};
    const an_comm_merger areas = {.bytes = (size_t)d->labels * sizeof *d->areas,
                                  .merge = keep_first,
                                  .received = d->received, /* has room for more */
                                  .what = "the areas under the ROC curves from rank 0"};
    if (cells(t) > 0) AN_TRY_RETURN(an_comm_merge(ctx, comm, &counts, d->confusion));
    if (!t->evaluator.keeps_scores) return AN_OK;
    AN_TRY_RETURN(gather_scores(t));
    if (t->rank == 0) find_areas(t, area);
    if (d->labels > 0) AN_TRY_RETURN(an_comm_merge(ctx, comm, &areas, d->areas));
    return an_comm_merge(ctx, comm, &first, area);
}

static double share(int64_t part, int64_t whole) {
    return whole > 0 ? (double)part / (double)whole : 0;
}

static an_class_metrics class_of(const an_details *d, int64_t index) {
    an_class_metrics m = {.size = sizeof m, .right = d->confusion[index * d->classes + index]};
    for (int64_t other = 0; other < d->classes; other++) {
        m.targets += d->confusion[index * d->classes + other];
        m.predicted += d->confusion[other * d->classes + index];
    }
    m.precision = share(m.right, m.predicted);
    m.recall = share(m.right, m.targets);
    m.f1 = share(2 * m.right, m.targets + m.predicted);
    return m;
}

static an_label_metrics label_of(const an_trainer *t, int64_t index) {
    const int64_t *c = t->evaluator.details.confusion + index * LABEL_CELLS;
    an_label_metrics m = {
        .size = sizeof m, .samples = c[0] + c[1] + c[2] + c[3], .targets = c[2] + c[3], .predicted = c[1] + c[3]};
    m.right = c[3];
    m.accuracy = share(c[0] + c[3], m.samples);
    m.precision = share(m.right, m.predicted);
    m.recall = share(m.right, m.targets);
    m.f1 = share(2 * m.right, m.targets + m.predicted);
    m.auc = t->evaluator.keeps_scores ? t->evaluator.details.areas[index] : __builtin_nan("");
    return m;
}

/* Means over all labels: a label is a question of its own, also if no sample has it. */
static void average_labels(const an_trainer *t, an_evaluation *e) {
    const int64_t labels = t->evaluator.details.labels;
    for (int64_t i = 0; i < labels; i++) {
        const an_label_metrics m = label_of(t, i);
        e->precision += m.precision / (double)labels;
        e->recall += m.recall / (double)labels;
        e->f1 += m.f1 / (double)labels;
    }
}

/* Means over the classes that have a target or were predicted, as scikit-learn has them. */
static void average(const an_details *d, an_evaluation *e) {
    int64_t seen = 0;
    for (int64_t i = 0; i < d->classes; i++) {
        const an_class_metrics m = class_of(d, i);
        if (m.targets + m.predicted == 0) continue;
        seen++;
        e->precision += m.precision;
        e->recall += m.recall;
        e->f1 += m.f1;
    }
    if (seen == 0) return;
    e->precision /= (double)seen;
    e->recall /= (double)seen;
    e->f1 /= (double)seen;
}

an_status an_details_end(an_trainer *t, an_evaluation *evaluation) {
    an_details *d = &t->evaluator.details;
    double area = 0;
    if (t->ranks > 1) {
        AN_TRY_RETURN(merge_ranks(t, &area));
    } else if (t->evaluator.keeps_scores) {
        find_areas(t, &area);
    }
    d->complete = true;
    evaluation->counts_classes = cells(t) > 0;
    evaluation->scores_classes = t->evaluator.keeps_scores;
    if (d->classes > 0) average(d, evaluation);
    if (d->labels > 0) average_labels(t, evaluation);
    evaluation->auc = area;
    return AN_OK;
}

/* ---- asking for them ---- */

static an_status check(const an_trainer *t, bool kept, const char *what) {
    if (t->evaluator.details.complete && kept) return AN_OK;
    return AN_ERROR(t->ctx, AN_ERR_STATE,
                    kept ? "there are no %s: the trainer has not evaluated yet"
                         : "the trainer keeps no %s of its evaluations",
                    what);
}

static an_status check_index(const an_trainer *t, const char *what, int64_t index, int64_t count) {
    if (index >= 0 && index < count) return AN_OK;
    return AN_ERROR(t->ctx, AN_ERR_ARGUMENT, "there is no %s %lld: they are 0 to %lld", what, (long long)index,
                    (long long)count - 1);
}

int64_t an_trainer_class_count(const an_trainer *trainer) {
    AN_NEED_OR(0, trainer);
    return trainer->evaluator.details.classes;
}

an_status an_trainer_class_metrics(const an_trainer *trainer, int64_t index, an_class_metrics *metrics) {
    AN_GUARD;
    AN_NEED(trainer, metrics);
    an_context *ctx = trainer->ctx;
    const an_details *d = &trainer->evaluator.details;
    AN_TRY_RETURN(check(trainer, d->classes > 0, "counts of classes"));
    AN_TRY_RETURN(check_index(trainer, "class", index, d->classes));
    const an_class_metrics own = class_of(d, index);
    return an_class_metrics_write(ctx, metrics, &own);
}

an_status an_trainer_confusion(const an_trainer *trainer, int64_t target, int64_t predicted, int64_t *count) {
    AN_NEED(trainer, count);
    const an_details *d = &trainer->evaluator.details;
    AN_TRY_RETURN(check(trainer, d->classes > 0, "counts of classes"));
    AN_TRY_RETURN(check_index(trainer, "class", target, d->classes));
    AN_TRY_RETURN(check_index(trainer, "class", predicted, d->classes));
    *count = d->confusion[target * d->classes + predicted];
    return AN_OK;
}

an_status an_trainer_roc(const an_trainer *trainer, int64_t capacity, an_roc_point *points, int64_t *count) {
    AN_GUARD;
    AN_NEED(trainer, points, count);
    an_context *ctx = trainer->ctx;
    const an_scores *s = &trainer->evaluator.details.scores;
    const bool kept = trainer->evaluator.keeps_scores && trainer->rank == 0 && trainer->evaluator.details.labels == 0;
    AN_TRY_RETURN(check(trainer, kept, "scores of two classes"));
    if (capacity < 2)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "a curve has at least 2 points, but there is room for %lld",
                        (long long)capacity);
    if (s->undefined || s->positive == 0 || s->negative == 0)
        return AN_ERROR(ctx, AN_ERR_STATE, "there is no ROC curve: %s",
                        s->undefined ? "an output of the model is not a number"
                                     : "one of the two classes has no targets in the evaluation data");
    *count = an_scores_curve(s, capacity, points);
    return AN_OK;
}

int64_t an_trainer_label_count(const an_trainer *trainer) {
    AN_NEED_OR(0, trainer);
    return trainer->evaluator.details.labels;
}

an_status an_trainer_label_metrics(const an_trainer *trainer, int64_t index, an_label_metrics *metrics) {
    AN_GUARD;
    AN_NEED(trainer, metrics);
    an_context *ctx = trainer->ctx;
    AN_TRY_RETURN(check(trainer, trainer->evaluator.details.labels > 0, "counts of labels"));
    AN_TRY_RETURN(check_index(trainer, "label", index, trainer->evaluator.details.labels));
    const an_label_metrics own = label_of(trainer, index);
    return an_label_metrics_write(ctx, metrics, &own);
}

int64_t an_trainer_output_count(const an_trainer *trainer) {
    AN_NEED_OR(0, trainer);
    return trainer->evaluator.details.outputs;
}

an_status an_trainer_output_metrics(const an_trainer *trainer, int64_t index, an_output_metrics *metrics) {
    AN_GUARD;
    AN_NEED(trainer, metrics);
    an_context *ctx = trainer->ctx;
    const an_details *d = &trainer->evaluator.details;
    AN_TRY_RETURN(check(trainer, d->outputs > 0, "errors by output"));
    AN_TRY_RETURN(check_index(trainer, "output", index, d->outputs));
    const an_output_sums *s = &d->sums[index];
    const double n = (double)d->samples, spread = s->squares - s->sum * s->sum / n;
    const an_output_metrics own = {.size = sizeof own,
                                   .mean_absolute_error = s->absolute / n,
                                   .root_mean_squared_error = __builtin_sqrt(s->squared / n),
                                   .r2 = spread > 0 ? 1 - s->squared / spread : 0};
    return an_output_metrics_write(ctx, metrics, &own);
}
