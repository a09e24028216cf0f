/* Reading untrusted files. The size of a file is fixed when it is opened. A read past it is refused before it is
 * tried; a file that has become shorter is an error, and so is a folder, a device or a pipe. */
#ifndef AN_BASE_READER_H
#define AN_BASE_READER_H

#include <zlib.h>

#include "base/memory.h"
#include "base/note.h"

typedef struct an_reader {
    bool open;
    int descriptor;
    int64_t size;
    const char *path; /* the caller's, who keeps it */
} an_reader;

an_status an_reader_open(an_reader *file, const char *path, an_note note);
void an_reader_close(an_reader *file);
/* All of `bytes`, or an error. Any number of threads at once. */
an_status an_reader_read(const an_reader *file, int64_t offset, void *to, size_t bytes, an_note note);

/* A file from its first byte to its last, uncompressed if it is of gzip. */
typedef struct an_reader_stream {
    an_context *ctx;
    an_reader file;
    int64_t at; /* in the file: what was read from it */
    bool compressed, ended;
    z_stream inflater; /* its input is in the buffer */
    unsigned char *buffer;
} an_reader_stream;

an_status an_reader_stream_open(an_reader_stream *stream, an_context *ctx, const char *path, an_note note);
void an_reader_stream_close(an_reader_stream *stream);
/* *got is less than `capacity` only at the end. */
an_status an_reader_stream_read(an_reader_stream *stream, void *to, size_t capacity, size_t *got, an_note note);
/* No stream has more bytes than this: its file's, or what gzip can make of them. */
int64_t an_reader_stream_most(const an_reader_stream *stream);

/* A whole stream in memory of `*capacity` bytes, of which `*size` are used. Release it with
 * an_release(ctx, …, capacity, 1). */
an_status an_reader_load(an_context *ctx, const char *path, char **bytes, size_t *size, size_t *capacity, an_note note);

#endif
