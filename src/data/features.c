/* Mean, deviation and range of every feature of a field.
 *
 * Chunks of samples (data/summary.h) are combined in one binary tree over their numbers, so a result depends on the
 * samples alone. It is computed on the calling thread, and every rank computes all of it: of 10,000 samples with
 * 1,000 features that takes 0.1 s, and a message nothing. What takes longer is reading, if samples must be decoded. */
#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "base/integer.h"
#include "data/samples.h"
#include "data/structs.h"
#include "data/summary.h"

enum { CHUNK = 256 }; /* samples; it is part of the bits */

enum { MOST_NODES = 64 }; /* that wait for their right neighbour: one for each bit of a number of chunks */

struct an_features {
    an_context *ctx;
    const an_dataset *dataset;
    int field;
    int64_t count, each; /* of features, and the elements of one in a sample */
    an_summary nodes[MOST_NODES];
    int node_count;     /* that were allocated */
    an_sample_buffer b; /* while they are made */
};

/* ---- one chunk ---- */

static an_status refuse(const an_features *s, int64_t sample, int64_t element, double number) {
    char place[AN_MESSAGE_BYTES / 2] = "";
    an_dataset_place(s->dataset, s->field, sample, element, (an_note){place, sizeof place});
    return AN_ERROR(s->ctx, AN_ERR_NONFINITE, "%s: the number in field '%s' is %s, which is not finite", place,
                    s->dataset->fields[s->field].name,
                    number != number ? "nan"
                    : number > 0     ? "inf"
                                     : "-inf");
}

/* Samples first … first + n - 1, which are in the buffer. */
static an_status summarize(const an_features *s, int64_t first, int64_t n, an_summary *to) {
    const an_dtype dtype = s->dataset->fields[s->field].dtype;
    const void *values = s->b.fields[s->field];
    const int64_t elements = s->count * s->each, bad = an_summary_make(to, s->count, s->each, dtype, values, n);
    if (bad < 0) return AN_OK;
    const double number = dtype == AN_DTYPE_F64 ? ((const double *)values)[bad] : (double)((const float *)values)[bad];
    return refuse(s, first + bad / elements, bad % elements, number);
}

/* ---- all of them ---- */

static an_status add_node(an_features *s) {
    an_context *ctx = s->ctx;
    double *numbers = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&numbers, AN_SUMMARY_ARRAYS * (size_t)s->count, sizeof *numbers));
    s->nodes[s->node_count++] = an_summary_in(numbers, s->count);
    return AN_OK;
}

static an_status read_chunk(an_features *s, int64_t first, int64_t n, an_summary *to) {
    an_context *ctx = s->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    for (int64_t i = 0; i < n; i++) s->b.indices[i] = first + i;
    AN_TRY_RETURN(an_note_raise(ctx, an_dataset_fetch(s->dataset, n, s->b.indices, s->b.fields, note), note));
    return summarize(s, first, n, to);
}

/* The nodes that wait are those of a binary counter: chunk n is combined with one node for each 1 that ends the
 * number n. What is left is combined from the right. */
static an_status compute(an_features *s, int64_t samples) {
    int waiting = 0;
    for (int64_t chunk = 0; chunk * CHUNK < samples; chunk++) {
        const int64_t first = chunk * CHUNK;
        if (waiting == s->node_count) AN_TRY_RETURN(add_node(s));
        AN_TRY_RETURN(read_chunk(s, first, an_smaller(CHUNK, samples - first), &s->nodes[waiting++]));
        for (int64_t ones = chunk; ones & 1; ones /= 2, waiting--)
            an_summary_combine(&s->nodes[waiting - 2], &s->nodes[waiting - 1], s->count);
    }
    for (; waiting > 1; waiting--) an_summary_combine(&s->nodes[waiting - 2], &s->nodes[waiting - 1], s->count);
    return AN_OK;
}

static an_status check(const an_dataset *d, int field, int64_t samples, int64_t count) {
    an_status status;
    an_context *ctx = d->ctx;
    AN_CHECK(ctx, field >= 0 && field < d->record.field_count && field < AN_MAX_FEEDS, AN_ERR_ARGUMENT,
             "the dataset has no field %d; it has %d fields", field, d->record.field_count);
    const an_field *f = &d->fields[field];
    const int64_t elements = (int64_t)(d->bytes[field] / an_dtype_size(f->dtype));
    AN_CHECK(ctx, !d->streams, AN_ERR_STATE,
             "a stream has no samples before the program hands them over: make statistics of an array of them");
    AN_CHECK(ctx, f->dtype == AN_DTYPE_F32 || f->dtype == AN_DTYPE_F64, AN_ERR_DTYPE,
             "field '%s' of the dataset is %s, but statistics are of f32 or f64", f->name, an_dtype_name(f->dtype));
    AN_CHECK(ctx, samples >= 0 && count >= 0 && (count == 0 || elements % count == 0), AN_ERR_ARGUMENT,
             "statistics of %" PRId64 " features over %" PRId64 " samples: a sample of field '%s' has %" PRId64
             " elements, which are not as many equal parts",
             count, samples, f->name, elements);
    return AN_OK;
fail:
    return status;
}

an_status an_features_create(an_features **features, an_dataset *dataset, int field, int64_t samples, int64_t count) {
    AN_GUARD;
    AN_NEED(dataset, features);
    an_status status;
    an_context *ctx = dataset->ctx;
    an_features *s = NULL;
    *features = NULL;
    AN_TRY(check(dataset, field, samples, count));
    AN_TRY(an_alloc(ctx, (void **)&s, 1, sizeof *s));
    const int64_t elements = (int64_t)(dataset->bytes[field] / an_dtype_size(dataset->fields[field].dtype));
    *s = (an_features){.ctx = ctx, .dataset = dataset, .field = field, .count = count ? count : elements};
    s->each = elements / s->count;
    const int64_t all = an_dataset_count(dataset), used = samples > 0 ? an_smaller(samples, all) : all;
    AN_TRY(an_sample_buffer_create(&s->b, ctx, dataset, an_smaller(CHUNK, used)));
    AN_TRY(compute(s, used));
    an_sample_buffer_destroy(&s->b, ctx);
    *features = s;
    s = NULL;
    status = AN_OK;
fail:
    an_features_destroy(&s);
    return status;
}

void an_features_destroy(an_features **features) {
    an_features *s = features ? *features : NULL;
    if (!s) return;
    an_context *ctx = s->ctx;
    for (int i = 0; i < s->node_count; i++)
        an_release(ctx, (void **)&s->nodes[i].mean, AN_SUMMARY_ARRAYS * (size_t)s->count, sizeof *s->nodes[i].mean);
    an_sample_buffer_destroy(&s->b, ctx);
    an_release(ctx, (void **)features, 1, sizeof *s);
}

/* ---- asking for them ---- */

int64_t an_features_count(const an_features *features) {
    AN_NEED_OR(0, features);
    return features->count;
}

an_status an_features_get(const an_features *features, int64_t feature, an_feature_info *info) {
    AN_GUARD;
    AN_NEED(features, info);
    const an_features *s = features;
    an_context *ctx = s->ctx;
    AN_TRY_RETURN(an_feature_info_check(ctx, info));
    if (feature < 0 || feature >= s->count)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "there is no feature %" PRId64 "; there are %" PRId64, feature, s->count);
    const an_summary *all = &s->nodes[0];
    const an_feature_info own = {.size = sizeof own,
                                 .name = s->each == 1 ? an_dataset_column(s->dataset, s->field, feature) : NULL,
                                 .mean = all->mean[feature],
                                 .deviation = __builtin_sqrt(all->squares[feature] / (double)all->count),
                                 .minimum = all->minimum[feature],
                                 .maximum = all->maximum[feature]};
    return an_feature_info_write(ctx, info, &own);
}
