#include "data/pictures/picture.h"

#include <stdlib.h>
#include <string.h>

#include "data/pictures/picture_file.h"

/* ---- kinds ---- */

enum { BEGINNING = 8 };

typedef struct {
    const char *name, *package; /* what it is called, and what reads it in Debian */
    unsigned char bytes[BEGINNING];
    size_t count;
    void (*decode)(an_picture_file *file, an_picture *picture); /* NULL: this library was built without it */
} kind;

static const kind kinds[] = {
#ifdef AN_HAVE_PNG
    {"PNG", "libpng-dev", {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, 8, an_png_decode},
#else
    {"PNG", "libpng-dev", {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, 8, NULL},
#endif
#ifdef AN_HAVE_JPEG
    {"JPEG", "libjpeg-dev", {0xff, 0xd8, 0xff}, 3, an_jpeg_decode},
#else
    {"JPEG", "libjpeg-dev", {0xff, 0xd8, 0xff}, 3, NULL},
#endif
};

static const kind *recognize(const an_picture_file *f) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (f->end >= kinds[i].count && memcmp(f->buffer, kinds[i].bytes, kinds[i].count) == 0) return &kinds[i];
    return NULL;
}

static void decode(an_picture_file *f, an_picture *p) {
    if (f->file.size > 0 && !an_picture_fill(f)) return;
    const kind *k = recognize(f);
    if (k && k->decode) {
        k->decode(f, p);
        return;
    }
    if (k)
        f->status = AN_NOTE(f->note, AN_ERR_UNSUPPORTED,
                            "%s: this is a %s file, but anneal was built without a library that reads them; install %s "
                            "and build anneal again",
                            f->file.path, k->name, k->package);
    else if (f->file.size == 0)
        an_picture_refuse(f, "the file is empty");
    else
        an_picture_refuse(f, "this is neither a PNG nor a JPEG file: it begins with %02x %02x %02x %02x", f->buffer[0],
                          f->buffer[1], f->buffer[2], f->buffer[3]);
}

/* ---- reading ---- */

static an_status read_file(an_picture *p, const char *path, bool header_only, an_note note) {
    an_picture_file f;
    f.note = note;
    f.read = 0;
    f.at = f.end = 0;
    f.header_only = header_only;
    memset(f.buffer, 0, BEGINNING);
    f.status = an_reader_open(&f.file, path, note);
    if (f.status != AN_OK) return f.status;
    decode(&f, p);
    an_reader_close(&f.file);
    return f.status;
}

an_status an_picture_measure(an_picture *p, const char *path, an_note note) {
    return read_file(p, path, true, note);
}

an_status an_picture_read(an_picture *p, const char *path, an_note note) {
    return read_file(p, path, false, note);
}

void an_picture_release(an_picture *p) {
    free(p->pixels);
    *p = (an_picture){0};
}

bool an_picture_is(const char *path) {
    char text[AN_MESSAGE_BYTES];
    an_picture_file f = {.note = {text, sizeof text}};
    if (an_reader_open(&f.file, path, f.note) != AN_OK) return false;
    f.end = f.file.size < BEGINNING ? (size_t)f.file.size : BEGINNING;
    const bool good = an_reader_read(&f.file, 0, f.buffer, f.end, f.note) == AN_OK;
    an_reader_close(&f.file);
    return good && recognize(&f);
}

void an_picture_make_grey(an_picture *p) {
    enum { RED = 19595, GREEN = 38470, BLUE = 7471, HALF = 1 << 15, BITS = 16 }; /* their sum is 2^16 */
    if (p->channels != 3) return;
    const size_t pixels = (size_t)(p->width * p->height);
    for (size_t i = 0; i < pixels; i++) {
        const unsigned char *c = p->pixels + 3 * i;
        p->pixels[i] = (unsigned char)((c[0] * RED + c[1] * GREEN + c[2] * BLUE + HALF) >> BITS);
    }
    p->channels = 1;
}
