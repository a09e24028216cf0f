/* Evaluation: every sample once, in order, with sums over targets, never means of means. The program has no gradients
 * and no dropout, and nothing here writes to what training reads. While the moving average of the weights is
 * evaluated, it is in their place. */
#include "train/evaluation/evaluate.h"

#include <string.h>

#include "base/convert.h"
#include "base/elementary/elementary.h"
#include "base/guard.h"
#include "base/heartbeat.h"
#include "base/integer.h"
#include "base/span.h"
#include "base/system/clock.h"
#include "comm/comm.h"
#include "ops/loss.h"
#include "ops/sink.h"
#include "train/evaluation/own_metrics.h"
#include "train/structs.h"
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

/* Labels: the output is what a binary cross entropy makes probabilities of. */
static int64_t count_labels(const an_graph *g, const an_result *output) {
    const an_result *loss = an_graph_result(g, g->loss);
    if (!output || !loss || loss->node->op != &an_op_binary_cross_entropy) return 0;
    if (an_node_input(loss->node, 0) != output) return 0;
    return output->ndims == 2 && output->dims[1] > 0 ? output->dims[1] : 0;
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
        if (!an_graph_has_output(form, name) || !fits(r, targets, &t->evaluator.classifies) ||
            !count_elements(form, r, &t->evaluator.output_count))
            continue;
        t->evaluator.output = name;
        t->evaluator.classes = t->evaluator.classifies && r->dims[r->ndims - 1] > 0 ? r->dims[r->ndims - 1] : 0;
        t->evaluator.labels = t->evaluator.classifies ? 0 : count_labels(g, r);
        return;
    }
    t->evaluator.output_count = 0;
    t->evaluator.prefers = an_graph_has_output(form, AN_OUTPUT_REWARDS) && !an_graph_has_output(g, AN_OUTPUT_REWARDS);
    t->evaluator.counts_right = an_graph_has_output(form, AN_OUTPUT_RIGHT) && !an_graph_has_output(g, AN_OUTPUT_RIGHT);
}

/* ---- sums ---- */

typedef an_evaluation_sums sums;

enum { FEW = 5 };

/* How many classes have a larger number than the target; of equal ones, those before it. A NaN is not less than
 * anything, so a model that predicts nothing else has nothing right. */
static int64_t rank_of(const double *numbers, int64_t classes, int64_t target) {
    int64_t rank = 0;
    for (int64_t c = 0; c < target; c++) rank += !(numbers[c] < numbers[target]);
    for (int64_t c = target; c < classes; c++) rank += !(numbers[c] <= numbers[target]);
    return rank;
}

static int64_t target_at(const an_feed_input *input, const void *data, int64_t index) {
    return input->dtype == AN_DTYPE_I32 ? ((const int32_t *)data)[index] : ((const int64_t *)data)[index];
}

static void add_classes(an_trainer *t, sums *s, const an_feed_input *input, const void *targets, int64_t count,
                        int64_t classes, const double *numbers) {
    const bool details = t->evaluator.details.classes > 0 || t->evaluator.keeps_scores;
    for (int64_t i = 0; i < count; i++) {
        const int64_t target = target_at(input, targets, i);
        if (target < 0 || target >= classes)
            continue; /* one that does not count: others were refused when it was read */
        const int64_t rank = rank_of(numbers + i * classes, classes, target);
        s->right += rank == 0;
        s->right_of_five += rank < FEW;
        if (details) an_details_add_class(t, target, numbers + i * classes);
    }
}

static double value_at(const an_feed_input *input, const void *data, int64_t index) {
    return input->dtype == AN_DTYPE_F64 ? ((const double *)data)[index] : (double)((const float *)data)[index];
}

/* A label is predicted if its probability is above one half, which is a logit above 0. */
static void add_labels(an_trainer *t, sums *s, const an_feed_input *input, const void *targets, int64_t count,
                       const double *numbers) {
    for (int64_t i = 0; i < count; i++) {
        const bool target = value_at(input, targets, i) > 0.5;
        s->right += numbers[i] == numbers[i] && (numbers[i] > 0) == target;
        if (t->evaluator.details.labels > 0) an_details_add_label(t, i % t->evaluator.labels, target, numbers[i]);
    }
}

static void add_values(an_trainer *t, sums *s, const an_feed_input *input, const void *targets, int64_t count,
                       const double *numbers) {
    const int64_t outputs = t->evaluator.details.outputs;
    s->first = value_at(input, targets, 0);
    for (int64_t i = 0; i < count; i++) {
        const double target = value_at(input, targets, i);
        const double error = numbers[i] - target, relative = target - s->first;
        s->absolute += error < 0 ? -error : error;
        s->squared += error * error;
        s->sum += relative;
        s->squares += relative * relative;
        if (outputs > 0) an_details_add_value(t, i % outputs, target, numbers[i]);
    }
}

static an_status compare(an_trainer *t, const an_feed *feed, void *const *fields, int64_t count, sums *s) {
    const an_feed_input *input = &feed->inputs[feed->targets];
    const void *targets = fields[input->field];
    an_array array = {0};
    array.data = t->evaluator.output_values;
    AN_TRY_RETURN(an_program_get_output(t->program, t->evaluator.output, &array));
    int64_t elements = 1, each = 1;
    for (int d = 0; d < array.ndims; d++) elements *= array.dims[d];
    for (int d = 1; d < input->ndims; d++) each *= input->dims[d];
    an_convert_to_f64(array.dtype, elements, t->evaluator.output_values);
    if (t->evaluator.classifies)
        add_classes(t, s, input, targets, count * each, elements / (count * each), t->evaluator.output_values);
    else if (t->evaluator.labels > 0)
        add_labels(t, s, input, targets, count * each, t->evaluator.output_values);
    else
        add_values(t, s, input, targets, count * each, t->evaluator.output_values);
    return AN_OK;
}

static an_status add_right(an_trainer *t, sums *s) {
    int64_t right = 0;
    an_array array = {.data = &right, .dtype = AN_DTYPE_I64};
    AN_TRY_RETURN(an_program_get_output(t->program, AN_OUTPUT_RIGHT, &array));
    s->right += right;
    return AN_OK;
}

static an_status add_rewards(an_trainer *t, sums *s) {
    enum { REJECTED, CHOSEN, ANSWERS };
    double rewards[ANSWERS];
    an_array array = {.data = rewards};
    AN_TRY_RETURN(an_program_get_output(t->program, AN_OUTPUT_REWARDS, &array));
    an_convert_to_f64(array.dtype, ANSWERS, rewards);
    s->margin += rewards[CHOSEN] - rewards[REJECTED];
    return AN_OK;
}

/* The next batch, of `count` samples from `begin`. *runs: the program was run. */
static an_status run_batch(an_trainer *t, int64_t begin, int64_t count, sums *s, bool *runs) {
    an_context *ctx = t->ctx;
    const an_feed *feed = &t->evaluator.feed;
    const double read = an_span_begin(ctx);
    an_batch b;
    int64_t targets;
    double loss;
    an_heartbeat_enter_number(ctx, AN_HEARTBEAT_EVALUATE, "evaluation, sample ", begin, "");
    AN_TRY_RETURN(an_loader_next(t->evaluator.loader, &b));
    an_span_end(ctx, "evaluation data", b.number, read);
    AN_TRY_RETURN(an_feed_count(feed, t->program, b.fields, 0, count, &targets));
    s->samples += count;
    s->targets += targets;
    if (targets == 0) return AN_OK;
    const double run = an_span_begin(ctx);
    AN_TRY_RETURN(an_feed_set(feed, t->program, b.fields, b.indices, 0, count));
    *runs = true;
    AN_TRY_RETURN(an_program_run(t->program, AN_FORM_EVALUATE));
    an_span_end(ctx, "evaluation forward", b.number, run);
    AN_TRY_RETURN(an_program_loss(t->program, &loss));
    s->loss += loss;
    if (t->evaluator.counts_right) AN_TRY_RETURN(add_right(t, s));
    if (t->evaluator.prefers) AN_TRY_RETURN(add_rewards(t, s));
    return t->evaluator.output ? compare(t, feed, b.fields, count, s) : AN_OK;
}

/* Targets of the batch, relative to the first of all. */
static void add_targets(sums *s, const sums *batch) {
    const double n = (double)batch->targets;
    if (s->targets == 0) s->first = batch->first;
    const double apart = batch->first - s->first;
    s->sum += batch->sum + n * apart;
    s->squares += batch->squares + apart * (2 * batch->sum + n * apart);
}

static void add_sums(sums *s, const sums *batch) {
    if (batch->targets > 0) add_targets(s, batch);
    s->loss += batch->loss;
    s->targets += batch->targets;
    s->samples += batch->samples;
    s->right += batch->right;
    s->right_of_five += batch->right_of_five;
    s->absolute += batch->absolute;
    s->squared += batch->squared;
    s->margin += batch->margin;
}

/* ---- batches ---- */

/* The batches of this rank: a record of t->evaluator.sums each, or on rank 0 their sum. A request to stop ends them
 * where `stopped` is given.
 *
 * Where ranks gather weights together, all of them run as often. One that has no more batches, or has failed or was
 * stopped, runs only what the program exchanges. */
static an_status run_batches(an_trainer *t, sums *sum, bool *stopped) {
    const bool together = an_trainer_gathers(t);
    const int64_t samples = an_evaluation_samples(t), micro = an_evaluation_micro(t);
    const int64_t first = an_evaluation_first_batch(t, t->rank), end = an_evaluation_first_batch(t, t->rank + 1);
    const int64_t last = together ? first + an_evaluation_most_batches(t) : end;
    an_status status = AN_OK;
    bool goes_on = true;
    an_loader_seek(t->evaluator.loader, first);
    for (int64_t batch = first; batch < last && (goes_on || together); batch++) {
        const int64_t begin = batch * micro, rest = samples - begin;
        bool runs = false;
        sums s = {0};
        if (stopped && t->request.poll) t->request.poll(t);
        if (stopped && goes_on) goes_on = !(*stopped = t->request.stop);
        if (goes_on && batch < end) {
            status = run_batch(t, begin, rest < micro ? rest : micro, &s, &runs);
            goes_on = status == AN_OK;
            if (t->rank == 0)
                add_sums(sum, &s);
            else
                t->evaluator.sums[batch - first] = s;
        }
        if (together && !runs) an_program_communicate(t->program, AN_FORM_EVALUATE, status);
    }
    an_loader_rest(t->evaluator.loader);
    return status;
}

/* ---- ranks ---- */

static void keep(void *user, void *record, const void *next) {
    (void)user, (void)record, (void)next; /* rank 0's is the first */
}

/* What rank 0 has, on every rank. */
static an_status take_of_first(an_trainer *t, void *record, void *received, size_t bytes, const char *what) {
    const an_comm_merger merger = {.bytes = bytes, .merge = keep, .received = received, .what = what};
    return an_comm_merge(t->ctx, an_axis_comm(t->ctx, AN_AXIS_DATA), &merger, record);
}

/* All ranks have the status of one that failed, and stop if one was stopped. */
static an_status agree(an_trainer *t, an_status status, bool *stopped) {
    an_agreement records[2];
    if (t->ranks == 1) return status;
    an_agreement_begin(&records[0], t->ctx, AN_AGREE_EVALUATE, t->next, status);
    records[0].facts.stop = stopped && *stopped;
    status = an_agree(t->ctx, &records[0], 0, &records[1]);
    if (stopped) *stopped = records[0].facts.stop != 0;
    return status;
}

static size_t records_of(const an_trainer *t, int rank) {
    return (size_t)(an_evaluation_first_batch(t, rank + 1) - an_evaluation_first_batch(t, rank));
}

/* The records of every rank, from left to right: rank 0 receives them all. O(ranks) messages on rank 0, O(batches
 * of a rank) memory on each. */
static an_status add_ranks(an_trainer *t, sums *s) {
    an_context *ctx = t->ctx;
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_DATA);
    sums received;
    if (t->rank > 0)
        AN_TRY_RETURN(an_comm_send_all(ctx, comm, t->evaluator.sums, records_of(t, t->rank) * sizeof *t->evaluator.sums,
                                       0, AN_TAG_EVALUATION, "rank 0, which adds the evaluation"));
    for (int rank = 1; t->rank == 0 && rank < t->ranks; rank++) {
        const size_t count = records_of(t, rank);
        AN_TRY_RETURN(an_comm_receive_all(ctx, comm, t->evaluator.sums, count * sizeof *t->evaluator.sums, rank,
                                          AN_TAG_EVALUATION, "the evaluation of another rank"));
        for (size_t i = 0; i < count; i++) add_sums(s, &t->evaluator.sums[i]);
    }
    return take_of_first(t, s, &received, sizeof *s, "the sums of the evaluation from rank 0");
}

/* A metric of the program's is measured on every rank, so that it may ask other ranks; the value is rank 0's. */
static an_status measure_own(an_trainer *t) {
    an_own_metrics received;
    const an_status status = an_own_metrics_measure(t);
    if (t->ranks == 1 || t->evaluator.own_metric_count == 0) return status;
    AN_TRY_RETURN(agree(t, status, NULL));
    return take_of_first(t, &t->evaluator.measured, &received, sizeof received,
                         "the metrics of the program from rank 0");
}

/* Half of an exchange cannot be undone: no step may follow. Only a device can fail here. */
static an_status show_average(an_trainer *t, bool shown) {
    const an_status status = an_params_show_average(t->params, shown);
    if (status != AN_OK) t->stepper->broken = true;
    return status;
}

static an_status check(an_trainer *t, const an_evaluation *evaluation) {
    an_status status;
    an_context *ctx = t->ctx;
    AN_TRY(an_context_check_process(ctx));
    AN_TRY(an_evaluation_check(ctx, evaluation));
    AN_CHECK(ctx, !t->planned, AN_ERR_STATE, "this trainer was opened only for its plan");
    AN_CHECK(ctx, t->evaluator.data, AN_ERR_STATE, "the trainer was created without evaluation data");
    AN_TRY(an_trainer_check_idle(t, "evaluate"));
    return AN_OK;
fail:
    return status;
}

/* With the moving average in the place of the weights, where that is what is evaluated. */
static an_status evaluate_shown(an_trainer *t, an_evaluation *evaluation, bool *stopped) {
    an_status status;
    an_context *ctx = t->ctx;
    sums s = {0};
    const double started = an_clock_seconds();
    status = check(t, evaluation);
    if (status == AN_OK) an_details_begin(t);
    if (t->division.shards) AN_TRY(agree(t, status, NULL)); /* the weights that it needs come from all ranks */
    if (status == AN_OK && t->evaluator.shows_average) status = show_average(t, true);
    if (t->division.shards) AN_TRY(an_step_begin_reading(t->stepper));
    if (status == AN_OK) status = run_batches(t, &s, stopped);
    if (t->division.shards) {
        const an_status ended = an_step_end_reading(t->stepper);
        if (status == AN_OK) status = ended;
    }
    AN_TRY(agree(t, status, stopped));
    if (stopped && *stopped) return AN_OK;
    if (t->ranks > 1) AN_TRY(add_ranks(t, &s));
    AN_CHECK(ctx, s.targets > 0, AN_ERR_ARGUMENT, "the evaluation data has no targets: every label is masked");
    const double n = (double)s.targets, spread = s.squares - s.sum * s.sum / n;
    an_evaluation own = {
        .size = sizeof own,
        .samples = s.samples,
        .targets = s.targets,
        .loss = s.loss / n,
        .perplexity = an_exp_f64(s.loss / n),
        .classifies = t->evaluator.output && t->evaluator.classifies,
        .accuracy = (double)s.right / n,
        .top5 = (double)s.right_of_five / n,
        .measures = t->evaluator.output && !t->evaluator.classifies && t->evaluator.labels == 0,
        .mean_absolute_error = s.absolute / n,
        .r2 = spread > 0 ? 1 - s.squared / spread : 0,
    };
    own.counts_right = t->evaluator.counts_right || t->evaluator.labels > 0;
    own.prefers = t->evaluator.prefers;
    own.margin = s.margin / n;
    AN_TRY(an_details_end(t, &own));
    AN_TRY(measure_own(t));
    own.seconds = an_clock_seconds() - started;
    t->evaluator.last = own;
    return an_evaluation_write(ctx, evaluation, &own);
fail:
    return status;
}

static an_status evaluate(an_trainer *t, an_evaluation *evaluation, bool *stopped) {
    const double begin = an_span_begin(t->ctx);
    const an_status status = evaluate_shown(t, evaluation, stopped);
    if (status == AN_OK) an_span_end(t->ctx, "evaluation", t->next, begin);
    const an_status hidden = t->params ? show_average(t, false) : AN_OK;
    return status == AN_OK ? hidden : status;
}

an_status an_trainer_evaluation(const an_trainer *trainer, an_evaluation *evaluation) {
    AN_GUARD;
    AN_NEED(trainer, evaluation);
    if (trainer->record.progress.evaluation.samples == 0)
        return AN_ERROR(trainer->ctx, AN_ERR_STATE, "the run has not been evaluated yet");
    return an_evaluation_write(trainer->ctx, evaluation, &trainer->record.progress.evaluation);
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
