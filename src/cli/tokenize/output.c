/* The file of tokens, in llm.c's format, and the place up to which it is written.
 *
 * While it is made it is called NAME.partial, and NAME.progress says how much of it counts. The tokens are durable
 * before the place is, so a call that was killed at any moment is continued. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/regular.h"
#include "cli/tokenize/tokenize.h"
#include "launch/siphash.h"

enum { HEADER_NUMBERS = 256, HEADER_BYTES = 4 * HEADER_NUMBERS };

static bool fails(char error[TOKENIZE_MESSAGE], const char *path, const char *what) {
    snprintf(error, TOKENIZE_MESSAGE, "%.800s: %s: %.100s", path, what, strerror(errno));
    return false;
}

/* ---- the job ---- */

static uint64_t mix(uint64_t job, const void *bytes, size_t length) {
    static const an_siphash_key key = {
        {0x616e6e65616c2074, 0x6f6b656e697a6521}}; /* any; files of ours only are compared */
    uint64_t both[2] = {job, an_siphash(&key, bytes, length)};
    return an_siphash(&key, both, sizeof both);
}

/* A file by its size and time, and its name. */
static bool mix_file(uint64_t *job, const char *path, char error[TOKENIZE_MESSAGE]) {
    struct stat s;
    if (stat(path, &s) != 0) return fails(error, path, "cannot be looked at");
    const int64_t facts[] = {(int64_t)s.st_size, (int64_t)s.st_mtim.tv_sec, (int64_t)s.st_mtim.tv_nsec};
    *job = mix(*job, facts, sizeof facts);
    *job = mix(*job, path, strlen(path));
    return true;
}

bool tokenize_job(const encoding *c, const input *in, const char *tokenizer, uint64_t *job,
                  char error[TOKENIZE_MESSAGE]) {
    char file[TOKENIZE_PATH];
    struct stat s;
    const int64_t numbers[] = {1, c->end}; /* the first: what parts and files look like */
    *job = mix(0, numbers, sizeof numbers);
    *job = mix(*job, c->key, strlen(c->key));
    snprintf(file, sizeof file, stat(tokenizer, &s) == 0 && S_ISDIR(s.st_mode) ? "%.4000s/tokenizer.json" : "%.4000s",
             tokenizer);
    if (!mix_file(job, file, error)) return false;
    for (int i = 0; i < in->count; i++)
        if (!mix_file(job, in->paths[i], error)) return false;
    return true;
}

/* ---- the place ---- */

static bool read_place(const output *o, place *at) {
    uint64_t job;
    FILE *file = an_regular_read(o->progress);
    if (!file) return false;
    const int found = fscanf(file,
                             "anneal tokenize 1\njob %" SCNx64 "\nfile %" SCNd64 " offset %" SCNd64 "\ntokens %" SCNd64
                             " documents %" SCNd64,
                             &job, &at->file, &at->offset, &at->tokens, &at->documents);
    fclose(file);
    return found == 5 && job == o->job && at->file >= 0 && at->offset >= 0 && at->tokens >= 0 && at->documents >= 0;
}

static off_t bytes_of(const output *o, const place *at) {
    return HEADER_BYTES + (off_t)at->tokens * o->width;
}

bool tokenize_begin(output *o, const char *path, int width, uint64_t job, place *at, char error[TOKENIZE_MESSAGE]) {
    struct stat s;
    *o = (output){.descriptor = -1, .width = width, .job = job};
    if (snprintf(o->path, sizeof o->path, "%s", path) >= TOKENIZE_PATH ||
        snprintf(o->partial, sizeof o->partial, "%s.partial", path) >= TOKENIZE_PATH ||
        snprintf(o->progress, sizeof o->progress, "%s.progress", path) >= TOKENIZE_PATH) {
        snprintf(error, TOKENIZE_MESSAGE, "%.900s: the name is too long", path);
        return false;
    }
    if (lstat(path, &s) == 0) {
        snprintf(error, TOKENIZE_MESSAGE, "%.900s exists; remove it, or choose another name", path);
        return false;
    }
    o->descriptor = an_regular_open(o->partial, O_RDWR | O_CREAT);
    if (o->descriptor < 0) return fails(error, o->partial, "cannot be opened");
    if (fcntl(o->descriptor, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}) != 0) {
        snprintf(error, TOKENIZE_MESSAGE, "%.800s: another process is writing this file", o->partial);
        return false;
    }
    o->continued = read_place(o, at) && fstat(o->descriptor, &s) == 0 && s.st_size >= bytes_of(o, at);
    if (!o->continued) *at = (place){0, 0, 0, 0};
    if (ftruncate(o->descriptor, bytes_of(o, at)) != 0 || lseek(o->descriptor, 0, SEEK_END) < 0)
        return fails(error, o->partial, "cannot be written");
    return true;
}

static bool put(output *o, const void *bytes, size_t length, char error[TOKENIZE_MESSAGE]) {
    for (const char *p = bytes; length > 0;) {
        const ssize_t n = write(o->descriptor, p, length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fails(error, o->partial, "cannot be written");
        p += n;
        length -= (size_t)n;
    }
    return true;
}

bool tokenize_write(output *o, const part *p, char error[TOKENIZE_MESSAGE]) {
    enum { MOST = 1 << 14 };
    unsigned char bytes[4 * MOST];
    for (size_t begin = 0; begin < p->count; begin += MOST) {
        const size_t count = p->count - begin < MOST ? p->count - begin : MOST;
        for (size_t i = 0; i < count; i++)
            for (int b = 0; b < o->width; b++)
                bytes[i * (size_t)o->width + (size_t)b] = (unsigned char)((uint32_t)p->tokens[begin + i] >> 8 * b);
        if (!put(o, bytes, count * (size_t)o->width, error)) return false;
    }
    return true;
}

bool tokenize_keep(output *o, const place *at, char error[TOKENIZE_MESSAGE]) {
    char written[TOKENIZE_PATH + 8];
    if (fdatasync(o->descriptor) != 0) return fails(error, o->partial, "cannot be written");
    snprintf(written, sizeof written, "%s.new", o->progress);
    const int descriptor = an_regular_open(written, O_WRONLY | O_CREAT | O_TRUNC);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (!file) return fails(error, written, "cannot be opened");
    fprintf(file,
            "anneal tokenize 1\njob %016" PRIx64 "\nfile %" PRId64 " offset %" PRId64 "\ntokens %" PRId64
            " documents %" PRId64 "\n",
            o->job, at->file, at->offset, at->tokens, at->documents);
    const bool good = fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (fclose(file) != 0 || !good || rename(written, o->progress) != 0)
        return fails(error, o->progress, "cannot be written");
    return true;
}

bool tokenize_end(output *o, const place *at, char error[TOKENIZE_MESSAGE]) {
    unsigned char header[HEADER_BYTES] = {0};
    const uint32_t numbers[] = {o->width == 2 ? 20240520 : 20240801, o->width == 2 ? 1 : 7, (uint32_t)at->tokens};
    if (at->tokens > INT32_MAX) {
        snprintf(error, TOKENIZE_MESSAGE, "%.900s: more than 2^31 tokens do not fit in this format; make several files",
                 o->path);
        return false;
    }
    for (int i = 0; i < 12; i++) header[i] = (unsigned char)(numbers[i / 4] >> 8 * (i % 4));
    if (pwrite(o->descriptor, header, sizeof header, 0) != (ssize_t)sizeof header || fsync(o->descriptor) != 0)
        return fails(error, o->partial, "cannot be written");
    const int closed = close(o->descriptor);
    o->descriptor = -1;
    if (closed != 0 || rename(o->partial, o->path) != 0) return fails(error, o->path, "cannot be written");
    unlink(o->progress);
    return true;
}

void tokenize_release(output *o) {
    if (o->descriptor >= 0) close(o->descriptor);
    o->descriptor = -1;
}
