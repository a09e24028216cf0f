/* GGUF: the file format of ggml and llama.cpp. Keys with values, a list of tensors, then their bytes. Versions 2 and
 * 3, little endian.
 *
 * Files are untrusted: everything that an open file returns has been checked. What is kept about one takes at
 * most six times its size. */
#ifndef AN_FORMATS_GGUF_H
#define AN_FORMATS_GGUF_H

#include "formats/weights.h"

typedef struct an_gguf an_gguf;

/* Whether a file begins like one; false if it cannot be read. */
bool an_gguf_is(const char *path);

/* The file and its keys (formats/gguf_keys.h). */
an_status an_gguf_open(an_gguf **file, an_context *ctx, const char *path);
void an_gguf_close(an_gguf **file);

/* Its tensors, with dimensions in our order, the slowest first. Quantised ones are read as F32, but
 * their type has its own name. */
an_status an_weights_open_gguf(an_weights *weights, an_context *ctx, const char *path);
/* The file of such weights; NULL: they are others. */
const an_gguf *an_weights_gguf(const an_weights *weights);

#endif
