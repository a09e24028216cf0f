/* The types of elements that GGUF files may have. Most are quantised: the elements of a block share scales, and
 * are f32 when they are read. */
#ifndef AN_FORMATS_GGUF_TYPES_H
#define AN_FORMATS_GGUF_TYPES_H

#include "base/dtype.h"
#include "formats/safetensors.h"

enum {
    AN_GGUF_MOST_BLOCK = 256,
    AN_GGUF_MOST_BLOCK_BYTES = 256
}; /* elements of a block, and their bytes, of any type */

typedef struct an_gguf_type {
    uint32_t number;                                      /* in a file */
    int elements, bytes;                                  /* of a block */
    an_safetensors_type shown;                            /* of what is read, under the name of what is stored */
    void (*widen)(const unsigned char *block, float *to); /* NULL: elements are read as they are stored */
} an_gguf_type;

/* NULL: there is none with this number, or anneal does not read it. */
const an_gguf_type *an_gguf_type_of(uint32_t number);
/* By its name, "Q8_0"; NULL: none. */
const an_gguf_type *an_gguf_type_named(const char *name);
/* Elements as bytes of F32, F16, BF16 or Q8_0, which are all that is written. Of Q8_0, `count` is a multiple of 32. */
void an_gguf_narrow(const an_gguf_type *type, const float *from, int64_t count, unsigned char *to);
/* The name of a type that the format has and anneal does not read; NULL: nor has the format. */
const char *an_gguf_unread_type(uint32_t number);

#endif
