/* data.normalize: fits the model's scaling to the training data, and says where one is missing. */
#include <stdio.h>

#include "kinds/data/data.h"
#include "kinds/models/models.h"
#include "open/open.h"

static const char *const inputs = AN_SETTING(data.normalize.inputs), *const targets =
                                                                         AN_SETTING(data.normalize.targets);

an_status an_open_normalize(an_trainer *trainer, an_config *config, an_context *ctx, bool streams, bool resumes) {
    an_normalize_options n;
    an_normalize_options_init(&n, sizeof n);
    if (!(an_model_normalizes(config, inputs) || an_model_normalizes(config, targets))) return AN_OK;
    n.running = an_config_is(config, AN_SETTING(data.normalize.fit), "running");
    if (!n.running && (streams || resumes)) return AN_OK;
    AN_TRY_RETURN(an_config_fill(config, AN_SETTING(data.normalize), an_normalize_options, &n));
    return an_key_blame_named(config, ctx, an_trainer_normalize(trainer, &n), AN_SETTING(data.normalize));
}

/* ---- without it ---- */

/* "'mass'", or "3" for want of a name. */
typedef struct {
    char text[80];
} column_text;

static column_text describe(const an_feature_info *info, int64_t index) {
    column_text column;
    if (info->name)
        snprintf(column.text, sizeof column.text, "'%s'", AN_QUOTE(info->name));
    else
        snprintf(column.text, sizeof column.text, "%lld", (long long)index + 1);
    return column;
}

/* The largest absolute value, since a small deviation around a large mean is as bad for a gradient as a large
 * deviation. Columns of zeros do not count. */
static double size_of(const an_feature_info *info) {
    return info->maximum > -info->minimum ? info->maximum : -info->minimum;
}

static an_status compare(an_config *config, const an_features *features) {
    static const double most_ratio = 1000;
    double minimum = 0, maximum = 0;
    column_text small = {""}, large = {""};
    for (int64_t i = 0; i < an_features_count(features); i++) {
        an_feature_info info;
        an_feature_info_init(&info, sizeof info);
        AN_TRY_RETURN(an_features_get(features, i, &info));
        const double size = size_of(&info);
        if (size > 0 && (minimum == 0 || size < minimum)) {
            minimum = size;
            small = describe(&info, i);
        }
        if (size > maximum) {
            maximum = size;
            large = describe(&info, i);
        }
    }
    if (!(maximum > most_ratio * minimum)) return AN_OK;
    return an_config_warn(
        config, an_config_find(config, AN_SETTING(data.train))->place,
        "the inputs have very different scales: column %s has values up to %.3g, column %s only up to "
        "%.3g; a network learns little from the smaller ones, so set data.normalize.inputs to "
        "standard",
        large.text, maximum, small.text, minimum);
}

an_status an_open_look_at_scales(an_config *config, an_dataset *training) {
    enum { FEW = 1000 };
    an_features *features = NULL;
    const an_data_kind *kind = an_data_kind_at(config, AN_SETTING(data.train));
    if (!kind || !(kind->kind.flags & AN_KIND_TABLE) || an_model_normalizes(config, inputs)) return AN_OK;
    AN_TRY_RETURN(an_features_create(&features, training, 0, FEW, 0));
    const an_status status = compare(config, features);
    an_features_destroy(&features);
    return status;
}
