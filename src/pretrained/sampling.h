/* What a published model's files say about generating with it. */
#ifndef AN_PRETRAINED_SAMPLING_H
#define AN_PRETRAINED_SAMPLING_H

#include "anneal/pretrained.h"

/* Reads generation_config.json. `vocabulary` is the number of tokens that there are. */
an_status an_sampling_read(an_pretrained_sampling *sampling, an_context *ctx, const char *path, int64_t vocabulary);
/* … the keys of a GGUF file. */
an_status an_sampling_read_gguf(an_pretrained_sampling *sampling, an_context *ctx, const char *path,
                                int64_t vocabulary);

#endif
