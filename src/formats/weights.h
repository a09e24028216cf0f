/* Tensors that can be read in pieces, whatever files they lie in. */
#ifndef AN_FORMATS_WEIGHTS_H
#define AN_FORMATS_WEIGHTS_H

#include "formats/safetensors.h"

/* A new kind of folder is one row in weights_files.c that fills this. */
typedef struct an_weights {
    an_context *ctx;
    void *state;
    int64_t count;
    bool is_saved;  /* anneal wrote it: a checkpoint */
    bool is_folder; /* as Hugging Face has them */
    /* Name, type and dimensions; the name lives until the source is closed. */
    an_status (*get)(const struct an_weights *weights, int64_t index, an_safetensor *tensor);
    /* Elements of a tensor that `get` gave, from number `first` on. */
    an_status (*read)(const struct an_weights *weights, int64_t index, const an_safetensor *tensor, int64_t first,
                      int64_t count, void *to);
    /* Blocks of a tensor whose type is named Q8_0, as they are in the file; `first` and `count` are multiples of a
     * block. NULL: the source has none. */
    an_status (*read_q8_0)(const struct an_weights *weights, int64_t index, const an_safetensor *tensor, int64_t first,
                           int64_t count, void *to);
    void (*close)(struct an_weights *weights);
} an_weights;

/* A safetensors or GGUF file, or a folder as Hugging Face has them: model.safetensors, or several files and their
 * index. */
an_status an_weights_open_files(an_weights *weights, an_context *ctx, const char *path);
void an_weights_close(an_weights *weights);

#endif
