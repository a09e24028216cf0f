/* What is known about an open GGUF file: shared by the files that read its header, keys and tensors. */
#ifndef AN_FORMATS_GGUF_FILE_H
#define AN_FORMATS_GGUF_FILE_H

#include "base/files/reader.h"
#include "formats/gguf.h"
#include "formats/gguf_keys.h"
#include "formats/gguf_types.h"

enum { AN_GGUF_MOST_DIMS = 4 }; /* of the format */

/* Types of values, by their numbers in a file. */
enum {
    AN_GGUF_U8,
    AN_GGUF_I8,
    AN_GGUF_U16,
    AN_GGUF_I16,
    AN_GGUF_U32,
    AN_GGUF_I32,
    AN_GGUF_F32,
    AN_GGUF_BOOL,
    AN_GGUF_STRING,
    AN_GGUF_ARRAY,
    AN_GGUF_U64,
    AN_GGUF_I64,
    AN_GGUF_F64,
    AN_GGUF_VALUES
};

struct an_gguf_key {
    size_t name, at;    /* where they are in the header; at: the value, of an array its first element */
    uint64_t count;     /* of elements; 1 unless it is an array */
    unsigned char type; /* of the elements */
    bool is_array;
};

typedef struct an_gguf_entry {
    size_t name; /* where it is in the header */
    const an_gguf_type *type;
    int ndims;
    int64_t dims[AN_GGUF_MOST_DIMS]; /* in our order */
    int64_t elements, begin;         /* begin: in the file */
} an_gguf_entry;

struct an_gguf {
    an_context *ctx;
    an_reader file;
    char *path;
    unsigned char *header;       /* names end in a NUL, which stands on what has been read */
    size_t loaded, capacity, at; /* bytes of the header; what is read next */
    an_gguf_key *keys;
    an_gguf_entry *entries;
    size_t key_count, count; /* that there is memory for; count: of entries */
    int64_t alignment;
};

#endif
