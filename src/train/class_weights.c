#include "train/class_weights.h"

#define UNITS 0x1p40 /* so many are the power of two: a step of 2^23 targets still adds up without overflow */
enum { MOST_RATIO = 1000000000 };

/* ---- making them ---- */

static an_status check(const an_trainer *t, const double *weights, int64_t count, double largest) {
    an_context *ctx = t->ctx;
    const an_result *targets = an_graph_result(t->graph, t->graph->targets);
    if (!targets || targets->ndims != 1 || !an_dtype_is_index(targets->dtype))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "class weights are for models that predict one class for each sample, and this one does not");
    if (t->sample_mean)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "class weights and a mean over samples exclude each other: both weigh the samples of a step");
    for (int64_t i = 0; i < count; i++)
        if (!(weights[i] > 0 && weights[i] < __builtin_inf()))
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the weight of class %lld is %g; it must be a number above 0",
                            (long long)i, weights[i]);
        else if (weights[i] * MOST_RATIO < largest)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "the weight of class %lld is %g, which is less than a billionth of the largest, %g",
                            (long long)i, weights[i], largest);
    return AN_OK;
}

/* The least power of two that is not below the number. */
static double power_above(double number) {
    double power = 1;
    while (power < number) power *= 2;
    while (power / 2 >= number) power /= 2;
    return power;
}

an_status an_class_weights_make(an_trainer *t, const an_trainer_options *options) {
    an_context *ctx = t->ctx;
    const double *weights = options->class_weights;
    const int64_t count = options->class_weight_count;
    double largest = 0;
    if (count == 0) return AN_OK;
    if (count < 0 || !weights)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "class_weight_count is %lld, but %s", (long long)count,
                        weights ? "it cannot be below 0" : "class_weights is NULL");
    for (int64_t i = 0; i < count; i++)
        if (weights[i] > largest) largest = weights[i];
    AN_TRY_RETURN(check(t, weights, count, largest));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&t->class_weights, (size_t)count, sizeof *t->class_weights));
    t->class_weight_count = count;
    const double power = power_above(largest);
    for (int64_t i = 0; i < count; i++) t->class_weights[i] = (int64_t)(weights[i] / power * UNITS + 0.5);
    return AN_OK;
}

void an_class_weights_destroy(an_trainer *t) {
    an_release(t->ctx, (void **)&t->class_weights, (size_t)t->class_weight_count, sizeof *t->class_weights);
}

/* ---- a step ---- */

static int64_t class_of(const an_trainer *t, const an_batch *samples, int64_t index) {
    const an_feed_input *input = &t->feed.inputs[t->feed.targets];
    const void *classes = samples->fields[input->field];
    return input->dtype == AN_DTYPE_I32 ? ((const int32_t *)classes)[index] : ((const int64_t *)classes)[index];
}

/* In units; 0 for a target that does not count. Classes that the model does not have were refused when they were read. */
static int64_t units_of(const an_trainer *t, const an_batch *samples, int64_t index) {
    const int64_t class = class_of(t, samples, index);
    return class >= 0 && class < t->class_weight_count ? t->class_weights[class] : 0;
}

an_status an_class_weights_count(an_trainer *t, const an_batch *samples, an_step_counts *counts) {
    counts->most = 1;
    for (int64_t i = 0; i < samples->part.n; i++) {
        const int64_t class = class_of(t, samples, i);
        if (class >= t->class_weight_count)
            return AN_ERROR(t->ctx, AN_ERR_ARGUMENT, "a sample has class %lld, but there are weights for %lld classes",
                            (long long)class, (long long)t->class_weight_count);
        if (__builtin_add_overflow(counts->counted, units_of(t, samples, i), &counts->counted))
            return AN_ERROR(t->ctx, AN_ERR_OVERFLOW, "a step has too many samples for weights of classes");
    }
    return AN_OK;
}

an_status an_class_weights_begin(an_trainer *t, const an_step_counts *counts) {
    return an_step_divide(t->stepper, counts->counted, 1 / UNITS);
}

double an_class_weight_at(const an_trainer *t, const an_batch *samples, int64_t index) {
    return (double)units_of(t, samples, index) / UNITS;
}
