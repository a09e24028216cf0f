/* Members of a ZIP file, which .npz files are: stored as they are, or deflated; of any size (ZIP64). Every number
 * in the file may be wrong. */
#ifndef AN_FORMATS_ZIP_H
#define AN_FORMATS_ZIP_H

#include <zlib.h>

#include "base/files/reader.h"

enum { AN_ZIP_NAME = 256 };

typedef struct an_zip_member {
    char name[AN_ZIP_NAME];
    int64_t begin;       /* of its bytes in the file */
    int64_t packed_size; /* there */
    int64_t size;        /* uncompressed */
    uint32_t check;      /* CRC-32 of it */
    bool deflated;
} an_zip_member;

/* A walk over the members, in the order of the directory at the file's end. */
typedef struct an_zip {
    const an_reader *file;
    int64_t at, end; /* in the directory */
    int64_t left;    /* members */
} an_zip;

/* Whether a file begins like one. */
bool an_zip_is(const an_reader *file);
an_status an_zip_begin(an_zip *zip, const an_reader *file, an_note note);
/* The next member; *more is false after the last one. */
an_status an_zip_next(an_zip *zip, an_zip_member *member, bool *more, an_note note);

/* The bytes of a member, uncompressed, one piece after another: who reads them decides after the first how many more to
 * hold. */
typedef struct an_zip_stream {
    const an_reader *file;
    const an_zip_member *member;
    z_stream inflater;
    unsigned char buffer[1 << 14];
    int64_t taken, made; /* bytes of the file; bytes that were read */
    uLong check;         /* of those */
} an_zip_stream;

/* Of a deflated member. After an error too, an_zip_close releases it. */
an_status an_zip_open(an_zip_stream *stream, const an_reader *file, const an_zip_member *member, an_note note);
/* The next bytes, which are no more than the member has left. Behind its last one, its end and its checksum are
 * checked. */
an_status an_zip_read(an_zip_stream *stream, void *to, size_t bytes, an_note note);
void an_zip_close(an_zip_stream *stream);

#endif
