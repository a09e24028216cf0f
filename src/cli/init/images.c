/* anneal init of a folder of images. */
#include <dirent.h>
#include <string.h>

#include "cli/init/init.h"

/* Images are stretched to this many pixels at most, so that a first run takes minutes. */
enum { MOST_SIDE = 64, LEAST_SIDE = 8 };

static int64_t count_files(const char *root, const char *class) {
    char path[2 * INIT_PATH];
    int64_t count = 0;
    snprintf(path, sizeof path, "%s/%s", root, class);
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) count += entry->d_name[0] != '.';
    if (folder) closedir(folder);
    return count;
}

static void tell_classes(init_found *f, const an_dataset *dataset) {
    enum { SHOWN = 40, LABEL = 24 };
    for (int64_t i = 0; i < f->classes; i++) {
        const char *name = an_dataset_class_name(dataset, i);
        const int64_t files = name ? count_files(f->data, name) : 0;
        if (i == 0 || files < f->rarest) f->rarest = files;
        if (i < SHOWN) cli_tell("  %-24s %9s files", init_show(name ? name : "", LABEL).text, cli_count(files).text);
    }
    if (f->classes > SHOWN) cli_tell("  ... and %lld more classes", (long long)(f->classes - SHOWN));
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
    if (status == AN_OK) status = an_field_get(dataset, 0, &field);
    if (status == AN_OK) status = an_class_info_get(dataset, &classes);
    if (status != AN_OK) {
        an_dataset_destroy(&dataset);
        return cli_failure(f->call, f->ctx, status);
    }
    f->type = "images";
    f->samples = an_dataset_count(dataset);
    f->classes = classes.classes;
    f->is_image = f->is_scaled = true;
    f->height = field.dims[1] < MOST_SIDE ? field.dims[1] : MOST_SIDE;
    f->width = field.dims[2] < MOST_SIDE ? field.dims[2] : MOST_SIDE;
    cli_tell("%s: %s images in %lld classes; the first has %lld x %lld pixels, %s", f->data, cli_count(f->samples).text,
             (long long)f->classes, (long long)field.dims[1], (long long)field.dims[2],
             field.dims[0] == 1 ? "grey" : "in color");
    tell_classes(f, dataset);
    if (an_dataset_notice(dataset)) cli_tell("note: %s", an_dataset_notice(dataset));
    an_dataset_destroy(&dataset);
    if (f->classes < 2) return cli_fail(f->call, "%s: there is only one class, so there is nothing to learn", f->data);
    if (f->height < LEAST_SIDE || f->width < LEAST_SIDE) f->height = f->width = LEAST_SIDE;
    fprintf(f->source_stream, "    path: ");
    init_put_path(f, f->data);
    fprintf(f->source_stream, "  # a folder for each class\n    height: %lld  # all images are stretched to this\n",
            (long long)f->height);
    fprintf(f->source_stream, "    width: %lld\n", (long long)f->width);
    if (f->height != field.dims[1] || f->width != field.dims[2])
        cli_tell("images are stretched to %lld x %lld pixels, which trains faster; change height and width for more "
                 "detail",
                 (long long)f->height, (long long)f->width);
    return CLI_DONE;
}
