/* Messages of a supervisor, on standard error. */
#include <stdarg.h>
#include <stdio.h>

#include "cli/supervise/supervise.h"

const char *supervise_name = "supervise";

void supervise_say(const char *format, ...) {
    va_list arguments;
    fprintf(stderr, "anneal %s: ", supervise_name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}
