/* Arrays of NumPy: every type and order, plain and in ZIP files, stored and deflated; and no header that lies gets
 * through. */
#include "data/support.h"

static unsigned char file[1 << 16];

/* A .npy file of one array; the header is padded as NumPy does. */
static size_t make_npy(unsigned char *to, const char *descr, bool fortran, const char *shape, const void *numbers,
                       size_t bytes) {
    char header[256];
    const int length = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr,
                                fortran ? "True" : "False", shape);
    const size_t padded = (size_t)(10 + length + 1 + 63) / 64 * 64 - 10;
    put_bytes(to, "\x93NUMPY\1\0", 8);
    to[8] = (unsigned char)padded;
    to[9] = (unsigned char)(padded >> 8);
    memset(to + 10, ' ', padded);
    memcpy(to + 10, header, (size_t)length);
    to[10 + padded - 1] = '\n';
    memcpy(to + 10 + padded, numbers, bytes);
    return 10 + padded + bytes;
}

static void put(unsigned char *to, uint64_t value, int width) {
    for (int i = 0; i < width; i++) to[i] = (unsigned char)(value >> 8 * i);
}

/* ---- ZIP files ---- */

typedef struct {
    const char *name;
    const unsigned char *bytes;
    size_t size;
    bool deflated;
} member;

/* With `large`, sizes and places are those of ZIP64. */
static size_t make_zip(unsigned char *to, const member *members, int count, bool large) {
    size_t size = 0, places[8], packed_sizes[8];
    for (int i = 0; i < count; i++) {
        const member *m = &members[i];
        const size_t name = strlen(m->name);
        unsigned char *local = to + size;
        places[i] = size;
        memset(local, 0, 30);
        put(local, 0x04034b50, 4);
        put(local + 26, name, 2);
        put(local + 28, 5, 2); /* an extra field that the directory does not have */
        memcpy(local + 30, m->name, name);
        memset(local + 30 + name, 0, 5);
        size += 35 + name;
        packed_sizes[i] = m->size;
        if (m->deflated) {
            z_stream z = {.next_in = (unsigned char *)(uintptr_t)m->bytes,
                          .avail_in = (uInt)m->size,
                          .next_out = to + size,
                          .avail_out = 1 << 14};
            assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
            assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
            packed_sizes[i] = z.total_out;
            deflateEnd(&z);
        } else
            memcpy(to + size, m->bytes, m->size);
        size += packed_sizes[i];
    }
    const size_t directory = size;
    for (int i = 0; i < count; i++) {
        const member *m = &members[i];
        const size_t name = strlen(m->name), extra = large ? 28 : 0;
        unsigned char *entry = to + size;
        memset(entry, 0, 46);
        put(entry, 0x02014b50, 4);
        put(entry + 10, m->deflated ? 8 : 0, 2);
        put(entry + 16, crc32(0, m->bytes, (uInt)m->size), 4);
        put(entry + 20, large ? UINT32_MAX : packed_sizes[i], 4);
        put(entry + 24, large ? UINT32_MAX : m->size, 4);
        put(entry + 28, name, 2);
        put(entry + 30, extra, 2);
        put(entry + 42, large ? UINT32_MAX : places[i], 4);
        memcpy(entry + 46, m->name, name);
        if (large) {
            unsigned char *field = entry + 46 + name;
            put(field, 1, 2);
            put(field + 2, 24, 2);
            put(field + 4, m->size, 8);
            put(field + 12, packed_sizes[i], 8);
            put(field + 20, places[i], 8);
        }
        size += 46 + name + extra;
    }
    const size_t bytes = size - directory;
    if (large) {
        unsigned char *record = to + size;
        memset(record, 0, 76);
        put(record, 0x06064b50, 4);
        put(record + 32, (uint64_t)count, 8);
        put(record + 40, bytes, 8);
        put(record + 48, directory, 8);
        put(record + 56, 0x07064b50, 4);
        put(record + 64, size, 8);
        size += 76;
    }
    unsigned char *last = to + size;
    memset(last, 0, 22);
    put(last, 0x06054b50, 4);
    put(last + 10, large ? 0xffff : (uint64_t)count, 2);
    put(last + 12, large ? UINT32_MAX : bytes, 4);
    put(last + 16, large ? UINT32_MAX : directory, 4);
    return size + 22;
}

/* ---- arrays ---- */

static an_npy_source source_of(const char *path, const char *labels) {
    an_npy_source source;
    an_npy_source_init(&source, sizeof source);
    source.path = path;
    source.labels = labels;
    return source;
}

static void test_types(void **state) {
    static const struct {
        const char *descr;
        size_t width;
        unsigned char bytes[8];
        double value;
    } cases[] = {{"<f2", 2, {0, 0xc2}, -3},
                 {"<f4", 4, {0, 0, 0xa0, 0xc0}, -5},
                 {"<f8", 8, {0, 0, 0, 0, 0, 0, 0x18, 0xc0}, -6},
                 {"|i1", 1, {0xfe}, -2},
                 {"<i2", 2, {0xfd, 0xff}, -3},
                 {"<i4", 4, {0xfc, 0xff, 0xff, 0xff}, -4},
                 {"<i8", 8, {0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -5},
                 {"|u1", 1, {200}, 200.0 / 255},
                 {"<u2", 2, {0, 1}, 256},
                 {"<u4", 4, {0, 0, 1, 0}, 65536},
                 {"<u8", 8, {0, 0, 0, 0, 1, 0, 0, 0}, 0x1p32},
                 {"|b1", 1, {1}, 1}};
    an_context *ctx = new_context();
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        unsigned char numbers[16];
        float f32[2];
        double f64;
        an_dataset *d = NULL;
        memcpy(numbers, cases[c].bytes, cases[c].width);
        memcpy(numbers + cases[c].width, cases[c].bytes, cases[c].width);
        write_file("x.npy", file, make_npy(file, cases[c].descr, false, "(2,)", numbers, 2 * cases[c].width));
        an_npy_source source = source_of("x.npy", NULL);
        OK(ctx, an_dataset_create_npy(&d, ctx, &source));
        assert_int_equal(an_dataset_count(d), 2);
        assert_int_equal(an_dataset_field_count(d), 1);
        OK(ctx, an_dataset_read(d, 2, (int64_t[]){1, 0}, (void *const[]){f32}));
        assert_true(f32[0] == (float)cases[c].value && f32[1] == f32[0]);
        an_dataset_destroy(&d);
        source.dtype = AN_DTYPE_F64;
        OK(ctx, an_dataset_create_npy(&d, ctx, &source));
        OK(ctx, an_dataset_read(d, 1, (int64_t[]){1}, (void *const[]){&f64}));
        assert_true(f64 == cases[c].value);
        an_dataset_destroy(&d);
        source.labels = "x.npy"; /* a label that is no class is refused; reals stay reals */
        if (cases[c].descr[1] != 'f' && !(cases[c].value >= 0 && cases[c].value < 0x1p31))
            FAILS(ctx, an_dataset_create_npy(&d, ctx, &source), AN_ERR_PARSE, "is not a class");
        else
            OK(ctx, an_dataset_create_npy(&d, ctx, &source));
        an_dataset_destroy(&d);
    }
    end_context(&ctx);
}

enum { N = 3, A = 2, B = 4 };

/* x[i, j, k] = 100 i + 10 j + k, in both orders, and labels. */
static size_t make_inputs(unsigned char *to, bool fortran) {
    float numbers[N * A * B];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < A; j++)
            for (int k = 0; k < B; k++)
                numbers[fortran ? i + N * (j + A * k) : (i * A + j) * B + k] = (float)(100 * i + 10 * j + k);
    return make_npy(to, "<f4", fortran, "(3, 2, 4)", numbers, sizeof numbers);
}

static size_t make_labels(unsigned char *to) {
    const int16_t labels[N] = {2, 0, 5};
    return make_npy(to, "<i2", false, "(3,)", labels, sizeof labels);
}

static void check(an_context *ctx, an_npy_source *source) {
    an_dataset *d = NULL;
    an_field field;
    float in[2][A * B];
    int32_t out[2];
    an_field_init(&field, sizeof field);
    OK(ctx, an_dataset_create_npy(&d, ctx, source));
    assert_int_equal(an_dataset_count(d), N);
    assert_int_equal(an_dataset_field_count(d), 2);
    OK(ctx, an_dataset_field(d, 0, &field));
    assert_int_equal(field.ndims, source->flat ? 1 : source->channel ? 3 : 2);
    assert_int_equal(field.dims[0], source->flat ? A * B : source->channel ? 1 : A);
    assert_int_equal(field.dims[field.ndims - 1], source->flat ? A * B : B);
    OK(ctx, an_dataset_field(d, 1, &field));
    assert_int_equal(field.limit, 6);
    assert_int_equal(field.dtype, AN_DTYPE_I32);
    assert_int_equal(field.ndims, 0);
    OK(ctx, an_dataset_read(d, 2, (int64_t[]){2, 1}, (void *const[]){in, out}));
    for (int r = 0; r < 2; r++)
        for (int j = 0; j < A; j++)
            for (int k = 0; k < B; k++) assert_true(in[r][j * B + k] == (float)(100 * (2 - r) + 10 * j + k));
    assert_int_equal(out[0], 5);
    assert_int_equal(out[1], 0);
    OK(ctx, an_dataset_set_limit(d, "targets", 5));
    FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){2}, (void *const[]){in, out}), AN_ERR_PARSE,
          ": number 2 of the array");
    an_dataset_destroy(&d);
}

static void test_files(void **state) {
    an_context *ctx = new_context();
    (void)state;
    write_file("y.npy", file, make_labels(file));
    for (int fortran = 0; fortran < 2; fortran++) {
        write_file("x.npy", file, make_inputs(file, fortran));
        an_npy_source source = source_of("x.npy", "y.npy");
        check(ctx, &source);
        source.channel = true;
        check(ctx, &source);
        source.flat = true;
        check(ctx, &source);
    }
    end_context(&ctx);
}

static void test_zips(void **state) {
    static unsigned char x[4096], y[4096];
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        const member members[] = {{"other.npy", y, make_labels(y), false},
                                  {"y.npy", y, make_labels(y), kind & 1},
                                  {"X.npy", x, make_inputs(x, kind & 4), kind & 1}};
        write_file("a.npz", file, make_zip(file, members, 3, kind & 2));
        an_npy_source source = source_of("a.npz", NULL);
        check(ctx, &source);
        source.inputs = "X";
        check(ctx, &source); /* targets of a usual name */
        source.targets = "other";
        check(ctx, &source);
        source.inputs = "Y";
        FAILS(ctx, an_dataset_create_npy(&d, ctx, &source), AN_ERR_UNKNOWN,
              "a.npz: there is no array 'Y'; the file contains other.npy, y.npy, X.npy");
    }
    end_context(&ctx);
}

/* ---- what is wrong ---- */

static void refuse(an_context *ctx, size_t size, const char *words) {
    an_dataset *d = NULL;
    an_npy_source source = source_of("bad", NULL);
    write_file("bad", file, size);
    FAILS(ctx, an_dataset_create_npy(&d, ctx, &source), AN_ERR_PARSE, words);
    assert_null(d);
    assert_non_null(strstr(an_last_error(ctx), "bad: byte "));
    assert_int_equal(an_context_bytes(ctx), context_bytes);
}

static void test_headers(void **state) {
    static const struct {
        const char *header, *words;
    } cases[] = {{"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)}", ""},
                 {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", "the type of the numbers is '>f4'"},
                 {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "the type of the numbers is '<c8'"},
                 {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "a type of several parts"},
                 {"{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}", "neither True nor False"},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': (2)}", ""},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}", "'shape' is not a list of sizes"},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "'shape' is not a list of sizes"},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "the array has no samples"},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5)}", "the array has no samples"},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
                  "announces 3 numbers of 4 bytes, but 8 bytes follow"},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 2)}", "are not possible"},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                  "'shape' is not a list of sizes"},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 2)}", "dimensions"},
                 {"{'descr': '<f4', 'shape': (2,)}", "not a dictionary with"},
                 {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "not a dictionary with"},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "not a dictionary with"},
                 {"{'descr': '<f4', 'fortran_order': False, 'more': 1, 'shape': (2,)}", "not a dictionary with"},
                 {"", "not a dictionary with"}};
    an_context *ctx = new_context();
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const size_t length = strlen(cases[c].header);
        const float numbers[2] = {1, 2};
        put_bytes(file, "\x93NUMPY\2\0", 8);
        put(file + 8, length, 4);
        memcpy(file + 12, cases[c].header, length);
        memcpy(file + 12 + length, numbers, sizeof numbers);
        if (*cases[c].words) {
            refuse(ctx, 12 + length + sizeof numbers, cases[c].words);
            continue;
        }
        an_dataset *d = NULL;
        an_npy_source source = source_of("good", NULL);
        write_file("good", file, 12 + length + sizeof numbers);
        OK(ctx, an_dataset_create_npy(&d, ctx, &source));
        an_dataset_destroy(&d);
    }
    put(file + 8, 1 << 20, 4);
    refuse(ctx, 4000, "the header announces 1048576 bytes");
    file[6] = 9;
    refuse(ctx, 4000, "version 9");
    file[1] = 'n';
    refuse(ctx, 4000, "this is not a .npy file: it begins with 93 6e 55 4d");
    refuse(ctx, 0, "it has only 0 bytes");
    end_context(&ctx);
}

/* What was deflated is held against its checksum. */
static void test_checksum(void **state) {
    static unsigned char x[4096];
    an_context *ctx = new_context();
    (void)state;
    const member members[] = {{"x.npy", x, make_inputs(x, false), true}};
    const size_t size = make_zip(file, members, 1, false);
    file[size - 22 - 46 - strlen("x.npy") + 16] ^= 1;
    refuse(ctx, size, "the checksum of the member that begins here is wrong");
    end_context(&ctx);
}

/* Numbers that no model can use are found when they are read. */
static void test_numbers(void **state) {
    const float numbers[] = {1, 2, (float)1e30 * (float)1e30};
    const double large[] = {1, 2, 1e39};
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    float value;
    (void)state;
    for (int i = 0; i < 2; i++) {
        write_file("x.npy", file,
                   i ? make_npy(file, "<f8", false, "(3,)", large, sizeof large)
                     : make_npy(file, "<f4", false, "(3,)", numbers, sizeof numbers));
        an_npy_source source = source_of("x.npy", NULL);
        OK(ctx, an_dataset_create_npy(&d, ctx, &source));
        OK(ctx, an_dataset_read(d, 1, (int64_t[]){1}, (void *const[]){&value}));
        FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){2}, (void *const[]){&value}), AN_ERR_PARSE,
              i ? "x.npy: byte 144: number 2 of the array: 1e+39 is not a finite f32 number"
                : "x.npy: byte 136: number 2 of the array: inf is not a finite f32 number");
        an_dataset_destroy(&d);
    }
    end_context(&ctx);
}

/* Cut anywhere, and every byte changed: an error or a dataset, never a crash. */
static void test_damage(void **state) {
    static unsigned char x[4096], y[4096];
    an_context *ctx = new_context();
    (void)state;
    size_t size = make_inputs(file, false);
    for (size_t i = 0; i < size; i++) refuse(ctx, i, "");
    for (int kind = 0; kind < 4; kind++) {
        const member members[] = {{"y.npy", y, make_labels(y), kind & 1},
                                  {"x.npy", x, make_inputs(x, false), kind & 1}};
        size = make_zip(file, members, 2, kind & 2);
        for (size_t i = 0; i < size; i++) refuse(ctx, i, "");
        for (size_t i = 0; i < size; i++) {
            an_dataset *d = NULL;
            an_npy_source source = source_of("bad", NULL);
            file[i] ^= 0x55;
            write_file("bad", file, size);
            file[i] ^= 0x55;
            if (an_dataset_create_npy(&d, ctx, &source) == AN_OK) read_all(d);
            an_dataset_destroy(&d);
        }
    }
    end_context(&ctx);
}

static void test_arguments(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    (void)state;
    write_file("x.npy", file, make_inputs(file, false));
    write_file("y.npy", file, make_npy(file, "<i2", false, "(2,)", "\0\0\1\0", 4));
    an_npy_source source = source_of("x.npy", "y.npy");
    FAILS(ctx, an_dataset_create_npy(&d, ctx, &source), AN_ERR_SHAPE,
          "y.npy: there are 2 targets, but x.npy has 3 inputs");
    source = source_of("x.npy", NULL);
    source.inputs = "a";
    FAILS(ctx, an_dataset_create_npy(&d, ctx, &source), AN_ERR_ARGUMENT, "names are for .npz files");
    source = source_of(NULL, NULL);
    FAILS(ctx, an_dataset_create_npy(&d, ctx, &source), AN_ERR_ARGUMENT, "no name");
    source = source_of("none", NULL);
    FAILS(ctx, an_dataset_create_npy(&d, ctx, &source), AN_ERR_FILE, "none: cannot be opened");
    source = source_of("x.npy", NULL);
    source.dtype = AN_DTYPE_I32;
    FAILS(ctx, an_dataset_create_npy(&d, ctx, &source), AN_ERR_DTYPE, "f32 or f64, not i32");
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),     cmocka_unit_test(test_files),    cmocka_unit_test(test_zips),
        cmocka_unit_test(test_headers),   cmocka_unit_test(test_numbers),  cmocka_unit_test(test_damage),
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_checksum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
