/* Means over samples: every sample has a weight in the loss, so a micro-batch is one run even if its samples have
 * different numbers of targets.
 *
 * A sample's weight is the largest number of targets of a sample in the step, divided by its own number, and the step
 * divides by that largest number. So where all samples have the same number of targets, the weights are 1 and the
 * bits are those of the mean over targets.
 */
#include "base/convert.h"
#include "base/parallel.h"
#include "train/loss_weights.h"

an_status an_means_count(an_trainer *t, const an_batch *samples, an_step_counts *counts) {
    int64_t each; /* targets of one sample */
    counts->maximum = 1;
    for (int64_t i = 0; i < samples->part.n; i++) {
        AN_TRY_RETURN(an_feed_count(&t->samples.feed, t->program, samples->fields, i, 1, &each));
        counts->counted += each > 0;
        if (each > counts->maximum) counts->maximum = each;
    }
    return AN_OK;
}

an_status an_means_begin(an_trainer *t, const an_step_counts *counts) {
    t->weighing.most_targets = counts->maximum;
    return an_step_divide(t->stepper, counts->counted, (double)counts->maximum);
}

static an_status set_weights(an_trainer *t, const an_batch *samples, int64_t at, int64_t count) {
    an_array array = {0};
    int64_t each;
    array.data = t->weighing.weights;
    array.dtype = an_graph_result(t->plan->model, t->plan->model->loss)->dtype;
    array.ndims = 1;
    array.dims[0] = count;
    for (int64_t i = 0; i < count; i++) {
        AN_TRY_RETURN(an_feed_count(&t->samples.feed, t->program, samples->fields, at + i, 1, &each));
        const an_float_environment outside = an_float_enter();
        t->weighing.weights[i] = each > 0 ? (double)t->weighing.most_targets / (double)each : 0;
        an_float_leave(outside);
    }
    an_convert_from_f64(array.dtype, count, t->weighing.weights);
    return an_program_set_input(t->program, AN_LOSS_WEIGHTS, &array);
}

an_status an_trainer_feed(an_trainer *t, const an_batch *samples, int64_t at, int64_t count) {
    AN_TRY_RETURN(an_feed_set(&t->samples.feed, t->program, samples->fields, t->samples.numbers, at, count));
    AN_TRY_RETURN(an_program_cut(t->program, 1, &count)); /* a micro-batch of several leaves says so itself */
    if (an_loss_weights_are_on(t)) return an_loss_weights_set(t, samples, at, count);
    return t->weighing.sample_mean ? set_weights(t, samples, at, count) : AN_OK;
}
