/* Buffers for samples. */
#include "data/samples.h"

bool an_sample_buffer_bytes(const an_dataset *dataset, int64_t capacity, size_t *bytes) {
    const an_sample_buffer *b = NULL; /* for its members' sizes */
    size_t sample = sizeof *b->indices + sizeof *b->numbers;
    for (int i = 0; i < an_dataset_field_count(dataset); i++)
        if (!an_add_elements(&sample, dataset->bytes[i], 1)) return false;
    return an_add_elements(bytes, (size_t)capacity, sample);
}

an_status an_sample_buffer_create(an_sample_buffer *b, an_context *ctx, const an_dataset *dataset, int64_t capacity) {
    an_status status;
    *b = (an_sample_buffer){.capacity = capacity};
    const int count = an_dataset_field_count(dataset);
    AN_CHECK(ctx, count <= AN_MAX_FEEDS, AN_ERR_UNSUPPORTED, "a sample of the data has more than %d fields",
             AN_MAX_FEEDS);
    for (int i = 0; i < count; i++) {
        an_field field;
        an_field_init(&field, sizeof field);
        AN_TRY(an_dataset_field(dataset, i, &field));
        b->bytes[i] = an_dtype_size(field.dtype);
        for (int d = 0; d < field.ndims; d++)
            AN_CHECK(ctx, an_multiply_sizes(b->bytes[i], (size_t)field.dims[d], &b->bytes[i]), AN_ERR_OVERFLOW,
                     "a sample of field '%s' is too large", field.name);
        AN_TRY(an_alloc(ctx, &b->fields[i], (size_t)capacity, b->bytes[i]));
        b->field_count = i + 1;
    }
    AN_TRY(an_alloc(ctx, (void **)&b->indices, (size_t)capacity, sizeof *b->indices));
    AN_TRY(an_alloc(ctx, (void **)&b->numbers, (size_t)capacity, sizeof *b->numbers));
    return AN_OK;
fail:
    an_sample_buffer_destroy(b, ctx);
    return status;
}

void an_sample_buffer_destroy(an_sample_buffer *b, an_context *ctx) {
    for (int i = 0; i < b->field_count; i++) an_release(ctx, &b->fields[i], (size_t)b->capacity, b->bytes[i]);
    an_release(ctx, (void **)&b->indices, (size_t)b->capacity, sizeof *b->indices);
    an_release(ctx, (void **)&b->numbers, (size_t)b->capacity, sizeof *b->numbers);
    *b = (an_sample_buffer){0};
}
