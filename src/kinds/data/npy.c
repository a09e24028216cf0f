/* Type npy: arrays of NumPy, in .npy and .npz files. */
#include <stdio.h>

#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PATH_OPTION(INTO(IN(an_npy_source, path))),
    LABELS_OPTION(INTO(IN(an_npy_source, labels))),
    FLAT_OPTION(INTO(IN(an_npy_source, flat))),
    SCALED_OPTION(INTO(IN(an_npy_source, scaled))),
    OPTION_AT(120, "data.train.inputs", STRINGS, "auto", "auto", ANY, FIXED(SAMPLES), DERIVED,
              "name of the array of inputs in a .npz file; auto is inputs, x, X, x_train or arr_0, whichever is there"),
    OPTION_AT(130, "data.train.targets", STRINGS, "auto", "auto", ANY, FIXED(SAMPLES), DERIVED,
              "name of the array of targets in a .npz file; auto is targets, y, y_train or arr_1"),
    DTYPE_OPTION(INTO(AS(an_npy_source, dtype, AN_DTYPE_F32, AN_DTYPE_F64))),
    PART_OPTION(INTO(RANGE(an_npy_source, begin, end))),
    OPTIONS_END,
};

/* The name of one array; NULL where it is left open. */
static an_status get_array_name(const an_data_opening *o, const char *key, const char **name) {
    const an_key joined = an_key_join(o->path, key);
    char element[AN_PATH_TEXT + 16];
    *name = NULL;
    if (an_config_is(o->config, joined.text, "auto")) return AN_OK;
    if (an_config_size(o->config, joined.text) != 1)
        return AN_ERROR(o->ctx, AN_ERR_ARGUMENT, "%s: %s of a .npz file is one array",
                        an_config_place(o->config, joined.text), joined.text);
    snprintf(element, sizeof element, "%s[0]", joined.text);
    return an_config_string(o->config, element, name);
}

static an_status open_source(const an_data_opening *o) {
    an_context *ctx = o->ctx;
    an_npy_source s;
    an_npy_source_init(&s, sizeof s);
    s.flat = an_data_is_flat(o);
    AN_TRY_RETURN(AN_FILL(o, an_npy_source, &s));
    AN_TRY_RETURN(get_array_name(o, "inputs", &s.inputs));
    AN_TRY_RETURN(get_array_name(o, "targets", &s.targets));
    s.weights = o->config->settings->data.weights;
    s.weights_optional = an_data_evaluates(o);
    s.channel = an_data_is_of_images(o);
    return an_dataset_create_npy(o->dataset, ctx, &s);
}

/* An archive, whose array of inputs is called as in the training data. */
static an_status open_samples(const an_samples_opening *o) {
    an_npy_source s;
    an_npy_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL_ALL(o, an_npy_source, &s));
    AN_TRY_RETURN(get_array_name(&o->source, "inputs", &s.inputs));
    s.path = o->model->path;
    s.labels = NULL;
    s.dtype = o->model->dtype;
    s.flat = true; /* in memory it is the same */
    AN_TRY_RETURN(an_dataset_create_npy(o->source.dataset, o->source.ctx, &s));
    return an_samples_check(o, "a sample", "");
}

const an_data_kind an_data_npy = {
    .kind = {.name = "npy", .options = options, .samples = AN_GIVES_NUMBERS},
    .open = open_source,
    .open_samples = open_samples,
};
