/* JPEG by libjpeg-turbo, which reports errors by jumping: it does so into guarded() and nowhere else. The slow integer
 * transform is used, whose vector code has the bits of its plain code. */
#include "data/pictures/picture_file.h"

#ifdef AN_HAVE_JPEG
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h does not include what it needs */

#include <jerror.h>
#include <jpeglib.h>

typedef struct {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    an_picture_file *file;
    an_picture *picture;
} decoder;

static decoder *decoder_of(j_common_ptr info) {
    return info->client_data;
}

/* What libjpeg has taken of the buffer. */
static void follow(decoder *d) {
    d->file->at = d->file->end - d->source.bytes_in_buffer;
}

__attribute__((noreturn)) static void fail(decoder *d, const char *who, const char *what) {
    follow(d);
    an_picture_refuse(d->file, "%s%s", who, what);
    longjmp(d->jump, 1);
}

/* ---- what libjpeg calls ---- */

__attribute__((noreturn)) static void on_error(j_common_ptr info) {
    char text[JMSG_LENGTH_MAX];
    info->err->format_message(info, text);
    fail(decoder_of(info), "libjpeg: ", text);
}

/* A warning means that pixels were made up, but for these. */
static void on_message(j_common_ptr info, int level) {
    const int code = info->err->msg_code;
    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM)
        on_error(info);
}

static void print_nothing(j_common_ptr info) {
    (void)info;
}

static void do_nothing(j_decompress_ptr info) {
    (void)info;
}

static boolean fill(j_decompress_ptr info) {
    decoder *d = decoder_of((j_common_ptr)info);
    if (!an_picture_fill(d->file)) longjmp(d->jump, 1);
    d->source.next_input_byte = d->file->buffer;
    d->source.bytes_in_buffer = d->file->end;
    return TRUE;
}

static void skip(j_decompress_ptr info, long bytes) {
    decoder *d = decoder_of((j_common_ptr)info);
    while (bytes > (long)d->source.bytes_in_buffer) {
        bytes -= (long)d->source.bytes_in_buffer;
        fill(info);
    }
    if (bytes <= 0) return;
    d->source.next_input_byte += bytes;
    d->source.bytes_in_buffer -= (size_t)bytes;
}

/* A few bytes can announce a scan over the whole picture, and a file can have many of them. */
static void count_scans(j_common_ptr info) {
    enum { MOST_SCANS = 500 };
    decoder *d = decoder_of(info);
    if (d->info.input_scan_number > MOST_SCANS) fail(d, "", "the picture has more than 500 scans");
}

/* ---- the picture ---- */

static void read_header(decoder *d) {
    struct jpeg_decompress_struct *info = &d->info;
    an_picture *p = d->picture;
    jpeg_create_decompress(info);
    info->src = &d->source;
    info->progress = &d->progress;
    jpeg_read_header(info, TRUE);
    p->width = info->image_width;
    p->height = info->image_height;
    switch (info->jpeg_color_space) {
    case JCS_GRAYSCALE: p->channels = 1; break;
    case JCS_RGB:
    case JCS_YCbCr: p->channels = 3; break;
    default: fail(d, "", "the colours of the picture are neither grey nor RGB; convert it to RGB");
    }
    if (!an_picture_room(d->file, p, 0)) longjmp(d->jump, 1);
}

static void read_pixels(decoder *d) {
    struct jpeg_decompress_struct *info = &d->info;
    an_picture *p = d->picture;
    const size_t row = (size_t)p->width * (size_t)p->channels;
    info->out_color_space = p->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    info->dct_method = JDCT_ISLOW;
    info->do_fancy_upsampling = TRUE;
    info->do_block_smoothing = FALSE; /* differs from version to version */
    jpeg_start_decompress(info);
    while (info->output_scanline < info->output_height) {
        JSAMPROW at = p->pixels + (size_t)info->output_scanline * row;
        jpeg_read_scanlines(info, &at, 1);
    }
    jpeg_finish_decompress(info);
}

/* libjpeg jumps back here. Nothing that lives in this function changes between the two returns of setjmp. */
static bool guarded(decoder *d, void (*work)(decoder *d)) {
    if (setjmp(d->jump)) return false;
    work(d);
    return true;
}

void an_jpeg_decode(an_picture_file *file, an_picture *picture) {
    decoder d = {.file = file, .picture = picture};
    d.info.err = jpeg_std_error(&d.errors);
    d.info.client_data = &d;
    d.errors.error_exit = on_error;
    d.errors.emit_message = on_message;
    d.errors.output_message = print_nothing;
    d.source = (struct jpeg_source_mgr){.next_input_byte = file->buffer,
                                        .bytes_in_buffer = file->end,
                                        .init_source = do_nothing,
                                        .fill_input_buffer = fill,
                                        .skip_input_data = skip,
                                        .resync_to_restart = jpeg_resync_to_restart,
                                        .term_source = do_nothing};
    d.progress.progress_monitor = count_scans;
    if (guarded(&d, read_header) && !file->header_only) guarded(&d, read_pixels);
    jpeg_destroy_decompress(&d.info);
}
#endif
