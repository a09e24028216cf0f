/* Byte-pair encoding of a word: of all adjacent pairs of symbols that have a merge, the one with the lowest rank
 * becomes one symbol, until there is none. */
#ifndef AN_TEXT_BPE_H
#define AN_TEXT_BPE_H

#include "text/encoder.h"

/* The tokens of a word, in encoder->other. */
an_status an_bpe_word(an_encoder *encoder, const char *word, size_t length);

#endif
