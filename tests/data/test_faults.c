/* Every allocation of every source fails once: an error, nothing lost, and the next try works. */
#include "anneal/chat.h"
#include "anneal/text.h"
#include "data/loader.h"
#include "data/pictures.h"

typedef an_status maker(an_dataset **d, an_context *ctx);

static an_status make_arrays(an_dataset **d, an_context *ctx) {
    static float x[8];
    const an_array a = array_of(x, AN_DTYPE_F32, 2, (int64_t[]){4, 2});
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    source.array_count = 1;
    source.arrays = &a;
    return an_dataset_create_arrays(d, ctx, &source);
}

static an_status make_idx(an_dataset **d, an_context *ctx) {
    an_idx_source source;
    an_idx_source_init(&source, sizeof source);
    append_gzip("f.idx.gz", "wb",
                "\0\0\x08\x01\0\0\0\x04"
                "abcd",
                12);
    source.inputs = source.targets = "f.idx.gz";
    return an_dataset_create_idx(d, ctx, &source);
}

static an_status make_csv(an_dataset **d, an_context *ctx) {
    an_csv_source source;
    an_csv_source_init(&source, sizeof source);
    append_gzip("f.csv.gz", "wb", "a,b\n1,2\n3,4\n", 12);
    source.path = "f.csv.gz";
    return an_dataset_create_csv(d, ctx, &source);
}

static an_status make_plain_csv(an_dataset **d, an_context *ctx) {
    an_csv_source source;
    an_csv_source_init(&source, sizeof source);
    write_text("f.csv", "a,b\n1,2\n3,4\n");
    source.path = "f.csv";
    return an_dataset_create_csv(d, ctx, &source);
}

static an_status make_text(an_dataset **d, an_context *ctx) {
    an_text_source source;
    an_text_source_init(&source, sizeof source);
    append_gzip("f.txt.gz", "wb", "hello world", 11);
    source.path = "f.txt.gz";
    source.tokens = AN_TEXT_CHARACTERS;
    source.context = 2;
    return an_dataset_create_text(d, ctx, &source);
}

static an_status make_bytes(an_dataset **d, an_context *ctx) {
    an_text_source source;
    an_text_source_init(&source, sizeof source);
    append_gzip("f.txt.gz", "wb", "hello world", 11);
    source.path = "f.txt.gz";
    source.context = 2;
    return an_dataset_create_text(d, ctx, &source);
}

static an_status make_tokens(an_dataset **d, an_context *ctx) {
    an_token_source source;
    an_token_source_init(&source, sizeof source);
    write_file("f.bin", "a\0b\0c\0d\0e\0f\0", 12);
    source.path = "f.bin";
    source.context = 2;
    source.limit = 200;
    return an_dataset_create_tokens(d, ctx, &source);
}

static an_status make_megatron(an_dataset **d, an_context *ctx) {
    unsigned char index[34 + 12 + 16] = "MMIDIDX\0";
    an_megatron_source source;
    an_megatron_source_init(&source, sizeof source);
    put_u64(index + 9, 1);
    index[17] = 8;
    put_u64(index + 18, 1);
    put_u64(index + 26, 2);
    put_u32(index + 34, 6);
    put_u64(index + 54, 1);
    write_file("f.bin", "a\0b\0c\0d\0e\0f\0", 12);
    write_file("f.idx", index, sizeof index);
    source.prefix = "f";
    source.context = 2;
    source.documents = true;
    return an_dataset_create_megatron(d, ctx, &source);
}

static an_status make_npz(an_dataset **d, an_context *ctx) {
    /* x.npy, deflated, in Fortran order: (2, 2) of u1 */
    static const char array[] =
        "\x93NUMPY\1\0\x3f\0{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }    \n\1\2\3\4";
    unsigned char file[512] = "PK\3\4", packed[256];
    enum { SIZE = sizeof array - 1 };
    z_stream z = {
        .next_in = (unsigned char *)(uintptr_t)array, .avail_in = SIZE, .next_out = packed, .avail_out = sizeof packed};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t size = z.total_out, entry = 35 + size;
    deflateEnd(&z);
    file[26] = 5;
    put_bytes(file + 30, "x.npy", 5);
    memcpy(file + 35, packed, size);
    put_bytes(file + entry, "PK\1\2", 4);
    file[entry + 10] = 8;
    put_u32(file + entry + 16, crc32(0, (const unsigned char *)array, SIZE));
    put_u32(file + entry + 20, size);
    put_u32(file + entry + 24, SIZE);
    file[entry + 28] = 5;
    put_bytes(file + entry + 46, "x.npy", 5);
    put_bytes(file + entry + 51, "PK\5\6", 4);
    file[entry + 61] = 1;
    put_u32(file + entry + 63, 51);
    put_u32(file + entry + 67, entry);
    write_file("f.npz", file, entry + 73);
    an_npy_source source;
    an_npy_source_init(&source, sizeof source);
    source.path = "f.npz";
    return an_dataset_create_npy(d, ctx, &source);
}

static an_status make_jsonl(an_dataset **d, an_context *ctx) {
    an_jsonl_source source;
    an_jsonl_source_init(&source, sizeof source);
    write_text("f.jsonl", "{\"a\": 1, \"y\": \"dog\"}\n{\"a\": 2, \"y\": \"cat\"}\n");
    source.path = "f.jsonl";
    return an_dataset_create_jsonl(d, ctx, &source);
}

/* With its tokenizer. */
static an_status make_chat(an_dataset **d, an_context *ctx) {
    const an_chat_format format = {.size = sizeof format, .type = AN_CHAT_CHATML};
    an_chat_source source;
    an_tokenizer *tokenizer = NULL;
    an_chat_source_init(&source, sizeof source);
    write_text("f.jsonl", "{\"text\": \"abc\"}\n{\"prompt\": \"a\", \"completion\": \"b\"}\n"
                          "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
                          "{\"role\": \"assistant\", \"content\": \"b\"}]}\n");
    an_status status = an_tokenizer_open(&tokenizer, ctx, ANNEAL_SOURCE_DIR "/tests/golden/finetune/bpe");
    source.path = "f.jsonl";
    source.tokenizer = tokenizer;
    source.format = &format;
    source.context = 32;
    if (status == AN_OK) status = an_dataset_create_chat(d, ctx, &source);
    an_tokenizer_destroy(&tokenizer);
    return status;
}

static an_status make_sentences(an_dataset **d, an_context *ctx) {
    an_sentence_source source;
    an_tokenizer *tokenizer = NULL;
    an_sentence_source_init(&source, sizeof source);
    write_text("f.jsonl", "{\"text\": \"a b\", \"label\": \"x\"}\n"
                          "{\"text\": \"a\", \"text_pair\": \"b c\", \"label\": \"w\"}\n");
    an_status status = an_tokenizer_open(&tokenizer, ctx, ANNEAL_SOURCE_DIR "/tests/golden/finetune/wordpiece");
    source.path = "f.jsonl";
    source.tokenizer = tokenizer;
    source.context = 8;
    if (status == AN_OK) status = an_dataset_create_sentences(d, ctx, &source);
    an_tokenizer_destroy(&tokenizer);
    return status;
}

#ifdef AN_HAVE_PNG
static an_status make_images(an_dataset **d, an_context *ctx) {
    an_images_source source;
    an_images_source_init(&source, sizeof source);
    mkdir("f", 0777);
    mkdir("f/a", 0777);
    write_png("f/a/1.png", 2, 2, PNG_GREY, "abcd");
    write_text("f/a/notes", "no picture");
    source.path = "f";
    source.width = 3;
    return an_dataset_create_images(d, ctx, &source);
}
#endif

#ifdef AN_HAVE_HDF5
static an_status make_hdf5(an_dataset **d, an_context *ctx) {
    an_hdf5_source source;
    an_hdf5_source_init(&source, sizeof source);
    source.path = ANNEAL_SOURCE_DIR "/tests/golden/hdf5/small.h5";
    return an_dataset_create_hdf5(d, ctx, &source);
}
#endif

static maker *const makers[] = {
#ifdef AN_HAVE_HDF5
    make_hdf5,
#endif
#ifdef AN_HAVE_PNG
    make_images,
#endif
    make_chat,   make_sentences, make_npz,  make_jsonl, make_arrays, make_idx,
    make_csv,    make_plain_csv, make_text, make_bytes, make_tokens, make_megatron};
enum { MAKERS = sizeof makers / sizeof *makers };

static void test_sources(void **state) {
    (void)state;
    for (int m = 0; m < MAKERS; m++) {
        ledger l = {0};
        an_context *ctx = NULL;
        an_dataset *d = NULL;
        assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
        const size_t before = l.held;
        an_status status = AN_ERR_MEMORY;
        for (int n = 1; status != AN_OK; n++) {
            l.fail_at = l.calls + n;
            l.once = true;
            status = makers[m](&d, ctx);
            assert_true(status == AN_OK || status == AN_ERR_MEMORY);
            if (status != AN_OK) {
                assert_null(d);
                assert_int_equal(l.held, before);
            } else {
                assert_true(n > 2 && l.calls < l.fail_at);
            }
        }
        l.fail_at = 0;
        const long calls = l.calls;
        OK(ctx, read_all(d));
        assert_int_equal(l.calls, calls); /* reading allocates nothing */
        an_dataset_destroy(&d);
        assert_int_equal(l.held, before);
        assert_false(l.mismatch);
        an_context_destroy(&ctx);
    }
}

static an_batch_part four(void *user, int64_t batch, int64_t *indices) {
    (void)user;
    for (int i = 0; i < 4; i++) indices[i] = (batch + i) % 4;
    return (an_batch_part){.n = 4, .total = 4};
}

static void test_mixture_and_loader(void **state) {
    ledger l = {0};
    an_context *ctx = NULL;
    an_dataset *parts[2] = {NULL, NULL}, *d = NULL;
    an_loader *loader = NULL;
    an_mixture_source source;
    an_mixture_source_init(&source, sizeof source);
    (void)state;
    assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
    for (int i = 0; i < 2; i++) OK(ctx, make_arrays(&parts[i], ctx));
    source.source_count = 2;
    source.sources = parts;
    const size_t before = l.held;
    an_status status = AN_ERR_MEMORY;
    l.once = true;
    for (int n = 1; status != AN_OK; n++) {
        l.fail_at = l.calls + n;
        status = an_dataset_create_mixture(&d, ctx, &source);
        if (status != AN_OK) assert_int_equal(l.held, before);
    }
    const size_t with_mixture = l.held;
    status = AN_ERR_MEMORY;
    const an_loader_options options = {.dataset = d, .threads = 2, .maximum = 4, .indices = four};
    for (int n = 1; status != AN_OK; n++) {
        l.fail_at = l.calls + n;
        status = an_loader_create(&loader, ctx, &options);
        if (status != AN_OK) assert_int_equal(l.held, with_mixture);
    }
    l.fail_at = 0;
    const long calls = l.calls;
    an_batch batch;
    for (int i = 0; i < 20; i++) OK(ctx, an_loader_next(loader, &batch));
    assert_int_equal(l.calls, calls);
    an_loader_destroy(&loader);
    an_dataset_destroy(&d);
    assert_int_equal(l.held, before);
    for (int i = 0; i < 2; i++) an_dataset_destroy(&parts[i]);
    an_context_destroy(&ctx);
    assert_int_equal(l.held, 0);
    assert_false(l.mismatch);
}

/* The source stays the caller's where a split fails, and neither part is left. */
static void test_split(void **state) {
    ledger l = {0};
    an_context *ctx = NULL;
    an_dataset *whole = NULL, *training = NULL, *evaluation = NULL;
    an_split_source source;
    an_split_source_init(&source, sizeof source);
    (void)state;
    assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
    OK(ctx, make_arrays(&whole, ctx));
    source.source = whole;
    source.owns = true;
    source.evaluation = 0.5;
    const size_t before = l.held;
    an_status status = AN_ERR_MEMORY;
    l.once = true;
    for (int n = 1; status != AN_OK; n++) {
        l.fail_at = l.calls + n;
        status = an_dataset_split(&training, &evaluation, ctx, &source);
        assert_true(status == AN_OK || status == AN_ERR_MEMORY);
        if (status == AN_OK) continue;
        assert_true(!training && !evaluation);
        assert_int_equal(l.held, before);
        OK(ctx, read_all(whole));
    }
    l.fail_at = 0;
    an_dataset_destroy(&training);
    an_dataset_destroy(&evaluation);
    an_context_destroy(&ctx);
    assert_int_equal(l.held, 0);
    assert_false(l.mismatch);
}

static void test_cells(void **state) {
    static const char *const columns[] = {"a", "b"};
    ledger l = {0};
    an_context *ctx = NULL;
    an_dataset *d = NULL;
    an_cells *cells = NULL;
    (void)state;
    assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
    OK(ctx, make_csv(&d, ctx));
    const size_t before = l.held;
    an_status status = AN_ERR_MEMORY;
    l.once = true;
    for (int n = 1; status != AN_OK; n++) {
        l.fail_at = l.calls + n;
        status = an_cells_create(&cells, d, 2, columns);
        assert_true(status == AN_OK || status == AN_ERR_MEMORY);
        if (status != AN_OK) assert_int_equal(l.held, before);
    }
    l.fail_at = 0;
    an_cells_destroy(&cells);
    assert_int_equal(l.held, before);
    an_dataset_destroy(&d);
    an_context_destroy(&ctx);
    assert_false(l.mismatch);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sources), cmocka_unit_test(test_mixture_and_loader),
                                       cmocka_unit_test(test_split), cmocka_unit_test(test_cells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
