/* Chunks of packed arrays in HDF5 files: unpacked here, as HDF5's own library trusts the sizes that a file claims. */
#ifndef AN_FORMATS_HDF5_CHUNKS_H
#define AN_FORMATS_HDF5_CHUNKS_H

#include "base/memory.h"
#include "base/note.h"
#include "formats/hdf5_plugin.h"

typedef struct an_hdf5_chunks {
    const an_hdf5_layout *layout; /* the owner's */
    const an_hdf5_plugin *plugin;
    void *array;                 /* the plugin's */
    size_t width;                /* of a number */
    size_t bytes;                /* of a chunk */
    int64_t counts[AN_MAX_DIMS]; /* of chunks in each dimension */
    size_t room;                 /* of each buffer */
    unsigned char *buffers[2];
    /* Chunks that are kept unpacked: chunk c is in slot c modulo slot_count, or nowhere. */
    size_t slot_count;
    unsigned char *slots;
    int64_t *held; /* which chunk a slot has, plus 1; 0: none */
} an_hdf5_chunks;

/* Refuses chunks that the file is too small for. `chunks` begins as {0}; an_hdf5_chunks_close releases it in any
 * state. */
an_status an_hdf5_chunks_open(an_hdf5_chunks *chunks, an_context *ctx, const an_hdf5_layout *layout, size_t width,
                              const an_hdf5_plugin *plugin, void *array, const char *path);
void an_hdf5_chunks_close(an_hdf5_chunks *chunks, an_context *ctx);

/* One sample, as it was before it was packed. One thread at a time. The note does not name the file. */
an_status an_hdf5_chunks_read(an_hdf5_chunks *chunks, int64_t sample, unsigned char *to, char note[AN_HDF5_NOTE]);

#endif
