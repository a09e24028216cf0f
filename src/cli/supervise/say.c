/* Messages of a supervisor, on standard error. */
#include <stdarg.h>
#include <stdio.h>

#include "cli/supervise/supervise.h"

void supervise_say(const char *format, ...) {
    va_list arguments;
    fputs("anneal supervise: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}
