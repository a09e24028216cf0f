#include "pretrained/names.h"

#include <stdio.h>
#include <string.h>

#include "base/word.h"

bool an_layer_rename(const char *from, const char *to, const char *name, char other[AN_LAYER_NAME]) {
    enum { MOST_DIGITS = 9 };
    const char *digits = "", *rest = name, *mark = to ? strchr(to, '#') : NULL;
    int count = 0;
    for (; *from; from++) {
        if (*from != '#') {
            if (*from != *rest++) return false;
            continue;
        }
        digits = rest;
        while (an_is_digit(*rest)) rest++;
        count = (int)(rest - digits);
        if (count == 0 || count > MOST_DIGITS) return false;
    }
    if (strcmp(rest, ".weight") != 0 && strcmp(rest, ".bias") != 0) return false;
    if (mark)
        snprintf(other, AN_LAYER_NAME, "%.*s%.*s%s%s", (int)(mark - to), to, count, digits, mark + 1, rest);
    else if (to)
        snprintf(other, AN_LAYER_NAME, "%s%s", to, rest);
    return true;
}
