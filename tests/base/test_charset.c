/* What is not UTF-8 is recognised, wherever a text is cut into parts. */
#include "base/text/charset.h"
#include "support/support.h"

static an_charset look_at(const char *text, size_t length, size_t part) {
    an_charset c = {0};
    for (size_t at = 0; at < length; at += part) an_charset_see(&c, text + at, length - at < part ? length - at : part);
    an_charset_finish(&c);
    return c;
}

static void test_texts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t length;
        const char *name;
        int64_t line;
    } texts[] = {{"a\nb\n", 4, NULL, 0},
                 {"\xef\xbb\xbf"
                  "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\xb8",
                  17, NULL, 0},
                 {"x\ncaf\xe9 noir\n", 12, "ISO-8859-1", 2},
                 {"x\n\ncaf\xe9", 7, "ISO-8859-1", 3},
                 {"\x93quoted\x94", 8, "WINDOWS-1252", 1},
                 {"a\xe9\nb\x80", 5, "WINDOWS-1252", 1},
                 {"cut \xe2\x82", 6, "WINDOWS-1252", 1}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t part = texts[i].length; part > 0; part--) {
            const an_charset c = look_at(texts[i].text, texts[i].length, part);
            assert_int_equal(c.name != NULL, texts[i].name != NULL);
            if (c.name) assert_int_equal(c.line, texts[i].line);
            if (c.name && part == texts[i].length) assert_string_equal(c.name, texts[i].name);
        }
}

static void test_marks(void **state) {
    (void)state;
    assert_string_equal(look_at("\xff\xfe"
                                "a\0b\0",
                                6, 6)
                            .name,
                        "UTF-16");
    assert_string_equal(look_at("\xfe\xff\0a\0b", 6, 6).name, "UTF-16");
    assert_string_equal(look_at("\xff\xfe\0\0a\0\0\0", 8, 8).name, "UTF-32");
    assert_string_equal(look_at("a\0,\0b\0", 6, 6).name, "UTF-16LE");
    assert_string_equal(look_at("\0a\0,\0b", 6, 6).name, "UTF-16BE");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_marks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
