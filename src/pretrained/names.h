/* Names of layers in patterns: "blk.#.attn_q", where # is the number of the layer. */
#ifndef AN_PRETRAINED_NAMES_H
#define AN_PRETRAINED_NAMES_H

#include <stdbool.h>

enum { AN_LAYER_NAME = 256 };

/* Whether `name` is a layer of the pattern `from`, with ".weight" or ".bias". Then `other` is the same of the pattern
 * `to`; with NULL it is left alone. */
bool an_layer_rename(const char *from, const char *to, const char *name, char other[AN_LAYER_NAME]);

#endif
