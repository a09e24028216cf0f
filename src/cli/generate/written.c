#include <stdlib.h>
#include <string.h>

#include "cli/generate/generate.h"

void cli_written_add(cli_written *w, const char *bytes, int length) {
    enum { STEP = 4096 };
    if (w->length + (size_t)length + 1 > w->capacity) {
        char *larger = realloc(w->text, 2 * w->capacity + STEP);
        w->has_room = larger != NULL;
        if (!larger) return;
        w->text = larger;
        w->capacity = 2 * w->capacity + STEP;
    }
    memcpy(w->text + w->length, bytes, (size_t)length);
    w->length += (size_t)length;
    w->text[w->length] = 0;
    w->has_room = true;
}

/* Where `stop` is in the text, from `begin` on; `length`: nowhere. Texts of bytes may contain zeros. */
static size_t find(const cli_written *w, size_t begin, const char *stop) {
    const size_t size = strlen(stop);
    for (size_t at = begin; at + size <= w->length; at++)
        if (!memcmp(w->text + at, stop, size)) return at;
    return w->length;
}

void cli_written_stop(cli_written *w, const char *const *stops, int count) {
    size_t first = w->length;
    for (int i = 0; i < count; i++) {
        const size_t at = find(w, w->shown, stops[i]);
        if (at < first) first = at;
    }
    w->stopped = w->stopped || first < w->length;
    w->length = first;
    if (w->text) w->text[first] = 0;
}

/* Bytes at the end of the text that a stop string may begin with. */
static size_t held_back(const cli_written *w, const char *const *stops, int count) {
    size_t maximum = 0;
    for (int i = 0; i < count; i++)
        for (size_t size = strlen(stops[i]) - 1; size > maximum; size--)
            if (size <= w->length - w->shown && !memcmp(w->text + w->length - size, stops[i], size)) maximum = size;
    return maximum;
}

void cli_written_show(cli_written *w, const char *const *stops, int count, bool is_end) {
    const size_t end = w->length - (is_end ? 0 : held_back(w, stops, count));
    if (end > w->shown) fwrite(w->text + w->shown, 1, end - w->shown, stdout);
    if (end > w->shown) fflush(stdout); /* a person reads along */
    w->shown = end;
}
