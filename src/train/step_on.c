/* A step on the caller's own samples. Arrays that already have the right layout are used in place; others are copied
 * into memory that is kept for the next step. */
#include <inttypes.h>
#include <string.h>

#include "anneal/ranks.h"
#include "base/guard.h"
#include "base/span.h"
#include "comm/comm.h"
#include "data/loader.h"
#include "exec/array.h"
#include "train/running.h"
#include "train/trainer.h"

enum { ENDS = 2 }; /* the input and the targets */

struct an_handed {
    int64_t capacity; /* samples */
    void *copies[ENDS];
    size_t bytes[ENDS]; /* of a sample */
    int64_t *indices;
    int64_t *counts; /* samples of every rank, and room for another such list; NULL: one rank */
};

static void release_copies(an_trainer *t, struct an_handed *h) {
    an_context *ctx = t->ctx;
    for (int i = 0; i < ENDS; i++) an_release(ctx, &h->copies[i], (size_t)h->capacity, h->bytes[i]);
    an_release(ctx, (void **)&h->indices, (size_t)h->capacity, sizeof *h->indices);
    h->capacity = 0;
}

void an_handed_destroy(an_trainer *t) {
    if (!t->samples.handed) return;
    release_copies(t, t->samples.handed);
    an_release(t->ctx, (void **)&t->samples.handed->counts, 2 * (size_t)t->ranks, sizeof *t->samples.handed->counts);
    an_release(t->ctx, (void **)&t->samples.handed, 1, sizeof *t->samples.handed);
}

/* Which of the feed's inputs is which end. */
static const an_feed_input *end_of(const an_trainer *t, int end) {
    return &t->samples.feed.inputs[end == 1 ? t->samples.feed.targets : 1 - t->samples.feed.targets];
}

static an_status allocate(an_trainer *t, int64_t n) {
    an_context *ctx = t->ctx;
    struct an_handed *h = t->samples.handed;
    release_copies(t, h);
    h->capacity = n; /* what is not there yet is NULL, and released as such */
    AN_TRY_RETURN(an_alloc(ctx, (void **)&h->indices, (size_t)n, sizeof *h->indices));
    for (int i = 0; i < ENDS; i++) {
        h->bytes[i] = end_of(t, i)->bytes;
        AN_TRY_RETURN(an_alloc(ctx, &h->copies[i], (size_t)n, h->bytes[i]));
    }
    return AN_OK;
}

/* Room for n samples. */
static an_status make_room(an_trainer *t, int64_t n) {
    an_context *ctx = t->ctx;
    if (n > t->samples.handed->capacity) {
        const an_status status = allocate(t, n);
        if (status != AN_OK) release_copies(t, t->samples.handed);
        AN_TRY_RETURN(status);
        for (int64_t i = 0; i < n; i++) t->samples.handed->indices[i] = i;
    }
    if (n <= t->samples.number_count) return AN_OK;
    int64_t *numbers = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&numbers, (size_t)n, sizeof *numbers));
    an_release(ctx, (void **)&t->samples.numbers, (size_t)t->samples.number_count, sizeof *t->samples.numbers);
    t->samples.numbers = numbers;
    t->samples.number_count = n;
    return AN_OK;
}

/* ---- arrays ---- */

static bool is_float(an_dtype dtype) {
    return dtype == AN_DTYPE_F32 || dtype == AN_DTYPE_F64;
}

static bool is_integer(an_dtype dtype) {
    return dtype == AN_DTYPE_I32 || dtype == AN_DTYPE_I64;
}

static bool is_dense(const an_array *array) {
    bool given = false;
    int64_t dense = 1;
    for (int d = 0; d < array->ndims; d++) given = given || array->strides[d] != 0;
    for (int d = array->ndims - 1; given && d >= 0; d--) {
        if (array->dims[d] != 1 && array->strides[d] != dense) return false;
        dense *= array->dims[d];
    }
    return true;
}

/* The element that is number `index` in C's order. */
static const char *element_at(const an_array *array, bool dense, int64_t index) {
    const int64_t size = (int64_t)an_dtype_size(array->dtype);
    int64_t offset = 0;
    if (dense) return (const char *)array->data + index * size;
    for (int d = array->ndims - 1; d >= 0; d--) {
        offset += index % array->dims[d] * array->strides[d];
        index /= array->dims[d];
    }
    return (const char *)array->data + offset * size;
}

/* One element, converted; false: it does not fit. */
static bool convert(an_dtype from, const char *src, an_dtype to, void *dst, int64_t at) {
    double f64 = 0;
    float f32;
    int64_t i64 = 0;
    int32_t i32;
    if (from == AN_DTYPE_F32) memcpy(&f32, src, sizeof f32), f64 = (double)f32;
    if (from == AN_DTYPE_F64) memcpy(&f64, src, sizeof f64);
    if (from == AN_DTYPE_I32) memcpy(&i32, src, sizeof i32), i64 = i32;
    if (from == AN_DTYPE_I64) memcpy(&i64, src, sizeof i64);
    switch (to) {
    case AN_DTYPE_F32: ((float *)dst)[at] = (float)f64; return true;
    case AN_DTYPE_F64: ((double *)dst)[at] = f64; return true;
    case AN_DTYPE_I32: ((int32_t *)dst)[at] = (int32_t)i64; return i64 >= INT32_MIN && i64 <= INT32_MAX;
    case AN_DTYPE_I64: ((int64_t *)dst)[at] = i64; return true;
    default: return false;
    }
}

static an_status copy_array(an_trainer *t, int end, const an_array *array, bool dense) {
    const an_feed_input *input = end_of(t, end);
    const int64_t count = array->dims[0] * (int64_t)(input->bytes / an_dtype_size(input->dtype));
    for (int64_t i = 0; i < count; i++)
        if (!convert(array->dtype, element_at(array, dense, i), input->dtype, t->samples.handed->copies[end], i))
            return AN_ERROR(t->ctx, AN_ERR_ARGUMENT, "element %" PRId64 " of '%s' does not fit in %s", i, input->name,
                            an_dtype_name(input->dtype));
    return AN_OK;
}

/* What the model has no row or class for is found before it indexes anything. */
static an_status check_integers(const an_trainer *t, int end, const void *values, int64_t n) {
    const an_feed_input *input = end_of(t, end);
    const int64_t limit = t->samples.data->checked[input->field],
                  each = (int64_t)(input->bytes / an_dtype_size(input->dtype));
    if (!is_integer(input->dtype) || limit <= 0) return AN_OK;
    for (int64_t i = 0; i < n * each; i++) {
        const int64_t value =
            input->dtype == AN_DTYPE_I32 ? ((const int32_t *)values)[i] : ((const int64_t *)values)[i];
        if ((value >= 0 && value < limit) || (end == 1 && value == AN_TARGET_IGNORED)) continue;
        return AN_ERROR(t->ctx, AN_ERR_ARGUMENT,
                        "sample %" PRId64 " has the value %" PRId64 " in '%s', but values must be 0 to %" PRId64,
                        i / each, value, input->name, limit - 1);
    }
    return AN_OK;
}

/* Memory that the program can read an end of the n samples from. */
static an_status find_values(an_trainer *t, int end, int64_t n, const an_array *array, void **values) {
    an_context *ctx = t->ctx;
    const an_feed_input *input = end_of(t, end);
    int64_t dims[AN_MAX_DIMS];
    memcpy(dims, input->dims, sizeof dims);
    dims[0] = n;
    const bool converts =
        (is_float(array->dtype) && is_float(input->dtype)) || (is_integer(array->dtype) && is_integer(input->dtype));
    AN_TRY_RETURN(an_array_check(ctx, array, input->name, converts ? array->dtype : input->dtype, input->ndims, dims));
    const bool dense = is_dense(array);
    *values = array->data;
    if (!dense || array->dtype != input->dtype) {
        AN_TRY_RETURN(copy_array(t, end, array, dense));
        *values = t->samples.handed->copies[end];
    }
    return check_integers(t, end, *values, n);
}

/* ---- ranks ---- */

static void add_counts(void *user, void *record, const void *next) {
    const an_trainer *t = user;
    for (int i = 0; i < t->ranks; i++) ((int64_t *)record)[i] += ((const int64_t *)next)[i];
}

/* Which part of the step the n samples of this rank are: after those of the ranks before it. O(ranks) memory and
 * bytes. */
static an_status find_part(an_trainer *t, int64_t n, an_batch_part *part) {
    an_context *ctx = t->ctx;
    *part = (an_batch_part){.n = n, .total = n};
    if (t->ranks == 1) return AN_OK;
    int64_t *counts = t->samples.handed->counts;
    const an_comm_merger merger = {.bytes = (size_t)t->ranks * sizeof *counts,
                                   .merge = add_counts,
                                   .user = t,
                                   .received = counts + t->ranks,
                                   .what = "the number of samples of every rank"};
    memset(counts, 0, merger.bytes);
    counts[t->rank] = n;
    AN_TRY_RETURN(an_comm_merge(ctx, an_axis_comm(ctx, AN_AXIS_DATA), &merger, counts));
    part->total = 0;
    for (int i = 0; i < t->ranks; i++) {
        if (i == t->rank) part->first = part->total;
        part->total += counts[i] > 0 ? counts[i] : 0;
    }
    const int64_t first = t->cut.leaves.first, end = first + t->cut.leaves.count;
    part->own = t->cut.leaves.count > t->cut.leaves.each ||
                part->first != an_leaf_begin(&t->samples.batches, part->total, first) ||
                part->first + n != an_leaf_begin(&t->samples.batches, part->total, end);
    return AN_OK;
}

/* On all ranks or on none: one without its list could not take part. */
static an_status make_handed(an_trainer *t) {
    an_context *ctx = t->ctx;
    if (t->samples.handed) return AN_OK;
    an_status status = an_alloc(ctx, (void **)&t->samples.handed, 1, sizeof *t->samples.handed);
    if (status == AN_OK && t->ranks > 1)
        status =
            an_alloc(ctx, (void **)&t->samples.handed->counts, 2 * (size_t)t->ranks, sizeof *t->samples.handed->counts);
    status = an_ranks_agree(ctx, status);
    if (status != AN_OK) an_handed_destroy(t);
    return status;
}

/* ---- the step ---- */

static an_status check(const an_trainer *t, int64_t n, const an_array *inputs, const an_array *targets,
                       const an_step_metrics *metrics) {
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(an_trainer_check_step(t, metrics));
    if (n < 0) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "a step cannot have %" PRId64 " samples", n);
    if (n == 0 && t->ranks == 1)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "a step needs at least one sample, because otherwise there is no gradient");
    if (t->samples.feed.count != ENDS || t->samples.feed.targets < 0)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "the model reads %d inputs, but a step on the caller's samples is possible only for models "
                        "with one input and targets",
                        t->samples.feed.count);
    const char *missing = !inputs || !inputs->data ? "inputs" : !targets || !targets->data ? "targets" : NULL;
    if (n > 0 && missing)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s is NULL, but the step has %" PRId64 " samples", missing, n);
    return AN_OK;
}

static an_status find_samples(an_trainer *t, int64_t n, const an_array *const arrays[ENDS], void **fields) {
    if (n == 0) return AN_OK;
    AN_TRY_RETURN(make_room(t, n));
    for (int i = 0; i < ENDS; i++) AN_TRY_RETURN(find_values(t, i, n, arrays[i], &fields[end_of(t, i)->field]));
    return AN_OK;
}

/* With several ranks, one that has failed (status) takes part with its error, as long as it can. */
static an_status take(an_trainer *t, an_status status, int64_t n, const an_array *const arrays[ENDS],
                      an_step_metrics *metrics) {
    an_context *ctx = t->ctx;
    void *fields[AN_MAX_FEEDS] = {NULL};
    an_batch samples = {.number = t->next, .fields = fields};
    const double begin = an_span_begin(ctx);
    if (status == AN_OK) status = find_samples(t, n, arrays, fields);
    if (status != AN_OK && (t->ranks == 1 || t->planned)) return status;
    if (status != AN_OK) AN_TRY_RETURN(an_step_fail(t->stepper, status, -1));
    AN_TRY_RETURN(find_part(t, status == AN_OK ? n : 0, &samples.part));
    samples.indices = t->samples.handed->indices;
    status = an_running_look(t, status, &samples);
    status = an_trainer_take(t, status, &samples, metrics);
    if (status == AN_OK) status = an_running_keep(t);
    if (status == AN_OK) an_span_end(ctx, "step", t->next, begin);
    if (t->samples.loader)
        an_loader_seek(t->samples.loader, t->next); /* the data's samples of this step are left out */
    return status;
}

an_status an_trainer_step_on(an_trainer *trainer, int64_t n, const an_array *inputs, const an_array *targets,
                             an_step_metrics *metrics) {
    AN_GUARD;
    AN_NEED(trainer);
    an_trainer *t = trainer;
    AN_TRY_RETURN(make_handed(t));
    return take(t, check(t, n, inputs, targets, metrics), n, (const an_array *const[ENDS]){inputs, targets}, metrics);
}

/* Dense arrays of the model's own shapes. */
static an_status describe(const an_trainer *t, int64_t n, an_dtype dtype, an_array arrays[ENDS]) {
    for (int i = 0; i < ENDS; i++) {
        const an_feed_input *input = end_of(t, i);
        if (!is_float(input->dtype))
            return AN_ERROR(t->ctx, AN_ERR_DTYPE,
                            "'%s' of the model is %s: pass arrays of that type to an_trainer_step_on", input->name,
                            an_dtype_name(input->dtype));
        arrays[i].dtype = dtype;
        arrays[i].ndims = input->ndims;
        memcpy(arrays[i].dims, input->dims, sizeof arrays[i].dims);
        arrays[i].dims[0] = n;
    }
    return AN_OK;
}

static an_status step_on_dense(an_trainer *t, int64_t n, an_dtype dtype, const void *inputs, const void *targets,
                               an_step_metrics *metrics) {
    an_array arrays[ENDS] = {{.data = (void *)(uintptr_t)inputs}, {.data = (void *)(uintptr_t)targets}}; /* read only */
    AN_TRY_RETURN(make_handed(t));
    an_status status = check(t, n, &arrays[0], &arrays[1], metrics);
    if (status == AN_OK) status = describe(t, n, dtype, arrays);
    return take(t, status, n, (const an_array *const[ENDS]){&arrays[0], &arrays[1]}, metrics);
}

an_status an_trainer_step_on_f32(an_trainer *trainer, int64_t n, const float *inputs, const float *targets,
                                 an_step_metrics *metrics) {
    AN_GUARD;
    AN_NEED(trainer);
    return step_on_dense(trainer, n, AN_DTYPE_F32, inputs, targets, metrics);
}

an_status an_trainer_step_on_f64(an_trainer *trainer, int64_t n, const double *inputs, const double *targets,
                                 an_step_metrics *metrics) {
    AN_GUARD;
    AN_NEED(trainer);
    return step_on_dense(trainer, n, AN_DTYPE_F64, inputs, targets, metrics);
}
