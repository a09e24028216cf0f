/* Arrays in HDF5 files, by the plugin that has HDF5's library. Samples are read from the file when they are needed. */
#ifndef AN_FORMATS_HDF5_ARRAY_H
#define AN_FORMATS_HDF5_ARRAY_H

#include <pthread.h>

#include "formats/hdf5_chunks.h"
#include "formats/npy_numbers.h"

typedef struct an_hdf5_file {
    const an_hdf5_plugin *plugin;
    const char *path; /* the caller's, who keeps it */
    int64_t size;
    void *opened;
} an_hdf5_file;

typedef struct an_hdf5_array {
    const an_hdf5_file *file;
    const char *name; /* the caller's, who keeps it */
    void *opened;
    an_hdf5_layout layout;
    const an_npy_type *type; /* NULL until the array is open */
    size_t each;             /* numbers of a sample */
    an_dtype dtype;          /* that samples get: I32, F32 or F64; set by the caller, and so is the divisor */
    float divisor;
    pthread_mutex_t lock; /* of what follows */
    bool has_lock;
    unsigned char *sample; /* as it lies in the file */
    size_t bytes;
    an_hdf5_chunks chunks; /* of a packed array */
} an_hdf5_array;

/* Both begin as {0}, and are closed in any state, arrays first. AN_ERR_UNSUPPORTED: there is no plugin. */
an_status an_hdf5_file_open(an_hdf5_file *file, an_context *ctx, const char *path);
void an_hdf5_file_close(an_hdf5_file *file);
/* The first of these names that the file has; AN_ERR_UNKNOWN: it has none of them. Names are kept by the caller. */
an_status an_hdf5_array_open(an_hdf5_array *array, an_context *ctx, const an_hdf5_file *file, const char *const *names,
                             int count);
void an_hdf5_array_close(an_hdf5_array *array, an_context *ctx);

/* One sample, as `dtype` and divided by `divisor`. Any number of threads. */
an_status an_hdf5_array_read(an_hdf5_array *array, int64_t sample, void *to, an_note note);
/* "x.h5: sample 2 of 'x', number 7". */
void an_hdf5_array_place(const an_hdf5_array *array, int64_t sample, int64_t number, an_note place);

#endif
