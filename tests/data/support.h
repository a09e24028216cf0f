/* Files for tests of data: written where the test runs, plain and compressed. */
#ifndef TESTS_TRAIN_DATA_SUPPORT_H
#define TESTS_TRAIN_DATA_SUPPORT_H

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "anneal/data.h"
#include "anneal/graph.h"
#include "support/support.h"

static inline void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void write_text(const char *path, const char *text) {
    write_file(path, text, strlen(text));
}

static inline void append_gzip(const char *path, const char *mode, const void *bytes, size_t size) {
    gzFile file = gzopen(path, mode);
    assert_non_null(file);
    if (size > 0) assert_int_equal(gzwrite(file, bytes, (unsigned)size), size);
    assert_int_equal(gzclose(file), Z_OK);
}

static inline size_t read_file(const char *path, unsigned char *bytes, size_t capacity) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, capacity, file);
    assert_true(size < capacity);
    fclose(file);
    return size;
}

/* Fields of a dataset's samples 0 … n-1 in memory of the test's. */
typedef struct samples {
    void *fields[8];
    int count;
} samples;

static inline size_t field_bytes(const an_dataset *d, int f) {
    an_field field;
    an_field_init(&field, sizeof field);
    assert_int_equal(an_dataset_field(d, f, &field), AN_OK);
    size_t bytes = an_dtype_size(field.dtype);
    for (int i = 0; i < field.ndims; i++) bytes *= (size_t)field.dims[i];
    return bytes;
}

static inline samples samples_for(const an_dataset *d, int64_t n) {
    samples s = {.count = an_dataset_field_count(d)};
    for (int f = 0; f < s.count; f++) assert_non_null(s.fields[f] = calloc((size_t)n, field_bytes(d, f)));
    return s;
}

static inline void samples_free(samples *s) {
    for (int f = 0; f < s->count; f++) free(s->fields[f]);
}

/* Reads every sample, one by one; gives the first error. */
static inline an_status read_all(an_dataset *d) {
    samples s = samples_for(d, 1);
    an_status status = AN_OK;
    for (int64_t i = 0; i < an_dataset_count(d) && status == AN_OK; i++) status = an_dataset_read(d, 1, &i, s.fields);
    samples_free(&s);
    return status;
}

/* A context, and what it holds when nothing hangs off it. */
static size_t context_bytes;

static inline an_context *new_context(void) {
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = 1;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    context_bytes = an_context_bytes(ctx);
    return ctx;
}

/* Everything must have been given back. */
static inline void end_context(an_context **ctx) {
    assert_int_equal(an_context_bytes(*ctx), context_bytes);
    an_context_destroy(ctx);
}

/* Bytes that are written as a text. */
static inline void put_bytes(unsigned char *to, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = (unsigned char)bytes[i];
}

static inline void put_u32(unsigned char *to, uint64_t value) {
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> 8 * i);
}

static inline void put_u64(unsigned char *to, uint64_t value) {
    for (int i = 0; i < 8; i++) to[i] = (unsigned char)(value >> 8 * i);
}

/* The encoding of a dataset is that of no inputs and this target, after it was written and parsed too. */
static inline void check_encoding(an_context *ctx, const an_dataset *d, const char *target) {
    char expected[512], *texts[2] = {NULL, NULL};
    an_encoding *encoding = NULL;
    snprintf(expected, sizeof expected,
             "{\"format\": \"anneal encoding\", \"version\": 1, \"inputs\": [], \"targets\": [%s]}", target);
    OK(ctx, an_encoding_parse(&encoding, ctx, expected, strlen(expected)));
    assert_non_null(an_dataset_encoding(d));
    OK(ctx, an_encoding_write(an_dataset_encoding(d), &texts[0]));
    OK(ctx, an_encoding_write(encoding, &texts[1]));
    assert_string_equal(texts[0], texts[1]);
    for (int i = 0; i < 2; i++) an_string_release(ctx, &texts[i]);
    an_encoding_destroy(&encoding);
}

#endif
