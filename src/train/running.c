#include "train/running.h"

#include <inttypes.h>
#include <string.h>

#include "anneal/ranks.h"
#include "base/integer.h"
#include "comm/comm.h"
#include "data/summary.h"
#include "train/normalize.h"
#include "train/trainer.h"

enum { ENDS = AN_NORMALIZED_ENDS, STATES = AN_NORMALIZE_STATES };

/* An input or the targets, in the record: of every leaf the numbers of a feature that were counted, or
 * NOT_FINITE, then a summary. */
typedef struct {
    int64_t features; /* 0: the model does not normalise this end */
    int64_t each;     /* numbers of a feature in a sample */
    const an_feed_input *input;
    an_dtype dtype; /* of the states */
    an_scaling scaling;
    int64_t first; /* of its numbers in those of a leaf */
    double *next;  /* the states after the step: STATES × features */
    double *old;   /* before it */
} running_end;

enum { NOT_FINITE = -1 };

struct an_running {
    running_end ends[ENDS];
    int64_t leaves, width; /* numbers of a leaf */
    double *record;        /* of all leaves, and room for another one */
    bool is_asked;         /* whether somebody has set the states before the first step: `is_given` */
    bool is_given;
    bool has_next; /* the step has samples, and all of their numbers are finite */
};

/* ---- making and destroying it ---- */

static size_t record_count(const an_running *r) {
    return 2 * (size_t)r->leaves * (size_t)r->width;
}

static void release(an_context *ctx, an_running **running) {
    an_running *r = *running;
    if (!r) return;
    for (int e = 0; e < ENDS; e++) {
        const size_t count = STATES * (size_t)r->ends[e].features;
        an_release(ctx, (void **)&r->ends[e].next, count, sizeof *r->ends[e].next);
        an_release(ctx, (void **)&r->ends[e].old, count, sizeof *r->ends[e].old);
    }
    an_release(ctx, (void **)&r->record, record_count(r), sizeof *r->record);
    an_release(ctx, (void **)running, 1, sizeof *r);
}

void an_running_destroy(an_trainer *t) {
    release(t->ctx, &t->samples.running);
}

static an_status make_end(an_running *r, const an_trainer *t, int end, an_scaling scaling) {
    an_context *ctx = t->ctx;
    running_end *e = &r->ends[end];
    const an_stored *state = an_normalization_find(t->params, end, AN_NORMALIZE_SCALE);
    if (!state) return AN_OK;
    AN_TRY_RETURN(an_normalization_input(t, end, &e->input));
    const int64_t elements = (int64_t)(e->input->bytes / an_dtype_size(e->input->dtype));
    if (state->elements == 0 || elements % state->elements != 0)
        return AN_ERROR(ctx, AN_ERR_SHAPE,
                        "a sample of '%s' has %" PRId64 " numbers, which are not %" PRId64 " features", e->input->name,
                        elements, state->elements);
    e->features = state->elements;
    e->each = elements / e->features;
    e->dtype = state->dtype;
    e->scaling = scaling;
    e->first = r->width;
    r->width += 1 + AN_SUMMARY_ARRAYS * e->features;
    const size_t count = STATES * (size_t)e->features;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&e->next, count, sizeof *e->next));
    return an_alloc(ctx, (void **)&e->old, count, sizeof *e->old);
}

an_status an_running_make(an_trainer *t, const an_normalize_options *options) {
    an_status status;
    an_context *ctx = t->ctx;
    an_running *r = NULL;
    const size_t before = ctx->bytes;
    AN_CHECK(ctx, t->samples.streams, AN_ERR_ARGUMENT,
             "running means and scales are for a stream; the samples of this data are all known before the first step, "
             "so compute them from the first samples");
    AN_CHECK(ctx, !options->inputs && !options->targets, AN_ERR_ARGUMENT,
             "means and scales are either given or running, and not both");
    AN_CHECK(ctx, !t->planned, AN_ERR_STATE, "this trainer was opened only for its plan");
    AN_TRY(an_alloc(ctx, (void **)&r, 1, sizeof *r));
    r->leaves = t->samples.batches.leaves;
    AN_TRY(make_end(r, t, AN_NORMALIZED_INPUT, options->input_scaling));
    AN_TRY(make_end(r, t, AN_NORMALIZED_TARGET, options->target_scaling));
    AN_CHECK(ctx, r->width > 0, AN_ERR_ARGUMENT, "the model normalises neither its inputs nor its targets");
    AN_TRY(an_alloc(ctx, (void **)&r->record, record_count(r), sizeof *r->record));
    AN_TRY(an_plan_count_trainer(t->plan, ctx->bytes - before));
    release(ctx, &t->samples.running);
    t->samples.running = r;
    return AN_OK;
fail:
    release(ctx, &r);
    return status;
}

/* ---- the samples of a step ---- */

static double *numbers_of(const an_running *r, const running_end *e, int64_t leaf) {
    return r->record + leaf * r->width + e->first;
}

static void summarize(an_running *r, const an_trainer *t, const an_batch *samples) {
    const an_batch_part *part = &samples->part;
    for (an_leaf_samples l = {.index = -1};
         part->n > 0 && an_leaf_set_next(&t->samples.batches, &t->cut.leaves, part, &l);)
        for (int i = 0; i < ENDS && l.count > 0; i++) {
            const running_end *e = &r->ends[i];
            if (e->features == 0) continue;
            const char *values = (const char *)samples->fields[e->input->field] + (size_t)l.at * e->input->bytes;
            double *numbers = numbers_of(r, e, l.leaf);
            an_summary s = an_summary_in(numbers + 1, e->features);
            const int64_t bad = an_summary_make(&s, e->features, e->each, e->input->dtype, values, l.count);
            numbers[0] = bad < 0 ? (double)s.count : NOT_FINITE;
        }
}

/* A leaf is one rank's. */
static void merge_leaves(void *user, void *record, const void *next) {
    const an_running *r = user;
    for (int64_t leaf = 0; leaf < r->leaves; leaf++)
        for (int i = 0; i < ENDS; i++) {
            const running_end *e = &r->ends[i];
            const int64_t at = leaf * r->width + e->first;
            if (e->features == 0 || ((const double *)next)[at] == 0) continue;
            memcpy((double *)record + at, (const double *)next + at,
                   (size_t)(1 + AN_SUMMARY_ARRAYS * e->features) * sizeof(double));
        }
}

static an_status exchange(an_running *r, an_trainer *t) {
    an_context *ctx = t->ctx;
    const size_t count = record_count(r) / 2;
    const an_comm_merger merger = {.bytes = count * sizeof *r->record,
                                   .merge = merge_leaves,
                                   .user = r,
                                   .received = r->record + count,
                                   .what = "means and scales of the samples of a step"};
    return t->ranks == 1 ? AN_OK : an_comm_merge(ctx, an_axis_comm(ctx, AN_AXIS_DATA), &merger, r->record);
}

/* Two neighbours of the tree; one without samples is left out. */
static void combine(const an_running *r, const running_end *e, int64_t left, int64_t right) {
    double *to = numbers_of(r, e, left), *with = numbers_of(r, e, right);
    an_summary a = an_summary_in(to + 1, e->features), b = an_summary_in(with + 1, e->features);
    a.count = (int64_t)to[0];
    b.count = (int64_t)with[0];
    if (a.count > 0 && b.count > 0) {
        an_summary_combine(&a, &b, e->features);
        to[0] = (double)a.count;
    } else if (a.count == 0 || b.count < 0) { /* what is not finite stays so */
        memcpy(to, with, (size_t)(1 + AN_SUMMARY_ARRAYS * e->features) * sizeof *to);
    }
}

static an_summary combine_all(const an_running *r, const running_end *e) {
    for (int64_t reach = 1; reach < r->leaves; reach *= 2)
        for (int64_t leaf = 0; leaf + reach < r->leaves; leaf += 2 * reach) combine(r, e, leaf, leaf + reach);
    an_summary all = an_summary_in(numbers_of(r, e, 0) + 1, e->features);
    all.count = (int64_t)numbers_of(r, e, 0)[0];
    return all;
}

/* ---- states ---- */

/* The states stand for so many steps, and the step for one more. */
static an_feature_info take_in(const running_end *e, int64_t feature, const an_summary *step, int64_t steps) {
    const double *old = e->old;
    const int64_t n = e->features;
    const double n_old = (double)steps, n_all = n_old + 1;
    const double mean = old[AN_NORMALIZE_MEAN * n + feature], scale = old[AN_NORMALIZE_SCALE * n + feature],
                 minimum = old[AN_NORMALIZE_LEAST * n + feature], maximum = old[AN_NORMALIZE_MOST * n + feature];
    an_feature_info info = {
        .mean = step->mean[feature], .minimum = step->minimum[feature], .maximum = step->maximum[feature]};
    double variance = step->squares[feature] / (double)step->count;
    if (steps > 0) {
        const double distance = info.mean - mean;
        variance += n_old * (minimum < maximum ? scale * scale : 0) + distance * distance * (n_old / n_all);
        variance /= n_all;
        info.mean = mean + distance / n_all;
        info.minimum = minimum < info.minimum ? minimum : info.minimum;
        info.maximum = maximum > info.maximum ? maximum : info.maximum;
    }
    info.deviation = __builtin_sqrt(variance);
    return info;
}

static an_status compute_next(const an_running *r, const an_trainer *t, int end, const an_summary *step) {
    an_context *ctx = t->ctx;
    const running_end *e = &r->ends[end];
    for (int s = 0; s < STATES && t->next > 0; s++)
        AN_TRY_RETURN(
            an_normalization_read(t->params, an_normalization_find(t->params, end, s), e->old + s * e->features));
    for (int64_t f = 0; f < e->features; f++) {
        double numbers[STATES];
        const an_feature_info info = take_in(e, f, step, t->next);
        an_normalization_choose(e->dtype, e->scaling, &info, numbers);
        AN_TRY_RETURN(an_normalization_check_scale(ctx, e->dtype, end, f, numbers));
        for (int s = 0; s < STATES; s++) e->next[s * e->features + f] = numbers[s];
    }
    return AN_OK;
}

static an_status write_next(const an_running *r, an_trainer *t) {
    for (int i = 0; i < ENDS; i++)
        if (r->ends[i].features > 0)
            AN_TRY_RETURN(an_normalization_write(t->params, i, r->ends[i].features, r->ends[i].next));
    return AN_OK;
}

/* Somebody may have set the states before the first step: then they stand for that step. */
static an_status ask_if_given(an_running *r, const an_trainer *t) {
    bool known[ENDS];
    if (r->is_asked) return AN_OK;
    for (int i = 0; i < ENDS; i++) AN_TRY_RETURN(an_normalization_is_known(t->params, i, &known[i]));
    r->is_given = known[0] && known[1];
    r->is_asked = true;
    return AN_OK;
}

/* The same on every rank. */
static an_status look(an_running *r, an_trainer *t) {
    an_context *ctx = t->ctx;
    const bool is_first = t->next == 0;
    AN_TRY_RETURN(ask_if_given(r, t));
    if (is_first && r->is_given) return AN_OK;
    r->has_next = true;
    for (int i = 0; i < ENDS; i++) {
        if (r->ends[i].features == 0) continue;
        const an_summary step = combine_all(r, &r->ends[i]);
        if (step.count < 0 && is_first)
            return AN_ERROR(ctx, AN_ERR_NONFINITE,
                            "'%s' of the first step has a number that is not finite, so its means and scales are not "
                            "known",
                            r->ends[i].input->name);
        r->has_next = r->has_next && step.count > 0;
        if (step.count > 0) AN_TRY_RETURN(compute_next(r, t, i, &step));
    }
    if (!is_first || !r->has_next) return AN_OK;
    r->has_next = false; /* they are these already */
    return write_next(r, t);
}

an_status an_running_look(an_trainer *t, an_status status, const an_batch *samples) {
    an_running *r = t->samples.running;
    if (!r) return status;
    r->has_next = false;
    memset(r->record, 0, record_count(r) * sizeof *r->record);
    if (status == AN_OK) summarize(r, t, samples);
    AN_TRY_RETURN(exchange(r, t));
    const an_status looked = look(r, t);
    return status == AN_OK ? looked : status;
}

an_status an_running_keep(an_trainer *t) {
    an_running *r = t->samples.running;
    if (!r || !r->has_next || t->stepper->skipped) return AN_OK;
    r->has_next = false;
    return write_next(r, t);
}
