/* Datasets of the caller's arrays, read in place. */
#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "data/dataset.h"
#include "data/structs.h"

typedef struct {
    const char *data; /* sample 0 of the part */
    size_t element;   /* bytes */
    int64_t step;     /* bytes from sample to sample */
    int ndims;        /* of a sample, without those that lie dense inside */
    int64_t dims[AN_MAX_DIMS], steps[AN_MAX_DIMS];
    size_t run;  /* bytes that lie dense */
    size_t runs; /* of a sample */
} layout;

typedef struct {
    an_context *ctx;
    int count;
    layout *layouts;
    an_arena arena;
} arrays;

static void copy_sample(const layout *l, int64_t index, char *to) {
    const char *sample = l->data + index * l->step;
    for (size_t r = 0; r < l->runs; r++, to += l->run) {
        int64_t rest = (int64_t)r, from = 0;
        for (int i = l->ndims - 1; i >= 0; i--) {
            from += rest % l->dims[i] * l->steps[i];
            rest /= l->dims[i];
        }
        memcpy(to, sample + from, l->run);
    }
}

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    const arrays *a = user;
    (void)message, (void)message_capacity;
    for (int f = 0; f < a->count; f++) {
        const layout *l = &a->layouts[f];
        for (int64_t i = 0; i < n; i++) copy_sample(l, indices[i], (char *)fields[f] + (size_t)i * l->run * l->runs);
    }
    return AN_OK;
}

static void close_arrays(void *user) {
    arrays *a = user;
    an_context *ctx = a->ctx;
    an_arena_destroy(&a->arena);
    an_release(ctx, (void **)&a, 1, sizeof *a);
}

/* ---- making one ---- */

static an_status check_array(an_context *ctx, const an_array *array, int number, int64_t count) {
    an_status status;
    int64_t elements = 1;
    AN_CHECK(ctx, array->data, AN_ERR_ARGUMENT, "array %d has no data", number);
    AN_CHECK(ctx, an_dtype_size(array->dtype) > 0, AN_ERR_DTYPE, "array %d has no type", number);
    AN_CHECK(ctx, array->ndims >= 1 && array->ndims <= AN_MAX_DIMS, AN_ERR_SHAPE,
             "array %d has %d dimensions; it needs at least one, the sample, which is the first (in Fortran, the last)",
             number, array->ndims);
    for (int i = 0; i < array->ndims; i++)
        AN_CHECK(ctx, array->dims[i] > 0 && an_multiply_i64(elements, array->dims[i], &elements), AN_ERR_SHAPE,
                 "dimension %d of array %d is %" PRId64, i, number, array->dims[i]);
    AN_CHECK(ctx, elements <= PTRDIFF_MAX / (int64_t)an_dtype_size(array->dtype), AN_ERR_OVERFLOW,
             "array %d has %" PRId64 " elements, which is more than memory can hold", number, elements);
    AN_CHECK(ctx, array->dims[0] == count, AN_ERR_SHAPE,
             "array %d has %" PRId64 " samples, but array 0 has %" PRId64
             "; the first dimension (in Fortran, the last) counts the samples",
             number, array->dims[0], count);
    return AN_OK;
fail:
    return status;
}

static void make_layout(layout *l, const an_array *array, int64_t first) {
    const int64_t size = (int64_t)an_dtype_size(array->dtype);
    int64_t steps[AN_MAX_DIMS] = {0}, dense = size, run = size;
    bool given = false;
    int inner = array->ndims;
    for (int i = 0; i < array->ndims; i++) given = given || array->strides[i] != 0;
    for (int i = array->ndims - 1; i >= 0; i--) {
        steps[i] = given ? array->strides[i] * size : dense;
        dense *= array->dims[i];
    }
    while (inner > 1 && (array->dims[inner - 1] == 1 || steps[inner - 1] == run)) run *= array->dims[--inner];
    *l = (layout){.data = (const char *)array->data + first * steps[0],
                  .element = (size_t)size,
                  .step = steps[0],
                  .ndims = inner - 1,
                  .run = (size_t)run,
                  .runs = 1};
    for (int i = 0; i < l->ndims; i++) {
        l->dims[i] = array->dims[i + 1];
        l->steps[i] = steps[i + 1];
        l->runs *= (size_t)l->dims[i];
    }
}

static an_status check_source(an_context *ctx, const an_array_source *source) {
    an_status status;
    AN_CHECK(ctx, source->array_count > 0 && source->arrays, AN_ERR_ARGUMENT, "the dataset has no arrays");
    AN_CHECK(ctx, source->names || source->array_count <= 2, AN_ERR_ARGUMENT,
             "the dataset has %d arrays, but names is NULL", source->array_count);
    AN_CHECK(ctx, source->target_count >= 0 && source->target_count <= source->array_count, AN_ERR_ARGUMENT,
             "target_count is %d, but there are %d arrays", source->target_count, source->array_count);
    AN_CHECK(ctx, source->has_targets || source->target_count == 0, AN_ERR_ARGUMENT,
             "has_targets is false, but target_count is %d", source->target_count);
    return AN_OK;
fail:
    return status;
}

static an_field field_of(const an_array_source *source, int i) {
    static const char *const defaults[] = {"inputs", "targets"};
    const an_array *array = &source->arrays[i];
    const int given = source->target_count ? source->target_count : source->array_count > 1;
    const int targets = source->has_targets ? given : 0;
    an_field field;
    an_field_init(&field, sizeof field);
    field.name = source->names ? source->names[i] : defaults[i > 0];
    field.dtype = array->dtype;
    field.ndims = array->ndims - 1;
    memcpy(field.dims, array->dims + 1, (size_t)field.ndims * sizeof *field.dims);
    field.target = i >= source->array_count - targets;
    return field;
}

an_status an_dataset_create_arrays(an_dataset **dataset, an_context *ctx, const an_array_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_array_source own;
    const an_array_source *const source = &own;
    an_status status;
    arrays *a = NULL;
    an_field *fields = NULL;
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    int64_t first, last;
    *dataset = NULL;
    AN_TRY(an_array_source_read(ctx, &own, given));
    AN_TRY(check_source(ctx, source));
    for (int i = 0; i < source->array_count; i++)
        AN_TRY(check_array(ctx, &source->arrays[i], i, source->arrays[0].dims[0]));
    AN_TRY(an_data_part(ctx, source->begin, source->end, source->arrays[0].dims[0], &first, &last));
    AN_TRY(an_alloc(ctx, (void **)&a, 1, sizeof *a));
    a->ctx = ctx;
    a->count = source->array_count;
    an_arena_init(&a->arena, ctx);
    AN_TRY(an_arena_alloc(&a->arena, (void **)&a->layouts, (size_t)a->count, sizeof *a->layouts));
    AN_TRY(an_arena_alloc(&a->arena, (void **)&fields, (size_t)a->count, sizeof *fields));
    for (int i = 0; i < a->count; i++) {
        make_layout(&a->layouts[i], &source->arrays[i], first);
        fields[i] = field_of(source, i);
    }
    record.count = last - first;
    record.field_count = a->count;
    record.fields = fields;
    record.read = read_samples;
    record.close = close_arrays;
    record.user = a;
    AN_TRY(an_dataset_create(dataset, ctx, &record));
    return AN_OK;
fail:
    if (a) close_arrays(a);
    return status;
}
