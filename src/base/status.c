/* Messages and trails of errors. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/context.h"

/* The last error of the thread, whichever context it belongs to, and errors of calls that have none. */
static _Thread_local an_error latest;

const char *an_status_name(an_status status) {
    switch (status) {
#define AN_STATUS(name, value, text) \
    case AN_##name:                  \
        return "AN_" #name;
#include "anneal/status.def"
#undef AN_STATUS
    case AN_STATUS_LIMIT: break;
    }
    return "unknown status";
}

const char *an_status_text(an_status status) {
    switch (status) {
#define AN_STATUS(name, value, text) \
    case AN_##name:                  \
        return text;
#include "anneal/status.def"
#undef AN_STATUS
    case AN_STATUS_LIMIT: break;
    }
    return "unknown status";
}

bool an_status_is_error(int64_t number) {
    static const int64_t known[] = {
#define AN_STATUS(name, value, text) value,
#include "anneal/status.def"
#undef AN_STATUS
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == number) return number != AN_OK;
    return false;
}

static void begin_error(an_error *error, an_status status, const char *message) {
    memcpy(error->message, message, AN_MESSAGE_BYTES);
    error->status = status;
    error->frames = 0;
}

void an_error_set(an_context *ctx, an_status status, const char *function, const char *file, int line,
                  const char *format, ...) {
    va_list arguments;
    char message[AN_MESSAGE_BYTES]; /* an argument may be the old message */
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    begin_error(&latest, status, message);
    if (ctx) begin_error(&ctx->error, status, message);
    an_error_frame(ctx, function, file, line);
}

static void add_frame(an_error *error, const char *function, const char *file, int line) {
    if (error->frames == AN_TRAIL_FRAMES) return;
    error->trail[error->frames].function = function;
    error->trail[error->frames].file = file;
    error->trail[error->frames].line = line;
    error->frames++;
}

void an_error_frame(an_context *ctx, const char *function, const char *file, int line) {
    add_frame(&latest, function, file, line);
    if (ctx) add_frame(&ctx->error, function, file, line);
}

void an_need_failed(an_context *ctx, const char *function, const char *file, int line, const char *names, int index) {
    for (; index > 0; index--) names = strchr(names, ',') + 2;
    an_error_set(ctx, AN_ERR_ARGUMENT, function, file, line, "%s: %.*s is NULL", function, (int)strcspn(names, ","),
                 names);
}

const char *an_last_error(const an_context *context) {
    return context ? context->error.message : latest.message;
}

const char *an_last_error_trail(const an_context *context) {
    /* Composing the text changes nothing that a caller can see, so a const context may be asked. */
    an_error *error = context ? (an_error *)(uintptr_t)&context->error : &latest;
    int length = 0;
    error->trail_text[0] = 0;
    for (int i = 0; i < error->frames && length >= 0 && (size_t)length < sizeof error->trail_text; i++) {
        const char *slash = strrchr(error->trail[i].file, '/');
        length += snprintf(error->trail_text + length, sizeof error->trail_text - (size_t)length, "%sin %s (%s:%d)",
                           i ? "\n" : "", error->trail[i].function, slash ? slash + 1 : error->trail[i].file,
                           error->trail[i].line);
    }
    return error->trail_text;
}
