#include "formats/npy_array.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory_check.h"
#include "formats/zip.h"

/* ---- reading ---- */

enum { BLOCK = 4096 };

/* Where number `i` of the array is. */
static int64_t byte_of(const an_npy_array *a, int64_t i) {
    return a->numbers ? a->begin : a->begin + i * (int64_t)a->header.type->width;
}

static an_status refuse_number(const an_npy_array *a, int64_t i, const char *what, double value, an_note note) {
    char place[AN_MESSAGE_BYTES / 2];
    an_npy_array_place(a, i, (an_note){place, sizeof place});
    return AN_NOTE(note, AN_ERR_PARSE, "%s: %g is not %s", place, value, what);
}

/* Numbers first … first + count - 1 of the array, which lie at `from`. */
static an_status convert(const an_npy_array *a, int64_t first, size_t count, const unsigned char *from, void *to,
                         an_note note) {
    const an_npy_type *type = a->header.type;
    const char *what;
    const size_t done = an_npy_convert(type, a->dtype, a->divisor, from, count, to, &what);
    if (done == count) return AN_OK;
    return refuse_number(a, first + (int64_t)done, what, type->number(from + done * type->width), note);
}

an_status an_npy_array_read(const an_npy_array *a, int64_t first, size_t count, void *to, an_note note) {
    const size_t width = a->header.type->width, size = an_dtype_size(a->dtype);
    unsigned char block[BLOCK];
    an_status status = AN_OK;
    for (size_t at = 0; at < count && status == AN_OK; at += BLOCK / width) {
        const size_t some = count - at < BLOCK / width ? count - at : BLOCK / width;
        const int64_t number = first + (int64_t)at;
        const unsigned char *from = block;
        if (a->numbers)
            from = a->numbers + (size_t)number * width;
        else
            status = an_reader_read(&a->file, a->begin + number * (int64_t)width, block, some * width, note);
        if (status == AN_OK) status = convert(a, number, some, from, (char *)to + at * size, note);
    }
    return status;
}

void an_npy_array_place(const an_npy_array *a, int64_t number, an_note place) {
    an_note_write(place, "%s: byte %" PRId64 "%s: number %" PRId64 " of the array", a->path, byte_of(a, number),
                  a->numbers ? " and behind it" : "", number);
}

/* ---- members of .npz ---- */

/* The name of a member without ".npy". */
static bool is_called(const an_zip_member *m, const char *name) {
    const size_t length = strlen(name);
    return strncmp(m->name, name, length) == 0 && (!m->name[length] || !strcmp(m->name + length, ".npy"));
}

/* Finds the first of these names; *found is their number, `count` if there is none. `listed` is all names that there
 * are. */
static an_status find_member(const an_reader *file, const char *const *names, int count, an_zip_member *member,
                             int *found, an_note listed, an_note note) {
    an_zip zip;
    an_zip_member m;
    bool more;
    size_t used = 0;
    *found = count;
    if (listed.capacity > 0) listed.text[0] = 0;
    an_status status = an_zip_begin(&zip, file, note);
    if (status == AN_OK) status = an_zip_next(&zip, &m, &more, note);
    for (; status == AN_OK && more; status = an_zip_next(&zip, &m, &more, note)) {
        if (used < listed.capacity)
            an_note_write((an_note){listed.text + used, listed.capacity - used}, "%s%s", used ? ", " : "", m.name);
        used = listed.capacity > 0 ? strlen(listed.text) : 0;
        for (int i = 0; i < *found; i++)
            if (is_called(&m, names[i])) {
                *member = m;
                *found = i;
            }
    }
    return status;
}

/* ---- one array ---- */

/* Where the bytes of an array come from, one after another. */
typedef struct {
    const an_reader *file;
    int64_t at;            /* in the file */
    an_zip_stream *packed; /* NULL: they lie in the file as they are */
} byte_source;

static an_status take(byte_source *s, void *to, size_t bytes, an_note note) {
    if (s->packed) return an_zip_read(s->packed, to, bytes, note);
    const an_status status = an_reader_read(s->file, s->at, to, bytes, note);
    s->at += (int64_t)bytes;
    return status;
}

/* A header of `size` bytes of file at most. */
static an_status parse_header(an_npy_array *a, byte_source *source, int64_t size, unsigned char *text, an_note note) {
    char place[AN_MESSAGE_BYTES / 2];
    size_t bytes;
    an_note_write((an_note){place, sizeof place}, "%s: byte %" PRId64, a->path, source->at);
    if (size < AN_NPY_PREFIX)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: this is not a .npy file: it has only %" PRId64 " bytes", place, size);
    an_status status = take(source, text, AN_NPY_PREFIX, note);
    if (status == AN_OK) status = an_npy_header_size(text, place, &bytes, note);
    if (status != AN_OK) return status;
    if ((int64_t)bytes > size)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: the file ends in its header of %zu bytes", place, bytes);
    status = take(source, text + AN_NPY_PREFIX, bytes - AN_NPY_PREFIX, note);
    if (status == AN_OK) status = an_npy_header_read(text, bytes, place, &a->header, note);
    if (status != AN_OK) return status;
    const int64_t width = (int64_t)a->header.type->width, left = size - (int64_t)bytes;
    if (a->header.count != left / width || left % width != 0)
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: the header announces %" PRId64 " numbers of %" PRId64 " bytes, but %" PRId64
                       " bytes follow it",
                       place, a->header.count, width, left);
    return AN_OK;
}

static an_status read_header(an_context *ctx, an_npy_array *a, byte_source *source, int64_t size) {
    unsigned char *text = NULL;
    char message[AN_MESSAGE_BYTES];
    const an_note note = {message, sizeof message};
    AN_TRY_RETURN(an_alloc(ctx, (void **)&text, AN_NPY_PREFIX + AN_NPY_TEXT, 1));
    const an_status status = parse_header(a, source, size, text, note);
    an_release(ctx, (void **)&text, AN_NPY_PREFIX + AN_NPY_TEXT, 1);
    return an_note_raise(ctx, status, note);
}

static bool is_ordered(const an_npy_header *h) {
    return !h->fortran || h->rank < 2;
}

/* Puts numbers that are in Fortran order, in which the first dimension changes fastest, where they are in C order.
 * `index` is that of the next one. */
static void put_in_order(const an_npy_header *h, int64_t index[AN_MAX_DIMS], const unsigned char *from, size_t count,
                         unsigned char *to) {
    const size_t width = h->type->width;
    for (size_t i = 0; i < count; i++) {
        int64_t at = 0;
        for (int d = 0; d < h->rank; d++) at = at * h->dims[d] + index[d];
        memcpy(to + (size_t)at * width, from + i * width, width);
        for (int d = 0; d < h->rank && ++index[d] == h->dims[d]; d++) index[d] = 0;
    }
}

static an_status take_numbers(const an_npy_array *a, byte_source *source, an_note note) {
    const size_t width = a->header.type->width, at_once = BLOCK / width * width;
    int64_t index[AN_MAX_DIMS] = {0};
    unsigned char block[BLOCK];
    if (is_ordered(&a->header)) return take(source, a->numbers, a->bytes, note);
    for (size_t at = 0; at < a->bytes; at += at_once) {
        const size_t some = a->bytes - at < at_once ? a->bytes - at : at_once;
        const an_status status = take(source, block, some, note);
        if (status != AN_OK) return status;
        put_in_order(&a->header, index, block, some / width, a->numbers);
    }
    return AN_OK;
}

/* The numbers behind the header into memory, in C order: once, and only if there is room for them. */
static an_status hold_numbers(an_context *ctx, an_npy_array *a, byte_source *source) {
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    const size_t bytes = (size_t)a->header.count * a->header.type->width;
    AN_TRY_RETURN(an_memory_check(ctx, bytes, a->path));
    AN_TRY_RETURN(an_alloc_raw(ctx, (void **)&a->numbers, bytes));
    a->bytes = bytes;
    return an_note_raise(ctx, take_numbers(a, source, note), note);
}

/* The array that lies in the file as it is. */
static an_status open_stored(an_context *ctx, an_npy_array *a, int64_t begin, int64_t size) {
    byte_source source = {.file = &a->file, .at = begin};
    AN_TRY_RETURN(read_header(ctx, a, &source, size));
    a->begin = source.at;
    return is_ordered(&a->header) ? AN_OK : hold_numbers(ctx, a, &source);
}

static an_status open_deflated(an_context *ctx, an_npy_array *a, const an_zip_member *m) {
    an_status status;
    an_zip_stream packed;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    byte_source source = {.at = m->begin, .packed = &packed};
    a->begin = m->begin;
    AN_TRY_RETURN(an_note_raise(ctx, an_zip_open(&packed, &a->file, m, note), note));
    AN_TRY(read_header(ctx, a, &source, m->size));
    AN_TRY(hold_numbers(ctx, a, &source));
    status = AN_OK;
fail:
    an_zip_close(&packed);
    return status;
}

/* ---- opening ---- */

an_status an_npy_array_open(an_npy_array *a, an_context *ctx, const char *path, bool *is_zip) {
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    a->path = path;
    AN_TRY_RETURN(an_note_raise(ctx, an_reader_open(&a->file, path, note), note));
    *is_zip = an_zip_is(&a->file);
    return AN_OK;
}

an_status an_npy_array_load(an_npy_array *a, an_context *ctx) {
    return open_stored(ctx, a, 0, a->file.size);
}

an_status an_npy_array_load_member(an_npy_array *a, an_context *ctx, const char *const *names, int count, int *found) {
    an_zip_member member;
    char text[AN_MESSAGE_BYTES], listed[AN_MESSAGE_BYTES / 4];
    const an_note note = {text, sizeof text}, list = {listed, sizeof listed};
    AN_TRY_RETURN(an_note_raise(ctx, find_member(&a->file, names, count, &member, found, list, note), note));
    if (*found == count)
        return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: there is no array '%s'; the file contains %s", a->path, names[0],
                        *listed ? listed : "none");
    return member.deflated ? open_deflated(ctx, a, &member) : open_stored(ctx, a, member.begin, member.size);
}

void an_npy_array_close(an_npy_array *a, an_context *ctx) {
    an_release(ctx, (void **)&a->numbers, a->bytes, 1);
    an_reader_close(&a->file);
}
