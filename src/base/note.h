/* Error messages of functions that run on threads of their own and therefore have no context to put a message on. */
#ifndef AN_BASE_NOTE_H
#define AN_BASE_NOTE_H

#include "base/status.h"

typedef struct an_note {
    char *text; /* may be NULL if the capacity is 0 */
    size_t capacity;
} an_note;

void an_note_write(an_note note, const char *format, ...) AN_PRINTF(2, 3);
/* As AN_ERROR: its value is the code. */
#define AN_NOTE(note, code, ...) (an_note_write((note), __VA_ARGS__), (code))
/* Puts what a note says on the context, if the status is an error. Gives the status. */
static inline an_status an_note_raise(an_context *ctx, an_status status, an_note note) {
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "%s", note.text);
}

#endif
