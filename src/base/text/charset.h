/* Recognises texts that are not UTF-8. Needs no context. */
#ifndef AN_BASE_CHARSET_H
#define AN_BASE_CHARSET_H

#include <stddef.h>
#include <stdint.h>

typedef struct an_charset {
    const char *name; /* what the text looks like, as iconv calls it; NULL: it is UTF-8 so far */
    int64_t line;     /* of the first byte that is not UTF-8, from 1 */
    unsigned char byte;
    unsigned char kept[4]; /* a character that was cut off */
    size_t kept_count;
    int64_t bytes; /* seen so far */
} an_charset;

/* Looks at the next part of a text. All zeros at first. */
void an_charset_see(an_charset *charset, const char *bytes, size_t length);
/* At the end of the text. */
void an_charset_finish(an_charset *charset);

#endif
