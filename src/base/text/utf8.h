/* Untrusted text as UTF-8: JSON, YAML and SVG must be valid, and a terminal must not obey it. */
#ifndef AN_BASE_UTF8_H
#define AN_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#define AN_UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for what is no character */

/* The length in bytes of the character that begins here, of at most `left` bytes; 0: there is none (a
 * byte of another encoding). */
size_t an_utf8_length(const char *bytes, size_t left);
/* The same in a text that ends in NUL. */
size_t an_utf8_length_in_text(const char *text);
bool an_utf8_is_valid(const char *text);
/* Whether a terminal shows the character that begins here, and obeys none of it: it is valid, no control character, and
 * does not change the direction of writing. */
bool an_utf8_is_shown(const char *text);
/* Copies to `out`, which holds most + 1 bytes, as many whole characters as fit; what a terminal would obey becomes "?".
 * Returns what is left of the text. */
const char *an_utf8_show(char *out, size_t maximum, const char *text);

#endif
