/* PNG by libpng, which reports errors by jumping: it does so into guarded() and nowhere else. */
#include "data/pictures/picture_file.h"

#ifdef AN_HAVE_PNG
#include <png.h>
#include <string.h>

typedef struct {
    an_picture_file *file;
    an_picture *picture;
    png_structp png;
    png_infop info;
    bool in_last_row;
    size_t surplus; /* bytes of compressed data that were read since the last row began */
} decoder;

/* ---- what libpng calls ---- */

static void on_error(png_structp png, png_const_charp message) {
    an_picture_refuse(png_get_error_ptr(png), "libpng: %s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) {
    (void)png, (void)message;
}

/* What follows the last row in the compressed data is no part of the picture, but libpng inflates all of it, as a part
 * of reading that row. */
static void count_surplus(png_structp png, size_t bytes) {
    enum { MOST = 1 << 16, MOST_PIXEL = 8, IDAT = 0x49444154 }; /* bytes of a pixel: four channels of 16 bits */
    decoder *d = png_get_io_ptr(png);
    if (!d->in_last_row || png_get_io_chunk_type(png) != IDAT) return;
    d->surplus += bytes;
    if (d->surplus <= MOST + MOST_PIXEL * (size_t)d->picture->width) return;
    an_picture_refuse(d->file, "the compressed data goes on for more than %d bytes behind the picture's last row",
                      MOST);
    png_longjmp(png, 1);
}

static void read_bytes(png_structp png, png_bytep to, size_t bytes) {
    an_picture_file *f = ((decoder *)png_get_io_ptr(png))->file;
    count_surplus(png, bytes);
    while (bytes > 0) {
        if (f->at == f->end && !an_picture_fill(f)) png_longjmp(png, 1);
        const size_t some = bytes < f->end - f->at ? bytes : f->end - f->at;
        memcpy(to, f->buffer + f->at, some);
        f->at += some;
        to += some;
        bytes -= some;
    }
}

/* ---- the picture ---- */

/* Nothing but pixels is wanted: what else a file carries (profiles, texts, times) is passed over, so it costs no
 * memory. */
static void limit(png_structp png) {
    enum { CHUNK_BYTES = 1 << 20, CHUNKS = 1000 };
    png_set_user_limits(png, AN_PICTURE_PIXELS, AN_PICTURE_PIXELS);
    png_set_chunk_malloc_max(png, CHUNK_BYTES);
    png_set_chunk_cache_max(png, CHUNKS);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL,
                                -1); /* -1: of every kind that pixels can do without */
}

/* Bytes of 8 bits, grey or red, green, blue: whole numbers, the same from every libpng. */
static void convert(png_structp png) {
    png_set_scale_16(png);
    png_set_expand_gray_1_2_4_to_8(png);
    png_set_palette_to_rgb(png);
    png_set_strip_alpha(png);
}

static void read_header(decoder *d) {
    enum { DEFLATE_RATIO = 1032 }; /* zlib's largest */
    png_structp png = d->png;
    an_picture *p = d->picture;
    limit(png);
    png_read_info(png, d->info);
    p->width = png_get_image_width(png, d->info);
    p->height = png_get_image_height(png, d->info);
    p->channels = png_get_color_type(png, d->info) & PNG_COLOR_MASK_COLOR ? 3 : 1;
    const int64_t stored = (int64_t)png_get_rowbytes(png, d->info);
    if (!an_picture_room(d->file, p, stored * p->height / DEFLATE_RATIO)) png_longjmp(png, 1);
}

static void read_pixels(decoder *d) {
    png_structp png = d->png;
    an_picture *p = d->picture;
    const size_t row = (size_t)p->width * (size_t)p->channels;
    convert(png);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, d->info);
    if (png_get_rowbytes(png, d->info) != row) png_error(png, "the size of a row is not what the header says");
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < p->height; y++) {
            d->in_last_row = pass == passes - 1 && y == p->height - 1;
            png_read_row(png, p->pixels + (size_t)y * row, NULL);
        }
    png_read_end(png, NULL);
}

/* libpng jumps back here. Nothing that lives in this function changes between the two returns of setjmp. */
static bool guarded(decoder *d, void (*work)(decoder *d)) {
    if (setjmp(png_jmpbuf(d->png))) return false;
    work(d);
    return true;
}

void an_png_decode(an_picture_file *file, an_picture *picture) {
    decoder d = {.file = file, .picture = picture};
    d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, file, on_error, on_warning);
    if (d.png) d.info = png_create_info_struct(d.png);
    if (d.info) {
        png_set_read_fn(d.png, &d, read_bytes);
        if (guarded(&d, read_header) && !file->header_only) guarded(&d, read_pixels);
    } else if (file->status == AN_OK)
        file->status = AN_NOTE(file->note, AN_ERR_MEMORY, "%s: not enough memory to decode it", file->file.path);
    png_destroy_read_struct(&d.png, &d.info, NULL);
}
#endif
