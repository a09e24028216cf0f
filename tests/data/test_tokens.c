/* Files of tokens, with and without llm.c's header; limits; documents. */
#include "data/support.h"

enum { TOKENS = 1000, HEADER = 1024 };
static unsigned char file[HEADER + 4 * TOKENS + 8];

/* Token i of every file here. */
static int32_t token(int64_t i) {
    return (int32_t)(i * 37 % 1009);
}

static size_t make_file(uint32_t magic, uint32_t version, int width) {
    const size_t header = magic ? HEADER : 0;
    memset(file, 0, sizeof file);
    put_u32(file, magic);
    put_u32(file + 4, version);
    put_u32(file + 8, TOKENS);
    for (int i = 0; i < TOKENS; i++) {
        unsigned char bytes[4];
        put_u32(bytes, (uint32_t)token(i));
        memcpy(file + header + (size_t)(i * width), bytes, (size_t)width);
    }
    return header + (size_t)(TOKENS * width);
}

static an_token_source source_of(const char *path, int64_t context) {
    an_token_source source;
    an_token_source_init(&source, sizeof source);
    source.path = path;
    source.context = context;
    return source;
}

static void test_formats(void **state) {
    static const struct {
        uint32_t magic, version;
        int width;
        an_token_format format;
    } cases[] = {{0, 0, 2, AN_TOKENS_AUTO},
                 {0, 0, 2, AN_TOKENS_U16},
                 {0, 0, 4, AN_TOKENS_U32},
                 {20240520, 1, 2, AN_TOKENS_AUTO},
                 {20240801, 7, 4, AN_TOKENS_AUTO}};
    an_context *ctx = new_context();
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        an_dataset *d = NULL;
        an_field field;
        an_field_init(&field, sizeof field);
        int32_t tokens[33], targets[33];
        an_token_source source = source_of("tokens.bin", 33);
        source.format = cases[c].format;
        write_file("tokens.bin", file, make_file(cases[c].magic, cases[c].version, cases[c].width));
        OK(ctx, an_dataset_create_tokens(&d, ctx, &source));
        assert_int_equal(an_dataset_count(d), (TOKENS - 1) / 33);
        assert_int_equal(an_dataset_field_count(d), 2);
        OK(ctx, an_dataset_field(d, 0, &field));
        assert_string_equal(field.name, "tokens");
        assert_int_equal(field.dtype, AN_DTYPE_I32);
        assert_int_equal(field.dims[0], 33);
        for (int64_t i = 0; i < an_dataset_count(d); i++) {
            OK(ctx, an_dataset_read(d, 1, &i, (void *const[]){tokens, targets}));
            for (int k = 0; k < 33; k++) {
                assert_int_equal(tokens[k], token(i * 33 + k));
                assert_int_equal(targets[k], token(i * 33 + k + 1));
            }
        }
        an_dataset_destroy(&d);
        source.begin = 0.5;
        OK(ctx, an_dataset_create_tokens(&d, ctx, &source));
        assert_int_equal(an_dataset_count(d), 499 / 33);
        OK(ctx, an_dataset_read(d, 1, (int64_t[]){1}, (void *const[]){tokens, targets}));
        assert_int_equal(tokens[0], token(533));
        an_dataset_destroy(&d);
    }
    end_context(&ctx);
}

static void test_limit(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    char words[80];
    int64_t worst = 0;
    (void)state;
    write_file("tokens.bin", file, make_file(20240520, 1, 2));
    an_token_source source = source_of("tokens.bin", 10);
    for (int64_t i = 0; i < TOKENS; i++)
        if (token(i) > token(worst)) worst = i;
    source.limit = token(worst) + 1;
    OK(ctx, an_dataset_create_tokens(&d, ctx, &source));
    OK(ctx, read_all(d));
    an_dataset_destroy(&d);
    source.limit--;
    OK(ctx, an_dataset_create_tokens(&d, ctx, &source));
    snprintf(words, sizeof words, "tokens.bin: byte %d: the value %d in field", (int)(HEADER + 2 * worst),
             token(worst));
    FAILS(ctx, read_all(d), AN_ERR_PARSE, words);
    an_dataset_destroy(&d);
    /* The last token of all is only a target, and has its own place. */
    write_file("tokens.bin", "\1\0\2\0\3\0\4\0\x63\0", 10);
    source = source_of("tokens.bin", 2);
    source.limit = 99;
    OK(ctx, an_dataset_create_tokens(&d, ctx, &source));
    FAILS(ctx, read_all(d), AN_ERR_PARSE, "tokens.bin: byte 8: the value 99 in field 'targets'");
    an_dataset_destroy(&d);
    source.limit = -1;
    FAILS(ctx, an_dataset_create_tokens(&d, ctx, &source), AN_ERR_ARGUMENT, "limit");
    /* What is no i32 is never a token. */
    write_file("tokens.bin", "\0\0\0\0\0\0\0\x80\0\0\0\0", 12);
    source = source_of("tokens.bin", 2);
    source.format = AN_TOKENS_U32;
    OK(ctx, an_dataset_create_tokens(&d, ctx, &source));
    FAILS(ctx, read_all(d), AN_ERR_PARSE, "tokens.bin: byte 4: the token is 2147483648");
    an_dataset_destroy(&d);
    end_context(&ctx);
}

static void refuse(an_context *ctx, size_t size, const char *words) {
    an_dataset *d = NULL;
    an_token_source source = source_of("bad.bin", 1);
    write_file("bad.bin", file, size);
    FAILS(ctx, an_dataset_create_tokens(&d, ctx, &source), AN_ERR_PARSE, words);
    assert_null(d);
    assert_int_equal(an_context_bytes(ctx), context_bytes);
}

static void test_wrong(void **state) {
    an_context *ctx = new_context();
    (void)state;
    const size_t size = make_file(20240520, 1, 2);
    for (size_t cut = 12; cut < size; cut++)
        refuse(ctx, cut, "bad.bin: byte 8: the header announces 1000 tokens of u16");
    refuse(ctx, size + 1, "byte 8");
    static const uint32_t counts[] = {0, 999, 1001, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffe00};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        put_u32(file + 8, counts[i]);
        refuse(ctx, size, "byte 8: the header announces");
    }
    make_file(20240520, 7, 2);
    refuse(ctx, size, ": byte 4: version 7 of llm.c's token format is not supported; only version 1 is");
    make_file(20240801, 1, 4);
    refuse(ctx, HEADER + 4 * TOKENS, "byte 4: version 1");
    make_file(0, 0, 2);
    refuse(ctx, 2 * TOKENS - 1, "bad.bin: byte 1999: the file ends in the middle of a token of u16");
    end_context(&ctx);
}

/* A document goes up to its end token; samples are cut as without documents. */
static void test_documents(void **state) {
    static const int32_t stream[] = {5, 6, 9, 9, 7, 8, 5, 9, 1, 2, 3, 4, 9};
    enum { COUNT = sizeof stream / sizeof *stream };
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    an_field field;
    an_field_init(&field, sizeof field);
    int32_t tokens[2][6], targets[2][6], documents[2][6];
    unsigned char bytes[2 * COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        bytes[2 * i] = (unsigned char)stream[i];
        bytes[2 * i + 1] = 0;
    }
    write_file("documents.bin", bytes, sizeof bytes);
    an_token_source source = source_of("documents.bin", 6);
    source.documents = true;
    source.end_token = 9;
    for (int ignored = 0; ignored < 2; ignored++) {
        source.ignore_borders = ignored;
        OK(ctx, an_dataset_create_tokens(&d, ctx, &source));
        assert_int_equal(an_dataset_field_count(d), 3);
        OK(ctx, an_dataset_field(d, 2, &field));
        assert_string_equal(field.name, "documents");
        assert_false(field.target);
        OK(ctx, an_dataset_set_limit(d, "targets", 10));
        OK(ctx, an_dataset_read(d, 2, (int64_t[]){0, 1}, (void *const[]){tokens, targets, documents}));
        assert_memory_equal(tokens, stream, sizeof tokens);
        const int32_t expected[2][6] = {{0, 0, 0, 1, 2, 2}, {0, 0, 1, 1, 1, 1}};
        assert_memory_equal(documents, expected, sizeof documents);
        for (int i = 0; i < 12; i++)
            assert_int_equal(targets[i / 6][i % 6], ignored && stream[i] == 9 ? AN_TARGET_IGNORED : stream[i + 1]);
        an_dataset_destroy(&d);
    }
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
