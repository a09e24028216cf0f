/* Pre-tokenizers: they cut a text into words. */
#ifndef AN_TEXT_SPLIT_H
#define AN_TEXT_SPLIT_H

#include "text/encoder.h"

/* The words of a text, as places in `*result`: the text itself, or a copy of the encoder's if a
 * pre-tokenizer changes it. */
an_status an_text_split(an_encoder *encoder, an_bytes text, an_bytes *result, const an_pieces **words);

#endif
