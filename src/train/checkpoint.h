/* A checkpoint that is looked at, as other parts of the library use it. */
#ifndef AN_TRAIN_CHECKPOINT_H
#define AN_TRAIN_CHECKPOINT_H

#include "anneal/checkpoint.h"
#include "base/file.h"
#include "train/manifest.h"
#include "train/open_init.h"

struct an_checkpoint {
    an_context *ctx;
    char *path;
    an_manifest *manifest; /* NULL: no run, and the tensors are these */
    an_weights weights;
};

/* "moment_1/…" is no weight. */
an_saved_role an_checkpoint_role(const char *name);

bool an_checkpoint_has_manifest(const char *folder);

/* The newest of a run's folder whose manifest is good; *path is "" if there is none, and *manifest NULL. */
an_status an_checkpoint_newest(an_context *ctx, const char *folder, char path[AN_FILE_PATH], an_manifest **manifest);

#endif
