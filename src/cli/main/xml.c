#include "cli/main/xml.h"

#include <string.h>

#include "base/text/utf8.h"

void xml_write(FILE *file, const char *text) {
    static const char special[] = "<>&\"";
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
    while (*text) {
        const size_t length = an_utf8_length_in_text(text);
        const char *found = strchr(special, *text);
        if (found)
            fputs(entities[found - special], file);
        else if (length == 0 ||
                 (unsigned char)*text < ' ') /* XML has no control characters, however they are written */
            fputs(AN_UTF8_REPLACEMENT, file);
        else
            fwrite(text, 1, length, file);
        text += length ? length : 1;
    }
}
