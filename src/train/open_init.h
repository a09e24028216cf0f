/* model.init: weights of another model, from files, into a run that starts at step 0. */
#ifndef AN_TRAIN_OPEN_INIT_H
#define AN_TRAIN_OPEN_INIT_H

#include "anneal/config.h"
#include "train/safetensors.h"
#include "train/trainer.h"

/* ---- where tensors come from ---- */

/* Tensors that can be read in pieces, whatever files they lie in. A new kind of folder is one row in open_init.c that fills this. */
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
    void (*close)(struct an_weights *weights);
} an_weights;

/* A checkpoint's folder, or a run's, whose newest is taken; a safetensors file, or a folder as Hugging Face has them:
 * model.safetensors, or several files and their index. */
an_status an_weights_open(an_weights *weights, an_context *ctx, const char *path);
void an_weights_close(an_weights *weights);
/* Whether it is a checkpoint or a run that has one; the weights of that. */
bool an_weights_are_saved(an_context *ctx, const char *path);
an_status an_weights_open_saved(an_weights *weights, an_context *ctx, const char *path);

/* ---- into a model ---- */

/* Does what the config's model.init says; nothing if it says nothing. All is checked before the first weight changes. */
an_status an_open_init(an_trainer *trainer, an_config *config);

#endif
