/* Reads the tensors of a checkpoint into a parameter store. */
#ifndef AN_STORE_LOAD_H
#define AN_STORE_LOAD_H

#include "exec/params.h"
#include "store/manifest.h"

typedef enum an_load_extent {
    AN_LOAD_STATE,   /* every tensor, and every byte of every file is held against its hash */
    AN_LOAD_WEIGHTS, /* no moments, and only the files that have weights or running statistics in them */
    AN_LOAD_AVERAGE, /* … with the averages of weights in their places */
} an_load_extent;

/* From a folder whose manifest was read, into the parameters of this graph. AN_ERR_DAMAGED where a byte is not as it
 * was written; the memory has been written to all the same. A checkpoint of another model is AN_ERR_SHAPE, and all
 * that does not fit is named. */
an_status an_checkpoint_load(an_context *ctx, an_params *params, const an_graph *graph, const an_manifest *manifest,
                             const char *folder, an_load_extent extent);

/* The whole state, by all ranks together: every file is read by one rank, once, and each part goes to the rank that
 * owns it, or to all. What ops read of other ranks' pieces is not there afterwards. Collective: all ranks return the
 * same error. `chunk` is what is read at a time; 0: as usual. */
an_status an_checkpoint_load_ranks(an_context *ctx, an_params *params, const an_graph *graph,
                                   const an_manifest *manifest, const char *folder, int64_t chunk);

#endif
