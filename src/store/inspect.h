/* An open checkpoint, for use by other parts of the library. */
#ifndef AN_STORE_INSPECT_H
#define AN_STORE_INSPECT_H

#include "anneal/checkpoint.h"
#include "base/files/file.h"
#include "formats/weights.h"
#include "store/manifest.h"

struct an_checkpoint {
    an_context *ctx;
    char *path;
    an_manifest *manifest; /* NULL: no run, and the tensors are these */
    int hold;              /* keeps a run from removing it meanwhile (store/hold.h) */
    an_weights weights;
    an_model_weights chosen; /* what an export writes (interchange/export.c) */
};

/* "moment_1/…" and "ema/…" are no weights. */
an_saved_role an_checkpoint_role(const char *name);

/* Other names for the tensors of an export; they live as long as this. */
typedef struct an_export_names {
    an_status (*rename)(const struct an_export_names *names, const char *name, const char **other);
    an_arena *arena;
} an_export_names;

/* Writes the weights to a safetensors file; `names` NULL: by their own names. */
an_status an_export_write(const an_checkpoint *checkpoint, const char *file, const an_export_names *names);

bool an_checkpoint_has_manifest(const char *folder);

/* The newest of a run's folder whose manifest is good; *path is "" if there is none, and *manifest NULL. It is held
 * (store/hold.h). */
an_status an_checkpoint_newest(an_context *ctx, const char *folder, char path[AN_FILE_PATH], an_manifest **manifest,
                               int *hold);

#endif
