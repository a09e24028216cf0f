/* Type images: a folder of pictures for each class. */
#include <stdio.h>

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

/* A picture, a folder of pictures, or a folder of classes with pictures, whose names are then the classes. */
static an_status open_samples(const an_samples_opening *o) {
    an_context *ctx = o->source.ctx;
    char advice[AN_PATH_TEXT + 128];
    an_images_source s;
    an_images_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL_ALL(o, an_images_source, &s));
    s.path = o->model->path;
    s.has_targets = false;
    s.flat = true; /* in memory it is the same */
    an_status status = an_dataset_create_images(o->source.dataset, ctx, &s);
    if (status == AN_ERR_ARGUMENT) {
        s.has_targets = o->info->has_classes = true;
        status = an_dataset_create_images(o->source.dataset, ctx, &s);
        if (status == AN_ERR_FILE)
            return AN_ERROR(ctx, AN_ERR_FILE, "%s: has no PNG or JPEG files; as a folder of classes: %s", s.path,
                            an_last_error(ctx));
    }
    AN_TRY_RETURN(status);
    o->info->name = "file"; /* a prediction without the name of its file would say little */
    snprintf(advice, sizeof advice,
             "; give the sizes of the training images with --set %s.height=H, and width and channels likewise",
             o->source.path);
    return an_samples_check(o, "an image", advice);
}

const an_data_kind an_data_images = {
    .kind = {.name = "images", .options = options, .samples = AN_GIVES_NUMBERS},
    .open = open_source,
    .open_samples = open_samples,
};
