#include "base/files/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- plain files ---- */

/* What the system says, without strerror's shared buffer. */
static void describe(int error, char *text, size_t capacity) {
    if (strerror_r(error, text, capacity) != 0) an_note_write((an_note){text, capacity}, "error %d", error);
}

static an_status refuse(const char *path, const char *what, int error, an_note note) {
    char reason[128];
    describe(error, reason, sizeof reason);
    return AN_NOTE(note, AN_ERR_FILE, "%s: %s: %s", path, what, reason);
}

an_status an_reader_open(an_reader *file, const char *path, an_note note) {
    struct stat about;
    *file = (an_reader){.path = path};
    if (!path || !*path) return AN_NOTE(note, AN_ERR_ARGUMENT, "a file of the data has no name");
    /* Without O_NONBLOCK, opening a pipe would wait for somebody who writes to it. */
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return refuse(path, "cannot be opened", errno, note);
    file->descriptor = descriptor;
    file->open = true;
    if (fstat(descriptor, &about) != 0) {
        const int error = errno;
        an_reader_close(file);
        return refuse(path, "cannot be examined", error, note);
    }
    if (!S_ISREG(about.st_mode)) {
        an_reader_close(file);
        return AN_NOTE(note, AN_ERR_FILE, "%s: is %s, not a file", path,
                       S_ISDIR(about.st_mode)    ? "a folder"
                       : S_ISFIFO(about.st_mode) ? "a pipe"
                                                 : "a device or a socket");
    }
    file->size = about.st_size;
    return AN_OK;
}

void an_reader_close(an_reader *file) {
    if (file->open) close(file->descriptor);
    file->open = false;
}

an_status an_reader_read(const an_reader *file, int64_t offset, void *to, size_t bytes, an_note note) {
    char *at = to;
    if (offset < 0 || offset > file->size || bytes > (uint64_t)(file->size - offset))
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: byte %" PRId64 ": %zu bytes are needed here, but the file has only %" PRId64, file->path,
                       offset, bytes, file->size);
    while (bytes > 0) {
        const ssize_t got = pread(file->descriptor, at, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            char reason[128];
            describe(errno, reason, sizeof reason);
            return AN_NOTE(note, AN_ERR_FILE, "%s: byte %" PRId64 ": cannot be read: %s", file->path, offset, reason);
        }
        if (got == 0)
            return AN_NOTE(note, AN_ERR_FILE,
                           "%s: byte %" PRId64 ": the file ends here; it had %" PRId64 " bytes when it was opened",
                           file->path, offset, file->size);
        at += got;
        offset += got;
        bytes -= (size_t)got;
    }
    return AN_OK;
}

/* ---- streams ---- */

enum { BUFFER = 1 << 16, GZIP_FIRST = 0x1f, GZIP_SECOND = 0x8b, GZIP_MOST_RATIO = 1032 };

/* zlib's memory is the context's too. It does not say the size when it gives something back. */
typedef union {
    size_t bytes;
    max_align_t align;
} allocation;

static void *inflater_allocate(void *user, uInt count, uInt element) {
    allocation *a = NULL;
    const size_t bytes = sizeof *a + (size_t)count * element;
    if (an_alloc(user, (void **)&a, bytes, 1) != AN_OK) return Z_NULL;
    a->bytes = bytes;
    return a + 1;
}

static void inflater_release(void *user, void *memory) {
    allocation *a = (allocation *)memory - 1;
    an_release(user, (void **)&a, a->bytes, 1);
}

static an_status begin_inflating(an_reader_stream *s, an_note note) {
    enum { GZIP_ONLY = 16 };
    s->inflater.zalloc = inflater_allocate;
    s->inflater.zfree = inflater_release;
    s->inflater.opaque = s->ctx;
    s->inflater.next_in = s->buffer;
    if (inflateInit2(&s->inflater, GZIP_ONLY + MAX_WBITS) != Z_OK)
        return AN_NOTE(note, AN_ERR_MEMORY, "%s: not enough memory to decompress it", s->file.path);
    s->compressed = true;
    return AN_OK;
}

an_status an_reader_stream_open(an_reader_stream *s, an_context *ctx, const char *path, an_note note) {
    unsigned char magic[2] = {0};
    an_status status;
    *s = (an_reader_stream){.ctx = ctx};
    status = an_reader_open(&s->file, path, note);
    if (status == AN_OK && s->file.size >= (int64_t)sizeof magic)
        status = an_reader_read(&s->file, 0, magic, sizeof magic, note);
    if (status == AN_OK && magic[0] == GZIP_FIRST && magic[1] == GZIP_SECOND) {
        if (an_alloc(ctx, (void **)&s->buffer, BUFFER, 1) != AN_OK)
            status = AN_NOTE(note, AN_ERR_MEMORY, "%s: not enough memory to read it", path);
        else
            status = begin_inflating(s, note);
    }
    if (status != AN_OK) an_reader_stream_close(s);
    return status;
}

void an_reader_stream_close(an_reader_stream *s) {
    if (s->compressed) inflateEnd(&s->inflater);
    s->compressed = false;
    an_release(s->ctx, (void **)&s->buffer, BUFFER, 1);
    an_reader_close(&s->file);
}

int64_t an_reader_stream_most(const an_reader_stream *s) {
    int64_t maximum;
    if (!s->compressed) return s->file.size;
    return an_multiply_i64(s->file.size, GZIP_MOST_RATIO, &maximum) ? maximum : INT64_MAX;
}

static an_status fill(an_reader_stream *s, an_note note) {
    const int64_t left = s->file.size - s->at;
    const size_t bytes = left < BUFFER ? (size_t)left : BUFFER;
    if (left == 0)
        return AN_NOTE(note, AN_ERR_PARSE, "%s: byte %" PRId64 ": the compressed data is cut off", s->file.path, s->at);
    const an_status status = an_reader_read(&s->file, s->at, s->buffer, bytes, note);
    s->inflater.next_in = s->buffer;
    s->inflater.avail_in = (uInt)bytes;
    s->at += (int64_t)bytes;
    return status;
}

/* Fills what zlib was given as output, or comes to the end. A file may be several compressed ones, one after
 * another. */
static an_status inflate_some(an_reader_stream *s, an_note note) {
    z_stream *z = &s->inflater;
    while (z->avail_out > 0 && !s->ended) {
        an_status status = z->avail_in == 0 ? fill(s, note) : AN_OK;
        if (status != AN_OK) return status;
        const int result = inflate(z, Z_NO_FLUSH);
        if (result == Z_STREAM_END) {
            s->ended = z->avail_in == 0 && s->at == s->file.size;
            if (!s->ended) inflateReset(z);
        } else if (result != Z_OK && !(result == Z_BUF_ERROR && z->avail_in == 0)) {
            return AN_NOTE(note, result == Z_MEM_ERROR ? AN_ERR_MEMORY : AN_ERR_PARSE,
                           "%s: byte %" PRId64 ": the compressed data is damaged: %s", s->file.path,
                           s->at - (int64_t)z->avail_in, z->msg ? z->msg : "it is not valid");
        }
    }
    return AN_OK;
}

an_status an_reader_stream_read(an_reader_stream *s, void *to, size_t capacity, size_t *got, an_note note) {
    enum { MOST = 1 << 30 }; /* what zlib counts in 32 bits */
    char *at = to;
    *got = 0;
    if (!s->compressed) {
        const int64_t left = s->file.size - s->at;
        const size_t bytes = capacity < (uint64_t)left ? capacity : (size_t)left;
        const an_status status = an_reader_read(&s->file, s->at, to, bytes, note);
        s->at += (int64_t)bytes;
        *got = bytes;
        return status;
    }
    while (*got < capacity && !s->ended) {
        const size_t bytes = capacity - *got < MOST ? capacity - *got : MOST;
        s->inflater.next_out = (unsigned char *)at + *got;
        s->inflater.avail_out = (uInt)bytes;
        const an_status status = inflate_some(s, note);
        if (status != AN_OK) return status;
        *got += bytes - s->inflater.avail_out;
    }
    return AN_OK;
}

an_status an_reader_load(an_context *ctx, const char *path, char **bytes, size_t *size, size_t *capacity,
                         an_note note) {
    an_reader_stream stream;
    size_t used = 0, held = 0, got = 0, needed;
    void *memory = NULL;
    an_status status = an_reader_stream_open(&stream, ctx, path, note);
    if (status != AN_OK) return status;
    /* A plain file is taken in one piece; of a compressed one nobody knows the size. */
    needed = stream.compressed ? BUFFER : (size_t)stream.file.size + 1;
    do {
        if (stream.compressed ? an_grow(ctx, &memory, &held, needed, 1) : an_alloc_raw(ctx, &memory, held = needed)) {
            if (!memory) held = 0;
            status = AN_NOTE(note, AN_ERR_MEMORY, "%s: not enough memory for its %zu bytes", path, needed);
            break;
        }
        status = an_reader_stream_read(&stream, (char *)memory + used, held - used, &got, note);
        used += got;
        needed = held + 1;
    } while (status == AN_OK && used == held);
    an_reader_stream_close(&stream);
    if (status != AN_OK) {
        an_release(ctx, &memory, held, 1);
        return status;
    }
    *bytes = memory;
    *size = used;
    *capacity = held;
    return AN_OK;
}
