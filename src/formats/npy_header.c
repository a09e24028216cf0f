/* The header is a dictionary of Python: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }. Its keys
 * may come in any order; each must be there once, and nothing else. */
#include "formats/npy_header.h"

#include <string.h>

#include "base/memory.h"

static uint64_t lower_first(const unsigned char *b, size_t width) {
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;) value = value << 8 | b[i];
    return value;
}

/* ---- the prefix ---- */

/* 0x93, "NUMPY", major and minor version, length of the text: two bytes in version 1, four in 2 and 3. */
enum { VERSION = 6, LENGTH = 8, LENGTH_1 = 2, LENGTH_2 = 4 };

static size_t text_begin(const unsigned char *prefix) {
    return LENGTH + (prefix[VERSION] == 1 ? LENGTH_1 : LENGTH_2);
}

an_status an_npy_header_size(const unsigned char prefix[AN_NPY_PREFIX], const char *place, size_t *bytes,
                             an_note note) {
    static const unsigned char magic[VERSION] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    if (memcmp(prefix, magic, sizeof magic) != 0)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: this is not a .npy file: it begins with %02x %02x %02x %02x", place,
                       prefix[0], prefix[1], prefix[2], prefix[3]);
    if (prefix[VERSION] < 1 || prefix[VERSION] > 3)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: the file has version %d of the format; 1 to 3 are supported", place,
                       prefix[VERSION]);
    const uint64_t length = lower_first(prefix + LENGTH, text_begin(prefix) - LENGTH);
    if (length > AN_NPY_TEXT)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: the header announces %llu bytes; at most %d are supported", place,
                       (unsigned long long)length, (int)AN_NPY_TEXT);
    *bytes = text_begin(prefix) + (size_t)length;
    return AN_OK;
}

/* ---- the dictionary ---- */

typedef struct {
    const char *at, *end;
    const char *place;
    an_note note;
} scan;

static void pass_space(scan *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t')) s->at++;
}

static bool take(scan *s, char character) {
    pass_space(s);
    const bool is = s->at < s->end && *s->at == character;
    s->at += is;
    return is;
}

static bool take_word(scan *s, const char *word) {
    const size_t length = strlen(word);
    pass_space(s);
    const bool is = (size_t)(s->end - s->at) >= length && memcmp(s->at, word, length) == 0;
    if (is) s->at += length;
    return is;
}

/* 'text' of at most capacity - 1 characters. */
static bool take_string(scan *s, char *text, size_t capacity) {
    size_t length = 0;
    if (!take(s, '\'')) return false;
    for (; s->at < s->end && *s->at != '\''; s->at++) {
        if (length + 1 >= capacity) return false;
        text[length++] = *s->at;
    }
    text[length] = 0;
    return take(s, '\'');
}

static bool take_count(scan *s, int64_t *count) {
    pass_space(s);
    const char *begin = s->at;
    for (*count = 0; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
        if (!an_multiply_i64(*count, 10, count) || !an_add_i64(*count, *s->at - '0', count)) return false;
    return s->at > begin;
}

static an_status read_type(scan *s, an_npy_header *h) {
    char text[16];
    if (!take_string(s, text, sizeof text))
        return AN_NOTE(s->note, AN_ERR_PARSE,
                       "%s: the numbers have a type of several parts; only plain arrays are supported", s->place);
    const an_npy_type *type = text[0] ? an_npy_type_find(text + 1) : NULL;
    if (type && strchr(type->width == 1 ? "|<>=" : "<", text[0])) h->type = type;
    if (h->type) return AN_OK;
    return AN_NOTE(s->note, AN_ERR_PARSE,
                   "%s: the type of the numbers is '%s'; f2, f4, f8, i1 to i8, u1 to u8 and b1 are supported, "
                   "little-endian ('<')",
                   s->place, text);
}

static an_status read_order(scan *s, an_npy_header *h) {
    h->fortran = take_word(s, "True");
    if (h->fortran || take_word(s, "False")) return AN_OK;
    return AN_NOTE(s->note, AN_ERR_PARSE, "%s: 'fortran_order' is neither True nor False", s->place);
}

static an_status read_shape(scan *s, an_npy_header *h) {
    bool good = take(s, '('), ended = good && take(s, ')');
    for (h->rank = 0; good && !ended; h->rank++) {
        if (h->rank == AN_MAX_DIMS - 1)
            return AN_NOTE(s->note, AN_ERR_PARSE, "%s: the array has more than %d dimensions", s->place,
                           AN_MAX_DIMS - 1);
        good = take_count(s, &h->dims[h->rank]);
        const bool comma = take(s, ',');
        ended = take(s, ')');
        good = good && (comma || ended);
    }
    if (!good) return AN_NOTE(s->note, AN_ERR_PARSE, "%s: 'shape' is not a list of sizes", s->place);
    h->count = 1;
    for (int i = 0; i < h->rank; i++)
        if (!an_multiply_i64(h->count, h->dims[i], &h->count))
            return AN_NOTE(s->note, AN_ERR_PARSE, "%s: the sizes in 'shape' are not possible", s->place);
    if (h->rank > 0 && h->count > 0) return AN_OK;
    return AN_NOTE(s->note, AN_ERR_PARSE, "%s: the array has no samples: its shape has no or an empty dimension",
                   s->place);
}

static const struct {
    const char *name;
    an_status (*read)(scan *s, an_npy_header *h);
} keys[] = {{"descr", read_type}, {"fortran_order", read_order}, {"shape", read_shape}};
enum { KEYS = sizeof keys / sizeof *keys };

an_status an_npy_header_read(const unsigned char *bytes, size_t size, const char *place, an_npy_header *h,
                             an_note note) {
    scan s = {(const char *)bytes + text_begin(bytes), (const char *)bytes + size, place, note};
    bool seen[KEYS] = {false};
    int count = 0;
    *h = (an_npy_header){.begin = size};
    bool good = take(&s, '{');
    while (good && !take(&s, '}')) {
        char name[32];
        int k = 0;
        good = take_string(&s, name, sizeof name) && take(&s, ':');
        while (good && k < KEYS && strcmp(keys[k].name, name) != 0) k++;
        good = good && k < KEYS && !seen[k];
        if (!good) break;
        const an_status status = keys[k].read(&s, h);
        if (status != AN_OK) return status;
        seen[k] = true;
        count++;
        if (take(&s, ',')) continue;
        good = take(&s, '}');
        break;
    }
    pass_space(&s);
    if (good && count == KEYS && s.at == s.end) return AN_OK;
    return AN_NOTE(note, AN_ERR_PARSE,
                   "%s: the header is not a dictionary with 'descr', 'fortran_order' and 'shape', as NumPy writes it",
                   place);
}
