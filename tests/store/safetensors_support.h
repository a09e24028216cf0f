/* safetensors files for tests: a header as text, and data of which each byte says where it is. */
#ifndef TESTS_TRAIN_SAFETENSORS_SUPPORT_H
#define TESTS_TRAIN_SAFETENSORS_SUPPORT_H

#include "base/context.h"
#include "data/support.h"
#include "formats/safetensors.h"

/* An entry of a header. */
#define TENSOR(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}"

static inline unsigned char data_byte(size_t at) {
    return (unsigned char)(at * 167 + at / 251);
}

/* A file whose length says `length`, with these bytes of header and `data` bytes behind them. */
static inline size_t write_with_length(const char *path, uint64_t length, const char *header, size_t bytes,
                                       size_t data) {
    const size_t size = AN_SAFETENSORS_LENGTH + bytes + data;
    unsigned char *file = malloc(size);
    assert_non_null(file);
    put_u64(file, length);
    memcpy(file + AN_SAFETENSORS_LENGTH, header, bytes);
    for (size_t i = 0; i < data; i++) file[AN_SAFETENSORS_LENGTH + bytes + i] = data_byte(i);
    write_file(path, file, size);
    free(file);
    return size;
}

static inline size_t write_tensors(const char *path, const char *header, size_t data) {
    return write_with_length(path, strlen(header), header, strlen(header), data);
}

/* Opens, reads every byte of every tensor, and compares them. */
static inline void check_all_bytes(an_context *ctx, const an_safetensors *s) {
    for (int i = 0; i < an_safetensors_count(s); i++) {
        an_safetensor t;
        int64_t bytes;
        OK(ctx, an_safetensors_get(s, i, &t));
        assert_true(an_safetensor_measure(&t, &bytes) && bytes == t.bytes);
        assert_int_equal(an_safetensors_find(s, t.name), i);
        unsigned char *read = malloc((size_t)t.bytes + 1);
        assert_non_null(read);
        OK(ctx, an_safetensors_read(s, &t, 0, (size_t)t.bytes, read));
        for (int64_t k = 0; k < t.bytes; k++) assert_int_equal(read[k], data_byte((size_t)(t.begin + k)));
        free(read);
    }
}

/* The number that the next descriptor will have: whether all that were opened are closed. */
static inline int next_descriptor(void) {
    const int next = dup(0);
    assert_true(next >= 0 && close(next) == 0);
    return next;
}

/* ---- refusals ---- */

enum { SMALL_CONSTANT = 1024 }; /* what an open file takes besides its header and tables: a struct and the path */

static int refused; /* files so far */

static inline void check_refused(an_context *ctx, const char *file, size_t bytes, an_status expected,
                                 const char *words) {
    an_safetensors *s = NULL;
    char beginning[256];
    const int next = next_descriptor();
    const size_t held = an_context_bytes(ctx);
    ctx->peak_bytes = ctx->bytes;
    FAILS(ctx, an_safetensors_open(&s, ctx, file), expected, words);
    assert_null(s);
    snprintf(beginning, sizeof beginning, "%s: ", file);
    if (strncmp(an_last_error(ctx), beginning, strlen(beginning)) != 0) fail_msg("no file: %s", an_last_error(ctx));
    if (expected != AN_ERR_FILE && !strstr(an_last_error(ctx), ": byte ")) fail_msg("no place: %s", an_last_error(ctx));
    assert_int_equal(next_descriptor(), next);
    assert_int_equal(an_context_bytes(ctx), held);
    if (ctx->peak_bytes - held > 2 * bytes + SMALL_CONSTANT)
        fail_msg("%zu bytes for a file of %zu: %s", ctx->peak_bytes - held, bytes, an_last_error(ctx));
    refused++;
}

#endif
