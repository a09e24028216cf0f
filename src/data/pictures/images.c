/* Pictures in folders. Only their names are held in memory: each file is opened and decoded when its sample is read, by
 * the thread that reads it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/guard.h"
#include "base/text/text.h"
#include "data/pictures/folder.h"
#include "data/pictures/pixels.h"
#include "data/pictures/resize.h"
#include "data/structs.h"
#include "data/tables/cells.h"
#include "data/tables/encoding.h"

typedef struct {
    an_context *ctx;
    an_picture_list list;
    int64_t height, width;
    int channels;
    bool has_targets;
    an_pixels_function *to_numbers;
    float divisor;
    an_class_info info;
    an_encoding *encoding; /* the names of the classes; NULL: those of another dataset, or none */
    char notice[AN_MESSAGE_BYTES];
} images;

/* ---- reading ---- */

/* What a thread needs to decode. It is taken once a call, for any number of pictures. */
typedef struct {
    an_picture picture;
    an_resizer resizer;
    char path[AN_FILE_PATH];
} workspace;

static void release_workspace(workspace *w) {
    an_picture_release(&w->picture);
    an_resizer_release(&w->resizer);
    free(w);
}

static an_status read_picture(const images *x, int64_t index, workspace *w, float *to, an_note note) {
    const unsigned char *pixels;
    an_picture_list_path(&x->list, index, (an_note){w->path, sizeof w->path});
    const an_status status = an_picture_read(&w->picture, w->path, note);
    if (status != AN_OK) return status;
    if (x->channels == 1) an_picture_make_grey(&w->picture);
    if (!an_resize(&w->resizer, &w->picture, x->height, x->width, &pixels))
        return AN_NOTE(note, AN_ERR_MEMORY, "%s: not enough memory to resize it", w->path);
    x->to_numbers(pixels, w->picture.channels, (size_t)(x->height * x->width), x->divisor, x->channels, to);
    return AN_OK;
}

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    const images *x = user;
    const an_note note = {message, message_capacity};
    const size_t each = (size_t)(x->channels * x->height * x->width);
    an_status status = AN_OK;
    workspace *w = calloc(1, sizeof *w);
    if (!w) return AN_NOTE(note, AN_ERR_MEMORY, "%s: not enough memory to decode a picture", x->list.root);
    for (int64_t i = 0; i < n && status == AN_OK; i++) {
        status = read_picture(x, indices[i], w, (float *)fields[0] + (size_t)i * each, note);
        if (x->has_targets) ((int32_t *)fields[1])[i] = (int32_t)x->list.entries[indices[i]].class;
    }
    release_workspace(w);
    return status;
}

static int32_t class_at(const void *user, int64_t index) {
    const images *x = user;
    return (int32_t)x->list.entries[index].class;
}

static void locate(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity) {
    const images *x = user;
    (void)field, (void)element;
    an_picture_list_path(&x->list, index, (an_note){place, place_capacity});
}

/* The one thing that an image has beside its numbers. */
static an_status read_cells(void *user, an_cells *cells) {
    const images *x = user;
    an_context *ctx = x->ctx;
    char path[AN_FILE_PATH];
    for (int c = 0; c < cells->columns; c++)
        if (strcmp(cells->names[c], "file") != 0)
            return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: images have no column '%s'; they have 'file'", x->list.root,
                            AN_QUOTE(cells->names[c]));
    for (int64_t i = 0; i < cells->samples; i++) {
        an_picture_list_path(&x->list, i, (an_note){path, sizeof path});
        for (int c = 0; c < cells->columns; c++) AN_TRY_RETURN(an_cells_put(cells, i, c, path, strlen(path)));
    }
    return AN_OK;
}

static void close_images(void *user) {
    images *x = user;
    an_context *ctx = x->ctx;
    an_picture_list_destroy(&x->list);
    an_encoding_destroy(&x->encoding);
    an_release(ctx, (void **)&x, 1, sizeof *x);
}

/* ---- making one ---- */

static an_status check_source(an_context *ctx, const an_images_source *source) {
    an_status status;
    AN_CHECK(ctx, source->channels == 0 || source->channels == 1 || source->channels == 3, AN_ERR_ARGUMENT,
             "pictures have 1 or 3 channels, not %d", source->channels);
    AN_CHECK(ctx,
             source->height >= 0 && source->width >= 0 && source->height <= AN_PICTURE_PIXELS &&
                 source->width <= AN_PICTURE_PIXELS,
             AN_ERR_ARGUMENT, "pictures cannot have %" PRId64 " × %" PRId64 " pixels", source->height, source->width);
    AN_CHECK(ctx, !source->like || source->like->record.read == read_samples, AN_ERR_ARGUMENT,
             "the dataset that this one is to be like has no images");
    AN_CHECK(ctx, !source->like || !source->has_targets || source->like->class_count > 0, AN_ERR_ARGUMENT,
             "the dataset that this one is to be like has no classes");
    return AN_OK;
fail:
    return status;
}

static an_status list_pictures(images *x, const an_images_source *source) {
    return source->has_targets
               ? an_picture_list_classes(&x->list, x->ctx, source->path, source->begin, source->end, source->like)
               : an_picture_list_plain(&x->list, x->ctx, source->path, source->begin, source->end);
}

/* The sizes of the first picture. */
static an_status measure(images *x, an_picture *first) {
    char path[AN_FILE_PATH], text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    an_picture_list_path(&x->list, 0, (an_note){path, sizeof path});
    return an_note_raise(x->ctx, an_picture_measure(first, path, note), note);
}

static an_status choose_sizes(images *x, const an_images_source *source) {
    an_context *ctx = x->ctx;
    an_picture first = {0};
    const images *like = source->like ? source->like->record.user : NULL;
    if (like)
        first = (an_picture){.height = like->height, .width = like->width, .channels = like->channels};
    else
        AN_TRY_RETURN(measure(x, &first));
    x->height = source->height ? source->height : first.height;
    x->width = source->width ? source->width : first.width;
    x->channels = source->channels ? source->channels : first.channels;
    if (x->height <= AN_PICTURE_PIXELS / x->width) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: pictures cannot have %" PRId64 " × %" PRId64 " pixels", x->list.root,
                    x->height, x->width);
}

static void make_fields(const images *x, bool flat, an_field fields[2]) {
    an_field_init(&fields[0], sizeof fields[0]);
    an_field_init(&fields[1], sizeof fields[1]);
    fields[0].name = "inputs";
    fields[0].dtype = AN_DTYPE_F32;
    fields[0].ndims = flat ? 1 : 3;
    fields[0].dims[0] = flat ? x->channels * x->height * x->width : x->channels;
    fields[0].dims[1] = flat ? 0 : x->height;
    fields[0].dims[2] = flat ? 0 : x->width;
    fields[1].name = "targets";
    fields[1].dtype = AN_DTYPE_I32;
    fields[1].target = true;
    fields[1].limit = x->info.classes;
}

/* The folders tell the classes, so nobody needs to decode all pictures to count them. Entries are sorted by class. */
static void count_classes(images *x, const an_dataset *like) {
    an_class_info *info = &x->info;
    info->classes = like ? like->class_count : x->list.class_count;
    for (size_t i = 0; i < x->list.count; i++) {
        const int64_t class = x->list.entries[i].class;
        info->seen += i == 0 || class != x->list.entries[i - 1].class;
        info->first_absent += class == info->first_absent;
    }
}

static void tell_dataset(images *x, const an_dataset *like, an_dataset *d) {
    d->read_cells = read_cells;
    d->image[0] = x->channels;
    d->image[1] = x->height;
    d->image[2] = x->width;
    if (x->has_targets) {
        d->class_names = like ? like->class_names : x->list.classes;
        d->class_count = x->info.classes;
        d->class_info = &x->info;
        d->class_at = class_at;
        d->encoding = like ? like->encoding : x->encoding;
    }
    if (x->list.skipped == 0) return;
    snprintf(x->notice, sizeof x->notice,
             "%s: %" PRId64 " entr%s skipped, because %s hidden or not a %s; the first is %s", x->list.root,
             x->list.skipped, x->list.skipped == 1 ? "y was" : "ies were", x->list.skipped == 1 ? "it is" : "they are",
             x->has_targets ? "class folder with PNG and JPEG files" : "PNG or JPEG file", x->list.first_skipped);
    d->notice = x->notice;
}

an_status an_dataset_create_images(an_dataset **dataset, an_context *ctx, const an_images_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_images_source own;
    const an_images_source *const source = &own;
    an_status status;
    images *x = NULL;
    an_field fields[2];
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    *dataset = NULL;
    AN_TRY(an_images_source_read(ctx, &own, given));
    AN_TRY(check_source(ctx, source));
    AN_TRY(an_alloc(ctx, (void **)&x, 1, sizeof *x));
    x->ctx = x->list.ctx = ctx;
    x->has_targets = source->has_targets;
    AN_TRY(list_pictures(x, source));
    AN_TRY(choose_sizes(x, source));
    x->divisor = source->scaled ? 255 : 1;
    x->to_numbers = an_pixels_for_isa(ctx->isa);
    if (x->has_targets) count_classes(x, source->like);
    if (x->has_targets && !source->like)
        AN_TRY(an_encoding_of_classes(&x->encoding, ctx, NULL, x->list.classes, x->list.class_count));
    make_fields(x, source->flat, fields);
    record.count = (int64_t)x->list.count;
    record.field_count = x->has_targets ? 2 : 1;
    record.fields = fields;
    record.read = read_samples;
    record.locate = locate;
    record.close = close_images;
    record.user = x;
    AN_TRY(an_dataset_create(dataset, ctx, &record));
    tell_dataset(x, source->like, *dataset);
    return AN_OK;
fail:
    if (x) close_images(x);
    return status;
}
