/* Type idx: IDX files of images and their labels, as those of MNIST. */
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PATH_OPTION(INTO(IN(an_idx_source, inputs))),        LABELS_OPTION(INTO(IN(an_idx_source, targets))),
    FLAT_OPTION(INTO(IN(an_idx_source, flat))),          SCALED_OPTION(INTO(IN(an_idx_source, scaled))),
    PART_OPTION(INTO(RANGE(an_idx_source, begin, end))), OPTIONS_END,
};

static an_status open_source(const an_data_opening *o) {
    an_context *ctx = o->ctx;
    an_idx_source s;
    an_idx_source_init(&s, sizeof s);
    s.flat = an_data_is_flat(o);
    AN_TRY_RETURN(AN_FILL(o, an_idx_source, &s));
    return an_dataset_create_idx(o->dataset, ctx, &s);
}

static an_status open_samples(const an_samples_opening *o) {
    an_idx_source s;
    an_idx_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL_ALL(o, an_idx_source, &s));
    s.inputs = o->model->path;
    s.targets = NULL;
    s.flat = true; /* in memory it is the same */
    AN_TRY_RETURN(an_dataset_create_idx(o->source.dataset, o->source.ctx, &s));
    return an_samples_check(o, "an image", "");
}

const an_data_kind an_data_idx = {
    .kind = {.name = "idx", .options = options, .samples = AN_GIVES_NUMBERS},
    .open = open_source,
    .open_samples = open_samples,
    .is_in_memory = true,
};
