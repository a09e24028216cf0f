/* Writes the header of a GGUF file, version 3: its keys, and the list of its tensors, whose bytes then follow. */
#ifndef AN_FORMATS_GGUF_WRITE_H
#define AN_FORMATS_GGUF_WRITE_H

#include "base/text/text.h"
#include "formats/gguf_keys.h"
#include "formats/gguf_types.h"

enum { AN_GGUF_ALIGNMENT = 32 }; /* of what is written */

/* Keys in the order of the calls. What goes wrong is kept in bytes.status. */
typedef struct an_gguf_keys {
    an_text bytes;
    uint64_t count;
} an_gguf_keys;

void an_gguf_put_text(an_gguf_keys *keys, const char *name, const char *text);
void an_gguf_put_u32(an_gguf_keys *keys, const char *name, uint32_t value);
void an_gguf_put_f32(an_gguf_keys *keys, const char *name, double value);
void an_gguf_put_bool(an_gguf_keys *keys, const char *name, bool value);
/* An array of strings or of 32-bit integers; as many elements must follow. */
void an_gguf_put_texts(an_gguf_keys *keys, const char *name, uint64_t count);
void an_gguf_put_integers(an_gguf_keys *keys, const char *name, uint64_t count);
void an_gguf_add_text(an_gguf_keys *keys, const char *text, size_t length);
void an_gguf_add_integer(an_gguf_keys *keys, int32_t value);
/* A key of another file, as it is there. */
void an_gguf_copy_key(an_gguf_keys *keys, const an_gguf *file, const an_gguf_key *key);

typedef struct an_gguf_tensor {
    const char *name;
    const an_gguf_type *type;
    int ndims;
    int64_t dims[AN_MAX_DIMS]; /* in our order */
    int64_t elements, bytes;   /* bytes: a multiple of those of a block; behind them zeros up to the alignment */
} an_gguf_tensor;

/* Adds the header to an empty text, with the zeros behind it. */
an_status an_gguf_header(an_text *text, const an_gguf_keys *keys, const an_gguf_tensor *tensors, size_t count);

#endif
