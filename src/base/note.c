#include "base/note.h"

#include <stdarg.h>
#include <stdio.h>

void an_note_write(an_note note, const char *format, ...) {
    va_list arguments;
    if (note.capacity == 0) return;
    va_start(arguments, format);
    vsnprintf(note.text, note.capacity, format, arguments);
    va_end(arguments);
}
