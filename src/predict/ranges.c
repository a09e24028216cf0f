#include "predict/ranges.h"

#include "base/guard.h"
#include "predict/predictor.h"
#include "predict/structs.h"
#include "train/normalize.h"

static const an_stored *find(const an_params *params, int state) {
    return an_normalization_find(params, AN_NORMALIZED_INPUT, state);
}

/* A graph of the program's may have states of these names that mean something else: then the shapes do not fit,
 * and there are no ranges. */
an_status an_ranges_make(an_ranges *ranges, const an_params *params, int64_t input_elements) {
    an_context *ctx = params->ctx;
    const an_stored *minimum = find(params, AN_NORMALIZE_LEAST), *maximum = find(params, AN_NORMALIZE_MOST);
    *ranges = (an_ranges){.params = params};
    if (!minimum || !maximum || minimum->elements != maximum->elements || input_elements % minimum->elements != 0)
        return AN_OK;
    const int64_t features = minimum->elements;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&ranges->numbers, 2 * (size_t)features, sizeof *ranges->numbers));
    ranges->features = features;
    ranges->each = input_elements / features;
    ranges->minimum = ranges->numbers;
    ranges->maximum = ranges->numbers + features;
    return an_alloc(ctx, (void **)&ranges->outside, (size_t)features, sizeof *ranges->outside);
}

void an_ranges_destroy(an_ranges *ranges) {
    if (!ranges->params) return;
    an_context *ctx = ranges->params->ctx;
    an_release(ctx, (void **)&ranges->numbers, 2 * (size_t)ranges->features, sizeof *ranges->numbers);
    an_release(ctx, (void **)&ranges->outside, (size_t)ranges->features, sizeof *ranges->outside);
}

an_status an_ranges_read(an_ranges *ranges) {
    if (ranges->features == 0) return AN_OK;
    const an_params *p = ranges->params;
    AN_TRY_RETURN(an_normalization_read(p, find(p, AN_NORMALIZE_LEAST), ranges->minimum));
    return an_normalization_read(p, find(p, AN_NORMALIZE_MOST), ranges->maximum);
}

/* Whether a feature of a sample is outside: nan is. */
static bool is_outside(const an_ranges *r, int64_t feature, an_dtype dtype, const void *numbers, int64_t at) {
    bool inside = true;
    for (int64_t k = 0; k < r->each; k++) {
        const double x =
            dtype == AN_DTYPE_F64 ? ((const double *)numbers)[at + k] : (double)((const float *)numbers)[at + k];
        inside = inside && x >= r->minimum[feature] && x <= r->maximum[feature];
    }
    return !inside;
}

void an_ranges_count(an_ranges *ranges, an_dtype dtype, int64_t n, const void *inputs) {
    an_ranges *r = ranges;
    if (r->features == 0) return;
    for (int64_t i = 0, at = 0; i < n; i++) {
        bool any = false;
        for (int64_t f = 0; f < r->features; f++, at += r->each) {
            const bool outside = is_outside(r, f, dtype, inputs, at);
            r->outside[f] += outside;
            any = any || outside;
        }
        r->samples_outside += any;
    }
    r->samples += n;
}

an_status an_predictor_range(const an_predictor *predictor, an_range_info *info) {
    AN_GUARD;
    AN_NEED(predictor, info);
    const an_ranges *r = &predictor->ranges;
    an_range_info own = {.size = sizeof own,
                         .features = r->features,
                         .samples = r->samples,
                         .outside = r->samples_outside,
                         .feature = -1};
    for (int64_t f = 0; f < r->features; f++) {
        if (r->outside[f] <= own.feature_outside) continue;
        own.feature = f;
        own.feature_outside = r->outside[f];
        own.minimum = r->minimum[f];
        own.maximum = r->maximum[f];
    }
    return an_range_info_write(predictor->ctx, info, &own);
}
