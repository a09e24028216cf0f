/* Kinds of layers, and the lists of kinds of this layer. */
#ifndef AN_KINDS_KINDS_H
#define AN_KINDS_KINDS_H

#include "base/context.h"

#define AN_LAYER(name) extern const an_kind an_layer_kind_##name;
#include "kinds/layers.def"
#undef AN_LAYER

/* Gives a new context these kinds; step/kinds.h has the others. */
void an_context_add_kinds(an_context *ctx);

#endif
