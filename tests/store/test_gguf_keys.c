/* The keys of GGUF files: every type of value, arrays, wrong kinds, and files whose keys are damaged. */
#include "base/context.h"
#include "data/support.h"
#include "formats/gguf_keys.h"
#include "store/gguf_made.h"

static const char path[] = "k.gguf";

static an_gguf *open_made(an_context *ctx, made *m) {
    an_gguf *g = NULL;
    write_file(path, m->bytes, m->size);
    OK(ctx, an_gguf_open(&g, ctx, path));
    return g;
}

static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static uint64_t small_bits_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* ---- what is read ---- */

static void test_values(void **state) {
    static const struct {
        const char *name;
        uint32_t type;
        int bytes;
        uint64_t bits;
        int64_t value;
    } integers[] = {
        {"u8", 0, 1, 200, 200},
        {"i8", 1, 1, 0x80, -128},
        {"u16", 2, 2, 60000, 60000},
        {"i16", 3, 2, 0xfffe, -2},
        {"u32", 4, 4, 0xffffffff, 0xffffffff},
        {"i32", 5, 4, 0x80000000, INT32_MIN},
        {"u64", 10, 8, INT64_MAX, INT64_MAX},
        {"u64 too large", 10, 8, UINT64_MAX, INT64_MAX},
        {"i64", 11, 8, UINT64_C(1) << 63, INT64_MIN},
        {"i64 minus one", 11, 8, UINT64_MAX, -1},
    };
    an_context *ctx = new_context();
    made m;
    double real = 0;
    bool on = false;
    const char *bytes = NULL;
    size_t length = 0;
    (void)state;
    const int count = sizeof integers / sizeof *integers;
    add_head(&m, (uint64_t)count + 4);
    for (int i = 0; i < count; i++)
        add_key(&m, integers[i].name, integers[i].type, integers[i].bytes, integers[i].bits);
    add_key(&m, "f32", 6, 4, small_bits_of(1.5F));
    add_key(&m, "f64", 12, 8, bits_of(-2.25));
    add_key(&m, "bool", 7, 1, 1);
    add_text(&m, "text");
    add_number(&m, 4, 8);
    add_text(&m, "a text");
    an_gguf *g = open_made(ctx, &m);
    assert_int_equal(an_gguf_key_count(g), count + 4);
    for (int i = 0; i < count; i++) {
        int64_t value = 0;
        OK(ctx, an_gguf_integer(g, integers[i].name, &value));
        assert_int_equal(value, integers[i].value);
        assert_string_equal(an_gguf_key_name(g, an_gguf_key_at(g, (size_t)i)), integers[i].name);
    }
    OK(ctx, an_gguf_real(g, "f32", &real));
    assert_true(real == 1.5);
    OK(ctx, an_gguf_real(g, "f64", &real));
    assert_true(real == -2.25);
    OK(ctx, an_gguf_real(g, "i16", &real));
    assert_true(real == -2);
    OK(ctx, an_gguf_bool(g, "bool", &on));
    assert_true(on);
    OK(ctx, an_gguf_string(g, "text", &bytes, &length));
    assert_int_equal(length, 6);
    assert_memory_equal(bytes, "a text", 6);
    /* an absent key leaves what was there */
    OK(ctx, an_gguf_real(g, "none", &real));
    assert_true(real == -2);
    assert_null(an_gguf_find(g, "none"));
    an_gguf_close(&g);
    an_context_destroy(&ctx);
}

static void test_arrays(void **state) {
    an_context *ctx = new_context();
    an_gguf_cursor cursor;
    an_gguf_value v;
    made m;
    (void)state;
    add_head(&m, 5);
    add_array(&m, "texts", 8, 3);
    add_text(&m, "one");
    add_text(&m, "");
    add_text(&m, "\xff\xfe");
    add_array(&m, "numbers", 5, 2);
    add_number(&m, 4, 7);
    add_number(&m, 4, 0xffffffff);
    add_array(&m, "scores", 6, 2);
    add_number(&m, 4, small_bits_of(0.5F));
    add_number(&m, 4, small_bits_of(-1));
    add_array(&m, "empty", 8, 0);
    add_key(&m, "single", 4, 4, 9);
    an_gguf *g = open_made(ctx, &m);
    static const char *const texts[] = {"one", "", "\xff\xfe"};
    OK(ctx, an_gguf_array(g, "texts", AN_GGUF_KIND_STRING, &cursor));
    for (int i = 0; i < 3; i++) {
        assert_true(an_gguf_next(&cursor, &v));
        assert_int_equal(v.length, strlen(texts[i]));
        assert_memory_equal(v.bytes, texts[i], v.length);
    }
    assert_false(an_gguf_next(&cursor, &v));
    OK(ctx, an_gguf_array(g, "numbers", AN_GGUF_KIND_INTEGER, &cursor));
    assert_true(an_gguf_next(&cursor, &v) && v.integer == 7);
    assert_true(an_gguf_next(&cursor, &v) && v.integer == -1 && v.real == -1);
    assert_false(an_gguf_next(&cursor, &v));
    OK(ctx, an_gguf_array(g, "scores", AN_GGUF_KIND_REAL, &cursor));
    assert_true(an_gguf_next(&cursor, &v) && v.real == 0.5);
    assert_true(an_gguf_next(&cursor, &v) && v.real == -1);
    OK(ctx, an_gguf_array(g, "empty", AN_GGUF_KIND_STRING, &cursor));
    assert_false(an_gguf_next(&cursor, &v));
    OK(ctx, an_gguf_array(g, "none", AN_GGUF_KIND_STRING, &cursor));
    assert_false(an_gguf_next(&cursor, &v));
    const an_gguf_key *key = an_gguf_find(g, "texts");
    assert_true(an_gguf_key_is_array(key) && an_gguf_key_elements(key) == 3);
    an_gguf_close(&g);
    an_context_destroy(&ctx);
}

/* ---- what is refused ---- */

static void test_wrong_kinds(void **state) {
    an_context *ctx = new_context();
    int64_t integer = 5;
    double real = 5;
    bool on = true;
    const char *bytes = "x";
    size_t length = 1;
    an_gguf_cursor cursor;
    made m;
    (void)state;
    add_head(&m, 3);
    add_key(&m, "real", 6, 4, small_bits_of(1));
    add_array(&m, "numbers", 5, 1);
    add_number(&m, 4, 7);
    add_key(&m, "bool", 7, 1, 0);
    an_gguf *g = open_made(ctx, &m);
    FAILS(ctx, an_gguf_integer(g, "real", &integer), AN_ERR_DAMAGED, "k.gguf: real is a number, but an integer is");
    FAILS(ctx, an_gguf_integer(g, "numbers", &integer), AN_ERR_DAMAGED,
          "numbers is an array of integers, but an integer is expected");
    FAILS(ctx, an_gguf_real(g, "bool", &real), AN_ERR_DAMAGED, "bool is true or false, but a number is expected");
    FAILS(ctx, an_gguf_bool(g, "real", &on), AN_ERR_DAMAGED, "but true or false is expected");
    FAILS(ctx, an_gguf_string(g, "real", &bytes, &length), AN_ERR_DAMAGED, "but a text is expected");
    FAILS(ctx, an_gguf_array(g, "real", AN_GGUF_KIND_REAL, &cursor), AN_ERR_DAMAGED, "but an array of numbers is");
    FAILS(ctx, an_gguf_array(g, "numbers", AN_GGUF_KIND_STRING, &cursor), AN_ERR_DAMAGED, "but an array of texts is");
    assert_true(integer == 5 && real == 5 && on && length == 1);
    an_gguf_close(&g);
    an_context_destroy(&ctx);
}

static void refuse(an_context *ctx, made *m, const char *words) {
    an_gguf *g = NULL;
    const size_t held = an_context_bytes(ctx);
    write_file(path, m->bytes, m->size);
    FAILS(ctx, an_gguf_open(&g, ctx, path), AN_ERR_DAMAGED, words);
    assert_null(g);
    assert_int_equal(an_context_bytes(ctx), held);
}

static void test_damaged(void **state) {
    an_context *ctx = new_context();
    made m;
    (void)state;
    add_head(&m, 2);
    add_key(&m, "a", 0, 1, 1);
    add_key(&m, "a", 0, 1, 1);
    refuse(ctx, &m, "key 'a' appears twice");
    add_head(&m, 1);
    add_key(&m, "", 0, 1, 1);
    refuse(ctx, &m, "a key has no name");
    add_head(&m, 1);
    add_key(&m, "\xff", 0, 1, 1);
    refuse(ctx, &m, "the name of a key is not valid UTF-8");
    add_head(&m, 1);
    add_key(&m, "abc", 0, 1, 1);
    m.bytes[24 + 8 + 1] = 0;
    refuse(ctx, &m, "the name of a key has a NUL in it");
    add_head(&m, 1);
    add_array(&m, "texts", 8, UINT64_MAX);
    refuse(ctx, &m, "a string needs 8 bytes");
    add_head(&m, 1);
    add_array(&m, "general.alignment", 4, 1);
    add_number(&m, 4, 64);
    refuse(ctx, &m, "general.alignment is not a number of 32 bits");
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_arrays),
                                       cmocka_unit_test(test_wrong_kinds), cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
