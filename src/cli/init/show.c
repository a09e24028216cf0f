#include "base/text/utf8.h"
#include "cli/init/init.h"

init_shown init_show(const char *text, size_t maximum) {
    init_shown shown;
    an_utf8_show(shown.text, maximum < sizeof shown.text - 1 ? maximum : sizeof shown.text - 1, text);
    return shown;
}
