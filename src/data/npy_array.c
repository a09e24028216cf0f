#include "data/npy_array.h"

#include <inttypes.h>
#include <string.h>

#include "data/zip.h"

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

static bool is_class(double value) {
    return value == AN_TARGET_IGNORED || (value >= 0 && value < INT32_MAX);
}

/* Numbers first … first + count - 1 of the array, which lie at `from`. */
static an_status convert(const an_npy_array *a, int64_t first, size_t count, const unsigned char *from, void *to,
                         an_note note) {
    const size_t width = a->header.type->width;
    double (*const number)(const unsigned char *) = a->header.type->number;
    for (size_t i = 0; i < count; i++) {
        const double value = number(from + i * width);
        if (a->dtype == AN_DTYPE_I32) {
            if (!is_class(value))
                return refuse_number(a, first + (int64_t)i, "a class: classes are 0, 1, 2, …", value, note);
            ((int32_t *)to)[i] = (int32_t)value;
        } else if (a->dtype == AN_DTYPE_F64) {
            if (!(value >= -0x1.fffffffffffffp1023 && value <= 0x1.fffffffffffffp1023))
                return refuse_number(a, first + (int64_t)i, "a finite number", value, note);
            ((double *)to)[i] = value / (double)a->divisor;
        } else {
            if (!(value > -0x1.ffffffp127 && value < 0x1.ffffffp127)) /* from there on it rounds to infinity */
                return refuse_number(a, first + (int64_t)i, "a finite f32 number", value, note);
            ((float *)to)[i] = (float)value / a->divisor;
        }
    }
    return AN_OK;
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

/* Finds the first of these names; *found is their number, `count` if there is none. `listed` is all names that there are. */
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

/* Samples are the first dimension, which in Fortran order changes fastest. */
static void order(const an_npy_header *h, const unsigned char *from, unsigned char *to) {
    const size_t width = h->type->width;
    int64_t index[AN_MAX_DIMS] = {0}, strides[AN_MAX_DIMS];
    strides[0] = 1;
    for (int d = 1; d < h->rank; d++) strides[d] = strides[d - 1] * h->dims[d - 1];
    for (int64_t i = 0; i < h->count; i++) {
        int64_t at = 0;
        for (int d = 0; d < h->rank; d++) at += index[d] * strides[d];
        memcpy(to + (size_t)i * width, from + (size_t)at * width, width);
        for (int d = h->rank - 1; d >= 0 && ++index[d] == h->dims[d]; d--) index[d] = 0;
    }
}

/* Puts the numbers, which are in memory, in C order. */
static an_status order_numbers(an_context *ctx, an_npy_array *a) {
    unsigned char *ordered = NULL;
    if (!a->header.fortran || a->header.rank < 2) return AN_OK;
    AN_TRY_RETURN(an_alloc_raw(ctx, (void **)&ordered, a->bytes));
    order(&a->header, a->numbers, ordered);
    an_release(ctx, (void **)&a->numbers, a->bytes, 1);
    a->numbers = ordered;
    return AN_OK;
}

/* A header of `size` bytes of file at most, which `read` gives piece by piece. */
static an_status parse_header(an_npy_array *a, int64_t begin, int64_t size, const unsigned char *memory,
                              unsigned char *text, an_note note) {
    char place[AN_MESSAGE_BYTES / 2];
    size_t bytes;
    an_note_write((an_note){place, sizeof place}, "%s: byte %" PRId64, a->path, begin);
    if (size < AN_NPY_PREFIX)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: this is not a .npy file: it has only %" PRId64 " bytes", place, size);
    an_status status = AN_OK;
    if (memory)
        memcpy(text, memory, AN_NPY_PREFIX);
    else
        status = an_reader_read(&a->file, begin, text, AN_NPY_PREFIX, note);
    if (status == AN_OK) status = an_npy_header_size(text, place, &bytes, note);
    if (status != AN_OK) return status;
    if ((int64_t)bytes > size)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: the file ends in its header of %zu bytes", place, bytes);
    if (memory)
        memcpy(text, memory, bytes);
    else
        status = an_reader_read(&a->file, begin, text, bytes, note);
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

static an_status read_header(an_context *ctx, an_npy_array *a, int64_t begin, int64_t size,
                             const unsigned char *memory) {
    unsigned char *text = NULL;
    char message[AN_MESSAGE_BYTES];
    const an_note note = {message, sizeof message};
    AN_TRY_RETURN(an_alloc(ctx, (void **)&text, AN_NPY_PREFIX + AN_NPY_TEXT, 1));
    const an_status status = parse_header(a, begin, size, memory, text, note);
    an_release(ctx, (void **)&text, AN_NPY_PREFIX + AN_NPY_TEXT, 1);
    return an_note_raise(ctx, status, note);
}

/* The array that lies in the file as it is. */
static an_status open_stored(an_context *ctx, an_npy_array *a, int64_t begin, int64_t size) {
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    AN_TRY_RETURN(read_header(ctx, a, begin, size, NULL));
    a->begin = begin + (int64_t)a->header.begin;
    if (!a->header.fortran || a->header.rank < 2) return AN_OK;
    a->bytes = (size_t)(size - (int64_t)a->header.begin);
    AN_TRY_RETURN(an_alloc_raw(ctx, (void **)&a->numbers, a->bytes));
    AN_TRY_RETURN(an_note_raise(ctx, an_reader_read(&a->file, a->begin, a->numbers, a->bytes, note), note));
    return order_numbers(ctx, a);
}

static an_status open_deflated(an_context *ctx, an_npy_array *a, const an_zip_member *m) {
    an_status status;
    unsigned char *all = NULL;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    a->begin = m->begin;
    if (m->size > PTRDIFF_MAX / 2) return AN_ERROR(ctx, AN_ERR_OVERFLOW, "%s: does not fit in memory", a->path);
    AN_TRY(an_alloc_raw(ctx, (void **)&all, (size_t)m->size + 1));
    AN_TRY(an_note_raise(ctx, an_zip_read(&a->file, m, all, note), note));
    AN_TRY(read_header(ctx, a, m->begin, m->size, all));
    a->bytes = (size_t)m->size - a->header.begin;
    AN_TRY(an_alloc_raw(ctx, (void **)&a->numbers, a->bytes));
    memcpy(a->numbers, all + a->header.begin, a->bytes);
    status = order_numbers(ctx, a);
fail:
    an_release(ctx, (void **)&all, (size_t)m->size + 1, 1);
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
