/* Type images: a folder of pictures for each class. */
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PATH_OPTION(INTO(IN(an_images_source, path))),
    FLAT_OPTION(INTO(IN(an_images_source, flat))),
    SCALED_OPTION(INTO(IN(an_images_source, scaled))),
    OPTION_AT(60, "data.train.channels", CHOICE, "auto", "auto|1|3", ANY, FIXED(SAMPLES),
              INTO(AS(an_images_source, channels, 0, 1, 3)),
              "channels that images are converted to, grey or RGB; auto is as in the first training image"),
    OPTION_AT(70, "data.train.height", COUNT, "auto", "auto", BETWEEN(1, 65536), FIXED(SAMPLES),
              INTO(IN(an_images_source, height)),
              "height that images are stretched to; auto is the height of the first training image"),
    OPTION_AT(
        80, "data.train.width", COUNT, "auto", "auto", BETWEEN(1, 65536), FIXED(SAMPLES),
        INTO(IN(an_images_source, width)),
        "width that images are stretched to, whatever their height; auto is the width of the first training image"),
    PART_OPTION(INTO(RANGE(an_images_source, begin, end))),
    OPTIONS_END,
};

/* What evaluates must number classes as what was trained on, and have the sizes of its images. */
static an_status open_source(const an_data_opening *o) {
    an_context *ctx = o->ctx;
    an_images_source s;
    an_images_source_init(&s, sizeof s);
    s.flat = an_data_is_flat(o);
    AN_TRY_RETURN(AN_FILL(o, an_images_source, &s));
    s.like = an_data_classes(o);
    AN_TRY_RETURN(an_dataset_create_images(o->dataset, ctx, &s));
    an_data_remember(o);
    return AN_OK;
}

const an_data_kind an_data_images = {
    .kind = {.name = "images", .options = options, .samples = AN_GIVES_NUMBERS},
    .open = open_source,
};
