/* Writing JSON: each layout byte for byte, numbers in each form, and strings that can be read again whatever they
 * were. */
#include <locale.h>
#include <math.h>

#include "base/text/json.h"
#include "base/text/text.h"
#include "base/text/utf8.h"
#include "support/support.h"

static void write_sample(an_json_writer *w) {
    an_json_write_object(w, NULL);
    an_json_write_string(w, "a\"", "b\n");
    an_json_write_array(w, "list");
    an_json_write_integer(w, NULL, INT64_MIN);
    an_json_write_object(w, NULL);
    an_json_write_end(w);
    an_json_write_array(w, NULL);
    an_json_write_bool(w, NULL, true);
    an_json_write_end(w);
    an_json_write_end(w);
    an_json_write_null(w, "none");
    an_json_write_string(w, "no text", NULL);
    an_json_write_finish(w);
}

static void test_layouts(void **state) {
    static const char *const expected[] = {
        [AN_JSON_FLAT] = "{\"a\\\"\": \"b\\u000a\", \"list\": [-9223372036854775808, {}, [true]], \"none\": null, "
                         "\"no text\": null}\n",
        [AN_JSON_COMPACT] = "{\"a\\\"\":\"b\\u000a\",\"list\":[-9223372036854775808,{},[true]],\"none\":null,"
                            "\"no text\":null}\n",
        [AN_JSON_MARGIN] = "{\n\"a\\\"\": \"b\\u000a\",\n\"list\": [\n-9223372036854775808,\n{},\n[\ntrue\n]\n],\n"
                           "\"none\": null,\n\"no text\": null\n}\n",
        [AN_JSON_LINES] = "{\n  \"a\\\"\": \"b\\u000a\",\n  \"list\": [\n    -9223372036854775808,\n    {},\n    [\n"
                          "      true\n    ]\n  ],\n  \"none\": null,\n  \"no text\": null\n}\n",
    };
    an_context *ctx = NULL;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    for (int layout = AN_JSON_FLAT; layout <= AN_JSON_COMPACT; layout++) {
        char *in_file = NULL;
        size_t length = 0;
        an_text text;
        an_text_init(&text, ctx);
        an_json_writer writer = an_text_json(&text, (an_json_layout)layout);
        write_sample(&writer);
        OK(ctx, text.status);
        assert_string_equal(text.bytes, expected[layout]);
        an_text_destroy(&text);

        FILE *file = open_memstream(&in_file, &length);
        assert_non_null(file);
        writer = an_json_to_file(file, (an_json_layout)layout);
        write_sample(&writer);
        fclose(file);
        assert_string_equal(in_file, expected[layout]);
        free(in_file);
    }
    an_context_destroy(&ctx);
}

/* The layout holds for what follows, so an object on one line can be a member of one on several. */
static void test_changed_layout(void **state) {
    an_context *ctx = NULL;
    an_text text;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    an_text_init(&text, ctx);
    an_json_writer w = an_text_json(&text, AN_JSON_MARGIN);
    an_json_write_object(&w, NULL);
    an_json_write_object(&w, "inner");
    w.layout = AN_JSON_FLAT;
    an_json_write_integer(&w, "a", 1);
    an_json_write_integer(&w, "b", 2);
    an_json_write_end(&w);
    w.layout = AN_JSON_MARGIN;
    an_json_write_bool(&w, "last", false);
    an_json_write_finish(&w);
    assert_string_equal(text.bytes, "{\n\"inner\": {\"a\": 1, \"b\": 2},\n\"last\": false\n}\n");
    an_text_destroy(&text);
    an_context_destroy(&ctx);
}

static void check_numbers(an_context *ctx) {
    an_text text;
    an_text_init(&text, ctx);
    an_json_writer w = an_text_json(&text, AN_JSON_FLAT);
    an_json_write_array(&w, NULL);
    an_json_write_real(&w, NULL, 0.1);
    an_json_write_exact(&w, NULL, 0.1);
    an_json_write_rounded(&w, NULL, 1.0 / 3);
    an_json_write_whole(&w, NULL, 0x1p70);
    an_json_write_real(&w, NULL, 10000);
    an_json_write_real(&w, NULL, NAN);
    an_json_write_exact(&w, NULL, INFINITY);
    an_json_write_rounded(&w, NULL, -INFINITY);
    an_json_write_end(&w);
    assert_string_equal(text.bytes,
                        "[0.1, 0.10000000000000001, 0.333333333, 1180591620717411303424, 10000, null, null, null]");
    an_text_destroy(&text);
}

static void test_numbers(void **state) {
    static const char *const locales[] = {"C", "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"};
    an_context *ctx = NULL;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) /* one with a comma, where there is one */
        if (setlocale(LC_NUMERIC, locales[i])) check_numbers(ctx);
    setlocale(LC_NUMERIC, "C");
    an_context_destroy(&ctx);
}

static void check_string(an_context *ctx, const char *string, const char *expected) {
    an_text text;
    an_text_init(&text, ctx);
    an_json_writer w = an_text_json(&text, AN_JSON_FLAT);
    an_json_write_string(&w, NULL, string);
    assert_string_equal(text.bytes, expected);
    an_text_destroy(&text);
}

static void test_strings(void **state) {
    an_context *ctx = NULL;
    char all[256];
    an_text text;
    an_json j;
    an_json_string string;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    for (int c = 1; c < 128; c++) all[c - 1] = (char)c;
    memcpy(all + 127, "é€😀", sizeof "é€😀");
    an_text_init(&text, ctx);
    an_json_writer w = an_text_json(&text, AN_JSON_FLAT);
    an_json_write_string(&w, NULL, all);
    OK(ctx, text.status);
    an_json_init(&j, text.bytes, text.length);
    assert_true(an_json_string_value(&j, &string) && an_json_end(&j));
    assert_string_equal(string.bytes, all);
    an_text_destroy(&text);
    /* what is no UTF-8 is replaced, byte by byte */
    check_string(ctx,
                 "a\xff"
                 "b\xe2\x82"
                 "c\xed\xa0\x80",
                 "\"a\xef\xbf\xbd"
                 "b\xef\xbf\xbd\xef\xbf\xbd"
                 "c\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    check_string(ctx, "", "\"\"");
    an_context_destroy(&ctx);
}

static void test_utf8(void **state) {
    static const char *const valid[] = {"", "a", "é€😀", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"};
    static const char *const invalid[] = {"a\xff",        "\xe2\x82",         "\xc0\x80", "\xe0\x9f\xbf",
                                          "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80",     "\xf5\x80\x80\x80"};
    (void)state;
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) assert_true(an_utf8_is_valid(valid[i]));
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) assert_false(an_utf8_is_valid(invalid[i]));
    assert_int_equal(an_utf8_length("é", 1), 0); /* cut */
    assert_int_equal(an_utf8_length("é", 2), 2);
    assert_int_equal(an_utf8_length_in_text("😀"), 4);
}

/* What a terminal would obey is not shown, and what does not fit is cut between characters. */
static void test_shown(void **state) {
    static const struct {
        const char *text, *shown, *left;
        size_t maximum;
    } cases[] = {{"a\x1b[2Jb", "a?[2Jb", "", 15},
                 {"\x7f\xc2\x9b\xff", "???", "", 15},
                 {"a\u202eb\u2066c\u2028", "a?b?c?", "", 15},
                 {"€€€", "€€", "€", 8},
                 {"abc", "", "abc", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[16];
        assert_string_equal(an_utf8_show(out, cases[i].maximum, cases[i].text), cases[i].left);
        assert_string_equal(out, cases[i].shown);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_changed_layout), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_strings), cmocka_unit_test(test_utf8),           cmocka_unit_test(test_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
