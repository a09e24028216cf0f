/* anneal init of a folder of images. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/init/init.h"

/* Images are stretched to this many pixels at most, so that a first run takes minutes. */
enum { MOST_SIDE = 64, LEAST_SIDE = 8 };

static bool is_picture(const char *name) {
    static const char *const ends[] = {".png", ".jpg", ".jpeg"};
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (length > strlen(ends[i]) && !strcasecmp(name + length - strlen(ends[i]), ends[i])) return name[0] != '.';
    return false;
}

static int64_t count_files(const char *root, const char *class) {
    char path[2 * INIT_PATH];
    int64_t count = 0;
    snprintf(path, sizeof path, "%s/%s", root, class);
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) count += is_picture(entry->d_name);
    if (folder) closedir(folder);
    return count;
}

static void tell_classes(init_found *f, const an_dataset *dataset) {
    enum { SHOWN = 40, LABEL = 24 };
    for (int64_t i = 0; i < f->classes; i++) {
        const char *name = an_dataset_class_name(dataset, i);
        const int64_t files = name ? count_files(f->data, name) : 0;
        init_count_class(f, name ? name : "", files);
        if (i < SHOWN)
            cli_tell("  %-24s %9s files %5.1f%%", init_show(name ? name : "", LABEL).text, cli_count(files).text,
                     100.0 * (double)files / (double)f->samples);
    }
    if (f->classes > SHOWN) cli_tell("  ... and %lld more classes", (long long)(f->classes - SHOWN));
}

/* ---- sizes ---- */

/* Of some files: their headers are read, and no pixels. */
enum { MOST_MEASURED = 1000 };

typedef struct {
    int64_t count, color;
    int64_t heights[MOST_MEASURED], widths[MOST_MEASURED];
    int64_t broken;
} measured;

static void measure(init_found *f, const char *path, measured *m) {
    an_dataset *one = NULL;
    an_images_source source;
    an_images_source_init(&source, sizeof source);
    source.path = path;
    source.has_targets = false;
    an_field field;
    an_field_init(&field, sizeof field);
    if (an_dataset_create_images(&one, f->ctx, &source) == AN_OK && an_dataset_field(one, 0, &field) == AN_OK) {
        m->heights[m->count] = field.dims[1];
        m->widths[m->count++] = field.dims[2];
        m->color += field.dims[0] > 1;
    } else if (m->broken++ == 0) {
        cli_tell("note: %s", an_last_error(f->ctx));
    }
    an_dataset_destroy(&one);
}

/* As many of each class as there is room for. */
static void measure_class(init_found *f, const char *class, measured *m) {
    char path[2 * INIT_PATH];
    const int64_t each = f->samples <= MOST_MEASURED ? MOST_MEASURED : (MOST_MEASURED + f->classes - 1) / f->classes,
                  maximum = m->count + m->broken + each;
    snprintf(path, sizeof path, "%s/%s", f->data, class);
    DIR *folder = opendir(path);
    for (const struct dirent *entry;
         folder && m->count + m->broken < maximum && m->count < MOST_MEASURED && (entry = readdir(folder));) {
        snprintf(path, sizeof path, "%s/%s/%s", f->data, class, entry->d_name);
        if (is_picture(entry->d_name)) measure(f, path, m);
    }
    if (folder) closedir(folder);
}

static int compare_sizes(const void *a, const void *b) {
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Most files, and not the first alone, say how large images are and whether they are in color. */
static void choose_sizes(init_found *f, const an_dataset *dataset, an_field *field) {
    static measured m;
    m = (measured){0};
    for (int64_t i = 0; i < f->classes && m.count < MOST_MEASURED; i++)
        if (an_dataset_class_name(dataset, i)) measure_class(f, an_dataset_class_name(dataset, i), &m);
    if (m.count == 0) return;
    const size_t count = (size_t)m.count;
    qsort(m.heights, count, sizeof *m.heights, compare_sizes);
    qsort(m.widths, count, sizeof *m.widths, compare_sizes);
    field->dims[0] = m.color > 0 ? 3 : 1;
    field->dims[1] = m.heights[count / 2];
    field->dims[2] = m.widths[count / 2];
    const bool same = m.heights[0] == m.heights[count - 1] && m.widths[0] == m.widths[count - 1];
    char looked[64] = "";
    if (m.count < f->samples) snprintf(looked, sizeof looked, " (of %s files looked at)", cli_count(m.count).text);
    if (same)
        cli_tell("size: %lld x %lld pixels%s", (long long)field->dims[1], (long long)field->dims[2], looked);
    else
        cli_tell("sizes: %lld to %lld pixels high, %lld to %lld wide; half of them up to %lld x %lld%s",
                 (long long)m.heights[0], (long long)m.heights[count - 1], (long long)m.widths[0],
                 (long long)m.widths[count - 1], (long long)field->dims[1], (long long)field->dims[2], looked);
    if (m.color == 0)
        cli_tell("color: all are grey%s", looked);
    else if (m.color == m.count)
        cli_tell("color: all are in color%s", looked);
    else
        cli_tell("color: %.0f%% are grey, and are used as if in color%s",
                 100.0 * (double)(m.count - m.color) / (double)m.count, looked);
}

int init_images(init_found *f) {
    an_dataset *dataset = NULL;
    an_images_source source;
    an_images_source_init(&source, sizeof source);
    source.path = f->data;
    an_field field;
    an_field_init(&field, sizeof field);
    an_class_info classes;
    an_class_info_init(&classes, sizeof classes);
    an_status status = an_dataset_create_images(&dataset, f->ctx, &source);
    if (status == AN_OK) status = an_dataset_field(dataset, 0, &field);
    if (status == AN_OK) status = an_dataset_class_info(dataset, &classes);
    if (status != AN_OK) {
        an_dataset_destroy(&dataset);
        return cli_failure(f->call, f->ctx, status);
    }
    f->type = "images";
    f->samples = an_dataset_count(dataset);
    f->classes = classes.classes;
    f->is_image = f->is_scaled = true;
    cli_tell("%s: %s images in %lld class%s", f->data, cli_count(f->samples).text, (long long)f->classes,
             f->classes == 1 ? "" : "es");
    tell_classes(f, dataset);
    const int64_t first_channels = field.dims[0];
    choose_sizes(f, dataset, &field);
    f->height = field.dims[1] < MOST_SIDE ? field.dims[1] : MOST_SIDE;
    f->width = field.dims[2] < MOST_SIDE ? field.dims[2] : MOST_SIDE;
    if (an_dataset_notice(dataset)) cli_tell("note: %s", an_dataset_notice(dataset));
    an_dataset_destroy(&dataset);
    if (f->classes < 2) return cli_fail(f->call, "%s: there is only one class, so there is nothing to learn", f->data);
    if (f->height < LEAST_SIDE || f->width < LEAST_SIDE) f->height = f->width = LEAST_SIDE;
    fprintf(f->source_stream, "    path: ");
    init_put_path(f, f->data);
    fprintf(f->source_stream, "  # a folder for each class\n    height: %lld  # all images are stretched to this\n",
            (long long)f->height);
    fprintf(f->source_stream, "    width: %lld\n", (long long)f->width);
    if (field.dims[0] != first_channels)
        fprintf(f->source_stream, "    channels: %lld  # some images are grey, and some in color\n",
                (long long)field.dims[0]);
    if (f->height != field.dims[1] || f->width != field.dims[2])
        cli_tell("images are stretched to %lld x %lld pixels, which trains faster; change height and width for more "
                 "detail",
                 (long long)f->height, (long long)f->width);
    return CLI_DONE;
}
