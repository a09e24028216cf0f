#include "cli/main/utf8.h"

#include <stdint.h>

size_t utf8_length(const char *text) {
    const unsigned char *t = (const unsigned char *)text;
    if (t[0] < 0x80) return 1;
    const size_t length = t[0] >= 0xf0 ? 4 : t[0] >= 0xe0 ? 3 : 2;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* by length: a longer form than needed is refused */
    if (t[0] < 0xc2 || t[0] > 0xf4) return 0;
    uint32_t code = t[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((t[i] & 0xc0) != 0x80) return 0; /* the NUL at the end is none either */
        code = code << 6 | (t[i] & 0x3f);
    }
    const int is_surrogate = code >= 0xd800 && code <= 0xdfff;
    return code >= least[length] && code <= 0x10ffff && !is_surrogate ? length : 0;
}
