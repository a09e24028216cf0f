/* Type hdf5: arrays in HDF5 files. */
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PATH_OPTION(INTO(IN(an_hdf5_source, path))),
    FLAT_OPTION(INTO(IN(an_hdf5_source, flat))),
    SCALED_OPTION(INTO(IN(an_hdf5_source, scaled))),
    OPTION_AT(125, "data.train.inputs", STRING, "auto", "auto", ANY, FIXED(SAMPLES), INTO(IN(an_hdf5_source, inputs)),
              "path of the array of inputs in an HDF5 file, such as group/x; auto is inputs, x or X, whichever is "
              "there"),
    OPTION_AT(135, "data.train.targets", STRING, "auto", "auto", ANY, FIXED(SAMPLES), INTO(IN(an_hdf5_source, targets)),
              "path of the array of targets in an HDF5 file; auto is targets, y or Y"),
    DTYPE_OPTION(INTO(AS(an_hdf5_source, dtype, AN_DTYPE_F32, AN_DTYPE_F64))),
    PART_OPTION(INTO(RANGE(an_hdf5_source, begin, end))),
    OPTIONS_END,
};

static an_status open_source(const an_data_opening *o) {
    an_hdf5_source s;
    an_hdf5_source_init(&s, sizeof s);
    s.flat = an_data_is_flat(o);
    AN_TRY_RETURN(AN_FILL(o, an_hdf5_source, &s));
    s.channel = an_data_is_of_images(o);
    return an_dataset_create_hdf5(o->dataset, o->ctx, &s);
}

/* Targets may be absent, under whatever name. */
static an_status open_samples(const an_samples_opening *o) {
    an_hdf5_source s;
    an_hdf5_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL_ALL(o, an_hdf5_source, &s));
    s.path = o->model->path;
    s.targets = NULL;
    s.has_targets = false;
    s.dtype = o->model->dtype;
    s.flat = true; /* in memory it is the same */
    AN_TRY_RETURN(an_dataset_create_hdf5(o->source.dataset, o->source.ctx, &s));
    return an_samples_check(o, "a sample", "");
}

const an_data_kind an_data_hdf5 = {
    .kind = {.name = "hdf5", .options = options, .samples = AN_GIVES_NUMBERS},
    .open = open_source,
    .open_samples = open_samples,
};
