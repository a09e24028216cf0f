/* The run states of a model that normalises: finding, reading, setting and choosing them. */
#include <inttypes.h>
#include <string.h>

#include "base/convert.h"
#include "base/status.h"
#include "train/normalize.h"
#include "train/trainer.h"

enum { TARGET = AN_NORMALIZED_TARGET };
enum {
    MEAN = AN_NORMALIZE_MEAN,
    SCALE = AN_NORMALIZE_SCALE,
    LEAST = AN_NORMALIZE_LEAST,
    MOST = AN_NORMALIZE_MOST,
    STATES = AN_NORMALIZE_STATES
};

static const char *const words[AN_NORMALIZED_ENDS] = {"input", "target"}; /* for messages */

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
    an_array array = array_of(state, numbers);
    AN_TRY_RETURN(an_params_get(params, state->name, AN_PART_WEIGHT, &array));
    an_convert_to_f64(state->dtype, state->elements, numbers);
    return AN_OK;
}

an_status an_normalization_write(an_params *params, int end, int64_t features, double *values) {
    an_status status;
    an_context *ctx = params->ctx;
    for (int s = 0; s < STATES; s++) {
        const an_stored *e = an_normalization_find(params, end, s);
        AN_CHECK(ctx, e && e->elements == features, AN_ERR_STATE, "the model has no run state '%s' like its others",
                 an_normalize_names[end][s]);
        an_convert_from_f64(e->dtype, features, values + s * features);
        const an_array array = array_of(e, values + s * features);
        AN_TRY(an_params_set(params, e->name, AN_PART_WEIGHT, &array));
    }
    return AN_OK;
fail:
    return status;
}

/* ---- the numbers ---- */

/* A scale that is too small for the model's type counts as none. */
static bool is_zero(an_dtype dtype, double scale) {
    return dtype == AN_DTYPE_F64 ? scale == 0 : (float)scale == 0;
}

bool an_normalization_choose(an_dtype dtype, an_scaling scaling, const an_feature_info *info,
                             double numbers[AN_NORMALIZE_STATES]) {
    const bool standard = scaling == AN_SCALING_STANDARD;
    numbers[LEAST] = info->minimum;
    numbers[MOST] = info->maximum;
    numbers[MEAN] = standard ? info->mean : info->minimum;
    numbers[SCALE] = standard ? info->deviation : info->maximum - info->minimum;
    if (info->minimum < info->maximum && !is_zero(dtype, numbers[SCALE])) return false;
    numbers[MEAN] = info->minimum;
    numbers[SCALE] = 1;
    return true;
}

an_status an_normalization_check_scale(an_context *ctx, an_dtype dtype, int end, int64_t feature,
                                       const double numbers[AN_NORMALIZE_STATES]) {
    const double scale = numbers[SCALE];
    if (dtype == AN_DTYPE_F64 ? __builtin_isfinite(scale) : __builtin_isfinite((float)scale)) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_OVERFLOW,
                    "feature %" PRId64 " of the %ss is from %g to %g, and its scale does not fit in %s", feature + 1,
                    words[end], numbers[LEAST], numbers[MOST], an_dtype_name(dtype));
}

an_status an_normalization_input(const an_trainer *t, int end, const an_feed_input **input) {
    const an_feed *feed = &t->samples.feed;
    int others = 0;
    *input = NULL;
    for (int i = 0; i < feed->count; i++) {
        if ((i == feed->targets) != (end == TARGET)) continue;
        *input = &feed->inputs[i];
        others++;
    }
    if (others == 1) return AN_OK;
    return AN_ERROR(t->ctx, AN_ERR_UNSUPPORTED, "the model has %d inputs, so it is not clear which of them '%s' is of",
                    others, an_normalize_names[end][SCALE]);
}

/* The first scale says it for all: none that was set is 0. */
an_status an_normalization_is_known(const an_params *p, int end, bool *known) {
    an_context *ctx = p->ctx;
    const an_stored *e = an_normalization_find(p, end, SCALE);
    double first = 1;
    if (e) {
        const char *from = (const char *)an_params_base(p, e->storage) + e->offset;
        AN_TRY_RETURN(p->device->copy(p->device, ctx, &first, from, an_dtype_size(e->dtype), AN_COPY_FROM_DEVICE));
        AN_TRY_RETURN(p->device->synchronize(p->device, ctx));
        an_convert_to_f64(e->dtype, 1, &first);
    }
    *known = first != 0;
    return AN_OK;
}
