/* Decoding: the loader with two threads against two threads that only call libpng or libjpeg, in turns.
 *
 *     images FOLDER [ROUNDS]
 *
 * FOLDER must not be there; the pictures are made in it. Prints one line of JSON for each kind and size: images a
 * second of both, and the median over the rounds of the ratio within a round.
 */
#include <png.h>
#include <pthread.h>
#include <stdio.h> /* jpeglib.h does not include what it needs */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <jpeglib.h>

#include "data/loader.h"

enum { THREADS = 2, BATCH = 64, MOST_ROUNDS = 101, PATH = 4096 };

typedef struct {
    const char *name;
    int side, channels, count;
    bool jpeg;
} kind;

static const kind kinds[] = {{"png-28", 28, 1, 4096, false},
                             {"png-224", 224, 3, 512, false},
                             {"jpeg-28", 28, 1, 4096, true},
                             {"jpeg-224", 224, 3, 1024, true}};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((noreturn)) static void fail(const char *what) {
    fprintf(stderr, "images: %s\n", what);
    exit(1);
}

static size_t bytes_of(const kind *k) {
    return (size_t)k->side * (size_t)k->side * (size_t)k->channels;
}

static void path_of(char path[PATH], const char *folder, const kind *k, int i) {
    snprintf(path, PATH, "%s/%s/only/%05d", folder, k->name, i);
}

/* ---- pictures ---- */

/* Something between a photo and a drawing: slow changes, an edge, and a little noise. */
static void paint(const kind *k, int number, unsigned char *pixels) {
    uint32_t state = (uint32_t)number * 2654435761u + 1;
    for (int y = 0; y < k->side; y++)
        for (int x = 0; x < k->side; x++)
            for (int c = 0; c < k->channels; c++) {
                state = state * 1664525u + 1013904223u;
                const int slow = (x * (2 + c) + y * (3 - c)) * 128 / k->side,
                          edge = (x - k->side / 2) * (y - number % k->side) > 0 ? 60 : 0;
                pixels[(y * k->side + x) * k->channels + c] = (unsigned char)((slow + edge + (int)(state >> 29)) & 255);
            }
}

static void write_png(FILE *file, const kind *k, unsigned char *pixels) {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) fail("libpng has no memory");
    png_init_io(png, file);
    png_set_IHDR(png, info, (png_uint_32)k->side, (png_uint_32)k->side, 8,
                 k->channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int y = 0; y < k->side; y++) png_write_row(png, pixels + y * k->side * k->channels);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
}

static void write_jpeg(FILE *file, const kind *k, unsigned char *pixels) {
    struct jpeg_compress_struct info = {0};
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_stdio_dest(&info, file);
    info.image_width = info.image_height = (JDIMENSION)k->side;
    info.input_components = k->channels;
    info.in_color_space = k->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 90, TRUE);
    jpeg_start_compress(&info, TRUE);
    for (int y = 0; y < k->side; y++) {
        JSAMPROW row = pixels + y * k->side * k->channels;
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
}

static void make_pictures(const char *folder, const kind *k) {
    char path[PATH];
    unsigned char *pixels = malloc(bytes_of(k));
    snprintf(path, sizeof path, "%s/%s", folder, k->name);
    if (!pixels || mkdir(path, 0777)) fail("the folder cannot be made");
    snprintf(path, sizeof path, "%s/%s/only", folder, k->name);
    if (mkdir(path, 0777)) fail("the folder cannot be made");
    for (int i = 0; i < k->count; i++) {
        path_of(path, folder, k, i);
        FILE *file = fopen(path, "wb");
        if (!file) fail("a picture cannot be written");
        paint(k, i, pixels);
        (k->jpeg ? write_jpeg : write_png)(file, k, pixels);
        fclose(file);
    }
    free(pixels);
}

/* ---- bare ---- */

static void read_png(FILE *file, const kind *k, unsigned char *pixels) {
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) fail("libpng has no memory");
    png_init_io(png, file);
    png_read_info(png, info);
    for (int y = 0; y < k->side; y++) png_read_row(png, pixels + y * k->side * k->channels, NULL);
    png_read_end(png, NULL);
    png_destroy_read_struct(&png, &info, NULL);
}

static void read_jpeg(FILE *file, const kind *k, unsigned char *pixels) {
    struct jpeg_decompress_struct info = {0};
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_stdio_src(&info, file);
    jpeg_read_header(&info, TRUE);
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
        JSAMPROW row = pixels + (int)info.output_scanline * k->side * k->channels;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
}

typedef struct {
    const char *folder;
    const kind *kind;
    int first;
} bare;

static void *decode(void *user) {
    const bare *b = user;
    const kind *k = b->kind;
    char path[PATH];
    unsigned char *pixels = malloc(bytes_of(k));
    if (!pixels) fail("there is no memory");
    for (int i = b->first; i < k->count; i += THREADS) {
        path_of(path, b->folder, k, i);
        FILE *file = fopen(path, "rb");
        if (!file) fail("a picture cannot be read");
        (k->jpeg ? read_jpeg : read_png)(file, k, pixels);
        fclose(file);
    }
    free(pixels);
    return NULL;
}

static double time_bare(const char *folder, const kind *k) {
    pthread_t threads[THREADS];
    bare parts[THREADS];
    const double begin = now();
    for (int i = 0; i < THREADS; i++) {
        parts[i] = (bare){folder, k, i};
        if (pthread_create(&threads[i], NULL, decode, &parts[i])) fail("a thread cannot be started");
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return now() - begin;
}

/* ---- the loader ---- */

static an_batch_part indices(void *user, int64_t batch, int64_t *to) {
    const kind *k = user;
    if (batch >= k->count / BATCH) return (an_batch_part){.n = -1};
    for (int i = 0; i < BATCH; i++) to[i] = batch * BATCH + i;
    return (an_batch_part){.n = BATCH, .total = BATCH};
}

/* A loader lives as long as a run, so what it costs to make one, and to touch its memory for the first
 * time, is not in the time. */
static an_loader *make_loader(an_context *ctx, const an_dataset *d, const kind *k) {
    an_loader *loader = NULL;
    const an_loader_options options = {
        .dataset = d, .threads = THREADS, .maximum = BATCH, .indices = indices, .user = (void *)(uintptr_t)k};
    if (an_loader_create(&loader, ctx, &options)) fail(an_last_error(ctx));
    return loader;
}

static double time_loader(an_context *ctx, an_loader *loader, const kind *k) {
    an_batch batch;
    const double begin = now();
    an_loader_seek(loader, 0);
    for (int i = 0; i < k->count / BATCH; i++)
        if (an_loader_next(loader, &batch)) fail(an_last_error(ctx));
    return now() - begin;
}

/* ---- turns ---- */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static void measure(an_context *ctx, const char *folder, const kind *k, int rounds) {
    double bare_times[MOST_ROUNDS], loader_times[MOST_ROUNDS], ratios[MOST_ROUNDS];
    char path[PATH];
    an_images_source source;
    an_dataset *d = NULL;
    make_pictures(folder, k);
    snprintf(path, sizeof path, "%s/%s", folder, k->name);
    an_images_source_init(&source, sizeof source);
    source.path = path;
    if (an_dataset_create_images(&d, ctx, &source)) fail(an_last_error(ctx));
    an_loader *loader = make_loader(ctx, d, k);
    time_loader(ctx, loader, k); /* into the cache of files */
    for (int i = 0; i < rounds; i++) {
        bare_times[i] = time_bare(folder, k);
        loader_times[i] = time_loader(ctx, loader, k);
        ratios[i] = bare_times[i] / loader_times[i];
    }
    const double count = k->count;
    printf("{\"images\": \"%s\", \"bare\": %.0f, \"loader\": %.0f, \"ratio\": %.3f}\n", k->name,
           count / median(bare_times, rounds), count / median(loader_times, rounds), median(ratios, rounds));
    fflush(stdout);
    an_loader_destroy(&loader);
    an_dataset_destroy(&d);
}

int main(int count, char **arguments) {
    const int rounds = count > 2 ? (int)strtol(arguments[2], NULL, 10) : 11;
    an_context *ctx = NULL;
    if (count < 2 || rounds < 1 || rounds > MOST_ROUNDS) fail("images FOLDER [ROUNDS]");
    if (mkdir(arguments[1], 0777)) fail("the folder is there already, or cannot be made");
    if (an_context_create(&ctx, NULL)) fail("there is no context");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) measure(ctx, arguments[1], &kinds[i], rounds);
    an_context_destroy(&ctx);
    return 0;
}
