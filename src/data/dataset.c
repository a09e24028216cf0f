/* The dataset: a checked record. Every source creates one and is used only through it. */
#include "data/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/parallel.h"
#include "data/structs.h"

/* ---- what sources share ---- */

static int64_t share(double part, int64_t count) {
    const double at = part * (double)count;
    return at >= (double)count ? count : (int64_t)at;
}

an_status an_data_part(an_context *ctx, double begin, double end, int64_t count, int64_t *first, int64_t *last) {
    if (!(begin >= 0 && begin < end && end <= 1))
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "the part of the data is from %g to %g; both must be between 0 and 1, and the second must be larger", begin,
            end);
    *first = share(begin, count);
    *last = share(end, count);
    return AN_OK;
}

/* ---- making one ---- */

static bool is_integer(an_dtype dtype) {
    return dtype == AN_DTYPE_I32 || dtype == AN_DTYPE_I64 || dtype == AN_DTYPE_U8;
}

static an_status check_field(an_context *ctx, const an_field *field, int number) {
    an_status status;
    AN_CHECK(ctx, field->name && *field->name, AN_ERR_ARGUMENT, "field %d of the dataset has no name", number);
    AN_CHECK(ctx, an_dtype_size(field->dtype) > 0, AN_ERR_DTYPE, "field '%s' of the dataset has no type", field->name);
    AN_CHECK(ctx, field->ndims >= 0 && field->ndims < AN_MAX_DIMS, AN_ERR_SHAPE,
             "field '%s' of the dataset has %d dimensions; including the batch, at most %d are possible", field->name,
             field->ndims, AN_MAX_DIMS);
    for (int i = 0; i < field->ndims; i++)
        AN_CHECK(ctx, field->dims[i] > 0, AN_ERR_SHAPE, "dimension %d of field '%s' of the dataset is %" PRId64, i,
                 field->name, field->dims[i]);
    AN_CHECK(ctx, field->limit >= 0 && (field->limit == 0 || is_integer(field->dtype)), AN_ERR_ARGUMENT,
             "field '%s' of the dataset is %s and has the limit %" PRId64
             "; only integers can have a limit, and it cannot be negative",
             field->name, an_dtype_name(field->dtype), field->limit);
    return AN_OK;
fail:
    return status;
}

static an_status keep_field(an_dataset *d, int i) {
    an_context *ctx = d->ctx;
    an_field *field = &d->fields[i];
    size_t bytes = an_dtype_size(field->dtype);
    AN_TRY_RETURN(check_field(ctx, field, i));
    for (int j = 0; j < i; j++)
        if (strcmp(d->fields[j].name, field->name) == 0)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "two fields of the dataset are called '%s'", field->name);
    for (int k = 0; k < field->ndims; k++)
        if (!an_multiply_sizes(bytes, (size_t)field->dims[k], &bytes) || bytes > PTRDIFF_MAX)
            return AN_ERROR(ctx, AN_ERR_OVERFLOW, "a sample of field '%s' does not fit in memory", field->name);
    d->bytes[i] = bytes;
    return an_arena_string(&d->arena, &field->name, field->name, strlen(field->name));
}

static an_status check_record(an_context *ctx, const an_dataset_record *record) {
    an_status status;
    AN_CHECK(ctx, record->count > 0, AN_ERR_ARGUMENT, "the dataset has no samples");
    AN_CHECK(ctx, record->field_count > 0 && record->fields, AN_ERR_ARGUMENT, "the dataset has no fields");
    AN_CHECK(ctx, record->read, AN_ERR_ARGUMENT, "the dataset has no read function");
    return AN_OK;
fail:
    return status;
}

an_status an_dataset_create(an_dataset **dataset, an_context *ctx, const an_dataset_record *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_status status;
    an_dataset *d = NULL;
    an_dataset_record own;
    const an_dataset_record *const record = &own;
    *dataset = NULL;
    AN_TRY(an_dataset_record_read(ctx, &own, given));
    AN_TRY(check_record(ctx, record));
    AN_TRY(an_alloc(ctx, (void **)&d, 1, sizeof *d));
    d->ctx = ctx;
    an_arena_init(&d->arena, ctx);
    const size_t count = (size_t)record->field_count;
    AN_TRY(an_arena_alloc(&d->arena, (void **)&d->fields, count, sizeof *d->fields));
    AN_TRY(an_arena_alloc(&d->arena, (void **)&d->bytes, count, sizeof *d->bytes));
    AN_TRY(an_arena_alloc(&d->arena, (void **)&d->checked, count, sizeof *d->checked));
    for (int i = 0; i < record->field_count; i++) {
        AN_TRY(an_field_read_at(ctx, &d->fields[i], record->fields, i));
        AN_TRY(keep_field(d, i));
    }
    d->record = *record; /* from here on destroying closes it */
    d->record.fields = d->fields;
    *dataset = d;
    return AN_OK;
fail:
    an_dataset_destroy(&d);
    return status;
}

void an_dataset_destroy(an_dataset **dataset) {
    an_dataset *d = dataset ? *dataset : NULL;
    if (!d) return;
    an_context *ctx = d->ctx;
    if (d->record.close) d->record.close(d->record.user);
    an_arena_destroy(&d->arena);
    an_release(ctx, (void **)dataset, 1, sizeof *d);
}

/* ---- asking it ---- */

int64_t an_dataset_count(const an_dataset *dataset) {
    AN_NEED_OR(0, dataset);
    return dataset->record.count;
}

int an_dataset_field_count(const an_dataset *dataset) {
    AN_NEED_OR(0, dataset);
    return dataset->record.field_count;
}

an_status an_dataset_field(const an_dataset *dataset, int index, an_field *field) {
    AN_NEED(dataset, field);
    an_context *ctx = dataset->ctx;
    AN_TRY_RETURN(an_field_check(ctx, field));
    if (index < 0 || index >= dataset->record.field_count)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the dataset has no field %d; it has %d fields", index,
                        dataset->record.field_count);
    return an_field_write(ctx, field, &dataset->fields[index]);
}

an_status an_dataset_set_limit(an_dataset *dataset, const char *field, int64_t limit) {
    AN_NEED(dataset, field);
    an_context *ctx = dataset->ctx;
    int i = 0;
    while (i < dataset->record.field_count && strcmp(dataset->fields[i].name, field) != 0) i++;
    if (i == dataset->record.field_count) return AN_ERROR(ctx, AN_ERR_UNKNOWN, "the dataset has no field '%s'", field);
    if (!is_integer(dataset->fields[i].dtype))
        return AN_ERROR(ctx, AN_ERR_DTYPE, "field '%s' is %s, but only integers can have a limit", field,
                        an_dtype_name(dataset->fields[i].dtype));
    if (limit < 1) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the limit of field '%s' is %" PRId64, field, limit);
    /* What the source promises need not be looked at; what the caller set before holds until it sets another. */
    if (dataset->checked[i] == 0 && dataset->fields[i].limit > 0 && limit >= dataset->fields[i].limit) return AN_OK;
    dataset->checked[i] = limit;
    dataset->fields[i].limit = limit;
    return AN_OK;
}

void an_dataset_inherit(an_dataset *dataset, const an_dataset *source) {
    dataset->vocabulary = source->vocabulary;
    dataset->encoding = source->encoding;
    dataset->class_names = source->class_names;
    dataset->class_count = source->class_count;
    memcpy(dataset->image, source->image, sizeof dataset->image);
}

const char *an_dataset_notice(const an_dataset *dataset) {
    AN_NEED_OR(NULL, dataset);
    return dataset->notice;
}

const char *an_dataset_class_name(const an_dataset *dataset, int64_t number) {
    AN_NEED_OR(NULL, dataset);
    if (dataset->encoding) return an_encoding_class(dataset->encoding, number);
    return number >= 0 && number < dataset->class_count ? dataset->class_names[number] : NULL;
}

void an_dataset_place(const an_dataset *dataset, int field, int64_t index, int64_t element, an_note place) {
    if (dataset->record.locate)
        dataset->record.locate(dataset->record.user, field, index, element, place.text, place.capacity);
    else
        an_note_write(place, "sample %" PRId64 ", element %" PRId64, index, element);
}

static int64_t integer_at(an_dtype dtype, const void *values, size_t i) {
    return dtype == AN_DTYPE_I32   ? ((const int32_t *)values)[i]
           : dtype == AN_DTYPE_I64 ? ((const int64_t *)values)[i]
                                   : ((const uint8_t *)values)[i];
}

/* Nothing has indexed anything by these numbers yet: they are still in the reader's buffer. */
static an_status check_limit(const an_dataset *d, int f, int64_t n, const int64_t *indices, const void *values,
                             an_note note) {
    const an_field *field = &d->fields[f];
    const size_t each = d->bytes[f] / an_dtype_size(field->dtype), all = (size_t)n * each;
    for (size_t i = 0; i < all; i++) {
        const int64_t value = integer_at(field->dtype, values, i);
        char text[AN_MESSAGE_BYTES / 2] = "";
        if ((value >= 0 && value < d->checked[f]) || (field->target && value == AN_TARGET_IGNORED)) continue;
        an_dataset_place(d, f, indices[i / each], (int64_t)(i % each), (an_note){text, sizeof text});
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: the value %" PRId64 " in field '%s' is not in 0 to %" PRId64
                       ": the data is wrong, or the model is too small for it",
                       text, value, field->name, d->checked[f] - 1);
    }
    return AN_OK;
}

an_status an_dataset_fetch(const an_dataset *d, int64_t n, const int64_t *indices, void *const *fields, an_note note) {
    an_status status;
    if (note.capacity > 0) note.text[0] = 0;
    for (int64_t i = 0; i < n; i++)
        if (indices[i] < 0 || indices[i] >= d->record.count)
            return AN_NOTE(note, AN_ERR_ARGUMENT, "sample %" PRId64 " does not exist; there are %" PRId64, indices[i],
                           d->record.count);
    if (n <= 0) return AN_OK;
    const an_float_environment host = an_float_enter(); /* sources convert numbers */
    status = d->record.read(d->record.user, n, indices, fields, note.text, note.capacity);
    an_float_leave(host);
    for (int i = 0; i < d->record.field_count && status == AN_OK; i++)
        if (d->checked[i] > 0) status = check_limit(d, i, n, indices, fields[i], note);
    return status;
}

an_status an_dataset_read(an_dataset *dataset, int64_t n, const int64_t *indices, void *const *fields) {
    AN_GUARD;
    AN_NEED(dataset);
    an_context *ctx = dataset->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    if (n < 0 || (n > 0 && !indices) || !fields)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "reading %" PRId64 " samples needs their indices and a buffer for each field", n);
    for (int i = 0; i < dataset->record.field_count; i++)
        if (!fields[i])
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the buffer for field '%s' is NULL", dataset->fields[i].name);
    return an_note_raise(ctx, an_dataset_fetch(dataset, n, indices, fields, note), note);
}

an_field an_array_field(const char *name, an_dtype dtype, int rank, const int64_t *dims, bool flat, bool channel) {
    an_field field;
    const int each = rank - 1, added = channel && each == 2;
    an_field_init(&field, sizeof field);
    field.name = name;
    field.dtype = dtype;
    field.ndims = flat ? 1 : each + added;
    field.dims[0] = 1;
    for (int d = 0; d < each; d++)
        if (flat)
            field.dims[0] *= dims[d + 1];
        else
            field.dims[d + added] = dims[d + 1];
    return field;
}
