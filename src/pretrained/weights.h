/* The weights of a GGUF file under the names of Hugging Face, with rows in the order of the model. */
#ifndef AN_PRETRAINED_WEIGHTS_H
#define AN_PRETRAINED_WEIGHTS_H

#include "formats/weights.h"

/* Takes over weights of a GGUF file. If the file does not say what it is, or is of no family that we
 * have, they stay as they are. */
an_status an_weights_rename_gguf(an_weights *weights, const char *path);

#endif
