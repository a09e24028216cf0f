#include "cli/main/xml.h"

#include <string.h>

#include "cli/main/utf8.h"

void xml_write(FILE *file, const char *text) {
    static const char special[] = "<>&\"";
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
    while (*text) {
        const size_t length = utf8_length(text);
        const char *found = strchr(special, *text);
        if (found)
            fputs(entities[found - special], file);
        else if (length == 0 ||
                 (unsigned char)*text < ' ') /* XML has no control characters, however they are written */
            fputs(UTF8_REPLACEMENT, file);
        else
            fwrite(text, 1, length, file);
        text += length ? length : 1;
    }
}
