/* anneal init of IDX files, and of .npy and .npz files. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/init/init.h"

/* ---- the file beside ---- */

/* The name of another file that belongs to this one: a word of its name is another. False: there is no such file. */
static bool find_beside(const char *path, const char *word, const char *other, char *found, size_t capacity) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *at = strstr(name, word);
    if (!at) return false;
    const int length = snprintf(found, capacity, "%.*s%s%s", (int)(at - path), path, other, at + strlen(word));
    return length < (int)capacity && access(found, R_OK) == 0;
}

/* ---- what samples are ---- */

/* Whether all inputs are from 0 to 1, as bytes of images are. */
static an_status look_at_inputs(init_found *f, an_dataset *dataset) {
    enum { LOOKED_AT = 1000 };
    an_features *features = NULL;
    an_feature_info info;
    an_feature_info_init(&info, sizeof info);
    an_status status = an_features_create(&features, dataset, 0, f->samples < LOOKED_AT ? f->samples : LOOKED_AT, 1);
    if (status == AN_OK) status = an_features_get(features, 0, &info);
    an_features_destroy(&features);
    f->is_scaled = status == AN_OK && info.minimum >= 0 && info.maximum <= 1;
    return status;
}

/* Matrices, and up to four of them, are images if they are not too small to be halved twice. */
static void look_at_shape(init_found *f, const an_field *field) {
    enum { LEAST_SIDE = 8, MOST_CHANNELS = 4 };
    const int last = field->ndims - 1;
    f->inputs = 1;
    for (int d = 0; d < field->ndims; d++) f->inputs *= field->dims[d];
    if (last < 1 || last > 2 || (last == 2 && field->dims[0] > MOST_CHANNELS) || !f->classes) return;
    f->height = field->dims[last - 1];
    f->width = field->dims[last];
    f->is_image = f->height >= LEAST_SIDE && f->width >= LEAST_SIDE;
}

static void tell_shape(const init_found *f, const char *kind, const an_field *field) {
    char shape[128] = "";
    size_t used = 0;
    for (int d = 0; d < field->ndims && used < sizeof shape; d++)
        used +=
            (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", d ? " x " : "", (long long)field->dims[d]);
    cli_tell("%s: %s, %s samples of %s numbers", f->data, kind, cli_count(f->samples).text, *shape ? shape : "1");
}

static int look(init_found *f, an_dataset *dataset, const char *kind) {
    an_field inputs;
    init_numbers numbers;
    bool single = true;
    an_field_init(&inputs, sizeof inputs);
    f->samples = an_dataset_count(dataset);
    an_status status = an_dataset_field(dataset, 0, &inputs);
    if (status == AN_OK) status = look_at_inputs(f, dataset);
    if (status != AN_OK) return cli_failure(f->call, f->ctx, status);
    tell_shape(f, kind, &inputs);
    int code = init_read_targets(f, dataset, &numbers, &single);
    if (code == CLI_DONE && single)
        code = init_decide(f, "target", &numbers);
    else if (code == CLI_DONE)
        cli_tell("task: regression, because a target has several numbers");
    if (code == CLI_DONE && f->classes)
        cli_tell("classes: %lld, the rarest with %lld samples", (long long)f->classes, (long long)f->rarest);
    look_at_shape(f, &inputs);
    return code;
}

/* ---- IDX ---- */

static bool find_labels(const char *images, char *labels, size_t capacity) {
    char renamed[INIT_PATH];
    const char *dimensions = strstr(images, "idx3");
    if (!dimensions) return find_beside(images, "images", "labels", labels, capacity);
    if (snprintf(renamed, sizeof renamed, "%s", images) >= (int)sizeof renamed) return false;
    renamed[dimensions - images + 3] = '1';
    return find_beside(renamed, "images", "labels", labels, capacity);
}

static void put_idx(const init_found *f, const char *images, const char *labels) {
    fprintf(f->source_stream, "    path: ");
    init_put_path(f, images);
    fprintf(f->source_stream, "\n    labels: ");
    init_put_path(f, labels);
    putc('\n', f->source_stream);
}

int init_idx(init_found *f) {
    char labels[INIT_PATH] = "", test[INIT_PATH], test_labels[INIT_PATH];
    an_dataset *dataset = NULL;
    an_idx_source source;
    an_idx_source_init(&source, sizeof source);
    if (f->target)
        snprintf(labels, sizeof labels, "%s", f->target);
    else if (!find_labels(f->data, labels, sizeof labels))
        return cli_misuse(f->call, "%s: no file of labels is beside it; name it with --target FILE", f->data);
    cli_tell("labels: %s", labels);
    source.inputs = f->data;
    source.targets = labels;
    const an_status status = an_dataset_create_idx(&dataset, f->ctx, &source);
    int code = status == AN_OK ? look(f, dataset, "IDX") : cli_failure(f->call, f->ctx, status);
    an_dataset_destroy(&dataset);
    if (code != CLI_DONE) return code;
    f->type = "idx";
    put_idx(f, f->data, labels);
    if (find_beside(f->data, "train-images", "t10k-images", test, sizeof test) &&
        find_labels(test, test_labels, sizeof test_labels)) {
        cli_tell("evaluation: %s", test);
        f->has_evaluation = true;
        fprintf(f->source_stream, "  eval:\n    type: idx\n");
        put_idx(f, test, test_labels);
    }
    return CLI_DONE;
}

/* ---- NumPy ---- */

/* What files of inputs and targets that belong together are called. */
static bool find_targets(const char *inputs, char *targets, size_t capacity) {
    static const char *const pairs[][2] = {{"inputs", "targets"},
                                           {"inputs", "labels"},
                                           {"images", "labels"},
                                           {"features", "labels"},
                                           {"features", "targets"},
                                           {"data", "labels"},
                                           {"data", "targets"},
                                           {"x", "y"},
                                           {"X", "y"},
                                           {"X", "Y"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (find_beside(inputs, pairs[i][0], pairs[i][1], targets, capacity)) return true;
    return false;
}

int init_npy(init_found *f) {
    char labels[INIT_PATH] = "";
    an_dataset *dataset = NULL;
    an_npy_source source;
    an_npy_source_init(&source, sizeof source);
    const size_t length = strlen(f->data);
    const bool archive = length > 4 && !strcmp(f->data + length - 4, ".npz");
    source.path = f->data;
    if (archive) {
        source.targets = f->target;
    } else {
        if (f->target)
            snprintf(labels, sizeof labels, "%s", f->target);
        else if (!find_targets(f->data, labels, sizeof labels))
            return cli_misuse(f->call, "%s: no file of targets is beside it; name it with --target FILE", f->data);
        source.labels = labels;
        cli_tell("targets: %s", labels);
    }
    const an_status status = an_dataset_create_npy(&dataset, f->ctx, &source);
    int code = status == AN_OK ? CLI_DONE : cli_failure(f->call, f->ctx, status);
    if (code == CLI_DONE && an_dataset_field_count(dataset) < 2)
        code = cli_misuse(f->call, "%s: it has no array of targets; name it with --target ARRAY", f->data);
    if (code == CLI_DONE) code = look(f, dataset, archive ? "arrays of NumPy" : "an array of NumPy");
    an_dataset_destroy(&dataset);
    if (code != CLI_DONE) return code;
    f->type = "npy";
    fprintf(f->source_stream, "    path: ");
    init_put_path(f, f->data);
    if (*labels) {
        fprintf(f->source_stream, "\n    labels: ");
        init_put_path(f, labels);
    } else if (f->target) {
        fprintf(f->source_stream, "\n    targets: [");
        init_put_text(f->source_stream, f->target);
        putc(']', f->source_stream);
    }
    putc('\n', f->source_stream);
    return CLI_DONE;
}
