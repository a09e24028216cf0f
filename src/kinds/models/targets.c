/* What the targets of the data say of a model: its loss, and how many classes it has. */
#include <stdio.h>

#include "kinds/data/data.h"
#include "kinds/fields.h"
#include "kinds/models/models.h"

an_status an_model_classes(an_model_opening *o) {
    an_context *ctx = o->ctx;
    an_class_info info;
    an_class_info_init(&info, sizeof info);
    if (o->targets.dtype != AN_DTYPE_I32)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: the model needs classes, but the targets of data.train are numbers; use data with labels, "
                        "or csv with classes: on",
                        an_config_place(o->config, AN_SETTING(model)));
    AN_TRY_RETURN(an_dataset_class_info(o->dataset, &info));
    o->classes = info.classes;
    return AN_OK;
}

bool an_model_wants_classes(const an_model_opening *o) {
    const bool integers = o->targets.dtype == AN_DTYPE_I32 || o->targets.dtype == AN_DTYPE_I64;
    return an_config_is(o->config, AN_SETTING(model.loss), "cross_entropy") ||
           (integers && an_config_is(o->config, AN_SETTING(model.loss), "auto"));
}

/* Binary cross entropy of any other number has no minimum, or a wrong one: the run would go on and learn nothing. */
static an_status check_label(const an_model_opening *o, const an_features *features, int64_t label) {
    an_context *ctx = o->ctx;
    an_feature_info info;
    an_feature_info_init(&info, sizeof info);
    AN_TRY_RETURN(an_features_get(features, label, &info));
    if (info.minimum >= 0 && info.maximum <= 1) return AN_OK;
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)label + 1);
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "%s: model.loss is binary_cross_entropy, whose targets are from 0 to 1, but target '%s' of "
                    "data.train is from %g to %g; write labels as 0 and 1, or set model.loss to squared",
                    an_config_place(o->config, AN_SETTING(model.loss)), info.name ? info.name : number, info.minimum,
                    info.maximum);
}

/* Looks at all targets, O(samples). Those of a stream are not there yet. */
static an_status check_labels(const an_model_opening *o) {
    an_features *features = NULL;
    an_status status = AN_OK;
    if (!o->dataset || an_data_streams(o->config)) return AN_OK;
    AN_TRY_RETURN(an_features_create(&features, o->dataset, an_field_find(o->dataset, o->targets.name), 0, 0));
    for (int64_t i = 0; i < an_features_count(features) && status == AN_OK; i++) status = check_label(o, features, i);
    an_features_destroy(&features);
    return status;
}

an_status an_model_loss_kind(const an_model_opening *o, an_loss_kind *loss) {
    static const char *const key = AN_SETTING(model.loss);
    const bool integers = o->targets.dtype == AN_DTYPE_I32 || o->targets.dtype == AN_DTYPE_I64;
    *loss = an_model_wants_classes(o) ? AN_LOSS_CROSS_ENTROPY : AN_LOSS_SQUARED;
    if (!an_config_is(o->config, key, "binary_cross_entropy")) return AN_OK;
    *loss = AN_LOSS_BINARY;
    if (!integers) return check_labels(o);
    return AN_ERROR(o->ctx, AN_ERR_ARGUMENT,
                    "%s: model.loss is binary_cross_entropy, whose targets are numbers, 0 or 1 for each label, but the "
                    "targets of data.train are classes; set data.train.classes to off",
                    an_config_place(o->config, key));
}
