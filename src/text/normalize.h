/* Normalizers: what is done to a text before it is cut into words. */
#ifndef AN_TEXT_NORMALIZE_H
#define AN_TEXT_NORMALIZE_H

#include "text/encoder.h"

/* Before the parts of a text of so many bytes: limits what normalizers make of them together. */
void an_text_normalize_begin(an_encoder *encoder, size_t bytes);
/* A text after all normalizers of the tokenizer. The result is the encoder's, or the text itself if nothing changes
 * it. */
an_status an_text_normalize(an_encoder *encoder, an_bytes text, an_bytes *result);

#endif
