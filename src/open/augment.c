/* Random changes of training samples. */
#include "open/open.h"

/* The loss mixes classes by weights of samples; numbers are mixed themselves. */
static an_status check_mixup(an_config *config, an_context *ctx, an_dataset *training) {
    static const char path[] = "data.augment.mixup";
    an_class_info info;
    an_class_info_init(&info, sizeof info);
    if (!training || !an_config_is(config, "train.loss.reduction", "sample_mean")) return AN_OK;
    AN_TRY_RETURN(an_class_info_get(training, &info));
    if (info.classes == 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "%s: %s: train.loss.reduction is sample_mean, which weighs samples too; remove one of them",
                    an_config_place(config, path), path);
}

an_status an_open_augment(an_config *config, an_context *ctx, an_dataset *training, an_augment_options *o,
                          bool *changes) {
    *changes = false;
    if (an_config_origin_of(config, "data.augment") == AN_ORIGIN_NONE) return AN_OK;
    AN_TRY_RETURN(an_config_fill(config, "data.augment", an_augment_options, o));
    if (o->mixup > 0) AN_TRY_RETURN(check_mixup(config, ctx, training));
    *changes = o->flip != AN_FLIP_OFF || o->shift > 0 || o->crop > 0 || o->rotate > 0 || o->brightness > 0 ||
               o->contrast > 0 || o->erase > 0 || o->mixup > 0;
    return AN_OK;
}
