/* The tensors of a model in the files of a checkpoint. */
#ifndef AN_STORE_FOUND_H
#define AN_STORE_FOUND_H

#include "store/layout.h"
#include "store/load.h"
#include "store/manifest.h"

/* Where a checkpoint has the tensors of a model: `layout` has them, and its pieces are in the order of the
 * manifest's files and of bytes in them. No two pieces have a byte in common. */
typedef struct an_found {
    an_context *ctx;
    an_save_layout *layout; /* of the model in one file, which is where its tensors come from */
    an_saved_piece *pieces;
    size_t count, capacity;
} an_found;

/* A checkpoint of another model is AN_ERR_SHAPE, and all that does not fit is named. O(tensors). */
an_status an_found_create(an_found *found, an_context *ctx, const an_graph *graph, an_kept kept,
                          const an_manifest *manifest, const char *folder, an_load_extent extent);
void an_found_destroy(an_found *found);

#endif
