/* What the plugin for HDF5 exports (plugins/hdf5): all that anneal asks of HDF5's library. It gives bytes as they lie
 * in a file; unpacking and converting them is not its job. Plain C: neither side needs the other's headers. */
#ifndef AN_FORMATS_HDF5_PLUGIN_H
#define AN_FORMATS_HDF5_PLUGIN_H

#include "anneal/core.h"

enum { AN_HDF5_NOTE = 512, AN_HDF5_FILTERS = 3 };

typedef enum an_hdf5_filter { AN_HDF5_SHUFFLE, AN_HDF5_DEFLATE, AN_HDF5_FLETCHER32 } an_hdf5_filter;

typedef struct an_hdf5_layout {
    char type[4]; /* as NumPy writes it: "f4", "u1" */
    bool upper_first;
    int rank;
    int64_t dims[AN_MAX_DIMS];
    int64_t stored; /* bytes that the file claims to have of it */
    /* Packed arrays lie in chunks of this shape, which went through these filters, the first one first; each occurs
     * once. */
    int filter_count; /* 0: not packed */
    an_hdf5_filter filters[AN_HDF5_FILTERS];
    int64_t chunk[AN_MAX_DIMS];
} an_hdf5_layout;

#define AN_HDF5_PLUGIN "an_hdf5_plugin_record"
enum { AN_HDF5_PLUGIN_VERSION = 1 };

/* Functions may be called on any thread; the plugin lets one at a time into the library. After an error, `note` says
 * why, without the file's name. */
typedef struct an_hdf5_plugin {
    size_t size;
    int version;
    an_status (*open)(void **file, const char *path, char note[AN_HDF5_NOTE]);
    void (*close)(void **file); /* after its arrays */
    /* AN_ERR_UNKNOWN: there is no such array. */
    an_status (*open_array)(void **array, void *file, const char *name, an_hdf5_layout *layout,
                            char note[AN_HDF5_NOTE]);
    void (*close_array)(void **array);
    /* One sample of an array that is not packed. */
    an_status (*read)(void *array, int64_t sample, void *bytes, char note[AN_HDF5_NOTE]);
    /* One chunk of an array that is packed, by the index of its first number, as it lies in the file: `*size` bytes.
     * Bit i of `*skipped`: it did not go through filter i. */
    an_status (*read_chunk)(void *array, const int64_t *at, void *bytes, size_t capacity, size_t *size,
                            uint32_t *skipped, char note[AN_HDF5_NOTE]);
} an_hdf5_plugin;

#endif
