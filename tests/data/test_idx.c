/* IDX files: what they say is what is read, in every type, plain and compressed; and nothing that is
 * wrong with one gets through. */
#include "data/support.h"

enum { N = 3, H = 2, W = 4 };

/* An IDX file of one type, with `count` numbers of `width` bytes. */
static size_t make_idx(unsigned char *to, int type, int rank, const uint32_t *dims, const void *numbers, size_t bytes) {
    to[0] = to[1] = 0;
    to[2] = (unsigned char)type;
    to[3] = (unsigned char)rank;
    for (int i = 0; i < rank; i++)
        for (int b = 0; b < 4; b++) to[4 + 4 * i + b] = (unsigned char)(dims[i] >> (24 - 8 * b));
    memcpy(to + 4 + 4 * rank, numbers, bytes);
    return 4 + 4 * (size_t)rank + bytes;
}

static unsigned char images[N * H * W], labels[N] = {2, 0, 7};
static unsigned char file[4096];

static size_t image_file(void) {
    for (int i = 0; i < N * H * W; i++) images[i] = (unsigned char)(i * 11);
    images[1] = 255;
    return make_idx(file, 8, 3, (uint32_t[]){N, H, W}, images, sizeof images);
}

static size_t label_file(void) {
    return make_idx(file, 8, 1, (uint32_t[]){N}, labels, sizeof labels);
}

static an_idx_source write_pair(void) {
    an_idx_source source;
    an_idx_source_init(&source, sizeof source);
    write_file("images.idx", file, image_file());
    write_file("labels.idx", file, label_file());
    source.inputs = "images.idx";
    source.targets = "labels.idx";
    return source;
}

static void check_pair(an_context *ctx, const an_idx_source *source) {
    an_dataset *d = NULL;
    an_field field;
    an_field_init(&field, sizeof field);
    float in[2][H * W];
    int32_t out[2];
    OK(ctx, an_dataset_create_idx(&d, ctx, source));
    assert_int_equal(an_dataset_count(d), N);
    OK(ctx, an_dataset_field(d, 0, &field));
    assert_int_equal(field.ndims, source->flat ? 1 : 3);
    assert_int_equal(field.dims[0], source->flat ? H * W : 1);
    OK(ctx, an_dataset_field(d, 1, &field));
    assert_int_equal(field.limit, 8);
    assert_int_equal(field.ndims, 0);
    assert_int_equal(field.dtype, AN_DTYPE_I32);
    OK(ctx, an_dataset_read(d, 2, (int64_t[]){2, 0}, (void *const[]){in, out}));
    for (int k = 0; k < H * W; k++) {
        const float scale = source->scaled ? 255.0f : 1.0f;
        assert_true(in[0][k] == (float)images[2 * H * W + k] / scale);
        assert_true(in[1][k] == (float)images[k] / scale);
    }
    assert_int_equal(out[0], 7);
    assert_int_equal(out[1], 2);
    OK(ctx, an_dataset_set_limit(d, "targets", 7));
    FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){2}, (void *const[]){in, out}), AN_ERR_PARSE,
          ": byte 10: the value 7 in field");
    an_dataset_destroy(&d);
}

static void test_pair(void **state) {
    an_context *ctx = new_context();
    (void)state;
    an_idx_source source = write_pair();
    check_pair(ctx, &source);
    source.flat = true;
    check_pair(ctx, &source);
    source.scaled = false;
    check_pair(ctx, &source);
    end_context(&ctx);
}

/* Also a file that is two compressed ones, one after another. */
static void test_gzip(void **state) {
    an_context *ctx = new_context();
    (void)state;
    an_idx_source source = write_pair();
    const size_t size = image_file();
    append_gzip("images.gz", "wb", file, 10);
    append_gzip("images.gz", "ab", file + 10, size - 10);
    append_gzip("images.gz", "ab", NULL, 0);
    append_gzip("labels.gz", "wb", file, label_file());
    source.inputs = "images.gz";
    source.targets = "labels.gz";
    check_pair(ctx, &source);
    end_context(&ctx);
}

static void test_types(void **state) {
    static const struct {
        int type;
        size_t width;
        unsigned char bytes[8];
        float value;
    } cases[] = {{8, 1, {200}, 200.0f / 255.0f},  {9, 1, {0xfe}, -2},
                 {11, 2, {0xff, 0xfd}, -3},       {12, 4, {0xff, 0xff, 0xff, 0xfc}, -4},
                 {13, 4, {0xc0, 0xa0, 0, 0}, -5}, {14, 8, {0xc0, 0x18, 0, 0, 0, 0, 0, 0}, -6}};
    an_context *ctx = new_context();
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        an_idx_source source;
        an_idx_source_init(&source, sizeof source);
        an_dataset *d = NULL;
        float value = 0;
        source.inputs = "one.idx";
        write_file("one.idx", file, make_idx(file, cases[c].type, 1, (uint32_t[]){1}, cases[c].bytes, cases[c].width));
        OK(ctx, an_dataset_create_idx(&d, ctx, &source));
        assert_int_equal(an_dataset_field_count(d), 1);
        OK(ctx, an_dataset_read(d, 1, (int64_t[]){0}, (void *const[]){&value}));
        assert_true(value == cases[c].value);
        an_dataset_destroy(&d);
        source.targets = "one.idx"; /* of integers, a label below 0 is refused; reals stay reals */
        if (cases[c].type >= 13) {
            an_field field;
            an_field_init(&field, sizeof field);
            OK(ctx, an_dataset_create_idx(&d, ctx, &source));
            OK(ctx, an_dataset_field(d, 1, &field));
            assert_int_equal(field.dtype, AN_DTYPE_F32);
            an_dataset_destroy(&d);
        } else if (cases[c].type > 8) {
            FAILS(ctx, an_dataset_create_idx(&d, ctx, &source), AN_ERR_PARSE, "one.idx: byte 8: the label is -");
        }
    }
    end_context(&ctx);
}

static void refuse(an_context *ctx, const void *bytes, size_t size, const char *words) {
    an_idx_source source;
    an_idx_source_init(&source, sizeof source);
    an_dataset *d = NULL;
    source.inputs = "bad.idx";
    write_file("bad.idx", bytes, size);
    FAILS(ctx, an_dataset_create_idx(&d, ctx, &source), AN_ERR_PARSE, words);
    assert_null(d);
    assert_non_null(strstr(an_last_error(ctx), "bad.idx: byte "));
    assert_int_equal(an_context_bytes(ctx), context_bytes);
}

/* Cut at every byte, and longer by one. */
static void test_cut(void **state) {
    static unsigned char compressed[4096];
    an_context *ctx = new_context();
    const size_t size = image_file();
    (void)state;
    for (size_t i = 0; i < size; i++) refuse(ctx, file, i, "");
    refuse(ctx, file, size + 1, "there is more data after the last number");
    append_gzip("whole.gz", "wb", file, size);
    const size_t packed = read_file("whole.gz", compressed, sizeof compressed);
    for (size_t i = 2; i < packed; i++) refuse(ctx, compressed, i, "");
    compressed[packed] = compressed[packed + 1] = 0;
    refuse(ctx, compressed, packed + 2, "damaged");
    append_gzip("long.gz", "wb", file, size + 1);
    refuse(ctx, compressed, read_file("long.gz", compressed, sizeof compressed),
           "there is more data after the last number");
    /* Every byte of the compressed file changed: never a crash, and never other numbers than those that were
     * written. */
    read_file("whole.gz", compressed, sizeof compressed);
    for (size_t i = 0; i < packed; i++) {
        an_idx_source source;
        an_idx_source_init(&source, sizeof source);
        an_dataset *d = NULL;
        float in[H * W];
        source.inputs = "bad.idx";
        compressed[i] ^= 0x55;
        write_file("bad.idx", compressed, packed);
        compressed[i] ^= 0x55;
        if (an_dataset_create_idx(&d, ctx, &source) != AN_OK) continue; /* the header of gzip has a time, for one */
        OK(ctx, an_dataset_read(d, 1, (int64_t[]){1}, (void *const[]){in}));
        for (int k = 0; k < H * W; k++) assert_true(in[k] == (float)images[H * W + k] / 255.0f);
        an_dataset_destroy(&d);
    }
    end_context(&ctx);
}

static void test_headers(void **state) {
    an_context *ctx = new_context();
    const size_t size = image_file();
    unsigned char bad[sizeof file];
    (void)state;
    memcpy(bad, file, sizeof bad);
    static const struct {
        int at, value;
        const char *words;
    } cases[] = {{0, 1, "this is not an IDX file"},
                 {1, 1, "this is not an IDX file"},
                 {2, 10, "this is not an IDX file"},
                 {3, 0, "dimensions"},
                 {3, 8, "dimensions"},
                 {3, 255, "dimensions"},
                 {4, 0x80, "header announces"},
                 {4, 0xff, "header announces"},
                 {7, 0, "size 0"},
                 {11, 0, "size 0"},
                 {7, 2, "there is more data after the last number"},
                 {7, 4, "needed"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        bad[cases[c].at] = (unsigned char)cases[c].value;
        refuse(ctx, bad, size, cases[c].words);
        bad[cases[c].at] = file[cases[c].at];
    }
    /* Sizes whose product is 0 modulo 2^64. */
    refuse(ctx, bad, make_idx(bad, 8, 4, (uint32_t[]){1u << 31, 1u << 31, 4, 1}, images, 1), "the size");
    /* Memory is not asked for on the word of a header alone: 4 GB from a few bytes of gzip. */
    append_gzip("bomb.gz", "wb", bad, make_idx(bad, 8, 1, (uint32_t[]){UINT32_MAX}, images, 1));
    refuse(ctx, bad, read_file("bomb.gz", bad, sizeof bad),
           ": the file ends here, but its header announces 4294967303 bytes: download it again");
    /* Not a number. */
    refuse(ctx, bad, make_idx(bad, 13, 1, (uint32_t[]){1}, "\x7f\xc0\0\0", 4), "byte 8: nan");
    refuse(ctx, bad, make_idx(bad, 14, 1, (uint32_t[]){1}, "\x7e\0\0\0\0\0\0\0", 8), "is not a finite f32 number");
    end_context(&ctx);
}

static void test_not_files(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    (void)state;
    an_idx_source source = write_pair();
    mkdir("folder", 0777);
    unlink("pipe");
    assert_int_equal(mkfifo("pipe", 0666), 0);
    static const char *const paths[][2] = {{"folder", "folder: is a folder"},
                                           {"pipe", "pipe: is a pipe"},
                                           {"none", "none: cannot be opened"},
                                           {"/dev/null", "a device"}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        source.inputs = paths[i][0];
        FAILS(ctx, an_dataset_create_idx(&d, ctx, &source), AN_ERR_FILE, paths[i][1]);
    }
    source.inputs = NULL;
    FAILS(ctx, an_dataset_create_idx(&d, ctx, &source), AN_ERR_ARGUMENT, "no name");
    source.inputs = "images.idx";
    write_file("labels.idx", file, make_idx(file, 8, 1, (uint32_t[]){2}, labels, 2));
    FAILS(ctx, an_dataset_create_idx(&d, ctx, &source), AN_ERR_SHAPE, "2 targets, but images.idx has 3 inputs");
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair), cmocka_unit_test(test_gzip),    cmocka_unit_test(test_types),
        cmocka_unit_test(test_cut),  cmocka_unit_test(test_headers), cmocka_unit_test(test_not_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
