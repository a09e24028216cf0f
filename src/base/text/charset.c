#include "base/text/charset.h"

#include <string.h>

#include "base/text/utf8.h"

/* What the first bytes of a text say. The marks of UTF-32 begin as that of UTF-16 does. */
static const char *find_mark(const char *bytes, size_t length) {
    static const struct {
        const char *mark;
        size_t length;
        const char *name;
    } marks[] = {{"\xff\xfe\0\0", 4, "UTF-32"},
                 {"\0\0\xfe\xff", 4, "UTF-32"},
                 {"\xff\xfe", 2, "UTF-16"},
                 {"\xfe\xff", 2, "UTF-16"}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (length >= marks[i].length && !memcmp(bytes, marks[i].mark, marks[i].length)) return marks[i].name;
    /* Latin letters without a mark: every second byte is 0. */
    if (length >= 4 && bytes[0] && !bytes[1] && bytes[2] && !bytes[3]) return "UTF-16LE";
    if (length >= 4 && !bytes[0] && bytes[1] && !bytes[2] && bytes[3]) return "UTF-16BE";
    return NULL;
}

/* The bytes from 0x80 to 0x9f are control characters of ISO 8859, which no text has, and letters and quotes of
 * Windows. */
static const char *guess(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)bytes[i] >= 0x80 && (unsigned char)bytes[i] < 0xa0) return "WINDOWS-1252";
    return "ISO-8859-1";
}

static void refuse(an_charset *c, const char *at, size_t length) {
    enum { LOOKED_AT = 4096 };
    c->byte = (unsigned char)*at;
    c->name = guess(at, length < LOOKED_AT ? length : LOOKED_AT);
}

/* Ends a character that the part before has begun; gives how many bytes of this part it takes. */
static size_t join(an_charset *c, const char *bytes, size_t length) {
    size_t taken = 0;
    if (c->kept_count == 0) return 0;
    while (c->kept_count < sizeof c->kept && taken < length && ((unsigned char)bytes[taken] & 0xc0) == 0x80)
        c->kept[c->kept_count++] = (unsigned char)bytes[taken++];
    const size_t character = an_utf8_length((const char *)c->kept, c->kept_count);
    if (character == 0 && taken == length && c->kept_count < sizeof c->kept) return taken; /* more of it may come */
    if (character != c->kept_count) refuse(c, (const char *)c->kept, c->kept_count);
    c->kept_count = 0;
    return taken;
}

void an_charset_see(an_charset *c, const char *bytes, size_t length) {
    if (c->bytes == 0) {
        c->line = 1;
        c->name = find_mark(bytes, length);
    }
    size_t at = c->name ? length : join(c, bytes, length);
    while (at < length && !c->name) {
        const size_t character = an_utf8_length(bytes + at, length - at);
        c->line += bytes[at] == '\n';
        if (character == 0 && length - at < sizeof c->kept && ((unsigned char)bytes[at] & 0xc0) == 0xc0) {
            c->kept_count = length - at;
            memcpy(c->kept, bytes + at, c->kept_count);
            break;
        }
        if (character == 0) refuse(c, bytes + at, length - at);
        at += character;
    }
    c->bytes += (int64_t)length;
}

void an_charset_finish(an_charset *c) {
    if (!c->name && c->kept_count > 0) refuse(c, (const char *)c->kept, c->kept_count);
}
