/* Regular expressions of configs: PCRE2, with limits. */
#ifndef AN_BASE_PATTERN_H
#define AN_BASE_PATTERN_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* As pcre2_compile. PCRE2 recurses by parentheses, about 1 kB of stack for each: so deep ones are refused, where the
 * usual limit of 250 overflows a stack of 64 kB. */
pcre2_code *an_pattern_compile(const char *text, uint32_t options, int *error, PCRE2_SIZE *at);

#endif
