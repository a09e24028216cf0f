/* The plugin for HDF5 (formats/hdf5_plugin.h). anneal is not linked with HDF5, whose library brings some 36 others in
 * Debian, and of which a host may have a version of its own.
 *
 * Files are not trusted. What would have the library open another file, or load code that undoes a filter, is refused
 * by name before it happens. Nothing is read through the library's own filters, as these trust the sizes of chunks that
 * a file claims: bytes of packed chunks are handed out as they lie in the file, into a buffer of the size that the
 * index of chunks says. */
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/hdf5_plugin.h"

/* H5F_ACC_RDONLY, without the check in it that ends the process if the library has another release number than the
 * headers. */
enum { READ_ONLY = 0 };

typedef struct {
    hid_t file;
} file;

typedef struct {
    hid_t set, space, memory, type;
    int rank;
    hsize_t dims[AN_MAX_DIMS];
} array;

/* ---- calls of the library ---- */

/* Debian's library is not made for several threads. */
static pthread_mutex_t only = PTHREAD_MUTEX_INITIALIZER;

/* The library prints its errors unless it is told not to, and loads code from HDF5_PLUGIN_PATH for filters that it does
 * not know. It must do neither while we call it; afterwards it is as before, as the process may use it too. */
#define IN_LIBRARY(statement)                     \
    do {                                          \
        unsigned loading;                         \
        pthread_mutex_lock(&only);                \
        H5E_BEGIN_TRY {                           \
            H5PLget_loading_state(&loading);      \
            H5PLset_loading_state(0);             \
            statement;                            \
            H5PLset_loading_state(loading);       \
        }                                         \
        H5E_END_TRY;                              \
        pthread_mutex_unlock(&only);              \
    } while (0)

#define REFUSE(code, ...) (snprintf(note, AN_HDF5_NOTE, __VA_ARGS__), (an_status)(code))

/* ---- files ---- */

static an_status open_in_library(file *f, const char *path, char note[AN_HDF5_NOTE]) {
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    if (major != H5_VERS_MAJOR || minor != H5_VERS_MINOR)
        return REFUSE(AN_ERR_UNSUPPORTED,
                      "this process has HDF5 %u.%u.%u, but anneal's plugin was built for HDF5 %d.%d", major, minor,
                      release, H5_VERS_MAJOR, H5_VERS_MINOR);
    /* Neither HDF5_DRIVER nor HDF5_VOL_CONNECTOR nor the file says how it is opened. */
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    bool is_set = access >= 0 && H5Pset_fapl_sec2(access) >= 0;
#if H5_VERSION_GE(1, 12, 0)
    is_set = is_set && H5Pset_vol(access, H5VL_NATIVE, NULL) >= 0;
#endif
    f->file = is_set ? H5Fopen(path, READ_ONLY, access) : -1;
    if (access >= 0) H5Pclose(access);
    if (f->file >= 0) return AN_OK;
    return REFUSE(AN_ERR_PARSE, "this is not an HDF5 file, it is damaged, or another program is writing it");
}

static an_status open_file(void **opened, const char *path, char note[AN_HDF5_NOTE]) {
    an_status status;
    file *f = calloc(1, sizeof *f);
    *opened = f;
    if (!f) return REFUSE(AN_ERR_MEMORY, "out of memory");
    IN_LIBRARY(status = open_in_library(f, path, note));
    if (status == AN_OK) return AN_OK;
    free(f);
    *opened = NULL;
    return status;
}

static void close_file(void **opened) {
    file *f = *opened;
    *opened = NULL;
    if (!f) return;
    IN_LIBRARY(H5Fclose(f->file));
    free(f);
}

/* ---- arrays ---- */

/* Called before a link into another file is followed; a negative result is the end of it. */
static herr_t refuse_link(const char *parent, const char *group, const char *child, const char *object,
                          unsigned *flags, hid_t access, void *user) {
    (void)parent, (void)group, (void)child, (void)object, (void)flags, (void)access;
    *(bool *)user = true;
    return -1;
}

static an_status find_array(array *a, hid_t in, const char *name, char note[AN_HDF5_NOTE]) {
    bool is_elsewhere = false;
    const hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    /* Without a cache, chunks that are not packed are read by their places alone, whatever size the file claims. */
    const bool is_set = access >= 0 && H5Pset_elink_cb(access, refuse_link, &is_elsewhere) >= 0 &&
                        H5Pset_chunk_cache(access, 0, 0, H5D_CHUNK_CACHE_W0_DEFAULT) >= 0;
    a->set = is_set ? H5Dopen2(in, name, access) : -1;
    if (access >= 0) H5Pclose(access);
    if (a->set >= 0) return AN_OK;
    if (is_elsewhere) return REFUSE(AN_ERR_UNSUPPORTED, "'%s' is a link into another file: give that file instead", name);
    return REFUSE(AN_ERR_UNKNOWN, "there is no array '%s' that can be read ('h5ls -r' lists what is in the file)", name);
}

/* Filters that are known here; each at most once, or a few bytes could be packed into any number. */
static an_status take_filters(hid_t created, const char *name, an_hdf5_layout *layout, char note[AN_HDF5_NOTE]) {
    static const H5Z_filter_t known[] = {[AN_HDF5_SHUFFLE] = H5Z_FILTER_SHUFFLE,
                                         [AN_HDF5_DEFLATE] = H5Z_FILTER_DEFLATE,
                                         [AN_HDF5_FLETCHER32] = H5Z_FILTER_FLETCHER32};
    const int count = H5Pget_nfilters(created);
    unsigned seen = 0;
    for (int i = 0; i < count; i++) {
        unsigned flags;
        size_t values = 0;
        const int number = (int)H5Pget_filter2(created, (unsigned)i, &flags, &values, NULL, 0, NULL, NULL);
        unsigned k = 0;
        while (k < AN_HDF5_FILTERS && known[k] != number) k++;
        if (k == AN_HDF5_FILTERS || seen & 1u << k)
            return REFUSE(AN_ERR_UNSUPPORTED,
                          "'%s' is packed by filter %d%s; deflate (gzip), shuffle and fletcher32 are supported: "
                          "'h5repack -f GZIP=4 OLD NEW' packs it anew",
                          name, number, k < AN_HDF5_FILTERS ? " twice" : "");
        seen |= 1u << k;
        layout->filters[i] = (an_hdf5_filter)k;
    }
    layout->filter_count = count;
    return count >= 0 ? AN_OK : REFUSE(AN_ERR_PARSE, "'%s' does not say how it is packed", name);
}

/* Where the bytes are. This comes first: the shape of a virtual array is asked of other files. */
static an_status take_place(hid_t created, const char *name, an_hdf5_layout *layout, char note[AN_HDF5_NOTE]) {
    hsize_t chunk[AN_MAX_DIMS];
    unsigned options = 0;
    const H5D_layout_t kind = H5Pget_layout(created);
    if (kind == H5D_VIRTUAL || H5Pget_external_count(created) > 0)
        return REFUSE(AN_ERR_UNSUPPORTED, "'%s' has its numbers in other files: give these instead", name);
    if (kind != H5D_CHUNKED) return AN_OK;
    const an_status status = take_filters(created, name, layout, note);
    if (status != AN_OK || layout->filter_count == 0) return status;
    const int rank = H5Pget_chunk(created, AN_MAX_DIMS, chunk);
    for (int i = 0; i < rank && i < AN_MAX_DIMS; i++) layout->chunk[i] = (int64_t)chunk[i];
    if (H5Pget_chunk_opts(created, &options) < 0 || options != 0)
        return REFUSE(AN_ERR_UNSUPPORTED,
                      "'%s' has chunks at its edges that are not packed: 'h5repack OLD NEW' packs them", name);
    return AN_OK;
}

static an_status take_shape(array *a, const char *name, an_hdf5_layout *layout, char note[AN_HDF5_NOTE]) {
    int64_t count = 1;
    a->space = H5Dget_space(a->set);
    a->rank = a->space >= 0 ? H5Sget_simple_extent_ndims(a->space) : -1;
    if (a->rank < 1 || a->rank > AN_MAX_DIMS - 1)
        return REFUSE(AN_ERR_SHAPE, "'%s' has %d dimensions; 1 to %d are supported, the first of which is the sample",
                      name, a->rank, AN_MAX_DIMS - 1);
    if (H5Sget_simple_extent_dims(a->space, a->dims, NULL) != a->rank)
        return REFUSE(AN_ERR_PARSE, "the shape of '%s' cannot be read", name);
    for (int i = 0; i < a->rank; i++) {
        /* bytes of all numbers, of at most 8 each, are counted in int64_t */
        if (a->dims[i] < 1 || a->dims[i] > INT64_MAX / 8 / (uint64_t)count)
            return REFUSE(AN_ERR_SHAPE, "'%s' has size %llu in dimension %d: it is empty or too large", name,
                          (unsigned long long)a->dims[i], i + 1);
        count *= (int64_t)a->dims[i];
        layout->dims[i] = (int64_t)a->dims[i];
    }
    layout->rank = a->rank;
    return AN_OK;
}

/* HDF5 has no name for 16-bit reals; this is how h5py writes them. */
static hid_t make_half(hid_t like) {
    const hid_t half = H5Tcopy(like);
    if (half >= 0 && H5Tset_fields(half, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(half, 2) >= 0 &&
        H5Tset_ebias(half, 15) >= 0)
        return half;
    if (half >= 0) H5Tclose(half);
    return -1;
}

static an_status take_type(array *a, const char *name, an_hdf5_layout *layout, char note[AN_HDF5_NOTE]) {
    const hid_t halves[] = {make_half(H5T_IEEE_F32LE), make_half(H5T_IEEE_F32BE)};
    const struct {
        const char *name;
        hid_t types[2]; /* lower byte first, upper byte first */
    } known[] = {{"f4", {H5T_IEEE_F32LE, H5T_IEEE_F32BE}}, {"f8", {H5T_IEEE_F64LE, H5T_IEEE_F64BE}},
                 {"u1", {H5T_STD_U8LE, H5T_STD_U8BE}},     {"i1", {H5T_STD_I8LE, H5T_STD_I8BE}},
                 {"i2", {H5T_STD_I16LE, H5T_STD_I16BE}},   {"i4", {H5T_STD_I32LE, H5T_STD_I32BE}},
                 {"i8", {H5T_STD_I64LE, H5T_STD_I64BE}},   {"u2", {H5T_STD_U16LE, H5T_STD_U16BE}},
                 {"u4", {H5T_STD_U32LE, H5T_STD_U32BE}},   {"u8", {H5T_STD_U64LE, H5T_STD_U64BE}},
                 {"f2", {halves[0], halves[1]}}};
    a->type = H5Dget_type(a->set);
    for (size_t i = 0; a->type >= 0 && i < sizeof known / sizeof *known; i++)
        for (int k = 0; k < 2; k++)
            if (!*layout->type && known[i].types[k] >= 0 && H5Tequal(a->type, known[i].types[k]) > 0) {
                snprintf(layout->type, sizeof layout->type, "%s", known[i].name);
                layout->upper_first = k == 1;
            }
    for (int k = 0; k < 2; k++)
        if (halves[k] >= 0) H5Tclose(halves[k]);
    if (*layout->type) return AN_OK;
    return REFUSE(AN_ERR_DTYPE,
                  "'%s' does not have numbers of a supported type: these are integers of 8 to 64 bits and IEEE reals "
                  "of 16, 32 and 64",
                  name);
}

static an_status look_at_array(array *a, hid_t in, const char *name, an_hdf5_layout *layout, char note[AN_HDF5_NOTE]) {
    hsize_t sample[AN_MAX_DIMS] = {1};
    an_status status = find_array(a, in, name, note);
    if (status != AN_OK) return status;
    const hid_t created = H5Dget_create_plist(a->set);
    status = created >= 0 ? take_place(created, name, layout, note)
                          : REFUSE(AN_ERR_PARSE, "'%s' does not say where its numbers are", name);
    if (created >= 0) H5Pclose(created);
    if (status == AN_OK) status = take_shape(a, name, layout, note);
    if (status == AN_OK) status = take_type(a, name, layout, note);
    if (status != AN_OK) return status;
    for (int i = 1; i < a->rank; i++) sample[i] = a->dims[i];
    a->memory = H5Screate_simple(a->rank, sample, NULL);
    layout->stored = (int64_t)H5Dget_storage_size(a->set);
    return a->memory >= 0 ? AN_OK : REFUSE(AN_ERR_MEMORY, "HDF5 cannot describe a sample of '%s'", name);
}

static void close_in_library(array *a) {
    if (a->memory >= 0) H5Sclose(a->memory);
    if (a->type >= 0) H5Tclose(a->type);
    if (a->space >= 0) H5Sclose(a->space);
    if (a->set >= 0) H5Dclose(a->set);
}

static void close_array(void **opened) {
    array *a = *opened;
    *opened = NULL;
    if (!a) return;
    IN_LIBRARY(close_in_library(a));
    free(a);
}

static an_status open_array(void **opened, void *in, const char *name, an_hdf5_layout *layout,
                            char note[AN_HDF5_NOTE]) {
    an_status status;
    array *a = calloc(1, sizeof *a);
    *opened = a;
    memset(layout, 0, sizeof *layout);
    if (!a) return REFUSE(AN_ERR_MEMORY, "out of memory");
    a->set = a->space = a->memory = a->type = -1;
    IN_LIBRARY(status = look_at_array(a, ((file *)in)->file, name, layout, note));
    if (status != AN_OK) close_array(opened);
    return status;
}

/* ---- reading ---- */

static an_status read_sample(void *opened, int64_t sample, void *bytes, char note[AN_HDF5_NOTE]) {
    array *a = opened;
    hsize_t begin[AN_MAX_DIMS] = {(hsize_t)sample}, counts[AN_MAX_DIMS] = {1};
    herr_t status;
    for (int i = 1; i < a->rank; i++) counts[i] = a->dims[i];
    /* In memory they have the type that they have in the file: nothing is converted. */
    IN_LIBRARY(status = H5Sselect_hyperslab(a->space, H5S_SELECT_SET, begin, NULL, counts, NULL);
               if (status >= 0) status = H5Dread(a->set, a->type, a->memory, a->space, H5P_DEFAULT, bytes));
    return status >= 0 ? AN_OK : REFUSE(AN_ERR_PARSE, "it cannot be read");
}

static an_status read_chunk(void *opened, const int64_t *at, void *bytes, size_t capacity, size_t *size,
                            uint32_t *skipped, char note[AN_HDF5_NOTE]) {
    array *a = opened;
    hsize_t offset[AN_MAX_DIMS], stored = 0;
    herr_t status;
    for (int i = 0; i < a->rank; i++) offset[i] = (hsize_t)at[i];
    IN_LIBRARY(status = H5Dget_chunk_storage_size(a->set, offset, &stored);
               if (status >= 0 && stored > 0 && stored <= capacity) status =
                   H5Dread_chunk(a->set, H5P_DEFAULT, offset, skipped, bytes));
    *size = (size_t)stored;
    if (status < 0 || stored == 0) return REFUSE(AN_ERR_PARSE, "a chunk of it is not in the file");
    return stored <= capacity ? AN_OK : REFUSE(AN_ERR_PARSE, "a chunk of it is larger than it can be");
}

/* ---- the record ---- */

AN_API extern const an_hdf5_plugin an_hdf5_plugin_record;
const an_hdf5_plugin an_hdf5_plugin_record = {.size = sizeof an_hdf5_plugin_record,
                                              .version = AN_HDF5_PLUGIN_VERSION,
                                              .open = open_file,
                                              .close = close_file,
                                              .open_array = open_array,
                                              .close_array = close_array,
                                              .read = read_sample,
                                              .read_chunk = read_chunk};
