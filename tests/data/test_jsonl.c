/* JSON lines: columns by name, nested and in lists, classes by number and name; and what is wrong is found and
 * named. */
#include "data/support.h"

static an_jsonl_source source_of(const char *text) {
    an_jsonl_source source;
    an_jsonl_source_init(&source, sizeof source);
    write_text("x.jsonl", text);
    source.path = "x.jsonl";
    return source;
}

static void test_columns(void **state) {
    static const char *const inputs[] = {"b.c", "list", "a"}, *const targets[] = {"y", "b.d"};
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    float in[2][6], out[2][2];
    (void)state;
    an_jsonl_source source = source_of(
        "\n {\"a\": 1, \"b\": {\"d\": 2, \"x\": {\"y\": []}, \"c\": 3}, \"list\": [[4, 5], [6, -7e0]], \"y\": 8}\r\n"
        "  \n\n{\"more\": null, \"y\": 18, \"list\": [[14], 15, [[16, 17]]], \"b\": {\"c\": 13, \"d\": 12}, \"a\": "
        "true}");
    source.inputs = inputs;
    source.input_count = 3;
    source.targets = targets;
    source.target_count = 2;
    OK(ctx, an_dataset_create_jsonl(&d, ctx, &source));
    assert_int_equal(an_dataset_count(d), 2);
    assert_int_equal(field_bytes(d, 0), sizeof in[0]);
    assert_int_equal(field_bytes(d, 1), sizeof out[0]);
    OK(ctx, an_dataset_read(d, 2, (int64_t[]){1, 0}, (void *const[]){in, out}));
    static const float want[2][6] = {{13, 14, 15, 16, 17, 1}, {3, 4, 5, 6, -7, 1}}, want_out[2][2] = {{18, 12}, {8, 2}};
    assert_memory_equal(in, want, sizeof in);
    assert_memory_equal(out, want_out, sizeof out);
    an_dataset_destroy(&d);
    source.begin = 0.5;
    source.dtype = AN_DTYPE_F64;
    double wide[6], wide_out[2];
    OK(ctx, an_dataset_create_jsonl(&d, ctx, &source));
    assert_int_equal(an_dataset_count(d), 1);
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){0}, (void *const[]){wide, wide_out}));
    assert_true(wide[0] == 13 && wide_out[1] == 12);
    an_dataset_destroy(&d);
    end_context(&ctx);
}

/* Columns that are not named are those of the first record. */
static void test_auto(void **state) {
    static const char *const b[] = {"b"};
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    float in[2], out[1];
    (void)state;
    an_jsonl_source source = source_of("{\"a\": 1, \"b\": 2, \"c\": 3}\n{\"c\": 6, \"a\": 4, \"b\": 5}\n");
    for (int kind = 0; kind < 4; kind++) {
        source.inputs = source.targets = b;
        source.input_count = kind == 1;
        source.target_count = kind == 2;
        source.has_targets = kind < 3;
        OK(ctx, an_dataset_create_jsonl(&d, ctx, &source));
        const size_t width = field_bytes(d, 0) / sizeof(float);
        assert_int_equal(width, kind == 1 ? 1 : kind == 3 ? 3 : 2);
        assert_int_equal(an_dataset_field_count(d), kind == 3 ? 1 : 2);
        if (kind < 3) {
            OK(ctx, an_dataset_read(d, 1, (int64_t[]){1}, (void *const[]){in, out}));
            assert_true(in[0] == (kind == 1 ? 5 : 4) && out[0] == (kind == 2 ? 5 : 6));
        }
        an_dataset_destroy(&d);
    }
    end_context(&ctx);
}

static void test_classes(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL, *other = NULL;
    float in[3];
    int32_t out[3];
    an_field field;
    an_field_init(&field, sizeof field);
    (void)state;
    an_jsonl_source source =
        source_of("{\"a\": 1, \"y\": \"dog\"}\n{\"a\": 2, \"y\": \"cat\"}\n{\"a\": 3, \"y\": \"emu\"}\n");
    OK(ctx, an_dataset_create_jsonl(&d, ctx, &source));
    OK(ctx, an_dataset_field(d, 1, &field));
    assert_int_equal(field.limit, 3);
    assert_int_equal(field.ndims, 0);
    OK(ctx, an_dataset_read(d, 3, (int64_t[]){0, 1, 2}, (void *const[]){in, out}));
    assert_true(out[0] == 1 && out[1] == 0 && out[2] == 2);
    assert_string_equal(an_dataset_class_name(d, 2), "emu");
    check_encoding(ctx, d, "{\"name\": \"y\", \"kind\": \"class\", \"names\": [\"cat\", \"dog\", \"emu\"]}");
    source = source_of("{\"a\": 1, \"y\": \"emu\"}\n{\"a\": 2, \"y\": \"dog\"}");
    source.like = d;
    OK(ctx, an_dataset_create_jsonl(&other, ctx, &source));
    OK(ctx, an_dataset_read(other, 2, (int64_t[]){0, 1}, (void *const[]){in, out}));
    assert_true(out[0] == 2 && out[1] == 1);
    assert_true(an_encoding_agrees(an_dataset_encoding(other), an_dataset_encoding(d)));
    an_dataset_destroy(&other);
    source = source_of("{\"a\": 1, \"y\": \"emu\"}\n{\"a\": 2, \"y\": \"cow\"}");
    source.like = d;
    FAILS(ctx, an_dataset_create_jsonl(&other, ctx, &source), AN_ERR_PARSE,
          "in record 2: the training data has no class of this name");
    an_dataset_destroy(&d);
    source = source_of("{\"a\": 1, \"y\": 4}\n{\"a\": 2, \"y\": -100}");
    source.classes = true;
    OK(ctx, an_dataset_create_jsonl(&d, ctx, &source));
    OK(ctx, an_dataset_field(d, 1, &field));
    assert_int_equal(field.limit, 5);
    OK(ctx, an_dataset_read(d, 2, (int64_t[]){0, 1}, (void *const[]){in, out}));
    assert_true(out[0] == 4 && out[1] == AN_TARGET_IGNORED);
    assert_null(an_dataset_class_name(d, 0));
    assert_null(an_dataset_encoding(d)); /* classes without names */
    an_dataset_destroy(&d);
    end_context(&ctx);
}

/* Found when the file is opened, or when the record is read. */
static void test_mistakes(void **state) {
    static const struct {
        const char *text, *words;
        bool classes;
    } cases[] = {
        {"", "byte 0: the file has no records", false},
        {" \n\r\n", "the file has no records", false},
        {"[1, 2]", "byte 0, in record 1: an object is expected here", false},
        {"{\"a\": 1, \"y\": 2}\n{\"a\": 1}\n", "in record 2: a member is missing: 'y'", false},
        {"{\"a\": 1, \"y\": 2}\n{\"a\": 1, \"y\": 2, \"a\": 3}\n", "this member is there twice", false},
        {"{\"a\": 1, \"y\": 2}\n{\"a\": null, \"y\": 2}\n", "byte 23, in record 2: null is not a number", false},
        {"{\"a\": 1, \"y\": 2}\n{\"a\": \"x\", \"y\": 2}\n", "a number is expected here", false},
        {"{\"a\": \"x\", \"y\": 2}\n", "'a' is a string, not a number", false},
        {"{\"a\": [1, 2], \"y\": 2}\n{\"a\": [1], \"y\": 2}\n", "there are fewer numbers than in the first record",
         false},
        {"{\"a\": [1, 2], \"y\": 2}\n{\"a\": [1, 2, 3], \"y\": 2}\n", "there are more numbers than in the first",
         false},
        {"{\"a\": [], \"y\": 2}\n", "there is no number here", false},
        {"{\"a\": 1, \"y\": 1e39}\n", "the number does not fit in f32", false},
        {"{\"a\": 1, \"y\": 2} {\"a\": 1, \"y\": 2}\n", "in record 1: ", false},
        {"{\"a\": 1, \"y\": 2}\n{\"a\": 1, \"y\": 2", "in record 2: ", false},
        {"{\"a\": 1, \"y\": 2.5}\n", "this is not a class", true},
        {"{\"a\": 1, \"y\": \"dog\"}\n{\"a\": 1, \"y\": 3}\n", "a string is expected here", false},
    };
    an_context *ctx = new_context();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_dataset *d = NULL;
        an_jsonl_source source = source_of(cases[i].text);
        source.classes = cases[i].classes;
        an_status status = an_dataset_create_jsonl(&d, ctx, &source);
        if (status == AN_OK) status = read_all(d);
        an_dataset_destroy(&d);
        assert_int_equal(status, AN_ERR_PARSE);
        if (!strstr(an_last_error(ctx), cases[i].words) || !strstr(an_last_error(ctx), "x.jsonl: byte "))
            fail_msg("'%s' does not say '%s'", an_last_error(ctx), cases[i].words);
    }
    end_context(&ctx);
}

static void test_arguments(void **state) {
    static const char *const same[] = {"a", "a"};
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    (void)state;
    an_jsonl_source source = source_of("{\"a\": 1}\n");
    FAILS(ctx, an_dataset_create_jsonl(&d, ctx, &source), AN_ERR_ARGUMENT, "no columns left for inputs");
    source.inputs = same;
    source.input_count = 2;
    FAILS(ctx, an_dataset_create_jsonl(&d, ctx, &source), AN_ERR_ARGUMENT, "column 'a' is listed twice");
    source.input_count = -1;
    FAILS(ctx, an_dataset_create_jsonl(&d, ctx, &source), AN_ERR_ARGUMENT, "does not match the lists of columns");
    source.input_count = 0;
    source.dtype = AN_DTYPE_I32;
    FAILS(ctx, an_dataset_create_jsonl(&d, ctx, &source), AN_ERR_DTYPE, "f32 or f64, not i32");
    source.path = "none";
    source.dtype = AN_DTYPE_NONE;
    FAILS(ctx, an_dataset_create_jsonl(&d, ctx, &source), AN_ERR_FILE, "none: cannot be opened");
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),  cmocka_unit_test(test_auto),      cmocka_unit_test(test_classes),
        cmocka_unit_test(test_mistakes), cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
