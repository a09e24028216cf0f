/* Messages and trails of errors. */
#include "base/status.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/context.h"

/* The last error of the thread, whichever context it belongs to, and errors of calls that have none. */
static _Thread_local an_error latest;

/* How many there were in the process: two records with the same number are of the same error. */
static _Atomic uint64_t errors;

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

static void add_frame(an_error *error, const char *function, const char *file, int line) {
    if (error->frames == AN_TRAIL_FRAMES) return;
    error->trail[error->frames].function = function;
    error->trail[error->frames].file = file;
    error->trail[error->frames].line = line;
    error->frames++;
}

static void begin_error(an_error *error, uint64_t number, an_status status, const char *message, const char *function,
                        const char *file, int line) {
    memcpy(error->message, message, AN_MESSAGE_BYTES);
    error->status = status;
    error->frames = 0;
    error->number = number;
    add_frame(error, function, file, line);
}

void an_error_set(an_context *ctx, an_status status, const char *function, const char *file, int line,
                  const char *format, ...) {
    va_list arguments;
    char message[AN_MESSAGE_BYTES]; /* an argument may be the old message */
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const uint64_t number = atomic_fetch_add(&errors, 1) + 1;
    begin_error(&latest, number, status, message, function, file, line);
    if (ctx) begin_error(&ctx->error, number, status, message, function, file, line);
}

void an_error_frame(const char *function, const char *file, int line) {
    add_frame(&latest, function, file, line);
}

void an_need_failed(an_context *ctx, const char *function, const char *file, int line, const char *names, int index) {
    for (; index > 0; index--) names = strchr(names, ',') + 2;
    an_error_set(ctx, AN_ERR_ARGUMENT, function, file, line, "%s: %.*s is NULL", function, (int)strcspn(names, ","),
                 names);
}

const char *an_last_error(const an_context *context) {
    return context ? context->error.message : latest.message;
}

/* Frames are added to the thread's error only. If that is still the one of the context, it has them all; another thread
 * sees where the error began. */
const char *an_last_error_trail(const an_context *context) {
    /* Composing the text changes nothing that a caller can see, so a const context may be asked. */
    an_error *error = context ? (an_error *)(uintptr_t)&context->error : &latest;
    const an_error *from = error->number == latest.number ? &latest : error;
    int length = 0;
    error->trail_text[0] = 0;
    for (int i = 0; i < from->frames && length >= 0 && (size_t)length < sizeof error->trail_text; i++) {
        const char *slash = strrchr(from->trail[i].file, '/');
        length += snprintf(error->trail_text + length, sizeof error->trail_text - (size_t)length, "%sin %s (%s:%d)",
                           i ? "\n" : "", from->trail[i].function, slash ? slash + 1 : from->trail[i].file,
                           from->trail[i].line);
    }
    return error->trail_text;
}
