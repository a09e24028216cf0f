/* The manifest of a checkpoint: its files, the place of every tensor in them, and the progress of the run. Specified
 * in docs/checkpoint-format.md.
 *
 * O(tensors + writers). A manifest that was read keeps its text and a few words for each tensor; shapes and slices
 * are read from the text when they are needed, so a hostile manifest cannot take more memory than its own size.
 */
#ifndef AN_STORE_MANIFEST_H
#define AN_STORE_MANIFEST_H

#include "store/adapter_record.h"
#include "store/origin_record.h"
#include "store/prediction_record.h"
#include "store/state_record.h"

/* Version 2 is a checkpoint of an adapter, which does not hold all weights of its model. All others are written as
 * version 1, which every version of anneal reads. */
enum { AN_MANIFEST_VERSION = 2, AN_MANIFEST_WHOLE = 1, AN_FILE_NAME = 64, AN_BITS_TEXT = 48 };
#define AN_MANIFEST_NAME "manifest.json"

typedef struct an_manifest_file {
    const char *name; /* plain: no folder in it */
    int64_t bytes;
    uint64_t hash[2];
} an_manifest_file;

typedef struct an_manifest_tensor {
    const char *name;
    uint32_t shape_at, slices_at; /* in the text */
    uint8_t dtype, ndims;         /* dtype: an_dtype */
} an_manifest_tensor;

/* Elements begin … end - 1 of a tensor lie in a file from byte `offset` on. */
typedef struct an_manifest_slice {
    int64_t file, begin, end, offset;
} an_manifest_slice;

/* What else must be the same for the same bits. */
typedef struct an_bits {
    char isa[AN_BITS_TEXT], onednn[AN_BITS_TEXT], anneal[AN_BITS_TEXT], precision[AN_BITS_TEXT];
    char fingerprint[AN_BITS_TEXT]; /* of the kernels; "": the checkpoint does not say, as those of 0.1 */
    int64_t leaves;
    /* that are not the usual ones, as "attention=portable"; "": none. Of the manifest, or of the trainer */
    const char *kernels;
    int64_t since; /* the step after which the run began to compute with these; 0: it always did */
} an_bits;

/* The optimizer that the moments are of. */
typedef struct an_saved_optimizer {
    char name[AN_ADDED_NAME]; /* "": the checkpoint does not say, as those of 0.1 */
    int64_t version;
} an_saved_optimizer;

typedef struct an_manifest {
    an_context *ctx;
    char *text;
    size_t bytes;
    an_manifest_file *files;
    an_manifest_tensor *tensors;
    size_t file_count, tensor_count, slice_count;
    int64_t step, generation;
    bool kept; /* the host program named it: it is never removed */
    an_bits bits;
    an_saved_optimizer optimizer;
    an_saved_prediction prediction;
    an_saved_origin origin;
    an_saved_adapter adapter;
    uint64_t data[2]; /* what was trained on: hash of its size and a few samples */
    uint64_t hash[2]; /* its own */
    an_progress progress;
} an_manifest;

/* Reads and checks `folder`/manifest.json and that its files are there with their lengths; what they contain is not
 * looked at. AN_ERR_DAMAGED with the file's name where anything is not as it was written. */
an_status an_manifest_read(an_manifest **manifest, an_context *ctx, const char *folder);
/* Its parts: the text of a file, with `*bytes` + 1 bytes of memory, and whether the files are there. */
an_status an_manifest_read_text(an_context *ctx, const char *path, char **text, size_t *bytes);
an_status an_manifest_check_files(const an_manifest *manifest, const char *folder);
/* The same from a text in memory, which it takes over; `name` is for messages. Looks at no other file. */
an_status an_manifest_parse(an_manifest **manifest, an_context *ctx, const char *name, char *text, size_t bytes);
void an_manifest_destroy(an_manifest **manifest);

/* Index of a tensor or file; -1: there is none. Tensors are sorted by name. */
int64_t an_manifest_find(const an_manifest *manifest, const char *tensor);
int64_t an_manifest_find_file(const an_manifest *manifest, const char *file);
int64_t an_manifest_shape(const an_manifest *manifest, size_t tensor,
                          int64_t *dims); /* its elements; at most AN_MAX_DIMS dims */
int64_t an_manifest_slice_count(const an_manifest *manifest, size_t tensor);
/* Calls with each slice in turn, until one gives an error. */
an_status an_manifest_slices(const an_manifest *manifest, size_t tensor,
                             an_status (*see)(void *user, const an_manifest_slice *slice), void *user);

/* ---- writing ---- */

/* A manifest is made in two steps: all but the hashes of files that are still to be written, and then these, without
 * memory. */
typedef struct an_manifest_text {
    an_text text;
    an_json_writer json; /* to the text, so this struct stays where it is until an_manifest_end */
    size_t *hashes;      /* where each file's digits go */
    size_t file_count, file_capacity, tensor_count;
} an_manifest_text;

void an_manifest_begin(an_manifest_text *m, an_context *ctx, const an_manifest *head);
/* Files first, then tensors; slices of a tensor after it. A hash that is not known yet is NULL. */
void an_manifest_add_file(an_manifest_text *m, const char *name, int64_t bytes, const uint64_t *hash);
void an_manifest_add_tensor(an_manifest_text *m, const char *name, an_dtype dtype, int ndims, const int64_t *dims);
void an_manifest_add_slice(an_manifest_text *m, const an_manifest_slice *slice);
an_status an_manifest_end(an_manifest_text *m);
void an_manifest_text_destroy(an_manifest_text *m);
/* Any thread may call these. */
void an_manifest_set_hash(an_manifest_text *m, size_t file, const uint64_t hash[2]);
void an_manifest_seal(an_manifest_text *m); /* with its own hash: the last change */

#endif
