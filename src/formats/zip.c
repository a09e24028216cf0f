#include "formats/zip.h"

#include <inttypes.h>
#include <string.h>

/* Signatures and sizes of the records, and where their numbers lie (PKWARE's APPNOTE, 4.3). */
enum {
    LOCAL = 0x04034b50,
    LOCAL_SIZE = 30,
    LOCAL_NAME_LENGTH = 26,
    LOCAL_EXTRA_LENGTH = 28,
    ENTRY = 0x02014b50,
    ENTRY_SIZE = 46,
    ENTRY_FLAGS = 8,
    ENTRY_METHOD = 10,
    ENTRY_CHECK = 16,
    ENTRY_PACKED = 20,
    ENTRY_PLAIN = 24,
    ENTRY_NAME_LENGTH = 28,
    ENTRY_EXTRA_LENGTH = 30,
    ENTRY_COMMENT_LENGTH = 32,
    ENTRY_LOCAL = 42,
    LAST = 0x06054b50,
    LAST_SIZE = 22,
    LAST_COUNT = 10,
    LAST_BYTES = 12,
    LAST_BEGIN = 16,
    LONGEST_COMMENT = 0xffff,
    LOCATOR = 0x07064b50,
    LOCATOR_SIZE = 20,
    LOCATOR_BEGIN = 8,
    LARGE = 0x06064b50,
    LARGE_SIZE = 56,
    LARGE_COUNT = 32,
    LARGE_BYTES = 40,
    LARGE_BEGIN = 48,
    EXTRA_LARGE = 1, /* the extra field that has the sizes of ZIP64 */
    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 1,
    DEFLATE_RATIO = 1032
};
static const uint32_t in_extra = UINT32_MAX; /* a number that does not fit in four bytes */

static uint64_t lower_first(const unsigned char *b, int width) {
    uint64_t value = 0;
    for (int i = width; i-- > 0;) value = value << 8 | b[i];
    return value;
}
static int u16_at(const unsigned char *b, int at) {
    return (int)lower_first(b + at, 2);
}
static uint32_t u32_at(const unsigned char *b, int at) {
    return (uint32_t)lower_first(b + at, 4);
}

/* A size or place that a file may have: none is beyond its end, so nothing that is added to it later overflows. */
static bool get_size(uint64_t number, int64_t maximum, int64_t *size) {
    if (number > (uint64_t)maximum) return false;
    *size = (int64_t)number;
    return true;
}

static an_status refuse(const an_reader *file, int64_t at, const char *what, an_note note) {
    return AN_NOTE(note, AN_ERR_PARSE, "%s: byte %" PRId64 ": %s", file->path, at, what);
}

/* ---- the directory ---- */

bool an_zip_is(const an_reader *file) {
    unsigned char bytes[4];
    char text[AN_MESSAGE_BYTES];
    return file->size >= LAST_SIZE &&
           an_reader_read(file, 0, bytes, sizeof bytes, (an_note){text, sizeof text}) == AN_OK &&
           (u32_at(bytes, 0) == LOCAL || u32_at(bytes, 0) == LAST);
}

/* The last record lies at the end, before a comment of unknown length. */
static an_status find_last(const an_reader *file, unsigned char last[LAST_SIZE], int64_t *at, an_note note) {
    enum { STEP = 4096 };
    unsigned char buffer[STEP + LAST_SIZE];
    const int64_t minimum = file->size > LAST_SIZE + LONGEST_COMMENT ? file->size - LAST_SIZE - LONGEST_COMMENT : 0;
    for (int64_t end = file->size; end - LAST_SIZE >= minimum; end -= STEP) {
        const int64_t begin = end - LAST_SIZE - STEP > minimum ? end - LAST_SIZE - STEP : minimum;
        const an_status status = an_reader_read(file, begin, buffer, (size_t)(end - begin), note);
        if (status != AN_OK) return status;
        for (int64_t i = end - begin - LAST_SIZE; i >= 0; i--) {
            if (u32_at(buffer + i, 0) != LAST) continue;
            memcpy(last, buffer + i, LAST_SIZE);
            *at = begin + i;
            return AN_OK;
        }
    }
    return refuse(file, file->size, "the directory of the ZIP file is missing: it is cut off, or no .npz file", note);
}

/* The same for files whose numbers do not fit in four bytes; *found is false if it is none. */
static an_status find_large(const an_reader *file, int64_t last, unsigned char large[LARGE_SIZE], bool *found,
                            an_note note) {
    unsigned char locator[LOCATOR_SIZE];
    int64_t at;
    *found = false;
    if (last < LOCATOR_SIZE) return AN_OK;
    an_status status = an_reader_read(file, last - LOCATOR_SIZE, locator, sizeof locator, note);
    if (status != AN_OK || u32_at(locator, 0) != LOCATOR) return status;
    if (!get_size(lower_first(locator + LOCATOR_BEGIN, 8), file->size, &at))
        return refuse(file, last - LOCATOR_SIZE, "the directory of the ZIP file lies beyond its end", note);
    status = an_reader_read(file, at, large, LARGE_SIZE, note);
    if (status != AN_OK) return status;
    *found = u32_at(large, 0) == LARGE;
    return *found ? AN_OK : refuse(file, at, "the directory of the ZIP file is not where it should be", note);
}

an_status an_zip_begin(an_zip *z, const an_reader *file, an_note note) {
    unsigned char last[LAST_SIZE], large[LARGE_SIZE];
    int64_t at, bytes;
    bool found;
    *z = (an_zip){.file = file};
    an_status status = find_last(file, last, &at, note);
    if (status == AN_OK) status = find_large(file, at, large, &found, note);
    if (status != AN_OK) return status;
    const bool fits = found ? get_size(lower_first(large + LARGE_BEGIN, 8), file->size, &z->at) &&
                                  get_size(lower_first(large + LARGE_BYTES, 8), file->size - z->at, &bytes) &&
                                  get_size(lower_first(large + LARGE_COUNT, 8), bytes / ENTRY_SIZE, &z->left)
                            : get_size(u32_at(last, LAST_BEGIN), file->size, &z->at) &&
                                  get_size(u32_at(last, LAST_BYTES), file->size - z->at, &bytes) &&
                                  get_size((uint64_t)u16_at(last, LAST_COUNT), bytes / ENTRY_SIZE, &z->left);
    if (!fits) return refuse(file, at, "the directory of the ZIP file does not fit in it", note);
    z->end = z->at + bytes;
    return AN_OK;
}

/* ---- a member ---- */

/* Replaces the numbers of an entry that stand in its extra field, in this order: size, packed size, place. */
static bool read_extra(const unsigned char *extra, int length, uint64_t numbers[3]) {
    for (int at = 0; at + 4 <= length;) {
        const int kind = u16_at(extra, at), bytes = u16_at(extra, at + 2);
        at += 4;
        if (bytes > length - at) return false;
        if (kind == EXTRA_LARGE) {
            int used = 0;
            for (int i = 0; i < 3; i++) {
                if (numbers[i] != in_extra) continue;
                if (used + 8 > bytes) return false;
                numbers[i] = lower_first(extra + at + used, 8);
                used += 8;
            }
            return true;
        }
        at += bytes;
    }
    return true;
}

/* Where the bytes begin, only the record before them says: its name and extra field may have other
 * lengths than in the directory. */
static an_status find_bytes(const an_reader *file, int64_t local, an_zip_member *m, an_note note) {
    unsigned char record[LOCAL_SIZE];
    const an_status status = an_reader_read(file, local, record, sizeof record, note);
    if (status != AN_OK) return status;
    if (u32_at(record, 0) != LOCAL) return refuse(file, local, "no member of the ZIP file begins here", note);
    m->begin = local + LOCAL_SIZE + u16_at(record, LOCAL_NAME_LENGTH) + u16_at(record, LOCAL_EXTRA_LENGTH);
    if (m->begin > file->size || m->packed_size > file->size - m->begin)
        return refuse(file, local, "the member of the ZIP file that begins here does not fit in it", note);
    return AN_OK;
}

static an_status read_entry(const an_zip *z, const unsigned char *entry, const unsigned char *extra, an_zip_member *m,
                            an_note note) {
    const an_reader *file = z->file;
    uint64_t numbers[3] = {u32_at(entry, ENTRY_PLAIN), u32_at(entry, ENTRY_PACKED), u32_at(entry, ENTRY_LOCAL)};
    const int method = u16_at(entry, ENTRY_METHOD);
    int64_t local;
    if (!read_extra(extra, u16_at(entry, ENTRY_EXTRA_LENGTH), numbers) ||
        !get_size(numbers[1], file->size, &m->packed_size) || !get_size(numbers[2], file->size, &local) ||
        !get_size(numbers[0], INT64_MAX, &m->size))
        return refuse(file, z->at, "the sizes of this member of the ZIP file are not possible", note);
    if (u16_at(entry, ENTRY_FLAGS) & ENCRYPTED) return refuse(file, z->at, "the member is encrypted", note);
    if (method != STORED && method != DEFLATED)
        return refuse(file, z->at, "the member is compressed in a way that NumPy does not use", note);
    m->deflated = method == DEFLATED;
    m->check = u32_at(entry, ENTRY_CHECK);
    if (m->deflated ? m->size / DEFLATE_RATIO > m->packed_size : m->size != m->packed_size)
        return refuse(file, z->at, "the two sizes of this member of the ZIP file do not fit each other", note);
    return find_bytes(file, local, m, note);
}

an_status an_zip_next(an_zip *z, an_zip_member *m, bool *more, an_note note) {
    unsigned char entry[ENTRY_SIZE], extra[1024];
    *more = z->left > 0;
    if (!*more) return AN_OK;
    an_status status = an_reader_read(z->file, z->at, entry, sizeof entry, note);
    if (status != AN_OK) return status;
    const int name = u16_at(entry, ENTRY_NAME_LENGTH), extra_length = u16_at(entry, ENTRY_EXTRA_LENGTH);
    const int64_t next = z->at + ENTRY_SIZE + name + extra_length + u16_at(entry, ENTRY_COMMENT_LENGTH);
    if (u32_at(entry, 0) != ENTRY || next > z->end || name >= AN_ZIP_NAME || extra_length > (int)sizeof extra)
        return refuse(z->file, z->at, "this entry of the ZIP file's directory is not possible", note);
    memset(m->name, 0, sizeof m->name);
    status = an_reader_read(z->file, z->at + ENTRY_SIZE, m->name, (size_t)name, note);
    if (status == AN_OK) status = an_reader_read(z->file, z->at + ENTRY_SIZE + name, extra, (size_t)extra_length, note);
    if (status == AN_OK) status = read_entry(z, entry, extra, m, note);
    z->at = next;
    z->left--;
    return status;
}

/* ---- its bytes ---- */

an_status an_zip_open(an_zip_stream *s, const an_reader *file, const an_zip_member *member, an_note note) {
    s->file = file;
    s->member = member;
    s->inflater = (z_stream){0};
    s->taken = s->made = 0;
    s->check = crc32(0, NULL, 0);
    if (inflateInit2(&s->inflater, -MAX_WBITS) == Z_OK) return AN_OK;
    return AN_NOTE(note, AN_ERR_MEMORY, "%s: not enough memory to decompress it", file->path);
}

void an_zip_close(an_zip_stream *s) {
    inflateEnd(&s->inflater);
}

static an_status fill(an_zip_stream *s, an_note note) {
    const int64_t left = s->member->packed_size - s->taken;
    const size_t bytes = left < (int64_t)sizeof s->buffer ? (size_t)left : sizeof s->buffer;
    const an_status status = an_reader_read(s->file, s->member->begin + s->taken, s->buffer, bytes, note);
    s->inflater.next_in = s->buffer;
    s->inflater.avail_in = (uInt)bytes;
    s->taken += (int64_t)bytes;
    return status;
}

static an_status refuse_data(const an_zip_stream *s, an_note note) {
    const int64_t at = s->member->begin + s->taken - s->inflater.avail_in;
    return refuse(s->file, at, "the compressed data is damaged", note);
}

/* Fills what zlib was given as output. It counts in 32 bits, so callers give it piece by piece. */
static an_status inflate_some(an_zip_stream *s, int *result, an_note note) {
    *result = Z_OK;
    while (s->inflater.avail_out > 0 && *result == Z_OK) {
        const an_status status = s->inflater.avail_in == 0 ? fill(s, note) : AN_OK;
        if (status != AN_OK) return status;
        *result = inflate(&s->inflater, Z_NO_FLUSH);
    }
    return s->inflater.avail_out > 0 && *result != Z_STREAM_END ? refuse_data(s, note) : AN_OK;
}

/* Nothing follows what the directory announced, and the checksum is right. */
static an_status check_end(an_zip_stream *s, an_note note) {
    unsigned char surplus;
    int result;
    s->inflater.next_out = &surplus;
    s->inflater.avail_out = 1;
    const an_status status = inflate_some(s, &result, note);
    if (status != AN_OK) return status;
    if (s->inflater.avail_out == 0) return refuse_data(s, note);
    return s->check == s->member->check
               ? AN_OK
               : refuse(s->file, s->member->begin, "the checksum of the member that begins here is wrong", note);
}

an_status an_zip_read(an_zip_stream *s, void *to, size_t bytes, an_note note) {
    enum { PIECE = 1 << 20 }; /* small enough to be in a cache still when its checksum is made */
    unsigned char *at = to;
    for (size_t left = bytes; left > 0;) {
        const uInt some = left < PIECE ? (uInt)left : PIECE;
        int result;
        s->inflater.next_out = at;
        s->inflater.avail_out = some;
        const an_status status = inflate_some(s, &result, note);
        if (status != AN_OK) return status;
        if (s->inflater.avail_out > 0) return refuse_data(s, note);
        s->check = crc32(s->check, at, some);
        at += some;
        left -= some;
    }
    s->made += (int64_t)bytes;
    return bytes > 0 && s->made == s->member->size ? check_end(s, note) : AN_OK;
}
