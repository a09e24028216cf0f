/* Folders of images: every kind of PNG, JPEG as libjpeg decodes it, in the order of names; resizing; and nothing that
 * is wrong with a file gets through. */
#include "data/dataset.h"
#include "data/pictures.h"
#include "data/pictures/picture.h"
#include "data/pictures/resize.h"

#if defined AN_HAVE_PNG && defined AN_HAVE_JPEG
enum { W = 5, H = 3 };

static an_images_source source_of(const char *path) {
    an_images_source source;
    an_images_source_init(&source, sizeof source);
    source.path = path;
    return source;
}

static unsigned char grey[H * W], colours[H * W * 3];

static void make_pixels(int seed) {
    for (int i = 0; i < H * W; i++) grey[i] = (unsigned char)(i * 17 + seed);
    for (int i = 0; i < H * W * 3; i++) colours[i] = (unsigned char)(i * 5 + seed);
}

/* Two classes, whose files are to be read in the order 10, 2, a: three of each. */
static void make_folders(void) {
    static const char *const names[] = {"pets/dog/10.png", "pets/dog/2.png", "pets/dog/a",
                                        "pets/cat/10.png", "pets/cat/2.jpg", "pets/cat/a.PNG"};
    mkdir("pets", 0777);
    mkdir("pets/dog", 0777);
    mkdir("pets/cat", 0777);
    for (int i = 0; i < 6; i++) {
        make_pixels(i);
        write_png(names[i], W, H, PNG_GREY, grey);
    }
}

/* ---- folders ---- */

static void test_order(void **state) {
    static const int order[] = {3, 4, 5, 0, 1, 2}; /* cats first */
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    an_field field;
    float in[6][H * W];
    int32_t out[6];
    (void)state;
    make_folders();
    an_images_source source = source_of("pets");
    an_field_init(&field, sizeof field);
    OK(ctx, an_dataset_create_images(&d, ctx, &source));
    assert_int_equal(an_dataset_count(d), 6);
    OK(ctx, an_dataset_field(d, 0, &field));
    assert_int_equal(field.ndims, 3);
    assert_int_equal(field.dims[0], 1);
    assert_int_equal(field.dims[1], H);
    assert_int_equal(field.dims[2], W);
    OK(ctx, an_dataset_field(d, 1, &field));
    assert_int_equal(field.limit, 2);
    assert_int_equal(field.ndims, 0);
    assert_string_equal(an_dataset_class_name(d, 0), "cat");
    assert_string_equal(an_dataset_class_name(d, 1), "dog");
    assert_null(an_dataset_class_name(d, 2));
    assert_null(an_dataset_class_name(d, -1));
    check_encoding(ctx, d, "{\"name\": null, \"kind\": \"class\", \"names\": [\"cat\", \"dog\"]}");
    assert_null(an_dataset_notice(d));
    OK(ctx, an_dataset_read(d, 6, (int64_t[]){0, 1, 2, 3, 4, 5}, (void *const[]){in, out}));
    for (int i = 0; i < 6; i++) {
        make_pixels(order[i]);
        assert_int_equal(out[i], i / 3);
        for (int k = 0; k < H * W; k++) assert_true(in[i][k] == (float)grey[k] / 255.0f);
    }
    an_class_info info;
    an_class_info_init(&info, sizeof info);
    OK(ctx, an_dataset_class_info(d, &info));
    assert_int_equal(info.classes, 2);
    assert_int_equal(info.seen, 2);
    assert_int_equal(info.first_absent, 2);
    an_dataset_destroy(&d);
    end_context(&ctx);
}

/* Classes are the names of folders, so pictures are not decoded to count them: here they are none. Parts of
 * a split count their own. */
static void test_classes_are_counted_without_decoding(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL, *parts[2] = {NULL, NULL};
    int64_t counts[2], all[2] = {0, 0};
    an_split_source split;
    an_split_source_init(&split, sizeof split);
    an_class_info info;
    an_class_info_init(&info, sizeof info);
    (void)state;
    make_folders();
    const an_images_source source = source_of("pets");
    OK(ctx, an_dataset_create_images(&d, ctx, &source));
    for (int64_t i = 0; i < 6; i++) {
        char path[AN_MESSAGE_BYTES];
        an_dataset_place(d, 0, i, 0, (an_note){path, sizeof path});
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fclose(file);
    }
    OK(ctx, an_dataset_count_classes(d, 2, counts));
    assert_true(counts[0] == 3 && counts[1] == 3);
    split.source = d;
    split.evaluation = 0.4;
    split.by = AN_SPLIT_STRATIFY;
    OK(ctx, an_dataset_split(&parts[0], &parts[1], ctx, &split));
    for (int i = 0; i < 2; i++) {
        OK(ctx, an_dataset_class_info(parts[i], &info));
        assert_int_equal(info.seen, 2);
        OK(ctx, an_dataset_count_classes(parts[i], 2, counts));
        assert_int_equal(counts[0] + counts[1], an_dataset_count(parts[i]));
        for (int c = 0; c < 2; c++) all[c] += counts[c];
    }
    assert_true(all[0] == 3 && all[1] == 3);
    for (int i = 0; i < 2; i++) an_dataset_destroy(&parts[i]);
    an_dataset_destroy(&d);
    end_context(&ctx);
    make_folders();
}

/* A part is of every class; without classes, files of one folder. */
static void test_parts(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    float in[2][H * W];
    int32_t out[2];
    (void)state;
    make_folders();
    an_images_source source = source_of("pets");
    source.begin = 0.7; /* from 2.1 of 3 on */
    source.scaled = false;
    source.flat = true;
    OK(ctx, an_dataset_create_images(&d, ctx, &source));
    assert_int_equal(an_dataset_count(d), 2);
    OK(ctx, an_dataset_read(d, 2, (int64_t[]){1, 0}, (void *const[]){in, out}));
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 0);
    make_pixels(2);
    for (int k = 0; k < H * W; k++) assert_true(in[0][k] == (float)grey[k]);
    make_pixels(5);
    for (int k = 0; k < H * W; k++) assert_true(in[1][k] == (float)grey[k]);
    an_dataset_destroy(&d);
    static const char *const plain[] = {"pets/dog", "pets/dog/2.png"};
    for (int i = 0; i < 2; i++) {
        source = source_of(plain[i]);
        source.has_targets = false;
        OK(ctx, an_dataset_create_images(&d, ctx, &source));
        assert_int_equal(an_dataset_count(d), i ? 1 : 3);
        assert_int_equal(an_dataset_field_count(d), 1);
        OK(ctx, an_dataset_read(d, 1, (int64_t[]){i ? 0 : 1}, (void *const[]){in}));
        make_pixels(1);
        for (int k = 0; k < H * W; k++) assert_true(in[0][k] == (float)grey[k] / 255.0f);
        an_dataset_destroy(&d);
    }
    end_context(&ctx);
}

static void test_skipped(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    (void)state;
    make_folders();
    mkdir("odd", 0777);
    mkdir("odd/a", 0777);
    mkdir("odd/a/deeper.png", 0777);
    mkdir("odd/.git", 0777);
    write_text("odd/a/.hidden.png", "x");
    write_text("odd/a/notes.txt", "these are cats");
    write_text("odd/list.csv", "a,b\n");
    make_pixels(0);
    write_png("odd/a/1.png", W, H, PNG_GREY, grey);
    an_images_source source = source_of("odd");
    OK(ctx, an_dataset_create_images(&d, ctx, &source));
    assert_int_equal(an_dataset_count(d), 1);
    assert_non_null(strstr(an_dataset_notice(d), "odd: 5 entries were skipped"));
    an_dataset_destroy(&d);
    unlink("odd/a/1.png");
    FAILS(ctx, an_dataset_create_images(&d, ctx, &source), AN_ERR_FILE, "odd/a: the folder contains no PNG or JPEG");
    source.path = "odd/a/deeper.png";
    FAILS(ctx, an_dataset_create_images(&d, ctx, &source), AN_ERR_FILE, "deeper.png: the folder contains no folders");
    source.path = "nowhere";
    FAILS(ctx, an_dataset_create_images(&d, ctx, &source), AN_ERR_FILE, "nowhere: the folder cannot be opened");
    source.path = "odd/a/notes.txt";
    FAILS(ctx, an_dataset_create_images(&d, ctx, &source), AN_ERR_FILE, "notes.txt: the folder cannot be opened");
    source.path = NULL;
    FAILS(ctx, an_dataset_create_images(&d, ctx, &source), AN_ERR_ARGUMENT, "no name");
    source = source_of("pets");
    source.channels = 2;
    FAILS(ctx, an_dataset_create_images(&d, ctx, &source), AN_ERR_ARGUMENT, "1 or 3 channels, not 2");
    source.channels = 0;
    source.height = source.width = 65536;
    FAILS(ctx, an_dataset_create_images(&d, ctx, &source), AN_ERR_ARGUMENT, "cannot have 65536 × 65536 pixels");
    end_context(&ctx);
}

/* Classes and sizes of another dataset. */
static void test_like(void **state) {
    an_context *ctx = new_context();
    an_dataset *training = NULL, *d = NULL;
    int32_t out;
    float in[H * W];
    (void)state;
    make_folders();
    mkdir("new", 0777);
    mkdir("new/dog", 0777);
    make_pixels(0);
    write_png("new/dog/x.png", W * 2, 1, PNG_RGB, colours);
    an_images_source source = source_of("pets");
    OK(ctx, an_dataset_create_images(&training, ctx, &source));
    source.path = "new";
    source.like = training;
    OK(ctx, an_dataset_create_images(&d, ctx, &source));
    assert_int_equal(field_bytes(d, 0), sizeof in);
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){0}, (void *const[]){in, &out}));
    assert_int_equal(out, 1);
    an_class_info info;
    an_class_info_init(&info, sizeof info);
    OK(ctx, an_dataset_class_info(d, &info));
    assert_int_equal(info.classes, 2);
    assert_int_equal(info.seen, 1);
    assert_int_equal(info.first_absent, 0);
    an_dataset_destroy(&d);
    mkdir("new/cow", 0777);
    write_png("new/cow/x.png", W, H, PNG_GREY, grey);
    FAILS(ctx, an_dataset_create_images(&d, ctx, &source), AN_ERR_UNKNOWN,
          "new/cow: the training data has no class 'cow'");
    unlink("new/cow/x.png");
    rmdir("new/cow");
    an_dataset_destroy(&training);
    end_context(&ctx);
}

/* ---- kinds of PNG ---- */

static void check_picture(const char *path, int channels, const unsigned char *pixels) {
    char text[AN_MESSAGE_BYTES] = "";
    an_picture p = {0};
    const an_status status = an_picture_read(&p, path, (an_note){text, sizeof text});
    if (status != AN_OK) fail_msg("%s", text);
    assert_int_equal(p.width, W);
    assert_int_equal(p.height, H);
    assert_int_equal(p.channels, channels);
    assert_memory_equal(p.pixels, pixels, (size_t)(W * H * channels));
    an_picture_release(&p);
}

/* Packs numbers of `depth` bits. */
static void pack(const unsigned char *from, size_t row, int depth, unsigned char *to) {
    const size_t bytes = (row * (size_t)depth + 7) / 8;
    memset(to, 0, H * bytes);
    for (size_t y = 0; y < H; y++)
        for (size_t x = 0; x < row; x++) {
            const size_t bit = x * (size_t)depth;
            if (depth == 16)
                to[y * bytes + 2 * x] = to[y * bytes + 2 * x + 1] = from[y * row + x];
            else
                to[y * bytes + bit / 8] |= (unsigned char)(from[y * row + x] << (8 - depth - (int)(bit % 8)));
        }
}

static void test_png_kinds(void **state) {
    static unsigned char file[8192], rows[1024], values[H * W * 4], want[H * W * 3];
    (void)state;
    for (int depth = 1; depth <= 16; depth *= 2) { /* grey */
        const int levels = depth < 8 ? (1 << depth) - 1 : 255;
        for (int i = 0; i < H * W; i++) {
            values[i] = (unsigned char)(i * 17 % (levels + 1));
            want[i] = (unsigned char)(values[i] * 255 / levels);
        }
        pack(values, W, depth, rows);
        write_file("kind.png", file, make_png(file, W, H, PNG_GREY, depth, rows, NULL, 0));
        check_picture("kind.png", 1, want);
    }
    make_pixels(3);
    for (int depth = 8; depth <= 16; depth *= 2) {
        pack(colours, 3 * W, depth, rows);
        write_file("kind.png", file, make_png(file, W, H, PNG_RGB, depth, rows, NULL, 0));
        check_picture("kind.png", 3, colours);
        for (int i = 0; i < H * W; i++) { /* what is transparent keeps its colour */
            memcpy(values + 4 * i, colours + 3 * i, 3);
            values[4 * i + 3] = (unsigned char)(i * 16);
        }
        pack(values, 4 * W, depth, rows);
        write_file("kind.png", file, make_png(file, W, H, PNG_RGB_ALPHA, depth, rows, NULL, 0));
        check_picture("kind.png", 3, colours);
        for (int i = 0; i < H * W; i++) {
            values[2 * i] = grey[i];
            values[2 * i + 1] = (unsigned char)i;
        }
        pack(values, 2 * W, depth, rows);
        write_file("kind.png", file, make_png(file, W, H, PNG_GREY_ALPHA, depth, rows, NULL, 0));
        check_picture("kind.png", 1, grey);
    }
    for (int depth = 1; depth <= 8; depth *= 2) { /* of a palette */
        for (int i = 0; i < H * W; i++) {
            values[i] = (unsigned char)(i % (depth < 4 ? 1 << depth : 15));
            memcpy(want + 3 * i, colours + 3 * values[i], 3);
        }
        pack(values, W, depth, rows);
        write_file("kind.png", file,
                   make_png(file, W, H, PNG_PALETTE, depth, rows, colours, depth < 4 ? 1 << depth : 15));
        check_picture("kind.png", 3, want);
    }
}

/* ---- JPEG ---- */

/* libjpeg without us. */
static void decode_plainly(const unsigned char *file, size_t size, unsigned char *pixels) {
    struct jpeg_decompress_struct info = {0};
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, file, size);
    jpeg_read_header(&info, TRUE);
    info.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
        JSAMPROW row = pixels + info.output_scanline * info.output_width * (JDIMENSION)info.output_components;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
}

static void test_jpeg(void **state) {
    enum { SIDE = 61 };
    static unsigned char pixels[SIDE * SIDE * 3], want[SIDE * SIDE * 3];
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (unsigned char)(i * i / 37 + i / 5);
    for (int channels = 1; channels <= 3; channels += 2)
        for (int progressive = 0; progressive < 2; progressive++) {
            unsigned char *file;
            char text[AN_MESSAGE_BYTES] = "";
            an_picture p = {0};
            const size_t size = make_jpeg(&file, SIDE, SIDE, channels, pixels, progressive);
            write_file("x.png", file, size); /* what it is called does not matter */
            decode_plainly(file, size, want);
            if (an_picture_read(&p, "x.png", (an_note){text, sizeof text})) fail_msg("%s", text);
            assert_int_equal(p.width, SIDE);
            assert_int_equal(p.channels, channels);
            assert_memory_equal(p.pixels, want, (size_t)(SIDE * SIDE * channels));
            an_picture_release(&p);
            free(file);
        }
}

/* ---- colours and sizes ---- */

static void test_convert(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    float in[3 * H * W];
    (void)state;
    make_pixels(9);
    write_png("one.png", W, H, PNG_RGB, colours);
    an_images_source source = source_of("one.png");
    source.has_targets = source.scaled = false;
    OK(ctx, an_dataset_create_images(&d, ctx, &source));
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){0}, (void *const[]){in}));
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < H * W; i++) assert_true(in[c * H * W + i] == (float)colours[3 * i + c]);
    an_dataset_destroy(&d);
    source.channels = 1;
    OK(ctx, an_dataset_create_images(&d, ctx, &source));
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){0}, (void *const[]){in}));
    for (int i = 0; i < H * W; i++) {
        const double exact = 0.299 * colours[3 * i] + 0.587 * colours[3 * i + 1] + 0.114 * colours[3 * i + 2];
        assert_true(in[i] - exact < 0.501 && exact - in[i] < 0.501);
    }
    an_dataset_destroy(&d);
    write_png("one.png", W, H, PNG_GREY, grey);
    source.channels = 3;
    OK(ctx, an_dataset_create_images(&d, ctx, &source));
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){0}, (void *const[]){in}));
    for (int i = 0; i < 3 * H * W; i++) assert_true(in[i] == (float)grey[i % (H * W)]);
    an_dataset_destroy(&d);
    end_context(&ctx);
}

/* The weights of the filter in f64, one axis. */
static double filtered(const double *line, int from, int to, int i) {
    const double scale = (double)from / to, radius = scale > 1 ? scale : 1, centre = (i + 0.5) * scale;
    double sum = 0, weights = 0;
    for (int p = 0; p < from; p++) {
        const double away = p + 0.5 - centre, distance = (away < 0 ? -away : away) / radius;
        if (distance >= 1) continue;
        sum += (1 - distance) * line[p];
        weights += 1 - distance;
    }
    return sum / weights;
}

static void test_resize(void **state) {
    enum { MOST = 40 };
    static unsigned char pixels[MOST * MOST * 3];
    an_resizer r = {0};
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (unsigned char)(i * 7919 % 256);
    for (int trial = 0; trial < 200; trial++) {
        const int w = 1 + trial * 7 % MOST, h = 1 + trial * 11 % MOST, to_w = 1 + trial * 13 % MOST,
                  to_h = 1 + trial * 17 % MOST, channels = trial % 2 ? 3 : 1;
        const an_picture p = {.width = w, .height = h, .channels = channels, .pixels = pixels};
        const unsigned char *result;
        assert_true(an_resize(&r, &p, to_h, to_w, &result));
        for (int y = 0; y < to_h; y++)
            for (int x = 0; x < to_w; x++)
                for (int c = 0; c < channels; c++) {
                    double column[MOST], row[MOST];
                    for (int k = 0; k < h; k++) {
                        for (int j = 0; j < w; j++) row[j] = pixels[(k * w + j) * channels + c];
                        column[k] = filtered(row, w, to_w, x);
                    }
                    const double off = result[(y * to_w + x) * channels + c] - filtered(column, h, to_h, y);
                    assert_true(off < 1.01 && off > -1.01); /* both axes round */
                }
    }
    memset(pixels, 255, sizeof pixels); /* a picture of one colour keeps it */
    const an_picture white = {.width = 37, .height = 29, .channels = 1, .pixels = pixels};
    const unsigned char *result;
    for (int to = 1; to < MOST; to++) {
        assert_true(an_resize(&r, &white, to, MOST - to, &result));
        for (int i = 0; i < to * (MOST - to); i++) assert_int_equal(result[i], 255);
    }
    static unsigned char line[100000]; /* of more pixels than the weights' rounding errors can bear */
    memset(line, 255, sizeof line);
    const an_picture wide = {.width = sizeof line, .height = 1, .channels = 1, .pixels = line};
    assert_true(an_resize(&r, &wide, 1, 1, &result));
    assert_int_equal(result[0], 255);
    an_resizer_release(&r);
}

/* ---- what is wrong ---- */

static an_status try_bytes(const void *bytes, size_t size, char text[AN_MESSAGE_BYTES]) {
    an_picture p = {0};
    text[0] = 0;
    write_file("bad.png", bytes, size);
    const an_status status = an_picture_read(&p, "bad.png", (an_note){text, AN_MESSAGE_BYTES});
    if (status != AN_OK) assert_non_null(strstr(text, "bad.png: byte "));
    an_picture_release(&p);
    return status;
}

static void refuse(const void *bytes, size_t size, const char *words) {
    char text[AN_MESSAGE_BYTES];
    assert_int_equal(try_bytes(bytes, size, text), AN_ERR_PARSE);
    if (!strstr(text, words)) fail_msg("'%s' does not say '%s'", text, words);
}

/* Cut at every byte, and every byte changed: a message, or other pixels where nothing can tell. */
static void damage(unsigned char *file, size_t size, size_t minimum) {
    char text[AN_MESSAGE_BYTES];
    for (size_t i = 0; i < minimum; i++) refuse(file, i, "");
    for (size_t i = 0; i < size; i++) {
        file[i] ^= 0x55;
        try_bytes(file, size, text);
        file[i] ^= 0x55;
    }
}

static void test_damage(void **state) {
    static unsigned char file[8192];
    unsigned char *jpeg;
    (void)state;
    make_pixels(1);
    size_t size = make_png(file, W, H, PNG_RGB, 8, colours, NULL, 0);
    damage(file, size, size);
    for (int progressive = 0; progressive < 2; progressive++) {
        size = make_jpeg(&jpeg, W, H, 3, colours, progressive);
        damage(jpeg, size, size - 2);
        free(jpeg);
    }
    file[0] = 'G';
    refuse(file, 20, "this is neither a PNG nor a JPEG file: it begins with 47 50 4e 47");
    refuse(file, 0, "the file is empty");
}

/* Where libjpeg would make up pixels, the file is refused; what lies between the picture and its end does no harm. */
static void test_jpeg_warnings(void **state) {
    unsigned char *jpeg, changed[4096];
    char text[AN_MESSAGE_BYTES];
    (void)state;
    make_pixels(1);
    const size_t size = make_jpeg(&jpeg, W, H, 3, colours, false);
    memcpy(changed, jpeg, size - 2);
    put_bytes(changed + size - 2, "xyz\xff\xd9", 5);
    assert_int_equal(try_bytes(changed, size + 3, text), AN_OK);
    put_bytes(changed + size - 12, "\xff\xd9", 2);
    refuse(changed, size - 10, "libjpeg: Corrupt JPEG data: premature end of data segment");
    free(jpeg);
}

static void test_large(void **state) {
    static unsigned char file[8192];
    unsigned char *jpeg;
    char text[AN_MESSAGE_BYTES];
    (void)state;
    make_pixels(1);
    const size_t size = make_png(file, W, H, PNG_GREY, 8, grey, NULL, 0);
    put_bytes(file + 16, "\0\0\x20\x01\0\0\x20\0", 8); /* 8193 × 8192 */
    uint32_t check = (uint32_t)crc32(0, file + 12, 17);
    for (int i = 0; i < 4; i++) file[29 + i] = (unsigned char)(check >> (24 - 8 * i));
    refuse(file, size, "the picture has 8193 × 8192 pixels; at most 67108864 in total are supported");
    put_bytes(file + 16, "\0\0\x20\0\0\0\x20\0", 8);
    check = (uint32_t)crc32(0, file + 12, 17);
    for (int i = 0; i < 4; i++) file[29 + i] = (unsigned char)(check >> (24 - 8 * i));
    refuse(file, size, "too few for the 8192 × 8192 pixels that its header announces");
    const size_t jpeg_size = make_jpeg(&jpeg, W, H, 1, grey, false);
    for (size_t i = 0; i + 8 < jpeg_size; i++) /* the sizes of the frame */
        if (jpeg[i] == 0xff && jpeg[i + 1] == 0xc0) memset(jpeg + i + 5, 0xf0, 4);
    refuse(jpeg, jpeg_size, "the picture has 61680 × 61680 pixels");
    free(jpeg);
    /* In a dataset the file is named too. */
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    float in[H * W];
    int32_t out;
    make_folders();
    write_file("pets/dog/2.png", file, size);
    an_images_source source = source_of("pets");
    OK(ctx, an_dataset_create_images(&d, ctx, &source));
    FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){4}, (void *const[]){in, &out}), AN_ERR_PARSE, "pets/dog/2.png: byte ");
    an_dataset_destroy(&d);
    end_context(&ctx);
    assert_int_equal(try_bytes(file, 3, text), AN_ERR_PARSE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),  cmocka_unit_test(test_classes_are_counted_without_decoding),
        cmocka_unit_test(test_parts),  cmocka_unit_test(test_skipped),
        cmocka_unit_test(test_like),   cmocka_unit_test(test_png_kinds),
        cmocka_unit_test(test_jpeg),   cmocka_unit_test(test_convert),
        cmocka_unit_test(test_resize), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_large),  cmocka_unit_test(test_jpeg_warnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
    return 77; /* there is nothing to decode with */
}
#endif
