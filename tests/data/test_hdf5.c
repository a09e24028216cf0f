/* HDF5 files: what the library has written is what is read, in every type, plain and packed, and through a config; and
 * nothing that is wrong with a file gets through. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS; NOLINT(bugprone-reserved-identifier) */
#include "data/support.h"

static an_hdf5_source source_of(const char *path) {
    an_hdf5_source source;
    an_hdf5_source_init(&source, sizeof source);
    source.path = path;
    return source;
}

#ifdef AN_HAVE_HDF5

#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "anneal/open.h"
#include "formats/hdf5_array.h"

enum { N = 5, H = 4, W = 3 };

static double numbers[N][H][W];
static int32_t classes[N] = {2, 0, 1, 2, 0};

/* ---- files ---- */

typedef enum { PLAIN, COMPACT, CHUNKED, DEFLATED, SHUFFLED, CHECKED, SUMMED_FIRST, PACKINGS } packing;

/* Chunks that divide neither the samples nor their rows. */
static hid_t make_layout(packing how, int rank, const hsize_t *dims) {
    const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[AN_MAX_DIMS];
    for (int i = 0; i < rank; i++) chunk[i] = dims[i] < 3 ? dims[i] : i == rank - 1 ? 2 : 3;
    if (how == COMPACT) assert_true(H5Pset_layout(layout, H5D_COMPACT) >= 0);
    if (how >= CHUNKED) assert_true(H5Pset_chunk(layout, rank, chunk) >= 0);
    if (how == SUMMED_FIRST) assert_true(H5Pset_fletcher32(layout) >= 0);
    if (how == SHUFFLED || how == CHECKED) assert_true(H5Pset_shuffle(layout) >= 0);
    if (how >= DEFLATED) assert_true(H5Pset_deflate(layout, 6) >= 0);
    if (how == CHECKED) assert_true(H5Pset_fletcher32(layout) >= 0);
    return layout;
}

static void put(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims, hid_t from, const void *values,
                packing how) {
    const hid_t space = H5Screate_simple(rank, dims, NULL), layout = make_layout(how, rank, dims);
    const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    assert_true(set >= 0);
    if (values) assert_true(H5Dwrite(set, from, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dclose(set) >= 0 && H5Pclose(layout) >= 0 && H5Sclose(space) >= 0);
}

/* Of the oldest format that has everything, or of the newest. */
static hid_t begin_file(const char *path, bool newest) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (newest) assert_true(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    assert_true(file >= 0 && H5Pclose(access) >= 0);
    return file;
}

static const hsize_t cube[] = {N, H, W}, line[] = {N};

static void write_pair(const char *path, hid_t type, packing how, bool newest) {
    const hid_t file = begin_file(path, newest);
    put(file, "x", type, 3, cube, H5T_NATIVE_DOUBLE, numbers, how);
    put(file, "y", H5T_STD_I64BE, 1, line, H5T_NATIVE_INT32, classes, how);
    assert_true(H5Fclose(file) >= 0);
}

static hid_t make_half(void) {
    const hid_t half = H5Tcopy(H5T_IEEE_F32BE);
    assert_true(H5Tset_fields(half, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(half, 2) >= 0 && H5Tset_ebias(half, 15) >= 0);
    return half;
}

static int set_up(void **state) {
    (void)state;
    for (int i = 0; i < N * H * W; i++) numbers[i / (H * W)][i / W % H][i % W] = i * 2;
    return 0;
}

/* ---- what is read ---- */

static void check_pair(an_context *ctx, const an_hdf5_source *source, double scale) {
    an_dataset *d = NULL;
    an_field field;
    an_field_init(&field, sizeof field);
    double wide[2][H * W];
    float narrow[2][H * W];
    int32_t out[2];
    OK(ctx, an_dataset_create_hdf5(&d, ctx, source));
    assert_int_equal(an_dataset_count(d), N);
    OK(ctx, an_dataset_field(d, 0, &field));
    assert_int_equal(field.ndims, source->flat ? 1 : source->channel ? 3 : 2);
    assert_int_equal(field.dims[0], source->flat ? H * W : source->channel ? 1 : H);
    assert_int_equal(field.dims[field.ndims - 1], source->flat ? H * W : W);
    const bool is_wide = field.dtype == AN_DTYPE_F64;
    OK(ctx, an_dataset_field(d, 1, &field));
    assert_int_equal(field.dtype, AN_DTYPE_I32);
    assert_int_equal(field.limit, 3);
    assert_int_equal(field.ndims, 0);
    void *const fields[] = {is_wide ? (void *)wide : (void *)narrow, out};
    for (int64_t s = 0; s < N; s++) {
        OK(ctx, an_dataset_read(d, 2, (int64_t[]){s, N - 1 - s}, fields));
        for (int k = 0; k < H * W; k++)
            for (int i = 0; i < 2; i++) {
                const double expected = numbers[i ? N - 1 - s : s][k / W][k % W];
                if (is_wide)
                    assert_true(wide[i][k] == expected / scale);
                else
                    assert_true(narrow[i][k] == (float)expected / (float)scale);
            }
        assert_int_equal(out[0], classes[s]);
        assert_int_equal(out[1], classes[N - 1 - s]);
    }
    an_dataset_destroy(&d);
}

static void test_types(void **state) {
    (void)state;
    an_context *ctx = new_context();
    const hid_t half = make_half(),
                types[] = {H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE, H5T_STD_I16LE,
                           H5T_STD_I16BE,  H5T_STD_I32LE,  H5T_STD_I64BE,  H5T_STD_U16BE,  H5T_STD_U32LE,
                           H5T_STD_U64LE,  half,           H5T_STD_U8LE};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int how = 0; how < PACKINGS; how++) {
            write_pair("pair.h5", types[i], (packing)how, i % 2);
            an_hdf5_source source = source_of("pair.h5");
            const double scale = types[i] == H5T_STD_U8LE ? 255 : 1;
            check_pair(ctx, &source, scale);
            source.dtype = AN_DTYPE_F64;
            source.flat = true;
            check_pair(ctx, &source, scale);
            source.flat = false;
            source.channel = true;
            source.scaled = false;
            check_pair(ctx, &source, 1);
        }
    H5Tclose(half);
    end_context(&ctx);
}

/* More chunks than are kept: the file has them again and again. One slot is the fewest that a sample can do with. */
static void test_many_chunks(void **state) {
    (void)state;
    enum { SAMPLES = 600, EACH = 1 << 16 }; /* 300 MiB in chunks of 1 MiB, all but nothing when packed */
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    double *values = calloc(EACH, sizeof *values), *read = calloc(EACH, sizeof *read);
    assert_true(values && read);
    const hsize_t dims[] = {SAMPLES, EACH}, chunk[] = {2, EACH}, sample[] = {1, EACH};
    const hid_t file = begin_file("many.h5", false), space = H5Screate_simple(2, dims, NULL),
                layout = H5Pcreate(H5P_DATASET_CREATE), one = H5Screate_simple(2, sample, NULL);
    assert_true(H5Pset_chunk(layout, 2, chunk) >= 0 && H5Pset_deflate(layout, 1) >= 0);
    const hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F64LE, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    for (hsize_t i = 0; i < SAMPLES; i++) {
        const hsize_t begin[] = {i, 0};
        values[7] = (double)i;
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, begin, NULL, sample, NULL) >= 0);
        assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, one, space, H5P_DEFAULT, values) >= 0);
    }
    assert_true(H5Dclose(set) >= 0 && H5Pclose(layout) >= 0 && H5Sclose(space) >= 0 && H5Sclose(one) >= 0);
    assert_true(H5Fclose(file) >= 0);
    an_hdf5_source source = source_of("many.h5");
    source.dtype = AN_DTYPE_F64;
    OK(ctx, an_dataset_create_hdf5(&d, ctx, &source));
    static const int64_t order[] = {0, 599, 1, 512, 86, 598, 0, 513};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        OK(ctx, an_dataset_read(d, 1, &order[i], (void *const[]){read}));
        assert_true(read[7] == (double)order[i] && read[6] == 0 && read[EACH - 1] == 0);
    }
    an_dataset_destroy(&d);
    free(values);
    free(read);
    end_context(&ctx);
}

/* ---- what is refused ---- */

static void refuse(an_context *ctx, an_hdf5_source *source, const char *inputs, an_status code, const char *text) {
    an_dataset *d = NULL;
    source->inputs = inputs;
    FAILS(ctx, an_dataset_create_hdf5(&d, ctx, source), code, text);
    assert_null(d);
}

/* A link into another file, a virtual array, numbers in another file, and other things than numbers. */
static void write_odd(void) {
    const hsize_t four[] = {4};
    const hid_t file = begin_file("odd.h5", false), space = H5Screate_simple(1, four, NULL);
    const double values[] = {1, 2, 3, 4};
    assert_true(H5Lcreate_external("pair.h5", "/x", file, "linked", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/linked", file, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    put(file, "y", H5T_STD_I32LE, 1, (hsize_t[]){N - 1}, H5T_NATIVE_INT32, classes, PLAIN);
    put(file, "x", H5T_IEEE_F64LE, 3, cube, H5T_NATIVE_DOUBLE, numbers, PLAIN);
    put(file, "scalar", H5T_IEEE_F64LE, 0, NULL, H5T_NATIVE_DOUBLE, values, PLAIN);
    put(file, "empty", H5T_IEEE_F64LE, 1, (hsize_t[]){0}, H5T_NATIVE_DOUBLE, NULL, PLAIN);
    put(file, "unwritten", H5T_IEEE_F64LE, 1, four, H5T_NATIVE_DOUBLE, NULL, PLAIN);
    put(file, "chunks-unwritten", H5T_IEEE_F64LE, 1, (hsize_t[]){100000}, H5T_NATIVE_DOUBLE, NULL, DEFLATED);

    hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_external(layout, "outside.bin", 0, 32) >= 0);
    hid_t set = H5Dcreate2(file, "outside", H5T_IEEE_F64LE, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    assert_true(set >= 0 && H5Dclose(set) >= 0 && H5Pclose(layout) >= 0);

    layout = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_virtual(layout, space, "pair.h5", "/x", space) >= 0);
    set = H5Dcreate2(file, "virtual", H5T_IEEE_F64LE, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    assert_true(set >= 0 && H5Dclose(set) >= 0 && H5Pclose(layout) >= 0);

    /* a filter that is not part of HDF5 (LZF of h5py), and twice the same */
    layout = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(layout, 1, four) >= 0);
    assert_true(H5Pset_filter(layout, 32000, H5Z_FLAG_OPTIONAL, 0, NULL) >= 0);
    set = H5Dcreate2(file, "lzf", H5T_IEEE_F64LE, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    assert_true(set >= 0 && H5Dclose(set) >= 0 && H5Pclose(layout) >= 0);
    layout = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(layout, 1, four) >= 0);
    assert_true(H5Pset_deflate(layout, 1) >= 0 && H5Pset_deflate(layout, 1) >= 0);
    set = H5Dcreate2(file, "twice", H5T_IEEE_F64LE, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    assert_true(set >= 0 && H5Dclose(set) >= 0 && H5Pclose(layout) >= 0);

    hid_t word = H5Tcopy(H5T_C_S1);
    assert_true(H5Tset_size(word, 8) >= 0);
    set = H5Dcreate2(file, "words", word, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(set >= 0 && H5Dclose(set) >= 0 && H5Tclose(word) >= 0 && H5Sclose(space) >= 0);
    assert_true(H5Fclose(file) >= 0);
}

static void test_refused(void **state) {
    (void)state;
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    an_hdf5_source source = source_of(NULL);
    refuse(ctx, &source, NULL, AN_ERR_ARGUMENT, "has no name");
    source.path = "nowhere.h5";
    refuse(ctx, &source, NULL, AN_ERR_FILE, "nowhere.h5: cannot be opened");
    source.path = ".";
    refuse(ctx, &source, NULL, AN_ERR_FILE, "is a folder");
    write_text("text.h5", "no HDF5 file at all");
    source.path = "text.h5";
    refuse(ctx, &source, NULL, AN_ERR_PARSE, "text.h5: this is not an HDF5 file");
    write_pair("pair.h5", H5T_IEEE_F64LE, PLAIN, false);
    source.path = "pair.h5";
    refuse(ctx, &source, "z", AN_ERR_UNKNOWN, "pair.h5: there is no array 'z'");
    refuse(ctx, &source, "", AN_ERR_ARGUMENT, "has no name");
    refuse(ctx, &source, "/", AN_ERR_UNKNOWN, "there is no array '/'");
    source.dtype = AN_DTYPE_I32;
    refuse(ctx, &source, NULL, AN_ERR_DTYPE, "f32 or f64");
    source.dtype = AN_DTYPE_NONE;
    source.inputs = "y"; /* one dimension is one input */
    OK(ctx, an_dataset_create_hdf5(&d, ctx, &source));
    an_dataset_destroy(&d);

    write_odd();
    source.path = "odd.h5";
    refuse(ctx, &source, NULL, AN_ERR_SHAPE, "there are 4 targets, but 'x' has 5 inputs");
    refuse(ctx, &source, "linked", AN_ERR_UNSUPPORTED, "odd.h5: 'linked' is a link into another file");
    refuse(ctx, &source, "soft", AN_ERR_UNSUPPORTED, "'soft' is a link into another file");
    refuse(ctx, &source, "outside", AN_ERR_UNSUPPORTED, "'outside' has its numbers in other files");
    refuse(ctx, &source, "virtual", AN_ERR_UNSUPPORTED, "'virtual' has its numbers in other files");
    refuse(ctx, &source, "lzf", AN_ERR_UNSUPPORTED, "'lzf' is packed by filter 32000;");
    refuse(ctx, &source, "twice", AN_ERR_UNSUPPORTED, "'twice' is packed by filter 1 twice");
    refuse(ctx, &source, "words", AN_ERR_DTYPE, "'words' does not have numbers of a supported type");
    refuse(ctx, &source, "scalar", AN_ERR_SHAPE, "'scalar' has 0 dimensions");
    refuse(ctx, &source, "empty", AN_ERR_SHAPE, "'empty' has size 0 in dimension 1");
    refuse(ctx, &source, "unwritten", AN_ERR_PARSE, "claims 0 bytes of 'unwritten'");
    refuse(ctx, &source, "chunks-unwritten", AN_ERR_PARSE, "0 bytes of the array, which is too few");
    end_context(&ctx);
}

/* No other file is opened on the way to a refusal: the link leads to a pipe, which would never answer. */
static void test_links_are_not_followed(void **state) {
    (void)state;
    an_context *ctx = new_context();
    an_hdf5_source source = source_of("trap.h5");
    const hid_t file = begin_file("trap.h5", false);
    assert_true(H5Lcreate_external("pipe", "/x", file, "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0);
    unlink("pipe");
    assert_int_equal(mkfifo("pipe", 0600), 0);
    alarm(60);
    refuse(ctx, &source, NULL, AN_ERR_UNSUPPORTED, "'x' is a link into another file");
    alarm(0);
    end_context(&ctx);
}

/* A number that the type in memory does not have becomes an error, and not another number. */
static void test_numbers(void **state) {
    (void)state;
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    an_hdf5_source source = source_of("numbers.h5");
    float values[H * W];
    const int64_t large[N] = {0, 1, INT64_C(1) << 40, 0, 1}, negative[N] = {0, 1, 2, -1, 1};
    numbers[1][0][1] = 1e300;
    numbers[2][1][2] = NAN;
    const hid_t file = begin_file("numbers.h5", false);
    put(file, "x", H5T_IEEE_F64LE, 3, cube, H5T_NATIVE_DOUBLE, numbers, PLAIN);
    put(file, "large", H5T_STD_I64LE, 1, line, H5T_NATIVE_INT64, large, DEFLATED);
    put(file, "negative", H5T_STD_I8LE, 1, line, H5T_NATIVE_INT64, negative, PLAIN);
    assert_true(H5Fclose(file) >= 0);
    set_up(NULL);
    OK(ctx, an_dataset_create_hdf5(&d, ctx, &source));
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){0}, (void *const[]){values}));
    FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){1}, (void *const[]){values}), AN_ERR_PARSE,
          "numbers.h5: sample 1 of 'x', number 1: 1e+300 is not a finite f32 number");
    FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){2}, (void *const[]){values}), AN_ERR_PARSE,
          "sample 2 of 'x', number 5: nan is not a finite f32 number");
    an_dataset_destroy(&d);
    source.targets = "large";
    FAILS(ctx, an_dataset_create_hdf5(&d, ctx, &source), AN_ERR_PARSE,
          "sample 2 of 'large', number 0: 1.09951e+12 is not a class");
    source.targets = "negative";
    FAILS(ctx, an_dataset_create_hdf5(&d, ctx, &source), AN_ERR_PARSE, "-1 is not a class");
    end_context(&ctx);
}

/* ---- damaged files ---- */

static unsigned char bytes[1 << 17];
static size_t stride = 17; /* quick: a sample of the places, and of the ways in which a byte changes; "all": 1 */

/* What a child is doing, for its parent. */
typedef struct {
    size_t at;       /* which byte is changed */
    bool in_library; /* HDF5's library opens the file, without anneal */
} progress;

/* The library's own part of opening. It may die of it: docs/dependencies.md. */
static void open_by_library(volatile progress *p) {
    static const char *const names[] = {"inputs", "x", "X", "targets", "y", "Y"};
    p->in_library = true;
    H5E_BEGIN_TRY {
        const hid_t file = H5Fopen("damaged.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
        for (size_t i = 0; file >= 0 && i < sizeof names / sizeof *names; i++) {
            const hid_t set = H5Dopen2(file, names[i], H5P_DEFAULT);
            if (set >= 0) H5Pclose(H5Dget_create_plist(set)), H5Dclose(set);
        }
        if (file >= 0) H5Fclose(file);
    }
    H5E_END_TRY;
    p->in_library = false;
}

static void read_damaged(an_context *ctx, volatile progress *p, size_t size) {
    double values[N][H * W];
    int32_t labels[N];
    an_dataset *d = NULL;
    an_hdf5_source source = source_of("damaged.h5");
    write_file("damaged.h5", bytes, size);
    open_by_library(p);
    source.dtype = AN_DTYPE_F64;
    if (an_dataset_create_hdf5(&d, ctx, &source) != AN_OK) return;
    if (an_dataset_field_count(d) == 2 && field_bytes(d, 0) == sizeof values[0] && field_bytes(d, 1) == sizeof *labels)
        for (int64_t i = 0; i < N && i < an_dataset_count(d); i++)
            (void)an_dataset_read(d, 1, &i, (void *const[]){values[i], &labels[i]});
    an_dataset_destroy(&d);
}

/* Reads files with one byte changed, and files that end there, from place p->at on. */
static void read_from(volatile progress *p, size_t size) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}; /* cmocka would go on after them */
    static const unsigned char changes[] = {0x01, 0x02, 0x40, 0xff};
    enum { CHANGES = sizeof changes };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], SIG_DFL);
    an_context *ctx = new_context();
    for (; p->at < size; p->at += stride) {
        const unsigned char kept = bytes[p->at];
        alarm(60);
        for (size_t k = 0; k < CHANGES; k++) {
            if (stride > 1 && k != p->at / stride % CHANGES) continue;
            bytes[p->at] = kept ^ changes[k];
            read_damaged(ctx, p, size);
        }
        bytes[p->at] = kept;
        read_damaged(ctx, p, p->at);
    }
    end_context(&ctx);
}

/* An error or other numbers. A child that dies in the library alone is reported; one that dies in anneal is a bug. */
static void check_damaged(const char *path, int *dead) {
    const size_t size = read_file(path, bytes, sizeof bytes);
    volatile progress *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    for (p->at = 0; p->at < size; p->at += stride) {
        int ended;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            read_from(p, size);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &ended, 0), child);
        if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) break;
        print_message("%s: byte %zu of %zu: ended by %s %d in %s\n", path, p->at, size,
                      WIFSIGNALED(ended) ? "signal" : "code", WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended),
                      p->in_library ? "HDF5's library, without anneal" : "anneal");
        *dead += !p->in_library;
    }
    munmap((void *)(uintptr_t)p, sizeof *p);
}

static void test_damaged(void **state) {
    (void)state;
    int dead = 0;
    for (int newest = 0; newest < 2; newest++)
        for (int how = 0; how < PACKINGS; how++) {
            char path[64];
            snprintf(path, sizeof path, "whole-%d-%d.h5", how, newest);
            write_pair(path, H5T_IEEE_F64LE, (packing)how, newest);
            check_damaged(path, &dead);
        }
    assert_int_equal(dead, 0);
}

static void test_config(void **state) {
    (void)state;
    an_context *ctx = new_context();
    an_trainer *trainer = NULL;
    write_pair("pair.h5", H5T_STD_U8LE, CHECKED, false);
    write_text("run.yaml", "model: {type: mlp, hidden: [4]}\ndata: {train: {type: hdf5, path: pair.h5, inputs: x}}\n"
                           "batch: {global: 2}\nrun: {dir: run-hdf5, steps: 3}\nsave: {every: off}\n");
    OK(ctx, an_trainer_open(&trainer, ctx, "run.yaml", NULL));
    for (int i = 0; i < 3; i++) OK(ctx, an_trainer_step(trainer, NULL));
    an_trainer_destroy(&trainer);

    /* What is predicted on needs no targets. */
    an_config *config = NULL;
    an_config_options options;
    an_samples_options model;
    an_dataset *d = NULL;
    an_config_options_init(&options, sizeof options);
    an_samples_options_init(&model, sizeof model);
    options.file = "run.yaml";
    OK(ctx, an_config_create(&config, ctx, &options));
    const hid_t file = begin_file("inputs.h5", false);
    put(file, "x", H5T_STD_U8LE, 3, (hsize_t[]){N, H, W}, H5T_NATIVE_DOUBLE, numbers, PLAIN);
    assert_true(H5Fclose(file) >= 0);
    model.path = "inputs.h5";
    model.elements = H * W;
    model.dtype = AN_DTYPE_F32;
    OK(ctx, an_samples_open(&d, ctx, config, &model, NULL));
    assert_int_equal(an_dataset_count(d), N);
    assert_int_equal(an_dataset_field_count(d), 1);
    an_dataset_destroy(&d);
    model.elements = H;
    FAILS(ctx, an_samples_open(&d, ctx, config, &model, NULL), AN_ERR_SHAPE,
          "inputs.h5: a sample has 12 numbers, but the model reads 4");
    an_config_destroy(&config);
    an_context_destroy(&ctx); /* it keeps the options of the config */
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),   cmocka_unit_test(test_many_chunks),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_links_are_not_followed),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_config),
    };
    if (argc > 1 && !strcmp(argv[1], "all")) stride = 1;
    return cmocka_run_group_tests(tests, set_up, NULL);
}

#else

static void test_without(void **state) {
    (void)state;
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    an_hdf5_source source = source_of("some.h5");
    write_text("some.h5", "anything");
    FAILS(ctx, an_dataset_create_hdf5(&d, ctx, &source), AN_ERR_UNSUPPORTED, "Debian: libhdf5-dev");
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_without)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
