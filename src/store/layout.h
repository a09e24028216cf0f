/* Where everything in a checkpoint lies: tensors, divided into as many files as are written at the same time. Depends
 * only on the model, so it is known to the byte before the first step. */
#ifndef AN_STORE_LAYOUT_H
#define AN_STORE_LAYOUT_H

#include "exec/kept.h"
#include "ir/graph.h"
#include "store/manifest.h"

enum { AN_SAVE_ALIGNMENT = 4096, AN_MOST_WRITERS = 1 << 16 }; /* what writes past the system's cache must keep to */

/* A tensor of the state: a parameter or run state, or what is kept of a parameter beside it. */
typedef struct an_saved_tensor {
    const char *name; /* "blocks.0.fc.weight", "moment_1/blocks.0.fc.weight" */
    size_t entry;     /* of the parameter store */
    an_param_part part;
    an_dtype dtype;
    int ndims;
    int64_t dims[AN_MAX_DIMS], elements;
    int64_t grid; /* its first element on the grid of pages; -1: it is not on it, and every rank has all of it */
} an_saved_tensor;

/* Elements begin … end - 1 of a tensor, in a file from byte `offset` on. */
typedef struct an_saved_piece {
    size_t tensor, file;
    int64_t begin, end, offset;
} an_saved_piece;

/* A file: its header, and how long it is with the data. */
typedef struct an_saved_file {
    char name[AN_FILE_NAME];
    char *header;
    size_t header_bytes, bytes;
} an_saved_file;

typedef struct an_save_layout {
    an_context *ctx;
    an_arena arena;
    an_saved_tensor *tensors;
    an_saved_piece *pieces; /* in the order of files and of bytes in them */
    an_saved_file *files;
    size_t tensor_count, piece_count, file_count;
} an_save_layout;

/* What the names of tensors begin with that are such a part; "" of weights. */
const char *an_part_prefix(an_param_part part);
/* The part that a tensor of this name is. */
an_param_part an_part_of(const char *name);

/* O(tensors + files). */
an_status an_save_layout_create(an_save_layout **layout, an_context *ctx, const an_graph *graph, an_kept kept,
                                int64_t writers);
void an_save_layout_destroy(an_save_layout **layout);

/* Files begin … end - 1: those of one rank. */
typedef struct an_file_range {
    size_t begin, end;
} an_file_range;

/* Memory for these files at once, each beginning on AN_SAVE_ALIGNMENT, wherever the memory begins. */
size_t an_save_image_bytes(const an_save_layout *layout, an_file_range files);
/* Where a file begins in it, counted from the first of these files. O(files). */
size_t an_save_image_offset(const an_save_layout *layout, an_file_range files, size_t file);
/* All of them. */
size_t an_save_layout_bytes(const an_save_layout *layout);

/* Files, tensors and slices of a manifest that has its other files; returns the number of the first part among them.
 * The hashes are still to come. */
size_t an_save_layout_describe(const an_save_layout *layout, an_manifest_text *manifest);

#endif
