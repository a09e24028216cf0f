/* Cutting the input into parts. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/regular.h"
#include "cli/tokenize/tokenize.h"

enum { PART = 1 << 18, MOST_PART = 1 << 30 };

static bool fails(char error[TOKENIZE_MESSAGE], const char *path, const char *what) {
    snprintf(error, TOKENIZE_MESSAGE, "%.900s: %.100s", path, what);
    return false;
}

static bool open_next(input *in, char error[TOKENIZE_MESSAGE]) {
    const char *path = in->paths[in->at.file];
    const size_t length = strlen(path);
    in->descriptor = an_regular_open(path, O_RDONLY);
    in->lines =
        (length > 6 && !strcmp(path + length - 6, ".jsonl")) || (length > 7 && !strcmp(path + length - 7, ".ndjson"));
    return in->descriptor >= 0 ||
           fails(error, path, in->descriptor == AN_NOT_REGULAR ? "this is not a regular file" : strerror(errno));
}

void tokenize_close(input *in) {
    if (in->descriptor >= 0) close(in->descriptor);
    in->descriptor = -1;
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_letter(char c) {
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

/* The last place of the bytes where a part may end; 0: there is none. Lines of JSON end anywhere. A text ends behind a
 * line break that stands alone, before a letter: there, tokens do not depend on what is on the other side. */
static size_t last_cut(const part *p, size_t from) {
    for (size_t i = p->length; i > from; i--) {
        if (p->bytes[i - 1] != '\n') continue;
        if (p->lines || (i >= 2 && i < p->length && !is_space(p->bytes[i - 2]) && is_letter(p->bytes[i]))) return i;
    }
    return 0;
}

static bool grow(part *p, size_t needed) {
    if (needed <= p->capacity) return true;
    char *const grown = realloc(p->bytes, needed);
    if (!grown) return false;
    p->bytes = grown;
    p->capacity = needed;
    return true;
}

/* Reads up to `wanted` bytes in all; fewer at the end of the file. */
static bool fill(const input *in, part *p, size_t wanted, char error[TOKENIZE_MESSAGE]) {
    while (p->length < wanted) {
        const ssize_t got =
            pread(in->descriptor, p->bytes + p->length, wanted - p->length, p->offset + (off_t)p->length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fails(error, p->path, strerror(errno));
        if (got == 0) {
            p->ends = true;
            break;
        }
        p->length += (size_t)got;
    }
    return true;
}

static bool read_part(input *in, part *p, char error[TOKENIZE_MESSAGE]) {
    size_t searched = 0, cut = 0;
    for (size_t wanted = PART; cut == 0; wanted *= 2) {
        if (wanted > MOST_PART)
            return fails(error, p->path,
                         p->lines ? "a line has more than 1 GiB" : "a gigabyte of text has no line break to cut it at");
        if (!grow(p, wanted)) return fails(error, p->path, "out of memory");
        if (!fill(in, p, wanted, error)) return false;
        if (p->ends) return true;
        cut = last_cut(p, searched);
        searched = p->length - 1;
    }
    p->length = cut;
    return true;
}

bool tokenize_read(input *in, part *p, char error[TOKENIZE_MESSAGE]) {
    error[0] = 0;
    if (in->at.file == in->count) return false;
    if (in->descriptor < 0 && !open_next(in, error)) return false;
    p->length = p->count = 0;
    p->documents = 0;
    p->path = in->paths[in->at.file];
    p->offset = in->at.offset;
    p->lines = in->lines;
    p->ends = false;
    p->error[0] = 0;
    if (!read_part(in, p, error)) return false;
    in->at.offset += (int64_t)p->length;
    if (p->ends) {
        tokenize_close(in);
        in->at.file++;
        in->at.offset = 0;
    }
    return true;
}
