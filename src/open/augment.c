/* Random changes of training samples. */
#include "open/open.h"

an_status an_open_augment(an_config *config, an_context *ctx, an_augment_options *o, bool *changes) {
    *changes = false;
    if (an_config_origin_of(config, "data.augment") == AN_ORIGIN_NONE) return AN_OK;
    o->flip = an_config_is(config, "data.augment.flip", "horizontal") ? AN_FLIP_HORIZONTAL
              : an_config_is(config, "data.augment.flip", "vertical") ? AN_FLIP_VERTICAL
                                                                      : AN_FLIP_OFF;
    AN_TRY_RETURN(an_config_count(config, "data.augment.shift", &o->shift));
    AN_TRY_RETURN(an_config_count(config, "data.augment.crop", &o->crop));
    AN_TRY_RETURN(an_config_real(config, "data.augment.rotate", &o->rotate));
    AN_TRY_RETURN(an_config_real(config, "data.augment.brightness", &o->brightness));
    AN_TRY_RETURN(an_config_real(config, "data.augment.contrast", &o->contrast));
    AN_TRY_RETURN(an_config_real(config, "data.augment.erase", &o->erase));
    AN_TRY_RETURN(an_config_real(config, "data.augment.mixup", &o->mixup));
    *changes = o->flip != AN_FLIP_OFF || o->shift > 0 || o->crop > 0 || o->rotate > 0 || o->brightness > 0 ||
               o->contrast > 0 || o->erase > 0 || o->mixup > 0;
    return AN_OK;
}
