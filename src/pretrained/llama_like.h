/* What Llama and its relatives share: names, and a builder that follows the facts. */
#ifndef AN_PRETRAINED_LLAMA_LIKE_H
#define AN_PRETRAINED_LLAMA_LIKE_H

#include "pretrained/description.h"

extern const an_family_name an_llama_names[]; /* rows of q and k as they are */
extern const an_family_name
    an_llama_own_names[]; /* rows of q and k as pairs, which only files of architecture llama have */

/* Keys whose default is another key, and the activation. */
void an_llama_settle(an_description *d);
/* Qwen: the window is for layers from max_window_layers on, if it is used at all. */
void an_llama_settle_window(an_description *d);
an_status an_llama_build(an_graph **graph, const an_description *d, const an_pretrained_options *options);

#endif
