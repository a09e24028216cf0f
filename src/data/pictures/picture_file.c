#include "data/pictures/picture_file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool an_picture_fill(an_picture_file *f) {
    const int64_t left = f->file.size - f->read;
    const size_t bytes = left < AN_PICTURE_BUFFER ? (size_t)left : AN_PICTURE_BUFFER;
    f->at = f->end = 0;
    if (bytes == 0) {
        an_picture_refuse(f, "the file ends here, in the middle of the picture");
        return false;
    }
    const an_status status = an_reader_read(&f->file, f->read, f->buffer, bytes, f->note);
    if (status != AN_OK) {
        f->status = status;
        return false;
    }
    f->read += (int64_t)bytes;
    f->end = bytes;
    return true;
}

void an_picture_refuse(an_picture_file *f, const char *format, ...) {
    char what[256];
    va_list arguments;
    if (f->status != AN_OK) return;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    f->status = AN_NOTE(f->note, AN_ERR_PARSE, "%s: byte %" PRId64 ": %s", f->file.path,
                        f->read - (int64_t)(f->end - f->at), what);
}

bool an_picture_room(an_picture_file *f, an_picture *p, int64_t minimum) {
    const int64_t pixels = p->width > 0 && p->height > 0 && p->height <= AN_PICTURE_PIXELS / p->width
                               ? p->width * p->height
                               : AN_PICTURE_PIXELS + INT64_C(1);
    if (pixels > AN_PICTURE_PIXELS) {
        an_picture_refuse(f, "the picture has %" PRId64 " × %" PRId64 " pixels; at most %d in total are supported",
                          p->width, p->height, (int)AN_PICTURE_PIXELS);
        return false;
    }
    if (f->file.size < minimum) {
        an_picture_refuse(f,
                          "the file has %" PRId64 " bytes, too few for the %" PRId64 " × %" PRId64
                          " pixels that its header announces",
                          f->file.size, p->width, p->height);
        return false;
    }
    const size_t bytes = (size_t)pixels * (size_t)p->channels;
    if (f->header_only || bytes <= p->capacity) return true;
    free(p->pixels);
    p->pixels = malloc(bytes);
    p->capacity = p->pixels ? bytes : 0;
    if (p->pixels) return true;
    f->status =
        AN_NOTE(f->note, AN_ERR_MEMORY, "%s: not enough memory for its %zu bytes of pixels", f->file.path, bytes);
    return false;
}
