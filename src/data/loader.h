/* Reads batches ahead of training, or of an evaluation. Threads start once, and each loads whole batches; which thread
 * loads a batch does not change it. Batches and errors are returned in order. */
#ifndef AN_DATA_LOADER_H
#define AN_DATA_LOADER_H

#include "data/batches.h"
#include "data/dataset.h"

typedef struct an_loader an_loader;

/* What was loaded: it stays until the next call on the loader. Indices and fields begin with the
 * first sample of the part. */
typedef struct an_batch {
    int64_t number;
    an_batch_part part;
    const int64_t *indices;
    void *const *fields;
    const int64_t *partners;     /* of each sample; NULL: they have none */
    void *const *partner_fields; /* like `fields` */
} an_batch;

typedef struct an_loader_options {
    const an_dataset *dataset; /* must outlive the loader */
    int threads;               /* 0: batches are read when they are asked for */
    int ahead;                 /* batches that are loaded before they are asked for; 0: two a thread */
    int64_t maximum;           /* samples of a batch that are loaded, at most */
    int64_t first;             /* batch */
    /* batches of evaluations: none is read before an_loader_seek or after an_loader_rest, as what is read may change
     * between two */
    bool evaluates;
    /* Writes the samples of a batch that are to be loaded (n, at most `most`; 0: none) and tells which part of it they
     * are; n negative: there is no such batch. A pure function, called by several threads at once, also for batches
     * that nobody will ask for. */
    an_batch_part (*indices)(void *user, int64_t batch, int64_t *indices);
    /* Writes, for each of n samples, another one that is loaded with it; NULL: none is. Called like `indices`. */
    void (*partners)(void *user, int64_t batch, int64_t n, const int64_t *indices, int64_t *partners);
    /* Changes samples that were loaded, and partners; NULL: they stay as they are. `scratch` has scratch_bytes
     * bytes. Called like `indices`. */
    void (*change)(void *user, const an_batch *batch, void *scratch);
    size_t scratch_bytes;
    void *user;
} an_loader_options;

/* Adds what a loader with these options takes. */
bool an_loader_bytes(const an_loader_options *options, size_t *bytes);

an_status an_loader_create(an_loader **loader, an_context *ctx, const an_loader_options *options);
/* Stops at any moment: waits for reads that are under way and nothing else. */
void an_loader_destroy(an_loader **loader);

/* The next batch. One that could not be read is an error, and the call after it goes on with the following one.
 * AN_ERR_STATE: there is no such batch. Allocates nothing. */
an_status an_loader_next(an_loader *loader, an_batch *batch);
/* Makes `batch` the next one. */
void an_loader_seek(an_loader *loader, int64_t batch);
/* Nothing is read until an_loader_seek: waits for reads that are under way. */
void an_loader_rest(an_loader *loader);

#endif
