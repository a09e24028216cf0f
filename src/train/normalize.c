/* Gives a model that normalises its input or its targets (models/normalize.h) the statistics of its data. They are run states: checkpoints have them, and a run that is resumed never computes them again. */
#include "train/normalize.h"

#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "base/structs.h"
#include "exec/array.h"
#include "train/trainer.h"

enum { INPUT = AN_NORMALIZED_INPUT, TARGET = AN_NORMALIZED_TARGET, ENDS = AN_NORMALIZED_ENDS };
enum {
    MEAN = AN_NORMALIZE_MEAN,
    SCALE = AN_NORMALIZE_SCALE,
    LEAST = AN_NORMALIZE_LEAST,
    MOST = AN_NORMALIZE_MOST,
    STATES = AN_NORMALIZE_STATES
};

static const char *const words[ENDS] = {"input", "target"}; /* for messages */

/* ---- states ---- */

const an_stored *an_normalization_find(const an_params *params, int end, int state) {
    for (size_t i = params->parameter_count; i < params->entry_count; i++)
        if (!strcmp(params->entries[i].name, an_normalize_names[end][state])) return &params->entries[i];
    return NULL;
}

static an_array array_of(const an_stored *e, void *data) {
    an_array array = {.data = data, .dtype = e->dtype, .ndims = e->ndims};
    memcpy(array.dims, e->dims, sizeof array.dims);
    return array;
}

an_status an_normalization_read(const an_params *params, const an_stored *state, double *numbers) {
    an_context *ctx = params->ctx;
    an_array array = array_of(state, numbers);
    AN_TRY_RETURN(an_params_get(params, state->name, AN_PART_WEIGHT, &array));
    an_convert_to_f64(state->dtype, state->elements, numbers);
    return AN_OK;
}

/* ---- the numbers ---- */

typedef struct {
    an_trainer *t;
    int end;
    const an_stored *state; /* its scale; the others are like it */
    const an_features *statistics;
    an_scaling scaling;
    int64_t constant_count;
    an_text constant; /* the names of some of them */
} fitting;

enum { MOST_SHOWN = 8 }; /* constant features by name */

/* A scale that is too small for the model's type counts as none. */
static bool is_zero(const fitting *f, double scale) {
    return f->state->dtype == AN_DTYPE_F64 ? scale == 0 : (float)scale == 0;
}

static void note_constant(fitting *f, int64_t feature, const an_feature_info *info) {
    if (f->constant_count++ >= MOST_SHOWN) return;
    an_text_add(&f->constant, f->constant_count > 1 ? ", " : "");
    if (info->name)
        an_text_add(&f->constant, "%s", AN_QUOTE(info->name));
    else
        an_text_add(&f->constant, "%" PRId64, feature + 1);
}

static void choose(fitting *f, int64_t feature, const an_feature_info *info, double numbers[STATES]) {
    const bool standard = f->scaling == AN_SCALING_STANDARD;
    numbers[LEAST] = info->least;
    numbers[MOST] = info->most;
    numbers[MEAN] = standard ? info->mean : info->least;
    numbers[SCALE] = standard ? info->deviation : info->most - info->least;
    if (info->least < info->most && !is_zero(f, numbers[SCALE])) return;
    numbers[MEAN] = info->least;
    numbers[SCALE] = 1;
    note_constant(f, feature, info);
}

static an_status compute(fitting *f, double *values) {
    an_context *ctx = f->t->ctx;
    const int64_t count = f->state->elements;
    for (int64_t i = 0; i < count; i++) {
        double numbers[STATES];
        an_feature_info info;
        an_feature_info_init(&info, sizeof info);
        AN_TRY_RETURN(an_feature_info_get(f->statistics, i, &info));
        choose(f, i, &info, numbers);
        for (int s = 0; s < STATES; s++) values[s * count + i] = numbers[s];
        const bool fits = f->state->dtype == AN_DTYPE_F64 ? __builtin_isfinite(numbers[SCALE])
                                                          : __builtin_isfinite((float)numbers[SCALE]);
        if (!fits)
            return AN_ERROR(ctx, AN_ERR_OVERFLOW,
                            "feature %" PRId64 " of the %ss is from %g to %g, and its scale does not fit in %s", i + 1,
                            words[f->end], info.least, info.most, an_dtype_name(f->state->dtype));
    }
    return AN_OK;
}

static an_status tell_constant(fitting *f) {
    an_context *ctx = f->t->ctx;
    an_text note;
    an_text_init(&note, ctx);
    if (f->constant_count == 0 || f->constant.status != AN_OK) return f->constant.status;
    an_text_add(&note, "data.normalize: %lld of %lld %ss never change, so their scale is 1: %s%s\n",
                (long long)f->constant_count, (long long)f->state->elements, words[f->end], f->constant.bytes,
                f->constant_count > MOST_SHOWN ? ", …" : "");
    an_status status = note.status;
    if (status == AN_OK) status = an_trainer_add_note(f->t, note.bytes);
    an_text_destroy(&note);
    return status;
}

static an_status set_states(fitting *f) {
    an_status status;
    an_context *ctx = f->t->ctx;
    const int64_t count = f->state->elements;
    double *values = NULL;
    AN_CHECK(ctx, an_features_count(f->statistics) == count, AN_ERR_SHAPE,
             "the statistics of the %ss have %" PRId64 " features, but the model has %" PRId64, words[f->end],
             an_features_count(f->statistics), count);
    AN_TRY(an_alloc(ctx, (void **)&values, (size_t)(STATES * count), sizeof *values));
    AN_TRY(compute(f, values));
    for (int s = 0; s < STATES; s++) {
        const an_stored *e = an_normalization_find(f->t->params, f->end, s);
        AN_CHECK(ctx, e && e->elements == count, AN_ERR_STATE, "the model has no run state '%s' like its others",
                 an_normalize_names[f->end][s]);
        an_convert_from_f64(e->dtype, count, values + s * count);
        const an_array array = array_of(e, values + s * count);
        AN_TRY(an_params_set(f->t->params, e->name, AN_PART_WEIGHT, &array));
    }
    AN_TRY(tell_constant(f));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&values, (size_t)(STATES * count), sizeof *values);
    return status;
}

/* ---- both ends ---- */

/* The field of the training data that an end reads: of inputs, the only one. */
static an_status find_field(const an_trainer *t, int end, int *field) {
    const an_feed *feed = &t->feed;
    int others = 0;
    *field = -1;
    for (int i = 0; i < feed->count; i++) {
        if ((i == feed->targets) != (end == TARGET)) continue;
        *field = feed->inputs[i].field;
        others++;
    }
    if (others == 1) return AN_OK;
    return AN_ERROR(t->ctx, AN_ERR_UNSUPPORTED, "the model has %d inputs, so it is not clear which of them '%s' is of",
                    others, an_normalize_names[end][SCALE]);
}

static an_status fit(an_trainer *t, int end, const an_features *given, int64_t samples, an_scaling scaling) {
    an_status status;
    an_context *ctx = t->ctx;
    an_features *own = NULL;
    fitting f = {.t = t, .end = end, .scaling = scaling, .statistics = given};
    f.state = an_normalization_find(t->params, end, SCALE);
    an_text_init(&f.constant, ctx);
    if (!f.state && !given) return AN_OK;
    AN_CHECK(ctx, f.state, AN_ERR_ARGUMENT, "there are statistics of the %ss, but the model does not normalise them",
             words[end]);
    AN_CHECK(ctx, given || !t->streams, AN_ERR_STATE,
             "the training data is a stream, which has no samples yet: give the statistics of the %ss in "
             "an_normalize_options",
             words[end]);
    if (!given) {
        int field;
        AN_TRY(find_field(t, end, &field));
        AN_TRY(an_features_create(&own, t->training, field, samples, f.state->elements));
        f.statistics = own;
    }
    AN_TRY(set_states(&f));
    status = AN_OK;
fail:
    an_text_destroy(&f.constant);
    an_features_destroy(&own);
    return status;
}

static bool is_scaling(an_scaling scaling) {
    return scaling == AN_SCALING_STANDARD || scaling == AN_SCALING_RANGE;
}

an_status an_trainer_normalize(an_trainer *trainer, const an_normalize_options *options) {
    AN_GUARD;
    AN_NEED(trainer, options);
    an_status status;
    an_trainer *t = trainer;
    an_context *ctx = t->ctx;
    an_normalize_options o;
    AN_TRY(an_normalize_options_read(ctx, &o, options));
    AN_CHECK(ctx, is_scaling(o.input_scaling) && is_scaling(o.target_scaling) && o.samples >= 0, AN_ERR_ARGUMENT,
             "samples is %" PRId64 ", input_scaling %d and target_scaling %d; the first must be 0 or more, the others "
             "values of an_scaling",
             o.samples, (int)o.input_scaling, (int)o.target_scaling);
    AN_CHECK(ctx, !t->planned && t->next == 0, AN_ERR_STATE,
             "means and scales can only be set before the first step, in a trainer that has weights");
    AN_TRY(fit(t, INPUT, o.inputs, o.samples, o.input_scaling));
    AN_TRY(fit(t, TARGET, o.targets, o.samples, o.target_scaling));
    return AN_OK;
fail:
    return status;
}

/* The first scale says it for all: none that was set is 0. */
an_status an_normalization_check(const an_trainer *t) {
    an_context *ctx = t->ctx;
    const an_params *p = t->params;
    for (int end = 0; end < ENDS; end++) {
        const an_stored *e = an_normalization_find(p, end, SCALE);
        double first = 0;
        if (!e) continue;
        const char *from = (const char *)an_params_base(p, e->storage) + e->offset;
        AN_TRY_RETURN(p->device->copy(p->device, ctx, &first, from, an_dtype_size(e->dtype), AN_COPY_FROM_DEVICE));
        AN_TRY_RETURN(p->device->synchronize(p->device, ctx));
        an_convert_to_f64(e->dtype, 1, &first);
        if (first != 0) continue;
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "the model normalises its %ss, but their means and scales are not known; call "
                        "an_trainer_normalize before the first step",
                        words[end]);
    }
    return AN_OK;
}
