#include "train/loss_weights.h"

#include <string.h>

#include "base/convert.h"
#include "data/mixup.h"
#include "train/changes.h"

#define UNITS 0x1p40 /* so many are the power of two: a step of 2^23 targets still adds up without overflow */
enum { MOST_RATIO = 1000000000 };

/* ---- weights of classes ---- */

static an_status check(const an_trainer *t, const double *weights, int64_t count, double largest) {
    an_context *ctx = t->ctx;
    const an_result *targets = an_graph_result(t->graph, t->graph->targets);
    if (!targets || targets->ndims != 1 || !an_dtype_is_index(targets->dtype))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "class weights are for models that predict one class for each sample, and this one does not");
    if (t->weighing.sample_mean)
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

/* The least power of two that is not below the number, but for numbers so large or small that it, or its inverse, is
 * no f64. */
static double power_above(double number) {
    double power = 1;
    while (power < number && power < 0x1p1023) power *= 2;
    while (power / 2 >= number && power > 0x1p-1022) power /= 2;
    return power;
}

static an_status make_class_weights(an_trainer *t, const an_trainer_options *options) {
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
    AN_TRY_RETURN(an_alloc(ctx, (void **)&t->weighing.class_weights, (size_t)count, sizeof *t->weighing.class_weights));
    t->weighing.class_weight_count = count;
    const double power = power_above(largest);
    for (int64_t i = 0; i < count; i++) t->weighing.class_weights[i] = (int64_t)(weights[i] / power * UNITS + 0.5);
    return AN_OK;
}

/* ---- weights of samples ---- */

static an_status find_field(const an_trainer *t, const char *name, int *field) {
    const an_dataset *d = t->samples.data;
    *field = 0;
    while (*field < d->record.field_count && strcmp(d->fields[*field].name, name) != 0) ++*field;
    if (*field == d->record.field_count || d->streams)
        return AN_ERROR(t->ctx, AN_ERR_ARGUMENT, "the training data has no field '%s' for the weights of samples",
                        name);
    if (!an_dtype_is_float(d->fields[*field].dtype) || d->fields[*field].ndims != 0)
        return AN_ERROR(t->ctx, AN_ERR_ARGUMENT,
                        "the field '%s' cannot be weights of samples, which are one number of f32 or f64 each", name);
    return AN_OK;
}

static an_status check_samples(const an_trainer *t) {
    const an_result *targets = an_graph_result(t->graph, t->graph->targets);
    if (t->weighing.sample_mean)
        return AN_ERROR(t->ctx, AN_ERR_ARGUMENT,
                        "weights of samples and a mean over samples exclude each other: both weigh the samples of a "
                        "step");
    if (targets && t->samples.feed.targets >= 0 && (targets->ndims == 1 || an_dtype_is_float(targets->dtype)))
        return AN_OK;
    return AN_ERROR(t->ctx, AN_ERR_ARGUMENT,
                    "weights of samples are for models that predict numbers or one class for each sample, and this one "
                    "does not");
}

/* A number that is not finite is refused with its place. */
static an_status find_largest(const an_trainer *t, int field, const char *name, double *largest) {
    an_context *ctx = t->ctx;
    an_features *features = NULL;
    an_feature_info info;
    an_feature_info_init(&info, sizeof info);
    an_status status = an_features_create(&features, t->samples.data, field, 0, 0);
    if (status == AN_OK) status = an_features_get(features, 0, &info);
    an_features_destroy(&features);
    AN_TRY_RETURN(status);
    *largest = info.maximum;
    if (info.minimum < 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "'%s' has the weight %g; weights of samples cannot be below 0", name,
                        info.minimum);
    if (info.maximum == 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "every weight of a sample in '%s' is 0, so there is nothing to train on",
                        name);
    return AN_OK;
}

static an_status make_sample_weights(an_trainer *t, const char *name) {
    int field;
    double largest;
    if (!name) return AN_OK;
    AN_TRY_RETURN(check_samples(t));
    AN_TRY_RETURN(find_field(t, name, &field));
    AN_TRY_RETURN(find_largest(t, field, name, &largest));
    t->weighing.field = field;
    t->weighing.factor = 1 / power_above(largest);
    return AN_OK;
}

an_status an_loss_weights_make(an_trainer *t, const an_trainer_options *options) {
    AN_TRY_RETURN(make_class_weights(t, options));
    return make_sample_weights(t, options->sample_weights);
}

void an_loss_weights_destroy(an_trainer *t) {
    an_release(t->ctx, (void **)&t->weighing.class_weights, (size_t)t->weighing.class_weight_count,
               sizeof *t->weighing.class_weights);
}

/* ---- weights of targets ---- In units: whole multiples of 1 / UNITS. */

static const an_feed_input *targets_of(const an_trainer *t) {
    return &t->samples.feed.inputs[t->samples.feed.targets];
}

/* 0 if targets are numbers. */
static int64_t class_of(const an_trainer *t, void *const *fields, int64_t index) {
    const an_feed_input *input = targets_of(t);
    if (!an_dtype_is_index(input->dtype)) return 0;
    const void *classes = fields[input->field];
    return input->dtype == AN_DTYPE_I32 ? ((const int32_t *)classes)[index] : ((const int64_t *)classes)[index];
}

/* At most 1. A sample that the program hands over has no weight of its own. */
static double weight_of(const an_trainer *t, void *const *fields, int64_t index) {
    const void *weights = t->weighing.field >= 0 ? fields[t->weighing.field] : NULL;
    if (!weights) return 1;
    const bool wide = t->samples.data->fields[t->weighing.field].dtype == AN_DTYPE_F64;
    return t->weighing.factor * (wide ? ((const double *)weights)[index] : (double)((const float *)weights)[index]);
}

/* 0 for a target that does not count. Classes that the model does not have were refused when they were read. */
static int64_t units_of(const an_trainer *t, void *const *fields, int64_t index) {
    const int64_t class = class_of(t, fields, index);
    if (class < 0 || (t->weighing.class_weight_count > 0 && class >= t->weighing.class_weight_count)) return 0;
    const double of_class = t->weighing.class_weight_count > 0 ? (double)t->weighing.class_weights[class] : UNITS;
    return (int64_t)(of_class * weight_of(t, fields, index) + 0.5);
}

/* Of a sample: its own target's, and those of its partner's target. */
typedef struct {
    int64_t own, mixed;
} units;

static int64_t part_of(int64_t whole, int64_t share) {
    return (int64_t)((double)whole * ((double)share / AN_MIX_WHOLE));
}

static units units_at(const an_trainer *t, const an_batch *samples, int64_t index) {
    const int64_t own = units_of(t, samples->fields, index);
    if (!samples->partners) return (units){own, 0};
    const int64_t share = an_changes_share(t, samples, index), other = units_of(t, samples->partner_fields, index);
    const units u = {part_of(own, share), part_of(other, AN_MIX_WHOLE - share)};
    return t->weighing.mixes_classes ? u : (units){u.own + u.mixed, 0}; /* numbers are mixed to one target */
}

/* ---- a step ---- */

static an_status check_class(const an_trainer *t, void *const *fields, int64_t index) {
    const int64_t class = class_of(t, fields, index);
    if (t->weighing.class_weight_count == 0 || class < t->weighing.class_weight_count) return AN_OK;
    return AN_ERROR(t->ctx, AN_ERR_ARGUMENT, "a sample has class %lld, but there are weights for %lld classes",
                    (long long)class, (long long)t->weighing.class_weight_count);
}

an_status an_loss_weights_count(an_trainer *t, const an_batch *samples, an_step_counts *counts) {
    an_context *ctx = t->ctx;
    const an_feed_input *input = targets_of(t);
    const int64_t each = (int64_t)(input->bytes / an_dtype_size(input->dtype)); /* targets of a sample */
    counts->maximum = 1;
    for (int64_t i = 0; i < samples->part.n; i++) {
        AN_TRY_RETURN(check_class(t, samples->fields, i));
        if (samples->partners) AN_TRY_RETURN(check_class(t, samples->partner_fields, i));
        const units u = units_at(t, samples, i);
        int64_t more;
        if (__builtin_mul_overflow(u.own + u.mixed, each, &more) ||
            __builtin_add_overflow(counts->counted, more, &counts->counted))
            return AN_ERROR(ctx, AN_ERR_OVERFLOW, "a step has too many samples for weights in the loss");
    }
    return AN_OK;
}

/* Where nothing weighs anything, the loss and its gradient are 0, whatever they are divided by. */
an_status an_loss_weights_begin(an_trainer *t, const an_step_counts *counts) {
    return an_step_divide(t->stepper, counts->counted > 0 ? counts->counted : (int64_t)UNITS, 1 / UNITS);
}

static an_array array_of(const an_trainer *t, double *weights, int64_t count) {
    an_array array = {0};
    array.data = weights;
    array.dtype = an_graph_result(t->plan->model, t->plan->model->loss)->dtype;
    array.ndims = 1;
    array.dims[0] = count;
    an_convert_from_f64(array.dtype, count, weights);
    return array;
}

/* The partners' targets. A sample of the program's has none: it stands in for its partner, of weight 0. */
static an_status set_mixed(an_trainer *t, const an_batch *samples, int64_t at, int64_t count) {
    const an_feed_input *input = targets_of(t);
    void *const *fields = samples->partners ? samples->partner_fields : samples->fields;
    const an_array weights = array_of(t, t->weighing.weights + t->samples.batches.micro, count);
    an_array targets = {0};
    targets.data = (char *)fields[input->field] + (size_t)at * input->bytes;
    targets.dtype = input->dtype;
    targets.ndims = 1;
    targets.dims[0] = count;
    AN_TRY_RETURN(an_program_set_input(t->program, AN_MIXED_TARGETS, &targets));
    return an_program_set_input(t->program, AN_MIXED_WEIGHTS, &weights);
}

an_status an_loss_weights_set(an_trainer *t, const an_batch *samples, int64_t at, int64_t count) {
    double *own = t->weighing.weights, *mixed = t->weighing.mixes_classes ? own + t->samples.batches.micro : NULL;
    for (int64_t i = 0; i < count; i++) {
        const units u = units_at(t, samples, at + i);
        own[i] = (double)u.own / UNITS;
        if (mixed) mixed[i] = (double)u.mixed / UNITS;
    }
    const an_array weights = array_of(t, own, count);
    AN_TRY_RETURN(an_program_set_input(t->program, AN_LOSS_WEIGHTS, &weights));
    return mixed ? set_mixed(t, samples, at, count) : AN_OK;
}
