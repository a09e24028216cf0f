/* The copy of a save: the state, from the stores of all ranks into the images of the files, all of it or a chunk at
 * a time. */
#ifndef AN_STORE_COPY_H
#define AN_STORE_COPY_H

#include "store/route.h"

enum {
    AN_SAVE_CHUNK = 64 << 20, /* of its route: what ranks wait for together */
    AN_SAVE_WINDOW = 8 << 20  /* … of a save that has no copy of the state (store/stream.h) */
};

/* Memory for the files of this rank, from byte `first` on. */
typedef struct an_save_image {
    char *memory;
    int64_t first;
} an_save_image;

/* Copies the transfers first … first + count - 1, which are those of one round. An error leaves nothing under way. */
an_status an_save_copy_round(an_context *ctx, const an_save_layout *layout, const an_params *params, an_route *route,
                             size_t first, size_t count, an_save_image image);

/* `image` is where the files of this rank are, each on AN_SAVE_ALIGNMENT. Every rank sends what it owns straight
 * to where it lies in the image of another. Nothing else is allocated. Collective over the ranks of the route:
 * all return the same error. */
an_status an_save_copy(an_context *ctx, const an_save_layout *layout, const an_params *params, an_route *route,
                       char *image);

/* Gives rank 0 the hashes of all files; each rank has those of its own. Collective over the ranks of the route, with
 * 16 bytes for each file: all return the same error. */
an_status an_save_share_hashes(an_context *ctx, const an_save_layout *layout, const an_route *route,
                               uint64_t (*hashes)[2]);

#endif
