/* Text by bytes and by characters: samples follow each other, the vocabulary is the whole file's, and what
 * is no UTF-8 has a place. */
#include "data/support.h"

static an_text_source text_of(const char *path, an_text_tokens tokens, int64_t context) {
    an_text_source source;
    an_text_source_init(&source, sizeof source);
    source.path = path;
    source.tokens = tokens;
    source.context = context;
    return source;
}

/* Samples of a dataset are the tokens `expected`, cut as the documentation says. */
static void check_samples(an_context *ctx, an_dataset *d, int64_t context, const int32_t *expected, int64_t count) {
    int32_t *tokens = malloc((size_t)context * 4), *targets = malloc((size_t)context * 4);
    assert_int_equal(an_dataset_count(d), (count - 1) / context);
    for (int64_t i = an_dataset_count(d) - 1; i >= 0; i--) {
        OK(ctx, an_dataset_read(d, 1, &i, (void *const[]){tokens, targets}));
        assert_memory_equal(tokens, expected + i * context, (size_t)context * 4);
        assert_memory_equal(targets, expected + i * context + 1, (size_t)context * 4);
    }
    free(tokens);
    free(targets);
}

static void test_bytes(void **state) {
    enum { SIZE = 30000 };
    static unsigned char bytes[SIZE];
    static int32_t expected[SIZE];
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    int64_t count;
    (void)state;
    for (int i = 0; i < SIZE; i++) expected[i] = bytes[i] = (unsigned char)(i * i / 7);
    write_file("bytes.txt", bytes, SIZE);
    append_gzip("bytes.gz", "wb", bytes, SIZE);
    static const int64_t contexts[] = {1, 2, 7, 100, 8191, 8192, 8193, 20000, SIZE - 1};
    for (size_t c = 0; c < sizeof contexts / sizeof *contexts; c++)
        for (int compressed = 0; compressed < 2; compressed++) {
            an_text_source source = text_of(compressed ? "bytes.gz" : "bytes.txt", AN_TEXT_BYTES, contexts[c]);
            OK(ctx, an_dataset_create_text(&d, ctx, &source));
            check_samples(ctx, d, contexts[c], expected, SIZE);
            OK(ctx, an_dataset_vocabulary(d, &count));
            assert_int_equal(count, 256);
            an_dataset_destroy(&d);
        }
    an_text_source source = text_of("bytes.txt", AN_TEXT_BYTES, 10);
    source.begin = 0.9;
    OK(ctx, an_dataset_create_text(&d, ctx, &source));
    check_samples(ctx, d, 10, expected + SIZE / 10 * 9, SIZE / 10);
    an_dataset_destroy(&d);
    source = text_of("bytes.txt", AN_TEXT_BYTES, SIZE);
    FAILS(ctx, an_dataset_create_text(&d, ctx, &source), AN_ERR_ARGUMENT,
          "bytes.txt: the part has 30000 tokens, but a sample needs 30001");
    source.context = 0;
    FAILS(ctx, an_dataset_create_text(&d, ctx, &source), AN_ERR_ARGUMENT,
          "bytes.txt: the context is 0 tokens; it must be from 1 to 2147483646");
    source.context = INT64_C(1) << 62;
    FAILS(ctx, an_dataset_create_text(&d, ctx, &source), AN_ERR_ARGUMENT,
          "the context is 4611686018427387904 tokens; it must be from 1 to 2147483646");
    end_context(&ctx);
}

static const char mixed[] = "h\xc3\xa9llo \xe2\x82\xac h\xf0\x9f\x98\x80h";
/* sorted: ' ' e9 … : space h l o é € 😀 */
static const int32_t mixed_tokens[] = {1, 4, 2, 2, 3, 0, 5, 0, 1, 6, 1};

static void test_characters(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL, *other = NULL;
    int64_t count;
    char bytes[AN_TOKEN_BYTES];
    int32_t tokens[16];
    int length;
    (void)state;
    write_text("mixed.txt", mixed);
    append_gzip("mixed.gz", "wb", mixed, strlen(mixed));
    for (int compressed = 0; compressed < 2; compressed++) {
        an_text_source source = text_of(compressed ? "mixed.gz" : "mixed.txt", AN_TEXT_CHARACTERS, 2);
        OK(ctx, an_dataset_create_text(&d, ctx, &source));
        check_samples(ctx, d, 2, mixed_tokens, 11);
        an_dataset_destroy(&d);
    }
    /* A part has the vocabulary of the whole. */
    an_text_source source = text_of("mixed.txt", AN_TEXT_CHARACTERS, 2);
    source.end = 0.5;
    OK(ctx, an_dataset_create_text(&d, ctx, &source));
    check_samples(ctx, d, 2, mixed_tokens, 5);
    OK(ctx, an_dataset_vocabulary(d, &count));
    assert_int_equal(count, 7);
    an_field field;
    an_field_init(&field, sizeof field);
    OK(ctx, an_dataset_field(d, 0, &field));
    assert_int_equal(field.limit, 7);
    OK(ctx, an_dataset_token_text(d, 6, bytes, &length));
    assert_int_equal(length, 4);
    assert_memory_equal(bytes, "\xf0\x9f\x98\x80", 4);
    FAILS(ctx, an_dataset_token_text(d, 7, bytes, &length), AN_ERR_ARGUMENT, "token 7");
    FAILS(ctx, an_dataset_token_text(d, -1, bytes, &length), AN_ERR_ARGUMENT, "token -1");
    OK(ctx, an_dataset_encode(d, mixed, strlen(mixed), tokens, 16, &count));
    assert_int_equal(count, 11);
    assert_memory_equal(tokens, mixed_tokens, sizeof mixed_tokens);
    OK(ctx, an_dataset_encode(d, mixed, strlen(mixed), NULL, 0, &count));
    assert_int_equal(count, 11);
    FAILS(ctx, an_dataset_encode(d, "hx", 2, tokens, 16, &count), AN_ERR_UNKNOWN,
          "byte 1 of the text: the character U+0078");
    FAILS(ctx, an_dataset_encode(d, "h\xc3", 2, tokens, 16, &count), AN_ERR_PARSE, "byte 1");
    /* Another text with these numbers. */
    write_text("other.txt", "hello");
    an_text_source second = text_of("other.txt", AN_TEXT_CHARACTERS, 2);
    second.vocabulary = d;
    FAILS(ctx, an_dataset_create_text(&other, ctx, &second), AN_ERR_PARSE, "U+0065 is not in the vocabulary");
    write_text("other.txt", "hollo");
    OK(ctx, an_dataset_create_text(&other, ctx, &second));
    check_samples(ctx, other, 2, (int32_t[]){1, 3, 2, 2, 3}, 5);
    an_dataset_destroy(&other);
    second.tokens = AN_TEXT_BYTES;
    FAILS(ctx, an_dataset_create_text(&other, ctx, &second), AN_ERR_ARGUMENT,
          "vocabulary is a dataset with a different kind of tokens");
    an_dataset_destroy(&d);
    end_context(&ctx);
}

/* Every code point there is, in tokens of two and four bytes, across the buffers of the reader. */
static void test_every_character(void **state) {
    static const uint32_t ends[] = {0x180, 0x10000, 0x110000};
    static char text[5 << 20];
    an_context *ctx = new_context();
    (void)state;
    for (size_t e = 0; e < 3; e++) {
        size_t size = 0;
        int64_t count, points = 0;
        an_dataset *d = NULL;
        for (uint32_t p = 0; p < ends[e]; p++) {
            if (p >= 0xd800 && p < 0xe000) continue;
            points++;
            if (p < 0x80) {
                text[size++] = (char)p;
            } else if (p < 0x800) {
                text[size++] = (char)(0xc0 | p >> 6);
                text[size++] = (char)(0x80 | (p & 63));
            } else if (p < 0x10000) {
                text[size++] = (char)(0xe0 | p >> 12);
                text[size++] = (char)(0x80 | (p >> 6 & 63));
                text[size++] = (char)(0x80 | (p & 63));
            } else {
                text[size++] = (char)(0xf0 | p >> 18);
                text[size++] = (char)(0x80 | (p >> 12 & 63));
                text[size++] = (char)(0x80 | (p >> 6 & 63));
                text[size++] = (char)(0x80 | (p & 63));
            }
        }
        write_file("all.txt", text, size);
        an_text_source source = text_of("all.txt", AN_TEXT_CHARACTERS, points - 1);
        OK(ctx, an_dataset_create_text(&d, ctx, &source));
        OK(ctx, an_dataset_vocabulary(d, &count));
        assert_int_equal(count, points);
        int32_t *expected = malloc((size_t)points * 4);
        for (int64_t i = 0; i < points; i++) expected[i] = (int32_t)i;
        check_samples(ctx, d, points - 1, expected, points);
        size_t at = 0;
        for (int32_t i = 0; i < points; i++) {
            char bytes[AN_TOKEN_BYTES];
            int length;
            OK(ctx, an_dataset_token_text(d, i, bytes, &length));
            assert_memory_equal(bytes, text + at, (size_t)length);
            at += (size_t)length;
        }
        assert_int_equal(at, size);
        free(expected);
        an_dataset_destroy(&d);
    }
    end_context(&ctx);
}

static void test_not_utf8(void **state) {
    static const struct {
        const char *bytes;
        const char *words;
    } cases[] = {{"ab\x80", "byte 2: 0x80"},
                 {"ab\xc0\x80", "byte 2: 0xc0"},
                 {"a\xe0\x80\x80z", "byte 1: 0xe0"},
                 {"\xed\xa0\x80", "byte 0: 0xed"},
                 {"\xf4\x90\x80\x80", "byte 0"},
                 {"\xf0\x8f\xbf\xbf", "byte 0"},
                 {"abc\xe2\x82", "byte 3: 0xe2"},
                 {"abc\xe2\x82z", "byte 3: 0xe2"},
                 {"\xff\xfe"
                  "a",
                  "byte 0: 0xff"},
                 {"\xf8\x88\x80\x80\x80", "byte 0"},
                 {"a\xc3", "bytes.txt: byte 1: 0xc3"},
                 {"", "byte 0: the text is empty"}};
    an_context *ctx = new_context();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_dataset *d = NULL;
        an_text_source source = text_of("bytes.txt", AN_TEXT_CHARACTERS, 1);
        write_text("bytes.txt", cases[i].bytes);
        FAILS(ctx, an_dataset_create_text(&d, ctx, &source), AN_ERR_PARSE, cases[i].words);
    }
    end_context(&ctx);
}

/* A file that loses its end while it is open. */
static void test_shrinks(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    int32_t tokens[10], targets[10];
    (void)state;
    write_text("short.txt", "0123456789012345678901234567890");
    an_text_source source = text_of("short.txt", AN_TEXT_BYTES, 10);
    OK(ctx, an_dataset_create_text(&d, ctx, &source));
    assert_int_equal(truncate("short.txt", 15), 0);
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){0}, (void *const[]){tokens, targets}));
    FAILS(ctx, an_dataset_read(d, 2, (int64_t[]){0, 1}, (void *const[]){tokens, targets}), AN_ERR_FILE,
          "short.txt: byte 15: the file ends here; it had 31 bytes when it was opened");
    an_dataset_destroy(&d);
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),    cmocka_unit_test(test_characters), cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_not_utf8), cmocka_unit_test(test_shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
