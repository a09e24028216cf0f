/* safetensors files that are made to do harm: each is refused by the rule that it breaks, naming the file, without
 * memory beyond twice its bytes, and nothing stays open. */
#include "store/safetensors_support.h"

static const char path[] = "h.safetensors";

/* ---- lengths ---- */

static void test_lengths(void **state) {
    static const char good[] = "{" TENSOR("a", "U8", "4", "0,4") "}";
    static const struct {
        uint64_t length;
        const char *words;
    } cases[] = {
        {0, "a length of 0"},
        {1, "a string is expected here"},
        {7, "this string is not terminated"},
        {sizeof good - 2, "',' or '}' is expected here"},
        {sizeof good, "of the data, which has only 3"},
        {sizeof good + 3, "of the data, which has only 0"},
        {sizeof good + 4, ", but only 57 bytes follow"},
        {100000000, ", but only 57 bytes follow"},
        {100000001, "the format allows at most 100000000"},
        {UINT32_MAX, "the format allows at most 100000000"},
        {(uint64_t)1 << 32, "the format allows at most 100000000"},
        {(uint64_t)1 << 62, "the format allows at most 100000000"},
        {INT64_MAX - 8, "the format allows at most 100000000"},
        {INT64_MAX, "the format allows at most 100000000"},
        {(uint64_t)1 << 63, "the format allows at most 100000000"},
        {UINT64_MAX - 8, "the format allows at most 100000000"},
        {UINT64_MAX - 7, "the format allows at most 100000000"},
        {UINT64_MAX, "the format allows at most 100000000"},
    };
    an_context *ctx = new_context();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t size = write_with_length(path, cases[i].length, good, strlen(good), 4);
        check_refused(ctx, path, size, AN_ERR_DAMAGED, cases[i].words);
    }
    for (size_t size = 0; size < AN_SAFETENSORS_LENGTH; size++) { /* not even a length */
        write_file(path, "\2\0\0\0\0\0\0\0", size);
        check_refused(ctx, path, size, AN_ERR_DAMAGED,
                      "bytes, but a safetensors file begins with 8 bytes that hold the length of its header");
    }
    write_file(path, "\2\0\0\0\0\0\0\0", 8); /* a length and no header */
    check_refused(ctx, path, 8, AN_ERR_DAMAGED, ", but only 0 bytes follow");
    end_context(&ctx);
}

/* ---- headers ---- */

#define A4 TENSOR("a", "F32", "1", "0,4")
/* One tensor of four bytes, with something else in the place of one of its parts. */
#define SHAPE(shape) "{\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[0,4]}}"
#define OFFSETS(offsets) "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":" offsets "}}"
#define DTYPE(dtype) "{\"a\":{\"dtype\":" dtype ",\"shape\":[1],\"data_offsets\":[0,4]}}"

static const struct {
    const char *header;
    size_t data;
    const char *words;
} headers[] = {
    /* not an object from its first byte to its last */
    {" {" A4 "}", 4, "does not begin with {"},
    {"[]", 0, "does not begin with {"},
    {"null", 0, "does not begin with {"},
    {"\xef\xbb\xbf{}", 0, "does not begin with {"},
    {"{", 0, "a string is expected here"},
    {"{" A4, 4, "',' or '}'"},
    {"{" A4 ",}", 4, "nothing follows a comma"},
    {"{," A4 "}", 4, "a string is expected here"},
    {"{" A4 "}}", 4, "only spaces may follow the last }"},
    {"{" A4 "}{}", 4, "only spaces may follow the last }"},
    {"{" A4 "} \n", 4, "only spaces may follow the last }"},
    {"{" A4 "}\t", 4, "only spaces may follow the last }"},
    {"{a:1}", 0, "a string is expected here"},
    {"{\"a\"}", 0, "':' is expected here"},
    {"{\"a\":1}", 0, "an object is expected here"},
    {"{\"a\":null}", 0, "an object is expected here"},
    {"{\"a\":[]}", 0, "an object is expected here"},
    {"{\"a\":\"F32\"}", 0, "an object is expected here"},
    /* names */
    {"{" A4 "," A4 "}", 4, "they overlap"},
    {"{" A4 "," TENSOR("a", "F32", "1", "4,8") "}", 8, "tensor 'a' appears twice"},
    {"{" A4 "," TENSOR("\\u0061", "F32", "1", "4,8") "}", 8, "tensor 'a' appears twice"},
    {"{" TENSOR("", "U8", "0", "0,0") "," TENSOR("", "U8", "0", "0,0") "}", 0, "tensor '' appears twice"},
    {"{" TENSOR("\xc3\xa9", "U8", "0", "0,0") "," TENSOR("\\u00e9", "I8", "0", "0,0") "}", 0,
     "tensor '\xc3\xa9' appears twice"},
    {"{" TENSOR("../../etc/passwd", "U8", "2", "0,1") "}", 1, "tensor '../../etc/passwd' needs 2 bytes"},
    {"{" TENSOR("\\ud800", "U8", "0", "0,0") "}", 0, "surrogate"},
    {"{" TENSOR("\\udc00\\ud800", "U8", "0", "0,0") "}", 0, "surrogate"},
    {"{" TENSOR("a\\u0000b", "U8", "0", "0,0") "}", 0, "U+0000"},
    {"{" TENSOR("\xff", "U8", "0", "0,0") "}", 0, "not valid UTF-8"},
    {"{" TENSOR("\xc0\x80", "U8", "0", "0,0") "}", 0, "not valid UTF-8"},
    {"{" TENSOR("\xed\xa0\x80", "U8", "0", "0,0") "}", 0, "not valid UTF-8"},
    {"{" TENSOR("\xf4\x90\x80\x80", "U8", "0", "0,0") "}", 0, "not valid UTF-8"},
    {"{" TENSOR("a\nb", "U8", "0", "0,0") "}", 0, "control character"},
    {"{\"a\\", 0, "this is not a JSON escape"},
    {"{\"a", 0, "this string is not terminated"},
    {"{" TENSOR("a\\u001b[31m\\u007f\\u009b", "U8", "2", "0,1") "}", 1, "tensor 'a?[31m\?\?' needs"},
    /* metadata */
    {"{\"__metadata__\":1}", 0, "an object is expected here"},
    {"{\"__metadata__\":null}", 0, "an object is expected here"},
    {"{\"__metadata__\":[]}", 0, "an object is expected here"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "a string is expected here"},
    {"{\"__metadata__\":{\"a\":null}}", 0, "a string is expected here"},
    {"{\"__metadata__\":{\"a\":{}}}", 0, "a string is expected here"},
    {"{\"__metadata__\":{\"a\":[\"b\"]}}", 0, "a string is expected here"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ appears twice"},
    {"{\"__metadata__\":{},\"\\u005f_metadata__\":{}}", 0, "__metadata__ appears twice"},
    {"{\"__metadata__\":{\"a\":\"\",\"b\":\"\",\"a\":\"\"}}", 0, "key 'a' of the metadata appears twice"},
    {"{\"__metadata__\":{\"a\":\"\",\"\\u0061\":\"x\"}}", 0, "key 'a' of the metadata appears twice"},
    {"{\"__metadata__\":{\"a\":\"\\ud800\"}}", 0, "surrogate"},
    {"{\"__metadata__\":{\"a\":\"\xfe\"}}", 0, "not valid UTF-8"},
    {"{\"__metadata__\":{\"a\":\"b\",}}", 0, "nothing follows a comma"},
    {"{" TENSOR("__metadata__", "F32", "1", "0,4") "}", 4, "a string is expected here"},
    /* parts that are missing, there twice, or unknown */
    {"{\"a\":{}}", 0, "no dtype"},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "no dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "no dtype"},
    {"{\"a\":{\"Dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "a tensor has a key other than dtype, shape and data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":0}}", 4,
     "a tensor has a key other than dtype, shape and data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "appears twice"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"sh\\u0061pe\":[1],\"data_offsets\":[0,4]}}", 4, "appears twice"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"data_offsets\":[0,4]}}", 4, "appears twice"},
    /* types */
    {DTYPE("null"), 4, "a string is expected here"},
    {DTYPE("32"), 4, "a string is expected here"},
    {DTYPE("[\"F32\"]"), 4, "a string is expected here"},
    {DTYPE("\"\""), 4, "the unknown type ''"},
    {DTYPE("\"f32\""), 4, "the unknown type 'f32'"},
    {DTYPE("\"F32 \""), 4, "the unknown type 'F32 '"},
    {DTYPE("\"F128\""), 4, "the unknown type 'F128'"},
    {DTYPE("\"C64\""), 4, "the unknown type 'C64'"},
    {DTYPE("\"%s%n\""), 4, "the unknown type '%s%n'"},
    /* shapes */
    {SHAPE("1"), 4, "an array is expected here"},
    {SHAPE("null"), 4, "an array is expected here"},
    {SHAPE("{}"), 4, "an array is expected here"},
    {SHAPE("\"1\""), 4, "an array is expected here"},
    {SHAPE("[\"1\"]"), 4, "a number is expected here"},
    {SHAPE("[null]"), 4, "a number is expected here"},
    {SHAPE("[true]"), 4, "a number is expected here"},
    {SHAPE("[[1]]"), 4, "a number is expected here"},
    {SHAPE("[-1]"), 4, "without a sign"},
    {SHAPE("[-0]"), 4, "without a sign"},
    {SHAPE("[+1]"), 4, "a number is expected here"},
    {SHAPE("[1.0]"), 4, "whole number"},
    {SHAPE("[1e0]"), 4, "whole number"},
    {SHAPE("[1E3]"), 4, "whole number"},
    {SHAPE("[007]"), 4, "a number has a leading zero"},
    {SHAPE("[01]"), 4, "a number has a leading zero"},
    {SHAPE("[0x1]"), 4, "',' or ']'"},
    {SHAPE("[1,]"), 4, "nothing follows a comma"},
    {SHAPE("[,1]"), 4, "a number is expected here"},
    {SHAPE("[1 1]"), 4, "',' or ']'"},
    {SHAPE("[1"), 4, "a number is expected here"},
    {SHAPE("[9223372036854775808]"), 4, "does not fit in 64 bits"},
    {SHAPE("[18446744073709551617]"), 4, "does not fit in 64 bits"},
    {SHAPE("[36893488147419103233]"), 4, "does not fit in 64 bits"},
    {SHAPE("[9223372036854775807]"), 4, "does not fit in 63 bits"},
    {SHAPE("[4611686018427387905]"), 4, "does not fit in 63 bits"},   /* × 4 wraps to 4 */
    {SHAPE("[4294967296,4294967296]"), 4, "does not fit in 63 bits"}, /* wraps to 0 */
    {SHAPE("[4294967296,4294967296,4294967296,4294967296]"), 4, "does not fit in 63 bits"},
    {SHAPE("[2147483648,2147483648,2]"), 4, "does not fit in 63 bits"},
    {SHAPE("[4294967297,4294967297,4294967297]"), 4, "does not fit in 63 bits"},
    {SHAPE("[3,6148914691236517206]"), 4, "does not fit in 63 bits"}, /* wraps to 2 */
    {SHAPE("[0,4294967296,4294967296,4294967296]"), 4, "does not fit in 63 bits"},
    {SHAPE("[4294967296,4294967296,0]"), 4, "does not fit in 63 bits"},
    {SHAPE("[]"), 3, "to 4 of the data, which has only 3"},
    {SHAPE("[2]"), 4, "needs 8 bytes for its shape and type, but has 4"},
    {SHAPE("[0]"), 4, "needs 0 bytes for its shape and type, but has 4"},
    {SHAPE("[1,0,1]"), 4, "needs 0 bytes for its shape and type, but has 4"},
    /* offsets */
    {OFFSETS("4"), 4, "an array is expected here"},
    {OFFSETS("null"), 4, "an array is expected here"},
    {OFFSETS("{}"), 4, "an array is expected here"},
    {OFFSETS("[]"), 4, "not an array of two numbers"},
    {OFFSETS("[0]"), 4, "not an array of two numbers"},
    {OFFSETS("[0,4,4]"), 4, "not an array of two numbers"},
    {OFFSETS("[\"0\",\"4\"]"), 4, "a number is expected here"},
    {OFFSETS("[0,4.0]"), 4, "whole number"},
    {OFFSETS("[0,4e0]"), 4, "whole number"},
    {OFFSETS("[-0,4]"), 4, "without a sign"},
    {OFFSETS("[-4,0]"), 4, "without a sign"},
    {OFFSETS("[00,4]"), 4, "a number has a leading zero"},
    {OFFSETS("[0,18446744073709551620]"), 4, "does not fit in 64 bits"},
    {OFFSETS("[9223372036854775804,9223372036854775808]"), 4, "does not fit in 64 bits"},
    {OFFSETS("[9223372036854775803,9223372036854775807]"), 4, "of the data, which has only 4"},
    {OFFSETS("[4,0]"), 4, "lies from byte 4 to 0 of the data, which has only"},
    {OFFSETS("[0,5]"), 4, "to 5 of the data, which has only 4"},
    {OFFSETS("[1,5]"), 4, "to 5 of the data, which has only 4"},
    {OFFSETS("[0,0]"), 4, "needs 4 bytes for its shape and type, but has 0"},
    {OFFSETS("[0,3]"), 4, "needs 4 bytes for its shape and type, but has 3"},
    /* gaps, overlaps, bytes that belong to nobody */
    {"{}", 1, "1 more bytes follow"},
    {"{" A4 "}", 5, "1 more bytes follow"},
    {"{" TENSOR("a", "U8", "0", "0,0") "}", 4096, "4096 more bytes follow"},
    {"{" TENSOR("a", "F32", "1", "1,5") "}", 5, "there is a gap"},
    {"{" A4 "," TENSOR("b", "F32", "1", "5,9") "}", 9, "there is a gap"},
    {"{" TENSOR("b", "F32", "1", "8,12") "," A4 "}", 12, "there is a gap"},
    {"{" A4 "," TENSOR("b", "F32", "1", "3,7") "}", 7, "they overlap"},
    {"{" A4 "," TENSOR("b", "U8", "2", "1,3") "}", 4, "they overlap"},
    {"{" A4 "," TENSOR("b", "F32", "1", "0,4") "}", 8, "they overlap"},
    {"{" A4 "," TENSOR("b", "U8", "0", "2,2") "}", 4, "they overlap"},
    {"{" A4 "," TENSOR("b", "U8", "0", "3,3") "," TENSOR("c", "U8", "1", "4,5") "}", 5, "they overlap"},
    {"{" TENSOR("a", "U8", "0", "1,1") "}", 1, "there is a gap"},
};

static void test_headers(void **state) {
    an_context *ctx = new_context();
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        const size_t size = write_tensors(path, headers[i].header, headers[i].data);
        check_refused(ctx, path, size, AN_ERR_DAMAGED, headers[i].words);
    }
    end_context(&ctx);
}

/* What the format has, or may have, and anneal does not. */
static void test_not_supported(void **state) {
    static const char *const types[] = {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_"};
    an_context *ctx = new_context();
    char header[256];
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        snprintf(header, sizeof header, "{" TENSOR("a", "%s", "4", "0,4") "}", types[i]);
        const size_t size = write_tensors(path, header, 4);
        check_refused(ctx, path, size, AN_ERR_UNSUPPORTED, "convert the file to BF16 or F32 first");
        assert_non_null(strstr(an_last_error(ctx), types[i]));
    }
    static const char nine[] = "{" TENSOR("a", "U8", "1,1,1,1,1,1,1,1,1", "0,1") "}";
    check_refused(ctx, path, write_tensors(path, nine, 1), AN_ERR_UNSUPPORTED, "9 dimensions; at most 8");
    end_context(&ctx);
}

/* ---- large headers ---- */

typedef struct large {
    char *text;
    size_t length;
} large;

static large repeat(const char *begin, const char *part, size_t count, const char *end) {
    const size_t length = strlen(part), first = strlen(begin), last = first + count * length;
    large l = {.length = last + strlen(end)};
    assert_non_null(l.text = malloc(l.length + 1));
    memcpy(l.text, begin, first + 1);
    for (size_t i = first; i < last; i++) l.text[i] = part[(i - first) % length];
    memcpy(l.text + last, end, strlen(end) + 1);
    return l;
}

static void test_large(void **state) {
    enum { DEEP = 100000, MANY = 50000 };
    static const struct {
        const char *begin, *part, *end;
        size_t count;
        an_status status;
        const char *words;
    } cases[] = {
        {"{\"a\":", "[", "}", DEEP, AN_ERR_DAMAGED, "an object is expected here"},
        {"{\"a\":{\"shape\":", "[", "}}", DEEP, AN_ERR_DAMAGED, "a number is expected here"},
        {"{\"__metadata__\":{\"a\":", "[", "}}", DEEP, AN_ERR_DAMAGED, "a string is expected here"},
        {"", "{\"a\":", "", DEEP, AN_ERR_DAMAGED, "a tensor has a key other than dtype, shape and data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,0],\"shape\":[1", ",1", "]}}", DEEP, AN_ERR_UNSUPPORTED,
         "100001 dimensions"},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,0],\"shape\":[9", "9", "]}}", DEEP, AN_ERR_DAMAGED,
         "does not fit in 64 bits"},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0", ",0", "]}}", DEEP, AN_ERR_DAMAGED,
         "not an array of two numbers"},
        {"{\"", "a", "\":{}}", DEEP, AN_ERR_DAMAGED, "no dtype"},
        {"{", "\"\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},",
         "\"\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", MANY, AN_ERR_DAMAGED,
         "tensor '' appears twice"},
        {"{", "\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},", "\"\":{}}", MANY, AN_ERR_DAMAGED,
         "to 1 of the data, which has only 0"},
        {"{\"__metadata__\":{", "\"\":\"\",", "\"\":\"\"}}", MANY, AN_ERR_DAMAGED,
         "key '' of the metadata appears twice"},
        {"{}", " ", "x", DEEP, AN_ERR_DAMAGED, "only spaces may follow the last }"},
    };
    an_context *ctx = new_context();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        large l = repeat(cases[i].begin, cases[i].part, cases[i].count, cases[i].end);
        check_refused(ctx, path, write_tensors(path, l.text, 0), cases[i].status, cases[i].words);
        free(l.text);
    }
    /* A long name is cut within the message, and not within a character. */
    large l = repeat("{\"a", "\xe2\x82\xac", 2000, "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,0]}}");
    check_refused(ctx, path, write_tensors(path, l.text, 0), AN_ERR_DAMAGED, "\xe2\x82\xac\xe2\x80\xa6' needs 1 bytes");
    free(l.text);
    end_context(&ctx);
}

/* As many tensors and pairs as fit, in an order that is bad for most ways of sorting: within the bound, and not
 * slow. */
static void test_memory(void **state) {
    enum { MANY = 100000 };
    an_context *ctx = new_context();
    an_safetensors *s = NULL;
    char *header = malloc((size_t)MANY * 80), *at = header;
    assert_non_null(header);
    (void)state;
    for (int metadata = 0; metadata < 2; metadata++) {
        at = header + sprintf(header, metadata ? "{\"__metadata__\":{" : "{");
        for (int i = MANY; i-- > 0;)
            at += metadata ? sprintf(at, "\"%x\":\"\"%s", i, i ? "," : "}")
                           : sprintf(at, "\"%x\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[%d,%d]}%s", i, i,
                                     i + 1, i ? "," : "");
        at += sprintf(at, "}");
        const size_t bytes = write_tensors(path, header, metadata ? 0 : MANY), held = an_context_bytes(ctx);
        ctx->peak_bytes = ctx->bytes;
        OK(ctx, an_safetensors_open(&s, ctx, path));
        assert_int_equal(an_safetensors_count(s), metadata ? 0 : MANY);
        if (!metadata) assert_int_equal(an_safetensors_find(s, "beef"), 0xbeef);
        assert_true(ctx->peak_bytes - held <= 2 * bytes + SMALL_CONSTANT);
        an_safetensors_close(&s);
    }
    free(header);
    end_context(&ctx);
}

/* The table above is what it is for: that nobody empties it. */
static int count_refused(void **state) {
    (void)state;
    print_message("%d crafted files were refused\n", refused);
    return refused < 150;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths), cmocka_unit_test(test_headers), cmocka_unit_test(test_not_supported),
        cmocka_unit_test(test_large),   cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, count_refused);
}
