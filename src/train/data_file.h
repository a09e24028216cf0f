/* Reading files that may be anything. Sizes are those of when a file was opened; a read past them is refused before it is tried,
 * and one that the file no longer has data for is an error, as is a folder, a device or a pipe. */
#ifndef AN_TRAIN_DATA_FILE_H
#define AN_TRAIN_DATA_FILE_H

#include <zlib.h>

#include "train/data.h"

typedef struct an_data_file {
    bool open;
    int descriptor;
    int64_t size;
    const char *path; /* the caller's, who keeps it */
} an_data_file;

an_status an_data_file_open(an_data_file *file, const char *path, an_note note);
void an_data_file_close(an_data_file *file);
/* All of `bytes`, or an error. Any number of threads at once. */
an_status an_data_file_read(const an_data_file *file, int64_t offset, void *to, size_t bytes, an_note note);

/* A file from its first byte to its last, uncompressed if it is of gzip. */
typedef struct an_data_stream {
    an_context *ctx;
    an_data_file file;
    int64_t at; /* in the file: what was read from it */
    bool compressed, ended;
    z_stream inflater; /* its input is in the buffer */
    unsigned char *buffer;
} an_data_stream;

an_status an_data_stream_open(an_data_stream *stream, an_context *ctx, const char *path, an_note note);
void an_data_stream_close(an_data_stream *stream);
/* *got is less than `capacity` only at the end. */
an_status an_data_stream_read(an_data_stream *stream, void *to, size_t capacity, size_t *got, an_note note);
/* No stream has more bytes than this: its file's, or what gzip can make of them. */
int64_t an_data_stream_most(const an_data_stream *stream);

/* A whole stream in memory of `*capacity` bytes, of which `*size` are used. Release it with an_release(ctx, …, capacity, 1). */
an_status an_data_load(an_context *ctx, const char *path, char **bytes, size_t *size, size_t *capacity, an_note note);

#endif
