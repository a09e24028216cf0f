/* Characters of names that may come from anywhere: what JSON and SVG take must be valid UTF-8. */
#ifndef AN_CLI_MAIN_UTF8_H
#define AN_CLI_MAIN_UTF8_H

#include <stddef.h>

/* The length in bytes of the character at `text`; 0: what stands there is none (a byte of another encoding). */
size_t utf8_length(const char *text);

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for what is no character */

#endif
