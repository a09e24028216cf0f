#include "formats/hdf5_array.h"

#include <inttypes.h>
#include <string.h>

#include "base/files/reader.h"
#include "base/system/plugin.h"
#include "base/system/plugins.h"

/* ---- files ---- */

an_status an_hdf5_file_open(an_hdf5_file *f, an_context *ctx, const char *path) {
    char text[AN_MESSAGE_BYTES], why[AN_HDF5_NOTE] = "";
    const an_note note = {text, sizeof text};
    const void *record = NULL;
    an_reader reader;
    f->path = path;
    AN_TRY_RETURN(an_note_raise(ctx, an_reader_open(&reader, path, note), note)); /* no pipe, device or folder */
    f->size = reader.size;
    an_reader_close(&reader);
    const an_plugin_head head = {sizeof *f->plugin, AN_HDF5_PLUGIN_VERSION};
    const an_status found = an_plugin_open("hdf5", AN_HDF5_PLUGIN, head, &record, note);
    if (found == AN_ERR_FILE && sizeof AN_HDF5_VERSION > 1) /* not "" */
        return AN_ERROR(
            ctx, AN_ERR_UNSUPPORTED,
            "%s: HDF5 files are read by anneal's plugin, which was built for HDF5 %s: %s. Install HDF5's library "
            "(Debian 12: libhdf5-103)",
            path, AN_HDF5_VERSION, text);
    if (found == AN_ERR_FILE)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: this anneal was built without its plugin for HDF5: install HDF5's development files "
                        "(Debian: libhdf5-dev) and build anneal again",
                        path);
    if (found != AN_OK) return AN_ERROR(ctx, found, "%s: %s", path, text);
    f->plugin = record;
    const an_status status = f->plugin->open(&f->opened, path, why);
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "%s: %s", path, why);
}

void an_hdf5_file_close(an_hdf5_file *f) {
    if (f->opened) f->plugin->close(&f->opened);
}

/* ---- arrays ---- */

/* What the plugin says of an array, checked against what a file of this size can have. */
static an_status check_layout(an_hdf5_array *a, an_context *ctx) {
    const an_hdf5_layout *l = &a->layout;
    int64_t count = 1;
    for (int d = 1; d < l->rank; d++) count *= l->dims[d]; /* all of them, with the samples, are less than 2^60 */
    a->each = (size_t)count;
    a->type = an_npy_type_find(l->type);
    if (!a->type) return AN_ERROR(ctx, AN_ERR_DTYPE, "%s: '%s' has numbers of an unknown type", a->file->path, a->name);
    a->bytes = a->each * a->type->width;
    if (l->stored > a->file->size || (!l->filter_count && l->stored / (int64_t)a->bytes < l->dims[0]))
        return AN_ERROR(ctx, AN_ERR_PARSE,
                        "%s: the file claims %" PRId64 " bytes of '%s', and has %" PRId64
                        " in all: it is damaged, or was not written to its end",
                        a->file->path, l->stored, a->name, a->file->size);
    return AN_OK;
}

an_status an_hdf5_array_open(an_hdf5_array *a, an_context *ctx, const an_hdf5_file *file, const char *const *names,
                             int count) {
    char why[AN_HDF5_NOTE] = "";
    an_status status = AN_ERR_UNKNOWN;
    a->file = file;
    for (int i = 0; i < count && status == AN_ERR_UNKNOWN; i++) {
        a->name = names[i];
        status = file->plugin->open_array(&a->opened, file->opened, a->name, &a->layout, why);
    }
    if (status != AN_OK) return AN_ERROR(ctx, status, "%s: %s", file->path, why);
    AN_TRY_RETURN(check_layout(a, ctx));
    if (pthread_mutex_init(&a->lock, NULL) != 0) return AN_ERROR(ctx, AN_ERR_MEMORY, "%s: no lock", file->path);
    a->has_lock = true;
    if (a->layout.filter_count)
        AN_TRY_RETURN(
            an_hdf5_chunks_open(&a->chunks, ctx, &a->layout, a->type->width, file->plugin, a->opened, file->path));
    return an_alloc_raw(ctx, (void **)&a->sample, a->bytes);
}

void an_hdf5_array_close(an_hdf5_array *a, an_context *ctx) {
    an_hdf5_chunks_close(&a->chunks, ctx);
    if (a->sample) an_release(ctx, (void **)&a->sample, a->bytes, 1);
    if (a->has_lock) pthread_mutex_destroy(&a->lock);
    if (a->opened) a->file->plugin->close_array(&a->opened);
    a->has_lock = false;
}

/* ---- reading ---- */

static void put_lower_first(unsigned char *numbers, size_t count, size_t width) {
    for (unsigned char *n = numbers; n < numbers + count * width; n += width)
        for (size_t i = 0; i < width / 2; i++) {
            const unsigned char byte = n[i];
            n[i] = n[width - 1 - i];
            n[width - 1 - i] = byte;
        }
}

void an_hdf5_array_place(const an_hdf5_array *a, int64_t sample, int64_t number, an_note place) {
    an_note_write(place, "%s: sample %" PRId64 " of '%s', number %" PRId64, a->file->path, sample, a->name, number);
}

static an_status read_locked(an_hdf5_array *a, int64_t sample, void *to, an_note note) {
    char why[AN_HDF5_NOTE] = "", place[AN_MESSAGE_BYTES / 2];
    const char *what;
    const an_status status = a->layout.filter_count ? an_hdf5_chunks_read(&a->chunks, sample, a->sample, why)
                                                    : a->file->plugin->read(a->opened, sample, a->sample, why);
    if (status != AN_OK)
        return AN_NOTE(note, status, "%s: sample %" PRId64 " of '%s': %s", a->file->path, sample, a->name, why);
    if (a->layout.upper_first) put_lower_first(a->sample, a->each, a->type->width);
    const size_t done = an_npy_convert(a->type, a->dtype, a->divisor, a->sample, a->each, to, &what);
    if (done == a->each) return AN_OK;
    an_hdf5_array_place(a, sample, (int64_t)done, (an_note){place, sizeof place});
    return AN_NOTE(note, AN_ERR_PARSE, "%s: %g is not %s", place, a->type->number(a->sample + done * a->type->width),
                   what);
}

an_status an_hdf5_array_read(an_hdf5_array *a, int64_t sample, void *to, an_note note) {
    pthread_mutex_lock(&a->lock);
    const an_status status = read_locked(a, sample, to, note);
    pthread_mutex_unlock(&a->lock);
    return status;
}
