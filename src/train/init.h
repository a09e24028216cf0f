/* Weights of another model, from files, into a run that starts at step 0. */
#ifndef AN_TRAIN_INIT_H
#define AN_TRAIN_INIT_H

#include "anneal/train.h"

typedef struct an_init_rename {
    const char *pattern, *text; /* a regular expression; what stands for its match */
} an_init_rename;

typedef struct an_init_options {
    const char *path;       /* a checkpoint, a run, a safetensors file, or a folder as Hugging Face has them */
    const char *model_type; /* what the config calls the model; NULL: it comes from elsewhere */
    const char *place;      /* of the option in a config, which messages begin with */
    bool accepts_missing, accepts_unexpected;
    int rename_count;
    const an_init_rename *renames; /* applied to the file's names, in order */
} an_init_options;

/* All is checked before the first weight changes. */
an_status an_trainer_init(an_trainer *trainer, const an_init_options *options);

#endif
