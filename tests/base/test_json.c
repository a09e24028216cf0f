/* JSON: every kind of value is read as it was written, in place and without memory; whatever RFC 8259 does not allow is
 * refused where it stands. */
#include <locale.h>

#include "base/text/json.h"
#include "base/text/number.h"
#include "support/support.h"

/* A copy without anything behind it, so that a sanitizer sees a read beyond its end. */
static char *copy_of(const char *text, size_t length) {
    char *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    return copy;
}

static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* ---- what is right ---- */

static void test_values(void **state) {
    static const char text[] = " { \"name\" : \"a\\n\\u00e9\\ud83d\\ude00\\/\" ,\t\"counts\":[0,1, 9223372036854775807 "
                               "],\r\n\"large\":18446744073709551615,"
                               "\"least\":-9223372036854775808,\"zero\":-0,\"reals\":[1,-0,0.1,1e3,1E-3,-2.5e+1,null],"
                               "\"yes\":true,\"no\":false,\"empty\":{},"
                               "\"none\":[],\"\":\"\"} \n";
    char *copy = copy_of(text, strlen(text));
    an_json j;
    an_json_string key, string;
    int64_t count, minimum, zero;
    uint64_t large;
    double real;
    bool yes, no;
    (void)state;
    an_json_init(&j, copy, strlen(text));
    assert_true(an_json_object(&j));
    assert_true(an_json_member(&j, &key) && an_json_string_value(&j, &string));
    assert_string_equal(key.bytes, "name");
    assert_int_equal(key.length, 4);
    assert_string_equal(string.bytes, "a\n\xc3\xa9\xf0\x9f\x98\x80/");
    assert_int_equal(string.length, 9);
    assert_true(an_json_member(&j, &key) && an_json_array(&j));
    static const int64_t counts[] = {0, 1, INT64_MAX};
    for (int i = 0; i < 3; i++) {
        assert_true(an_json_element(&j) && an_json_count(&j, &count));
        assert_true(count == counts[i]);
    }
    assert_false(an_json_element(&j));
    assert_true(an_json_member(&j, &key) && an_json_u64(&j, &large) && large == UINT64_MAX);
    assert_true(an_json_member(&j, &key) && an_json_integer(&j, &minimum) && minimum == INT64_MIN);
    assert_true(an_json_member(&j, &key) && an_json_integer(&j, &zero) && zero == 0);
    assert_true(an_json_member(&j, &key) && an_json_array(&j));
    static const double reals[] = {1, -0.0, 0.1, 1000, 0.001, -25, NAN};
    for (int i = 0; i < 7; i++) {
        assert_true(an_json_element(&j) && an_json_real(&j, &real));
        assert_true(i == 6 ? isnan(real) : bits_of(real) == bits_of(reals[i]));
    }
    assert_false(an_json_element(&j));
    assert_true(an_json_member(&j, &key) && an_json_bool(&j, &yes) && yes);
    assert_true(an_json_member(&j, &key) && an_json_bool(&j, &no) && !no);
    assert_true(an_json_member(&j, &key) && an_json_object(&j) && !an_json_member(&j, &key));
    assert_true(an_json_member(&j, &key) && an_json_array(&j) && !an_json_element(&j));
    assert_true(an_json_member(&j, &key) && an_json_string_value(&j, &string));
    assert_true(key.length == 0 && !*key.bytes && string.length == 0 && !*string.bytes);
    assert_false(an_json_member(&j, &key));
    assert_true(an_json_end(&j));
    assert_null(j.problem);
    assert_int_equal(j.at, strlen(text));
    free(copy);
}

static bool reads(const char *text, size_t length, an_json *j) {
    char *copy = copy_of(text, length);
    an_json_init(j, copy, length);
    const bool all = an_json_skip(j) && an_json_end(j);
    assert_true(all == !j->problem);
    if (all) assert_int_equal(j->depth, 0);
    free(copy);
    return all;
}

static void test_skipped(void **state) {
    static const char *const texts[] = {
        "0",
        "-0",
        "1.5",
        "1e9999",
        "[]",
        "{}",
        "\"\"",
        "true",
        "false",
        "null",
        " [ [ ] , { } ] ",
        "{\"a\":{\"b\":[1,{\"c\":null}]},\"a\":2}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0001\"",
        "\"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"",
        "\"\\ud800\\udc00\\udbff\\udfff\\uFFFF\"",
        "\t\n\r 1\t\n\r "};
    an_json j;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!reads(texts[i], strlen(texts[i]), &j)) fail_msg("%s: byte %zu: %s", texts[i], j.at, j.problem);
}

static void test_depth(void **state) {
    enum { DEEP = 100000 };
    static char text[2 * DEEP];
    an_json j;
    (void)state;
    for (int depth = AN_JSON_DEPTH; depth <= AN_JSON_DEPTH + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        assert_true(reads(text, 2 * (size_t)depth, &j) == (depth == AN_JSON_DEPTH));
    }
    assert_int_equal(j.at, AN_JSON_DEPTH);
    memset(text, '[', DEEP);
    assert_false(reads(text, DEEP, &j));
    assert_int_equal(j.at, AN_JSON_DEPTH);
    for (size_t i = 0; i < DEEP; i++) text[i] = "{\"a\":"[i % 5];
    assert_false(reads(text, DEEP, &j));
    assert_int_equal(j.at, (size_t)AN_JSON_DEPTH * 5);
    assert_string_equal(j.problem, "it is nested deeper than 64 levels");
}

/* ---- what is wrong ---- */

static void test_refused(void **state) {
    static const struct {
        const char *text;
        size_t at;
        const char *words;
    } cases[] = {
        {"", 0, "a value is expected"},
        {"   ", 3, "a value is expected"},
        {"tru", 0, "a value is expected"},
        {"nul", 0, "a value is expected"},
        {"True", 0, "a value is expected"},
        {"NaN", 0, "a value is expected"},
        {"-Infinity", 0, "this is not a JSON number"},
        {"+1", 0, "a value is expected"},
        {".5", 0, "a value is expected"},
        {"'a'", 0, "a value is expected"},
        {"\xef\xbb\xbf{}", 0, "a value is expected"}, /* a byte order mark */
        {"\f1", 0, "a value is expected"},
        {"-", 0, "this is not a JSON number"},
        {"1.", 0, "this is not a JSON number"},
        {"1.e3", 0, "this is not a JSON number"},
        {"1e", 0, "this is not a JSON number"},
        {"007", 0, "a number has a leading zero"},
        {"-01", 0, "a number has a leading zero"},
        {"1 2", 2, "unexpected text after the end of the value"},
        {"0x10", 1, "unexpected text after the end of the value"},
        {"1/*c*/", 1, "unexpected text after the end of the value"},
        {"[1", 2, "',' or ']'"},
        {"[1 2]", 3, "',' or ']'"},
        {"[1}", 2, "',' or ']'"},
        {"[1,]", 3, "nothing follows a comma"},
        {"[,1]", 1, "a value is expected"},
        {"[1,,2]", 3, "a value is expected"},
        {"[", 1, "a value is expected"},
        {"[}", 1, "a value is expected"},
        {"{", 1, "a string is expected"},
        {"{]", 1, "a string is expected"},
        {"{,}", 1, "a string is expected"},
        {"{a:1}", 1, "a string is expected"},
        {"{1:1}", 1, "a string is expected"},
        {"{\"a\"}", 4, "':' is expected"},
        {"{\"a\" 1}", 5, "':' is expected"},
        {"{\"a\"::1}", 5, "a value is expected"},
        {"{\"a\":}", 5, "a value is expected"},
        {"{\"a\":1", 6, "',' or '}'"},
        {"{\"a\":1]", 6, "',' or '}'"},
        {"{\"a\":1 \"b\":2}", 7, "',' or '}'"},
        {"{\"a\":1,}", 7, "nothing follows a comma"},
        {"\"", 0, "not terminated"},
        {"\"abc", 0, "not terminated"},
        {"\"abc\\\"", 0, "not terminated"},
        {"\"\\", 1, "this is not a JSON escape"},
        {"\"\\x41\"", 1, "this is not a JSON escape"},
        {"\"\\'\"", 1, "this is not a JSON escape"},
        {"\"\\u12\"", 1, "this is not a JSON escape"},
        {"\"\\u12g4\"", 1, "this is not a JSON escape"},
        {"\"\\u+123\"", 1, "this is not a JSON escape"},
        {"\"a\\u0000\"", 2, "U+0000"},
        {"\"\\ud800\"", 1, "surrogate"},
        {"\"\\udc00\"", 1, "surrogate"},
        {"\"\\ud800x\"", 1, "surrogate"},
        {"\"\\ud800\\n\"", 1, "surrogate"},
        {"\"\\ud800\\u0041\"", 1, "surrogate"},
        {"\"\\ud800\\ud800\"", 1, "surrogate"},
        {"\"\\udc00\\udc00\"", 1, "surrogate"},
        {"\"\\ud800", 1, "surrogate"},
        {"\"a\nb\"", 2, "control character"},
        {"\"\t\"", 1, "control character"},
        {"\"\x1f\"", 1, "control character"},
        {"\"\x80\"", 1, "UTF-8"},             /* a continuation alone */
        {"\"a\xc3\"", 2, "UTF-8"},            /* cut off */
        {"\"\xc0\xaf\"", 1, "UTF-8"},         /* overlong */
        {"\"\xc1\xbf\"", 1, "UTF-8"},         /* overlong */
        {"\"\xe0\x9f\xbf\"", 1, "UTF-8"},     /* overlong */
        {"\"\xf0\x8f\xbf\xbf\"", 1, "UTF-8"}, /* overlong */
        {"\"\xed\xa0\x80\"", 1, "UTF-8"},     /* a surrogate */
        {"\"\xf4\x90\x80\x80\"", 1, "UTF-8"}, /* beyond U+10FFFF */
        {"\"\xe2\x82", 1, "UTF-8"},
        {"\"\xe2\x82\xe2\"", 1, "UTF-8"},
        {"{\"\xff\":1}", 2, "UTF-8"},
    };
    an_json j;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (reads(cases[i].text, strlen(cases[i].text), &j)) fail_msg("%s is read", cases[i].text);
        if (!strstr(j.problem, cases[i].words) || j.at != cases[i].at)
            fail_msg("%s: byte %zu: %s; expected was byte %zu, %s", cases[i].text, j.at, j.problem, cases[i].at,
                     cases[i].words);
    }
    assert_false(reads("\"a\0b\"", 5, &j));
    assert_int_equal(j.at, 2);
    assert_false(reads("1\0", 2, &j));
    assert_int_equal(j.at, 1);
}

/* Each reader takes its own kind, and leaves the place at what it refuses. */
static void test_kinds(void **state) {
    enum { STRING, COUNT, U64, INTEGER, REAL, BOOL, OBJECT, ARRAY, KINDS };
    static const struct {
        const char *text, *kinds; /* s c u i r b o a, of those that take it */
    } cases[] = {{"\"1\"", "s"},
                 {"1", "cuir"},
                 {"-1", "ir"},
                 {"-0", "ir"},
                 {"1.0", "r"},
                 {"1e3", "r"},
                 {"1E0", "r"},
                 {"9223372036854775807", "cuir"},
                 {"9223372036854775808", "ur"},
                 {"-9223372036854775808", "ir"},
                 {"-9223372036854775809", "r"},
                 {"18446744073709551615", "ur"},
                 {"18446744073709551616", "r"},
                 {"99999999999999999999999", "r"},
                 {"1.7976931348623157e308", "r"},
                 {"1.8e308", ""},
                 {"-1e400", ""},
                 {"1e-400", "r"},
                 {"007", ""},
                 {"null", "r"},
                 {"true", "b"},
                 {"false", "b"},
                 {"{}", "o"},
                 {"[]", "a"},
                 {"", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            an_json j;
            an_json_string string;
            int64_t whole;
            uint64_t large;
            double real;
            bool truth, taken = false;
            char *copy = copy_of(cases[i].text, strlen(cases[i].text));
            an_json_init(&j, copy, strlen(cases[i].text));
            if (kind == STRING) taken = an_json_string_value(&j, &string);
            if (kind == COUNT) taken = an_json_count(&j, &whole);
            if (kind == U64) taken = an_json_u64(&j, &large);
            if (kind == INTEGER) taken = an_json_integer(&j, &whole);
            if (kind == REAL) taken = an_json_real(&j, &real);
            if (kind == BOOL) taken = an_json_bool(&j, &truth);
            if (kind == OBJECT) taken = an_json_object(&j);
            if (kind == ARRAY) taken = an_json_array(&j);
            if (taken != (strchr(cases[i].kinds, "scuirboa"[kind]) != NULL) || taken != !j.problem)
                fail_msg("'%s' as kind %d: %s", cases[i].text, kind, taken ? "taken" : j.problem);
            if (!taken) assert_int_equal(j.at, 0);
            free(copy);
        }
}

static void test_first_problem_stays(void **state) {
    char text[] = "[1, x, \"";
    an_json j;
    an_json_string string;
    int64_t count;
    double real;
    bool truth;
    (void)state;
    an_json_init(&j, text, strlen(text));
    assert_true(an_json_array(&j) && an_json_element(&j) && an_json_count(&j, &count) && an_json_element(&j));
    assert_false(an_json_count(&j, &count));
    const char *problem = j.problem;
    assert_string_equal(problem, "a number is expected here");
    assert_false(an_json_element(&j) || an_json_member(&j, &string) || an_json_object(&j) || an_json_array(&j));
    assert_false(an_json_string_value(&j, &string) || an_json_real(&j, &real) || an_json_bool(&j, &truth));
    assert_false(an_json_skip(&j) || an_json_end(&j) || an_json_refuse(&j, 0, "another"));
    assert_ptr_equal(j.problem, problem);
    assert_int_equal(j.at, 4);

    char array[] = "[1]", object[] = "{}"; /* a caller that has lost its way is told */
    an_json_init(&j, array, strlen(array));
    assert_false(an_json_element(&j));
    assert_non_null(j.problem);
    an_json_init(&j, array, strlen(array));
    assert_true(an_json_array(&j) && !an_json_member(&j, &string) && j.problem);
    an_json_init(&j, object, strlen(object));
    assert_true(an_json_object(&j) && !an_json_element(&j) && j.problem);
}

/* ---- numbers and strings that we write ---- */

static void check_bits(double number) {
    char text[32];
    an_json j;
    double again = 0;
    an_text_number(text, sizeof text, number);
    an_json_init(&j, text, strlen(text));
    if (!an_json_real(&j, &again) || !an_json_end(&j) || bits_of(again) != bits_of(number))
        fail_msg("%a was written as %s and read as %a", number, text, again);
}

static void check_many(void) {
    static const double chosen[] = {0,    -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1,
                                    1e15, 1e16, 1e22,   1e23};
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) check_bits(chosen[i]);
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        double number;
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        memcpy(&number, &bits, sizeof number);
        if (isfinite(number)) check_bits(number);
    }
}

static void test_number_bits(void **state) {
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
    (void)state;
    check_many();
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) /* one with a comma, where there is one */
        if (setlocale(LC_NUMERIC, locales[i])) check_many();
    setlocale(LC_NUMERIC, "C");
    char longest[AN_LONGEST_NUMBER + 2] = "0.";
    an_json j;
    double real;
    memset(longest + 2, '1', AN_LONGEST_NUMBER - 1);
    an_json_init(&j, longest, AN_LONGEST_NUMBER);
    assert_true(an_json_real(&j, &real));
    an_json_init(&j, longest, AN_LONGEST_NUMBER + 1);
    assert_false(an_json_real(&j, &real));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),      cmocka_unit_test(test_skipped), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_kinds),   cmocka_unit_test(test_first_problem_stays),
        cmocka_unit_test(test_number_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
