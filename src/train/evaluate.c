/* Evaluation: every sample once, in order, with sums over targets, never means of means. The program has no gradients
 * and no dropout, and nothing here writes to what training reads. */
#include <string.h>

#include "base/clock.h"
#include "base/elementary/elementary.h"
#include "base/guard.h"
#include "base/heartbeat.h"
#include "base/structs.h"
#include "exec/array.h"
#include "ops/sink.h"
#include "train/own_metrics.h"
#include "train/trainer.h"

/* ---- what is compared ---- */

/* Whether an output is numbers for classes: the targets' shape and one dimension more; or numbers like the targets. */
static bool fits(const an_result *output, const an_result *targets, bool *classifies) {
    const bool classes = targets->dtype == AN_DTYPE_I32 || targets->dtype == AN_DTYPE_I64;
    if (output->ndims != targets->ndims + (classes ? 1 : 0)) return false;
    for (int d = 0; d < targets->ndims; d++)
        if (output->dims[d] != targets->dims[d]) return false;
    *classifies = classes;
    return output->dtype == AN_DTYPE_F32 || output->dtype == AN_DTYPE_F64;
}

/* The elements of a value at the largest sizes of a form. */
static bool count_elements(const an_graph *form, const an_result *r, size_t *elements) {
    int64_t dim;
    *elements = 1;
    for (int d = 0; d < r->ndims; d++)
        if (!an_dimensions_maximum(&form->dimensions, r->dims[d], &dim) ||
            !an_multiply_sizes(*elements, (size_t)dim, elements))
            return false;
    return true;
}

static bool has_output(const an_graph *form, const char *name) {
    for (const an_node *n = form->first; n; n = n->next)
        if (n->op == &an_op_output && !strcmp(((const an_output_attributes *)n->attributes)->name, name)) return true;
    return false;
}

/* The model's own outputs are asked, as passes put other values in their place. */
void an_evaluation_find(an_trainer *t) {
    const an_graph *form = t->plan->forms[AN_FORM_EVALUATE];
    const an_graph *g = t->plan->model;
    const an_result *targets = an_graph_result(g, g->targets);
    for (const an_node *n = g->first; targets && n; n = n->next) {
        if (n->op != &an_op_output) continue;
        const char *name = ((const an_output_attributes *)n->attributes)->name;
        const an_result *r = an_node_input(n, 0);
        if (!has_output(form, name) || !fits(r, targets, &t->classifies) || !count_elements(form, r, &t->output_count))
            continue;
        t->output = name;
        t->classes = t->classifies && r->dims[r->ndims - 1] > 0 ? r->dims[r->ndims - 1] : 0;
        return;
    }
    t->output_count = 0;
}

/* ---- sums ---- */

typedef struct {
    double loss;
    int64_t targets, samples, right, right_of_five;
    double absolute, squared, sum, squares; /* of errors; of targets */
} sums;

enum { FEW = 5 };

/* How many classes have a larger number than the target; of equal ones, those before it. */
static int64_t rank_of(const double *numbers, int64_t classes, int64_t target) {
    int64_t rank = 0;
    for (int64_t c = 0; c < classes; c++)
        rank += numbers[c] > numbers[target] || (numbers[c] == numbers[target] && c < target);
    return rank;
}

static int64_t target_at(const an_feed_input *input, const void *data, int64_t index) {
    return input->dtype == AN_DTYPE_I32 ? ((const int32_t *)data)[index] : ((const int64_t *)data)[index];
}

static void add_classes(sums *s, const an_feed_input *input, const void *targets, int64_t count, int64_t classes,
                        const double *numbers) {
    for (int64_t i = 0; i < count; i++) {
        const int64_t target = target_at(input, targets, i);
        if (target < 0 || target >= classes)
            continue; /* one that does not count: others were refused when it was read */
        const int64_t rank = rank_of(numbers + i * classes, classes, target);
        s->right += rank == 0;
        s->right_of_five += rank < FEW;
    }
}

static void add_values(sums *s, const an_feed_input *input, const void *targets, int64_t count, const double *numbers) {
    for (int64_t i = 0; i < count; i++) {
        const double target =
            input->dtype == AN_DTYPE_F64 ? ((const double *)targets)[i] : (double)((const float *)targets)[i];
        const double error = numbers[i] - target;
        s->absolute += error < 0 ? -error : error;
        s->squared += error * error;
        s->sum += target;
        s->squares += target * target;
    }
}

static an_status compare(an_trainer *t, const an_feed *feed, int64_t count, sums *s) {
    an_context *ctx = t->ctx;
    const an_feed_input *input = &feed->inputs[feed->targets];
    const void *targets = t->evaluation_samples.fields[input->field];
    an_array array = {0};
    array.data = t->output_values;
    AN_TRY_RETURN(an_program_get_output(t->program, t->output, &array));
    int64_t elements = 1, each = 1;
    for (int d = 0; d < array.ndims; d++) elements *= array.dims[d];
    for (int d = 1; d < input->ndims; d++) each *= input->dims[d];
    an_convert_to_f64(array.dtype, elements, t->output_values);
    if (t->classifies)
        add_classes(s, input, targets, count * each, elements / (count * each), t->output_values);
    else
        add_values(s, input, targets, count * each, t->output_values);
    return AN_OK;
}

static an_status run_batch(an_trainer *t, int64_t begin, int64_t count, sums *s) {
    an_context *ctx = t->ctx;
    an_sample_buffer *b = &t->evaluation_samples;
    const an_feed *feed = &t->evaluation_feed;
    int64_t targets;
    double loss;
    for (int64_t i = 0; i < count; i++) b->indices[i] = b->numbers[i] = begin + i;
    an_heartbeat_enter_number(ctx, AN_HEARTBEAT_EVALUATE, "evaluation, sample ", begin, "");
    AN_TRY_RETURN(an_dataset_read(t->evaluation, count, b->indices, b->fields));
    AN_TRY_RETURN(an_feed_count(feed, t->program, b->fields, 0, count, &targets));
    s->samples += count;
    s->targets += targets;
    if (targets == 0) return AN_OK;
    AN_TRY_RETURN(an_feed_set(feed, t->program, b->fields, b->numbers, 0, count));
    AN_TRY_RETURN(an_program_run(t->program, AN_FORM_EVALUATE));
    AN_TRY_RETURN(an_program_loss(t->program, &loss));
    s->loss += loss;
    return t->output ? compare(t, feed, count, s) : AN_OK;
}

int64_t an_evaluation_samples(const an_trainer *t) {
    const int64_t all = an_dataset_count(t->evaluation), asked = t->evaluation_count;
    return asked > 0 && asked < all ? asked : all;
}

static an_status evaluate(an_trainer *t, an_evaluation *evaluation, bool *stopped) {
    an_status status;
    an_context *ctx = t->ctx;
    sums s = {0};
    const double started = an_clock_seconds();
    AN_TRY(an_context_check_process(ctx));
    AN_TRY(an_evaluation_check(ctx, evaluation));
    AN_CHECK(ctx, t->evaluation, AN_ERR_STATE, "the trainer was created without evaluation data");
    AN_TRY(an_trainer_check_idle(t, "evaluate"));
    const int64_t count = an_evaluation_samples(t);
    for (int64_t begin = 0; begin < count; begin += t->evaluation_samples.capacity) {
        const int64_t rest = count - begin;
        if (stopped && (*stopped = t->stop)) return AN_OK;
        AN_TRY(run_batch(t, begin, rest < t->evaluation_samples.capacity ? rest : t->evaluation_samples.capacity, &s));
    }
    AN_CHECK(ctx, s.targets > 0, AN_ERR_ARGUMENT, "the evaluation data has no targets: every label is masked");
    const double n = (double)s.targets, spread = s.squares - s.sum * s.sum / n;
    an_evaluation own = {
        .size = sizeof own,
        .samples = s.samples,
        .targets = s.targets,
        .loss = s.loss / n,
        .perplexity = an_exp_f64(s.loss / n),
        .classifies = t->output && t->classifies,
        .accuracy = (double)s.right / n,
        .top5 = (double)s.right_of_five / n,
        .measures = t->output && !t->classifies,
        .mean_absolute_error = s.absolute / n,
        .r2 = spread > 0 ? 1 - s.squared / spread : 0,
    };
    AN_TRY(an_own_metrics_measure(t));
    own.seconds = an_clock_seconds() - started;
    t->last_evaluation = own;
    return an_evaluation_write(ctx, evaluation, &own);
fail:
    return status;
}

an_status an_evaluation_get(const an_trainer *trainer, an_evaluation *evaluation) {
    AN_GUARD;
    AN_NEED(trainer, evaluation);
    if (trainer->progress.evaluation.samples == 0)
        return AN_ERROR(trainer->ctx, AN_ERR_STATE, "the run has not been evaluated yet");
    return an_evaluation_write(trainer->ctx, evaluation, &trainer->progress.evaluation);
}

an_status an_trainer_evaluate(an_trainer *trainer, an_evaluation *evaluation) {
    AN_GUARD;
    AN_NEED(trainer, evaluation);
    return evaluate(trainer, evaluation, NULL);
}

an_status an_evaluate_until(an_trainer *t, an_evaluation *evaluation, bool *stopped) {
    *stopped = false;
    return evaluate(t, evaluation, stopped);
}
