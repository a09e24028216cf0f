/* safetensors: the file format of weights. A length, a header in JSON, then the bytes of the tensors.
 *
 * Files are untrusted: everything that an open file returns has been checked. Its header and what is kept about it
 * take at most twice the size of the file.
 */
#ifndef AN_FORMATS_SAFETENSORS_H
#define AN_FORMATS_SAFETENSORS_H

#include "base/note.h"
#include "base/text/text.h"

#define AN_SAFETENSORS_METADATA "__metadata__"
enum { AN_SAFETENSORS_LENGTH = 8, AN_SAFETENSORS_MOST_HEADER = 100000000 }; /* bytes of the length; what it may say */

/* A type of elements that files may have. */
typedef struct an_safetensors_type {
    const char *name; /* "F32" */
    size_t size;      /* bytes of an element */
    an_dtype dtype;   /* AN_DTYPE_NONE: anneal has none like it */
} an_safetensors_type;

/* NULL: there is none. */
const an_safetensors_type *an_safetensors_type_of(an_dtype dtype);
const an_safetensors_type *an_safetensors_type_named(const char *name);

typedef struct an_safetensor {
    const char *name; /* any valid UTF-8 without NUL; never a path */
    const an_safetensors_type *type;
    int ndims;
    int64_t dims[AN_MAX_DIMS];
    int64_t begin, bytes; /* in the data, which begins behind the header; bytes are those of an_safetensor_measure */
} an_safetensor;

/* The bytes that a tensor of this type and these dimensions has; false if they do not fit. Dimensions of which one is 0
 * must fit too, so that strides do. */
bool an_safetensor_measure(const an_safetensor *tensor, int64_t *bytes);

/* ---- reading ---- */

typedef struct an_safetensors an_safetensors;

/* What breaks a rule of the format is AN_ERR_DAMAGED, with the place and the rule; what the format has and anneal does
 * not is AN_ERR_UNSUPPORTED; what the system refuses, or is no plain file, is AN_ERR_FILE. */
an_status an_safetensors_open(an_safetensors **file, an_context *ctx, const char *path);
/* Of an open descriptor, which is closed with the file, and if this fails. The path is for messages. */
an_status an_safetensors_open_file(an_safetensors **file, an_context *ctx, const char *path, int descriptor);
void an_safetensors_close(an_safetensors **file);

int an_safetensors_count(const an_safetensors *file);
int64_t an_safetensors_bytes(const an_safetensors *file);       /* of the whole file, when it was opened */
int64_t an_safetensors_data_offset(const an_safetensors *file); /* where in the file the data begins */

/* Tensors are numbered in the order of their bytes. The name lives as long as the file is open. */
an_status an_safetensors_get(const an_safetensors *file, int index, an_safetensor *tensor);
int an_safetensors_find(const an_safetensors *file, const char *name); /* -1: there is none. O(log count) */

/* Bytes of a tensor, from one of its bytes on. A file that has become shorter since is AN_ERR_FILE. */
an_status an_safetensors_read(const an_safetensors *file, const an_safetensor *tensor, int64_t offset, size_t bytes,
                              void *to);
/* The same for threads: touches no context. */
an_status an_safetensors_fetch(const an_safetensors *file, const an_safetensor *tensor, int64_t offset, size_t bytes,
                               void *to, an_note note);

/* ---- writing ---- */

/* Adds the length and the header of a file to an empty text, padded with spaces so that the data begins at a
 * multiple of `alignment` (0: 8, which the format wants). The tensors' bytes then follow in this order without
 * gaps: each `begin` is where the one before ends, the first is 0. `encoding`: a text for the metadata,
 * under this name; NULL: none. */
an_status an_safetensors_header(an_text *text, const an_safetensor *tensors, size_t count, size_t alignment,
                                const char *encoding);

#endif
