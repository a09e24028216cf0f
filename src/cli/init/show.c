#include <string.h>

#include "base/text/utf8.h"
#include "cli/init/init.h"

init_shown init_show(const char *text, size_t most) {
    init_shown shown = {""};
    size_t used = 0;
    const size_t capacity = most < sizeof shown.text - 1 ? most : sizeof shown.text - 1;
    while (*text) {
        const size_t length = an_utf8_length_in_text(text);
        const bool whole = length > 0 && (unsigned char)*text >= ' ' && *text != 0x7f;
        const size_t bytes = whole ? length : 1;
        if (used + bytes > capacity) break;
        if (whole)
            memcpy(shown.text + used, text, bytes);
        else
            shown.text[used] = '?'; /* a control character, or a byte of another encoding */
        used += bytes;
        text += length > 0 ? length : 1;
    }
    shown.text[used] = 0;
    return shown;
}
