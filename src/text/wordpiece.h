/* WordPiece: the longest token that a word begins with, then the longest that its rest does, and so on. A word that
 * cannot be divided so is unknown as a whole. */
#ifndef AN_TEXT_WORDPIECE_H
#define AN_TEXT_WORDPIECE_H

#include "text/encoder.h"

/* The tokens of a word, in encoder->other. */
an_status an_wordpiece_word(an_encoder *encoder, const char *word, size_t length);

#endif
