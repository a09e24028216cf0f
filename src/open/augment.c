/* Random changes of training samples. */
#include "kinds/keys.h"
#include "open/open.h"

/* The loss mixes classes by weights of samples; numbers are mixed themselves. */
static an_status check_mixup(an_config *config, an_context *ctx, an_dataset *training) {
    static const char *const key = AN_SETTING(data.augment.mixup);
    an_class_info info;
    an_class_info_init(&info, sizeof info);
    if (!training || config->settings->train.loss.reduction == AN_REDUCTION_MEAN) return AN_OK;
    AN_TRY_RETURN(an_dataset_class_info(training, &info));
    if (info.classes == 0) return AN_OK;
    return an_key_refuse(config, ctx, key,
                         "train.loss.reduction is sample_mean, which weighs samples too; remove one of them");
}

an_status an_open_augment(an_config *config, an_context *ctx, an_dataset *training, an_augment_options *o,
                          bool *changes) {
    *changes = false;
    if (!an_key_is_there(config, AN_SETTING(data.augment))) return AN_OK;
    AN_TRY_RETURN(an_config_fill(config, AN_SETTING(data.augment), an_augment_options, o));
    if (o->mixup > 0) AN_TRY_RETURN(check_mixup(config, ctx, training));
    *changes = o->flip != AN_FLIP_OFF || o->shift > 0 || o->crop > 0 || o->rotate > 0 || o->brightness > 0 ||
               o->contrast > 0 || o->erase > 0 || o->mixup > 0;
    return AN_OK;
}
