/* safetensors: what is written is read, in every type and alignment; what the format allows is read
 * in whatever form it comes. */
#include <fcntl.h>

#include "store/safetensors_support.h"

static const char path[] = "t.safetensors";

/* ---- round trips ---- */

static const struct {
    const char *name;
    size_t size;
    an_dtype dtype;
} types[] = {{"BOOL", 1, AN_DTYPE_NONE}, {"U8", 1, AN_DTYPE_U8},    {"I8", 1, AN_DTYPE_NONE},
             {"I16", 2, AN_DTYPE_NONE},  {"U16", 2, AN_DTYPE_NONE}, {"F16", 2, AN_DTYPE_F16},
             {"BF16", 2, AN_DTYPE_BF16}, {"I32", 4, AN_DTYPE_I32},  {"U32", 4, AN_DTYPE_NONE},
             {"F32", 4, AN_DTYPE_F32},   {"F64", 8, AN_DTYPE_F64},  {"I64", 8, AN_DTYPE_I64},
             {"U64", 8, AN_DTYPE_NONE}};
enum { TYPES = sizeof types / sizeof *types };

static void write_header(an_context *ctx, const an_safetensor *tensors, size_t count, size_t alignment) {
    an_text text;
    size_t data = count ? (size_t)(tensors[count - 1].begin + tensors[count - 1].bytes) : 0;
    an_text_init(&text, ctx);
    OK(ctx, an_safetensors_header(&text, tensors, count, alignment, NULL));
    assert_int_equal(text.length % (alignment ? alignment : 8), 0);
    uint64_t length = 0;
    for (int i = 8; i-- > 0;) length = length << 8 | (unsigned char)text.bytes[i];
    assert_int_equal(length, text.length - 8);
    assert_memory_equal(text.bytes + 8, "{\"__metadata__\":{\"format\":\"pt\"}", 31);
    write_with_length(path, length, text.bytes + 8, text.length - 8, data);
    an_text_destroy(&text);
}

static void test_every_type(void **state) {
    static const size_t alignments[] = {0, 1, 8, 64, 512, 4096};
    an_context *ctx = new_context();
    an_safetensor tensors[TYPES];
    int64_t at = 0;
    (void)state;
    for (size_t i = 0; i < TYPES; i++) {
        const an_safetensors_type *type = an_safetensors_type_named(types[i].name);
        assert_non_null(type);
        assert_true(type->size == types[i].size && type->dtype == types[i].dtype);
        assert_true(type->dtype == AN_DTYPE_NONE || type->size == an_dtype_size(type->dtype));
        assert_true(type->dtype == AN_DTYPE_NONE || an_safetensors_type_of(type->dtype) == type);
        tensors[i] =
            (an_safetensor){.name = types[i].name, .type = type, .ndims = 2, .dims = {3, (int64_t)i}, .begin = at};
        assert_true(an_safetensor_measure(&tensors[i], &tensors[i].bytes));
        assert_int_equal(tensors[i].bytes, 3 * i * types[i].size);
        at += tensors[i].bytes;
    }
    assert_null(an_safetensors_type_of(AN_DTYPE_NONE));
    for (int dtype = AN_DTYPE_F32; dtype <= AN_DTYPE_U8; dtype++)
        assert_non_null(an_safetensors_type_of((an_dtype)dtype));
    for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
        an_safetensors *s = NULL;
        write_header(ctx, tensors, TYPES, alignments[a]);
        OK(ctx, an_safetensors_open(&s, ctx, path));
        assert_int_equal(an_safetensors_count(s), TYPES);
        assert_int_equal(an_safetensors_data_offset(s) % (int64_t)(alignments[a] ? alignments[a] : 8), 0);
        assert_int_equal(an_safetensors_bytes(s), an_safetensors_data_offset(s) + at);
        for (int i = 0; i < TYPES; i++) {
            an_safetensor t;
            OK(ctx, an_safetensors_get(s, i, &t));
            assert_string_equal(t.name, tensors[i].name);
            assert_ptr_equal(t.type, tensors[i].type);
            assert_true(t.ndims == 2 && t.dims[0] == 3 && t.dims[1] == i && t.begin == tensors[i].begin);
        }
        check_all_bytes(ctx, s);
        an_safetensors_close(&s);
        assert_null(s);
    }
    end_context(&ctx);
}

/* Names that need escapes, and shapes of all ranks. */
static void test_names_and_ranks(void **state) {
    static const char *const names[] = {
        "", "a", "\"\\/", "line\nbreak\x01\x7f", "é€😀", "../../etc/passwd", "/dev/null", "w#1024", "data_offsets"};
    enum { NAMES = sizeof names / sizeof *names };
    an_context *ctx = new_context();
    an_safetensor tensors[NAMES], t;
    an_safetensors *s = NULL;
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        tensors[i] = (an_safetensor){
            .name = names[i], .type = an_safetensors_type_of(AN_DTYPE_U8), .ndims = i, .begin = i, .bytes = 1};
        for (int d = 0; d < i; d++) tensors[i].dims[d] = 1;
    }
    write_header(ctx, tensors, NAMES, 64);
    OK(ctx, an_safetensors_open(&s, ctx, path));
    for (int i = 0; i < NAMES; i++) {
        assert_int_equal(an_safetensors_find(s, names[i]), i);
        OK(ctx, an_safetensors_get(s, i, &t));
        assert_string_equal(t.name, names[i]);
        assert_int_equal(t.ndims, i);
    }
    assert_int_equal(an_safetensors_find(s, "none"), -1);
    assert_int_equal(an_safetensors_find(s, "zzz"), -1);
    check_all_bytes(ctx, s);
    an_safetensors_close(&s);
    end_context(&ctx);
}

/* What a writer is refused: a file that could not be read. */
static void test_writer_refuses(void **state) {
    an_context *ctx = new_context();
    const an_safetensors_type *const f32 = an_safetensors_type_of(AN_DTYPE_F32);
    const an_safetensor good = {.name = "a", .type = f32, .ndims = 1, .dims = {2}, .bytes = 8};
    an_safetensor bad[12];
    size_t n = 0;
    an_text text;
    (void)state;
    for (size_t i = 0; i < 12; i++) bad[i] = good;
    bad[n++].name = NULL;
    bad[n++].name = "__metadata__";
    bad[n++].name = "\xff";
    bad[n++].type = NULL;
    bad[n++].ndims = -1;
    bad[n++].ndims = AN_MAX_DIMS + 1;
    bad[n++].begin = 4;
    bad[n++].bytes = 7;
    bad[n].ndims = 2; /* their product would be right */
    bad[n].dims[0] = -2;
    bad[n++].dims[1] = -1;
    bad[n].dims[0] = 0;
    bad[n++].bytes = 8;
    bad[n].ndims = 2;
    bad[n].dims[0] = bad[n].dims[1] = (int64_t)1 << 31;
    bad[n++].bytes = 0;
    for (size_t i = 0; i < n; i++) {
        an_text_init(&text, ctx);
        FAILS(ctx, an_safetensors_header(&text, &bad[i], 1, 0, NULL), AN_ERR_ARGUMENT, "for a safetensors file");
        an_text_destroy(&text);
    }
    an_text_init(&text, ctx);
    an_text_add(&text, "x");
    FAILS(ctx, an_safetensors_header(&text, &good, 1, 0, NULL), AN_ERR_ARGUMENT, "empty text");
    an_text_destroy(&text);
    end_context(&ctx);
}

/* ---- what the format allows ---- */

static void test_forms(void **state) {
    static const struct {
        const char *header;
        size_t data;
        int count;
    } cases[] = {
        {"{}", 0, 0},
        {"{}       ", 0, 0},
        {"{\"__metadata__\":{}}", 0, 0},
        {"{\"__metadata__\":{\"\":\"\",\"a\":\"__metadata__\"}}", 0, 0},
        {"{" TENSOR("a", "U8", "", "0,1") "}", 1, 1},
        {"{" TENSOR("a", "U8", "0", "0,0") "}", 0, 1},
        {"{" TENSOR("a", "F32", "2, 3", "0, 24") ",\"__metadata__\":{\"k\":\"v\"}}  ", 24, 1},
        {"{" TENSOR("b", "I64", "1", "8,16") "," TENSOR("a", "F64", "1", "0,8") "}", 16, 2},
        {"{ \n\t\"a\" :\r{ \"data_offsets\" : [ 0 , 4 ] , \"shape\" : [ 1 ] , \"dtype\" : \"F32\" } }", 4, 1},
        {"{\"\\u0061\":{\"d\\u0074ype\":\"F\\u00332\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, 1},
        {"{" TENSOR("a", "U8", "1,1,1,1,1,1,1,2", "0,2") "}", 2, 1},
        /* empty ones at the front, between others and at the end */
        {"{" TENSOR("a", "U8", "0", "0,0") "," TENSOR("b", "U8", "3", "0,3") "," TENSOR(
             "c", "F64", "0,7", "3,3") "," TENSOR("d", "U8", "1", "3,4") "," TENSOR("e", "U8", "4,0",
                                                                                    "4,4") "," TENSOR("f", "I8", "0",
                                                                                                      "4,4") "}",
         4, 6},
        {"{" TENSOR("a", "U8", "0,4294967296", "0,0") "}", 0, 1},
    };
    an_context *ctx = new_context();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_safetensors *s = NULL;
        write_tensors(path, cases[i].header, cases[i].data);
        OK(ctx, an_safetensors_open(&s, ctx, path));
        assert_int_equal(an_safetensors_count(s), cases[i].count);
        check_all_bytes(ctx, s);
        an_safetensors_close(&s);
    }
    end_context(&ctx);
}

/* Many tensors in an order that has nothing to do with their names are in order, and found. */
static void test_many(void **state) {
    enum { MANY = 5000, STEP = 1789 };
    an_context *ctx = new_context();
    an_safetensors *s = NULL;
    an_text text;
    char name[16];
    (void)state;
    an_text_init(&text, ctx);
    for (int i = 0; i < MANY; i++) {
        const int k = (int)((int64_t)i * STEP % MANY);
        an_text_add(&text, "%s\"%x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i ? "," : "{",
                    k * 7919, k, k + 1);
    }
    an_text_add(&text, "}");
    write_tensors(path, text.bytes, MANY);
    an_text_destroy(&text);
    OK(ctx, an_safetensors_open(&s, ctx, path));
    assert_int_equal(an_safetensors_count(s), MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%x", i * 7919);
        assert_int_equal(an_safetensors_find(s, name), i);
        snprintf(name, sizeof name, "%x", i * 7919 + 1);
        assert_int_equal(an_safetensors_find(s, name), -1);
    }
    check_all_bytes(ctx, s);
    an_safetensors_close(&s);
    end_context(&ctx);
}

static void test_reads(void **state) {
    an_context *ctx = new_context();
    an_safetensors *s = NULL;
    an_safetensor t;
    unsigned char bytes[8];
    const int next = next_descriptor();
    (void)state;
    write_tensors(path, "{" TENSOR("a", "U8", "3", "0,3") "," TENSOR("b", "U8", "5", "3,8") "}", 8);
    OK(ctx, an_safetensors_open_file(&s, ctx, "by another name", open(path, O_RDONLY | O_CLOEXEC)));
    OK(ctx, an_safetensors_get(s, an_safetensors_find(s, "b"), &t));
    OK(ctx, an_safetensors_read(s, &t, 2, 3, bytes));
    for (size_t i = 0; i < 3; i++) assert_int_equal(bytes[i], data_byte(5 + i));
    OK(ctx, an_safetensors_read(s, &t, 5, 0, bytes));
    FAILS(ctx, an_safetensors_read(s, &t, 0, 6, bytes), AN_ERR_ARGUMENT, "by another name: tensor 'b' has 5 bytes");
    FAILS(ctx, an_safetensors_read(s, &t, 6, 0, bytes), AN_ERR_ARGUMENT, "tensor 'b'");
    FAILS(ctx, an_safetensors_read(s, &t, -1, 1, bytes), AN_ERR_ARGUMENT, "tensor 'b'");
    FAILS(ctx, an_safetensors_read(s, &t, 1, SIZE_MAX, bytes), AN_ERR_ARGUMENT, "tensor 'b'");
    FAILS(ctx, an_safetensors_get(s, 2, &t), AN_ERR_ARGUMENT, "tensor 2 does not exist");
    FAILS(ctx, an_safetensors_get(s, -1, &t), AN_ERR_ARGUMENT, "tensor -1 does not exist");
    an_safetensors_close(&s);
    an_safetensors_close(&s);
    assert_int_equal(next_descriptor(), next);
    end_context(&ctx);
}

/* Each allocation of an open fails once: nothing is left behind. */
static void test_memory_fails(void **state) {
    ledger l = {0};
    an_context *ctx = NULL;
    an_safetensors *s = NULL;
    const int next = next_descriptor();
    (void)state;
    write_tensors(path, "{" TENSOR("a", "U8", "3", "0,3") "}", 3);
    assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
    const size_t held = l.held;
    int failures = 0;
    for (;; failures++) {
        l.calls = 0;
        l.fail_at = failures + 1;
        const an_status status = an_safetensors_open(&s, ctx, path);
        if (status == AN_OK) break;
        assert_int_equal(status, AN_ERR_MEMORY);
        assert_null(s);
        assert_int_equal(l.held, held);
        assert_int_equal(next_descriptor(), next);
    }
    assert_int_equal(failures, 4); /* the file, its path, its header, its tables */
    an_safetensors_close(&s);
    assert_int_equal(l.held, held);
    assert_false(l.mismatch);
    an_context_destroy(&ctx);
}

/* ---- for check_safetensors.py ---- */

/* A file of every type and every number of dimensions. */
static int write_example(an_context *ctx) {
    static const char *const names[] = {"a", "scalar", "é€😀", "\"quoted\\", "line\nbreak"};
    enum { NAMES = sizeof names / sizeof *names, EXAMPLES = TYPES + NAMES };
    an_safetensor tensors[EXAMPLES] = {{0}};
    int64_t at = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        an_safetensor *t = &tensors[i];
        t->name = i < TYPES ? types[i].name : names[i - TYPES];
        t->type = an_safetensors_type_named(types[i % TYPES].name);
        t->ndims = i % (AN_MAX_DIMS + 1);
        for (int d = 0; d < t->ndims; d++) t->dims[d] = 1 + (i + d) % 3 - (i == TYPES); /* that one is empty */
        t->begin = at;
        if (!an_safetensor_measure(t, &t->bytes)) return 1;
        at += t->bytes;
    }
    write_header(ctx, tensors, EXAMPLES, 64);
    return 0;
}

/* A line for each tensor: type, dimensions, bytes and name, the last two in hexadecimal. */
static int print_file(an_context *ctx, const char *file) {
    an_safetensors *s = NULL;
    an_safetensor t;
    OK(ctx, an_safetensors_open(&s, ctx, file));
    for (int i = 0; i < an_safetensors_count(s); i++) {
        OK(ctx, an_safetensors_get(s, i, &t));
        unsigned char *bytes = malloc((size_t)t.bytes + 1);
        assert_non_null(bytes);
        OK(ctx, an_safetensors_read(s, &t, 0, (size_t)t.bytes, bytes));
        printf("%s [", t.type->name);
        for (int d = 0; d < t.ndims; d++) printf(d ? ",%lld" : "%lld", (long long)t.dims[d]);
        printf("] x");
        for (int64_t k = 0; k < t.bytes; k++) printf("%02x", bytes[k]);
        printf(" x");
        for (const char *c = t.name; *c; c++) printf("%02x", (unsigned char)*c);
        printf("\n");
        free(bytes);
    }
    an_safetensors_close(&s);
    return 0;
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),     cmocka_unit_test(test_names_and_ranks),
        cmocka_unit_test(test_writer_refuses), cmocka_unit_test(test_forms),
        cmocka_unit_test(test_many),           cmocka_unit_test(test_reads),
        cmocka_unit_test(test_memory_fails),
    };
    if (count == 1) return cmocka_run_group_tests(tests, NULL, NULL);
    an_context *ctx = new_context();
    const int failed = strcmp(arguments[1], "write") == 0 ? write_example(ctx) : print_file(ctx, arguments[1]);
    end_context(&ctx);
    return failed;
}
