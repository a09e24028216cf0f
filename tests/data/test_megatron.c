/* Megatron's indexed files: tokens of every type, borders of documents, and an index of which no byte is taken on
 * trust. */
#include "data/support.h"

enum { SEQUENCES = 4, BORDERS = 5, HEADER = 34 };
static const int32_t lengths[SEQUENCES] = {3, 0, 4, 6};
static const int64_t borders[BORDERS] = {0, 1, 2, 3, 4}; /* documents of 3, 0, 4 and 6 tokens */
enum { TOKENS = 13, INDEX = HEADER + 12 * SEQUENCES + 8 * BORDERS };

static unsigned char index_file[INDEX + 1], tokens_file[8 * TOKENS + 1];

static void make_index(int type, int width) {
    int64_t offset = 0;
    memset(index_file, 0, sizeof index_file);
    snprintf((char *)index_file, sizeof index_file, "MMIDIDX");
    put_u64(index_file + 9, 1);
    index_file[17] = (unsigned char)type;
    put_u64(index_file + 18, SEQUENCES);
    put_u64(index_file + 26, BORDERS);
    for (int i = 0; i < SEQUENCES; i++) {
        put_u32(index_file + HEADER + 4 * i, (uint32_t)lengths[i]);
        put_u64(index_file + HEADER + 4 * SEQUENCES + 8 * i, (uint64_t)offset);
        offset += (int64_t)lengths[i] * width;
    }
    for (int i = 0; i < BORDERS; i++) put_u64(index_file + HEADER + 12 * SEQUENCES + 8 * i, (uint64_t)borders[i]);
    for (int i = 0; i < TOKENS; i++) {
        unsigned char bytes[8];
        put_u64(bytes, (uint64_t)i * 9);
        memcpy(tokens_file + i * width, bytes, (size_t)width);
    }
}

static an_megatron_source write_pair(int type, int width, int64_t context) {
    an_megatron_source source;
    an_megatron_source_init(&source, sizeof source);
    make_index(type, width);
    write_file("set.idx", index_file, INDEX);
    write_file("set.bin", tokens_file, TOKENS * (size_t)width);
    source.prefix = "set";
    source.context = context;
    return source;
}

static void test_types(void **state) {
    static const int types[][2] = {{1, 1}, {2, 1}, {3, 2}, {4, 4}, {5, 8}, {8, 2}};
    an_context *ctx = new_context();
    (void)state;
    for (size_t c = 0; c < sizeof types / sizeof *types; c++) {
        an_dataset *d = NULL;
        int32_t tokens[5], targets[5];
        an_megatron_source source = write_pair(types[c][0], types[c][1], 5);
        OK(ctx, an_dataset_create_megatron(&d, ctx, &source));
        assert_int_equal(an_dataset_count(d), 2);
        assert_int_equal(an_dataset_field_count(d), 2);
        OK(ctx, an_dataset_read(d, 1, (int64_t[]){1}, (void *const[]){tokens, targets}));
        for (int k = 0; k < 5; k++) {
            assert_int_equal(tokens[k], (5 + k) * 9);
            assert_int_equal(targets[k], (6 + k) * 9);
        }
        an_dataset_destroy(&d);
        source.limit = 9 * 9;
        OK(ctx, an_dataset_create_megatron(&d, ctx, &source));
        char words[64];
        snprintf(words, sizeof words, "set.bin: byte %d: the value 81 in field", 9 * types[c][1]);
        FAILS(ctx, read_all(d), AN_ERR_PARSE, words);
        an_dataset_destroy(&d);
    }
    /* Below 0, and beyond 32 bits. */
    an_megatron_source source = write_pair(5, 8, 5);
    an_dataset *d = NULL;
    put_u64(tokens_file + 16, (uint64_t)-7);
    write_file("set.bin", tokens_file, 8 * TOKENS);
    OK(ctx, an_dataset_create_megatron(&d, ctx, &source));
    FAILS(ctx, read_all(d), AN_ERR_PARSE, "set.bin: byte 16: the token is -7");
    put_u64(tokens_file + 16, UINT64_C(1) << 32);
    write_file("set.bin", tokens_file, 8 * TOKENS);
    FAILS(ctx, read_all(d), AN_ERR_PARSE, "set.bin: byte 16: the token is 4294967296");
    an_dataset_destroy(&d);
    end_context(&ctx);
}

static void test_documents(void **state) {
    static const int32_t of[TOKENS] = {0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}; /* document of each token */
    an_context *ctx = new_context();
    (void)state;
    for (int64_t context = 1; context < TOKENS; context++)
        for (int part = 0; part < 2; part++) {
            an_dataset *d = NULL;
            int32_t tokens[TOKENS], targets[TOKENS], documents[TOKENS];
            an_megatron_source source = write_pair(8, 2, context);
            source.documents = source.ignore_borders = true;
            source.begin = part ? 0.2 : 0; /* from token 2 on */
            const int64_t first = part ? 2 : 0;
            if (TOKENS - first <= context) continue;
            OK(ctx, an_dataset_create_megatron(&d, ctx, &source));
            for (int64_t i = 0; i < an_dataset_count(d); i++) {
                OK(ctx, an_dataset_read(d, 1, &i, (void *const[]){tokens, targets, documents}));
                for (int64_t k = 0; k < context; k++) {
                    const int64_t at = first + i * context + k;
                    assert_int_equal(tokens[k], at * 9);
                    assert_int_equal(documents[k], of[at] - of[first + i * context]);
                    assert_int_equal(targets[k], of[at + 1] == of[at] ? (at + 1) * 9 : AN_TARGET_IGNORED);
                }
            }
            an_dataset_destroy(&d);
        }
    end_context(&ctx);
}

/* The files as they are now in memory. */
static an_status create(an_context *ctx, size_t index_size, size_t tokens_size) {
    an_megatron_source source;
    an_megatron_source_init(&source, sizeof source);
    an_dataset *d = NULL;
    write_file("bad.idx", index_file, index_size);
    write_file("bad.bin", tokens_file, tokens_size);
    source.prefix = "bad";
    source.context = 3;
    source.documents = true;
    an_status status = an_dataset_create_megatron(&d, ctx, &source);
    if (status == AN_OK) status = read_all(d);
    an_dataset_destroy(&d);
    assert_int_equal(an_context_bytes(ctx), context_bytes);
    if (status != AN_OK) assert_non_null(strstr(an_last_error(ctx), ": byte "));
    return status;
}

static void test_wrong(void **state) {
    an_context *ctx = new_context();
    (void)state;
    make_index(8, 2);
    OK(ctx, create(ctx, INDEX, 2 * TOKENS));
    for (size_t cut = 0; cut < INDEX; cut++) assert_int_equal(create(ctx, cut, 2 * TOKENS), AN_ERR_PARSE);
    for (size_t cut = 0; cut < 2 * TOKENS; cut++) assert_int_equal(create(ctx, INDEX, cut), AN_ERR_PARSE);
    assert_int_equal(create(ctx, INDEX + 1, 2 * TOKENS), AN_ERR_PARSE);
    assert_int_equal(create(ctx, INDEX, 2 * TOKENS + 1), AN_ERR_PARSE);
    /* Every byte changed: only the type of tokens, and borders that stay in order, leave something that could be
     * meant. */
    for (size_t i = 0; i < INDEX; i++)
        for (int flip = 1; flip < 256; flip *= 2) {
            index_file[i] = (unsigned char)(index_file[i] ^ flip);
            const an_status status = create(ctx, INDEX, 2 * TOKENS);
            index_file[i] = (unsigned char)(index_file[i] ^ flip);
            if (i != 17 && i < HEADER + 12 * SEQUENCES) assert_int_equal(status, AN_ERR_PARSE);
        }
    static const struct {
        int at;
        uint64_t value;
        const char *words;
    } cases[] = {{18, UINT64_MAX, "byte 18"},
                 {18, UINT64_C(1) << 61, "byte 18"},
                 {26, UINT64_C(1) << 61, "byte 18"},
                 {26, 0, "byte 18"},
                 {HEADER + 4 * SEQUENCES, 2, "sequence 0 begins at byte 2"},
                 {HEADER + 12 * SEQUENCES, 1, "document 0 begins at sequence 1"},
                 {HEADER + 12 * SEQUENCES + 8, (uint64_t)-1, "document 1 begins at sequence -1"},
                 {HEADER + 12 * SEQUENCES + 8, 5, "document 1 begins at sequence 5"},
                 {HEADER + 12 * SEQUENCES + 32, 3, "document 4 begins at sequence 3"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        make_index(8, 2);
        put_u64(index_file + cases[c].at, cases[c].value);
        FAILS(ctx, create(ctx, INDEX, 2 * TOKENS), AN_ERR_PARSE, cases[c].words);
    }
    make_index(8, 2);
    put_u32(index_file + HEADER, 0xffffffff);
    FAILS(ctx, create(ctx, INDEX, 2 * TOKENS), AN_ERR_PARSE, "sequence 0 has -1 tokens");
    make_index(6, 2);
    FAILS(ctx, create(ctx, INDEX, 2 * TOKENS), AN_ERR_PARSE, ": byte 17: the token type is 6");
    an_dataset *d = NULL;
    an_megatron_source source = write_pair(8, 2, 3);
    source.prefix = "nothing";
    FAILS(ctx, an_dataset_create_megatron(&d, ctx, &source), AN_ERR_FILE, "nothing.bin: cannot be opened");
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
