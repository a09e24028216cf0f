#include "base/text/utf8.h"
#include "cli/init/init.h"

init_shown init_show(const char *text, size_t most) {
    init_shown shown;
    an_utf8_show(shown.text, most < sizeof shown.text - 1 ? most : sizeof shown.text - 1, text);
    return shown;
}
