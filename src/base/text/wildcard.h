/* Names with wildcards: * stands for any characters, ? for one. */
#ifndef AN_BASE_WILDCARD_H
#define AN_BASE_WILDCARD_H

#include <stdbool.h>

bool an_wildcard_has(const char *text); /* whether it has any */
bool an_wildcard_matches(const char *pattern, const char *text);

#endif
