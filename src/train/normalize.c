/* Gives a model that normalises its input or its targets (models/normalize.h) the statistics of its data. They are
 * run states: checkpoints have them, and a run that is resumed never computes them again. */
#include "train/normalize.h"

#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "exec/array.h"
#include "train/running.h"
#include "train/structs.h"
#include "train/trainer.h"

enum { INPUT = AN_NORMALIZED_INPUT, TARGET = AN_NORMALIZED_TARGET, ENDS = AN_NORMALIZED_ENDS };
enum { SCALE = AN_NORMALIZE_SCALE, STATES = AN_NORMALIZE_STATES };

static const char *const words[ENDS] = {"input", "target"}; /* for messages */

enum { MOST_SHOWN = 8 }; /* features by name */

typedef struct {
    int64_t count;
    an_text names; /* of some of them */
} feature_list;

typedef struct {
    an_trainer *t;
    int end;
    const an_stored *state; /* its scale; the others are like it */
    const an_features *statistics;
    an_scaling scaling;
    feature_list constant, coarse;
} fitting;

static void add_feature(feature_list *list, int64_t feature, const an_feature_info *info) {
    if (list->count++ >= MOST_SHOWN) return;
    an_text_add(&list->names, list->count > 1 ? ", " : "");
    if (info->name)
        an_text_add(&list->names, "%s", AN_QUOTE(info->name));
    else
        an_text_add(&list->names, "%" PRId64, feature + 1);
}

/* Whether f32 leaves but a few numbers within the deviation of a feature: 1e9 and 1e9 + 30 are the same f32. One that
 * is constant may have become so, if not even all whole numbers of its size are f32. */
static bool is_coarse(an_dtype dtype, const an_feature_info *info) {
    static const double fewest = 8, step = 0x1p-23, all_whole = 0x1p24; /* a step to the next f32, as a share of it */
    const double size = info->maximum > -info->minimum ? info->maximum : -info->minimum;
    if (dtype != AN_DTYPE_F32) return false;
    return info->minimum < info->maximum ? info->deviation < fewest * step * size : size >= all_whole;
}

static an_status compute(fitting *f, double *values) {
    an_context *ctx = f->t->ctx;
    const int64_t count = f->state->elements;
    for (int64_t i = 0; i < count; i++) {
        double numbers[STATES];
        bool constant;
        an_feature_info info;
        an_feature_info_init(&info, sizeof info);
        AN_TRY_RETURN(an_features_get(f->statistics, i, &info));
        constant = an_normalization_choose(f->state->dtype, f->scaling, &info, numbers);
        if (constant) add_feature(&f->constant, i, &info);
        if (is_coarse(f->state->dtype, &info)) add_feature(&f->coarse, i, &info);
        AN_TRY_RETURN(an_normalization_check_scale(ctx, f->state->dtype, f->end, i, numbers));
        for (int s = 0; s < STATES; s++) values[s * count + i] = numbers[s];
    }
    return AN_OK;
}

/* "data.normalize: 2 of 3 inputs … : a, b" */
static an_status tell(const fitting *f, const feature_list *list, const char *what) {
    an_context *ctx = f->t->ctx;
    an_text note;
    an_text_init(&note, ctx);
    if (list->count == 0 || list->names.status != AN_OK) return list->names.status;
    an_text_add(&note, "data.normalize: %lld of %lld %ss %s: %s%s\n", (long long)list->count,
                (long long)f->state->elements, words[f->end], what, list->names.bytes,
                list->count > MOST_SHOWN ? ", …" : "");
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
    AN_TRY(an_normalization_write(f->t->params, f->end, count, values));
    AN_TRY(tell(f, &f->constant, "never change, so their scale is 1"));
    AN_TRY(tell(f, &f->coarse,
                "vary too little around a large number for f32, which has 7 digits; set data.train.dtype to f64, or "
                "subtract that number"));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&values, (size_t)(STATES * count), sizeof *values);
    return status;
}

/* ---- both ends ---- */

static an_status fit(an_trainer *t, int end, const an_features *given, int64_t samples, an_scaling scaling) {
    an_status status;
    an_context *ctx = t->ctx;
    an_features *own = NULL;
    fitting f = {.t = t, .end = end, .scaling = scaling, .statistics = given};
    f.state = an_normalization_find(t->params, end, SCALE);
    an_text_init(&f.constant.names, ctx);
    an_text_init(&f.coarse.names, ctx);
    if (!f.state && !given) return AN_OK;
    AN_CHECK(ctx, f.state, AN_ERR_ARGUMENT, "there are statistics of the %ss, but the model does not normalise them",
             words[end]);
    AN_CHECK(ctx, given || !t->samples.streams, AN_ERR_STATE,
             "the training data is a stream, which has no samples yet: give the statistics of the %ss in "
             "an_normalize_options, or set `running` in it",
             words[end]);
    if (!given) {
        const an_feed_input *input;
        AN_TRY(an_normalization_input(t, end, &input));
        AN_TRY(an_features_create(&own, t->samples.data, input->field, samples, f.state->elements));
        f.statistics = own;
    }
    AN_TRY(set_states(&f));
    status = AN_OK;
fail:
    an_text_destroy(&f.coarse.names);
    an_text_destroy(&f.constant.names);
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
    if (o.running) return an_running_make(t, &o);
    AN_CHECK(ctx, !t->planned && t->next == 0, AN_ERR_STATE,
             "means and scales can only be set before the first step, in a trainer that has weights");
    AN_TRY(fit(t, INPUT, o.inputs, o.samples, o.input_scaling));
    AN_TRY(fit(t, TARGET, o.targets, o.samples, o.target_scaling));
    return AN_OK;
fail:
    return status;
}

an_status an_normalization_note_origin(an_trainer *t, int end, const char *path) {
    an_text note;
    an_text_init(&note, t->ctx);
    an_text_add(&note,
                "data.normalize: means and scales of the %ss are those of %s, and not of the training data, because "
                "the initial weights were trained with them\n",
                words[end], path);
    const an_status status = note.status == AN_OK ? an_trainer_add_note(t, note.bytes) : note.status;
    an_text_destroy(&note);
    return status;
}

an_status an_normalization_check(const an_trainer *t) {
    an_context *ctx = t->ctx;
    for (int end = 0; end < ENDS && !t->samples.running; end++) {
        bool known;
        AN_TRY_RETURN(an_normalization_is_known(t->params, end, &known));
        if (known) continue;
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "the model normalises its %ss, but their means and scales are not known; call "
                        "an_trainer_normalize before the first step",
                        words[end]);
    }
    return AN_OK;
}
