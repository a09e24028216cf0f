#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/read.h"

bool an_read_is(an_json_string string, const char *text) {
    return string.bytes && !strcmp(string.bytes, text); /* a member that is not there is nothing */
}

bool an_read_refuse(an_text_reader *r, an_status status, const char *format, ...) {
    va_list arguments;
    if (r->status || r->json.problem) return false;
    r->status = status;
    va_start(arguments, format);
    vsnprintf(r->problem, sizeof r->problem, format, arguments);
    va_end(arguments);
    return an_json_refuse(&r->json, r->json.at, r->problem);
}

bool an_read_failed(an_text_reader *r, an_status status) {
    return an_read_refuse(r, status, "%.200s", an_last_error(r->tokenizer->ctx));
}
