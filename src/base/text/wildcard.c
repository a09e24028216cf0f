#include "base/text/wildcard.h"

#include <string.h>

bool an_wildcard_has(const char *text) {
    return strpbrk(text, "*?") != NULL;
}

/* O(pattern × text): where the rest does not fit, the last * takes one character more. */
bool an_wildcard_matches(const char *pattern, const char *text) {
    const char *star = NULL, *taken = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            taken = text;
        } else if (*pattern && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++taken;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}
