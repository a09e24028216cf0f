/* The types that safetensors has, and the header of a file. */
#include <inttypes.h>
#include <string.h>

#include "base/text/utf8.h"
#include "formats/safetensors.h"

static const an_safetensors_type types[] = {
    {"F32", 4, AN_DTYPE_F32},  {"F64", 8, AN_DTYPE_F64},  {"BF16", 2, AN_DTYPE_BF16}, {"F16", 2, AN_DTYPE_F16},
    {"I32", 4, AN_DTYPE_I32},  {"I64", 8, AN_DTYPE_I64},  {"U8", 1, AN_DTYPE_U8},     {"BOOL", 1, AN_DTYPE_NONE},
    {"I8", 1, AN_DTYPE_NONE},  {"I16", 2, AN_DTYPE_NONE}, {"U16", 2, AN_DTYPE_NONE},  {"U32", 4, AN_DTYPE_NONE},
    {"U64", 8, AN_DTYPE_NONE},
};

enum { TYPES = sizeof types / sizeof *types, WANTED_ALIGNMENT = 8 };

const an_safetensors_type *an_safetensors_type_of(an_dtype dtype) {
    for (size_t i = 0; i < TYPES; i++)
        if (types[i].dtype == dtype && dtype != AN_DTYPE_NONE) return &types[i];
    return NULL;
}

const an_safetensors_type *an_safetensors_type_named(const char *name) {
    for (size_t i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0) return &types[i];
    return NULL;
}

bool an_safetensor_measure(const an_safetensor *tensor, int64_t *bytes) {
    int64_t product = (int64_t)tensor->type->size;
    bool empty = false;
    for (int i = 0; i < tensor->ndims; i++) {
        if (tensor->dims[i] < 0) return false;
        if (tensor->dims[i] == 0)
            empty = true;
        else if (!an_multiply_i64(product, tensor->dims[i], &product))
            return false;
    }
    *bytes = empty ? 0 : product;
    return true;
}

/* A file that our own reader would refuse is not begun. */
static an_status check_tensor(an_context *ctx, const an_safetensor *t, int64_t expected) {
    an_status status;
    int64_t bytes;
    AN_CHECK(
        ctx, t->name && an_utf8_is_valid(t->name) && strcmp(t->name, AN_SAFETENSORS_METADATA) != 0, AN_ERR_ARGUMENT,
        "a tensor for a safetensors file has no name, one that is not UTF-8, or the name " AN_SAFETENSORS_METADATA);
    AN_CHECK(ctx, t->type && t->ndims >= 0 && t->ndims <= AN_MAX_DIMS, AN_ERR_ARGUMENT,
             "tensor '%s' for a safetensors file has no type, or %d dimensions", t->name, t->ndims);
    AN_CHECK(ctx, an_safetensor_measure(t, &bytes) && bytes == t->bytes && t->begin == expected, AN_ERR_ARGUMENT,
             "tensor '%s' for a safetensors file has %" PRId64 " bytes at %" PRId64
             ", which does not match its shape and the end of the tensor before it",
             t->name, t->bytes, t->begin);
    AN_CHECK(ctx, t->begin <= INT64_MAX - bytes, AN_ERR_OVERFLOW, "tensor '%s' ends beyond 2^63 bytes", t->name);
    return AN_OK;
fail:
    return status;
}

static void add_tensor(an_json_writer *json, const an_safetensor *t) {
    an_json_write_object(json, t->name);
    an_json_write_string(json, "dtype", t->type->name);
    an_json_write_array(json, "shape");
    for (int i = 0; i < t->ndims; i++) an_json_write_integer(json, NULL, t->dims[i]);
    an_json_write_end(json);
    an_json_write_array(json, "data_offsets");
    an_json_write_integer(json, NULL, t->begin);
    an_json_write_integer(json, NULL, t->begin + t->bytes);
    an_json_write_end(json);
    an_json_write_end(json);
}

an_status an_safetensors_header(an_text *text, const an_safetensor *tensors, size_t count, size_t alignment,
                                const char *encoding) {
    static const char length_bytes[AN_SAFETENSORS_LENGTH] = {0};
    an_status status;
    an_context *ctx = text->ctx;
    int64_t end = 0;
    if (alignment == 0) alignment = WANTED_ALIGNMENT;
    AN_CHECK(ctx, text->length == 0, AN_ERR_ARGUMENT, "the header of a safetensors file is for an empty text");
    an_text_bytes(text, length_bytes, sizeof length_bytes);
    an_json_writer json = an_text_json(text, AN_JSON_COMPACT);
    an_json_write_object(&json, NULL);
    an_json_write_object(&json, AN_SAFETENSORS_METADATA);
    an_json_write_string(&json, "format", "pt");
    if (encoding) an_json_write_string(&json, "encoding", encoding);
    an_json_write_end(&json);
    for (size_t i = 0; i < count; i++) {
        AN_TRY(check_tensor(ctx, &tensors[i], end));
        end += tensors[i].bytes;
        add_tensor(&json, &tensors[i]);
    }
    an_json_write_end(&json);
    while (text->status == AN_OK && text->length % alignment != 0) an_text_bytes(text, " ", 1);
    AN_TRY(text->status);
    uint64_t length = text->length - sizeof length_bytes;
    AN_CHECK(ctx, length <= AN_SAFETENSORS_MOST_HEADER, AN_ERR_UNSUPPORTED,
             "%zu tensors are too many for one safetensors file: their header needs %" PRIu64
             " bytes, but at most %d are allowed",
             count, length, AN_SAFETENSORS_MOST_HEADER);
    for (size_t i = 0; i < sizeof length_bytes; i++, length >>= 8) text->bytes[i] = (char)(length & 0xff);
    return AN_OK;
fail:
    return status;
}
