/* Weights of classes: those that the config lists, or those that balance the training data. Weights of
 * samples, which are a column. */
#include <string.h>

#include "kinds/fields.h"
#include "kinds/keys.h"
#include "open/open.h"

static const char *const path = AN_SETTING(data.class_weights);

/* As scikit-learn has it: samples / (classes · samples of the class), over the classes that have samples. The
 * others never weigh anything. */
static an_status balance(an_context *ctx, an_dataset *training, double *weights, int64_t count) {
    an_status status;
    int64_t *targets = NULL, all = 0, present = 0;
    AN_TRY(an_alloc(ctx, (void **)&targets, (size_t)count, sizeof *targets));
    AN_TRY(an_dataset_count_classes(training, count, targets));
    for (int64_t i = 0; i < count; i++) {
        all += targets[i];
        present += targets[i] > 0;
    }
    for (int64_t i = 0; i < count; i++)
        weights[i] = targets[i] > 0 ? (double)all / ((double)present * (double)targets[i]) : 1;
    status = AN_OK;
fail:
    an_release(ctx, (void **)&targets, (size_t)count, sizeof *targets);
    return status;
}

static bool are_named(an_config *config) {
    const an_config_node *node = an_config_find(config, path);
    return node && node->type == AN_CONFIG_TABLE;
}

static an_status refuse_name(an_config *config, an_context *ctx, const char *what, const char *name) {
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %s %s '%s'", an_config_place(config, path), path, what, AN_QUOTE(name));
}

/* Every class has a weight, and every weight a class. */
static an_status read_named(an_config *config, an_context *ctx, const an_dataset *training, double *weights,
                            int64_t count) {
    const char *name, *text;
    if (!an_dataset_class_name(training, 0))
        return an_key_refuse(config, ctx, path,
                             "the classes of data.train have no names; list weights in the order of the classes");
    for (int64_t i = 0; i < count; i++) weights[i] = 0;
    for (int entry = 0; entry < an_config_size(config, path); entry++) {
        int64_t i = 0;
        AN_TRY_RETURN(an_config_entry(config, path, entry, &name, &text));
        while (i < count && strcmp(an_dataset_class_name(training, i), name) != 0) i++;
        if (i == count)
            return refuse_name(config, ctx, "has a weight for a class that data.train does not have:", name);
        an_read_real(text, &weights[i]); /* the config has checked it */
    }
    for (int64_t i = 0; i < count; i++)
        if (weights[i] == 0)
            return refuse_name(config, ctx, "has no weight for the class", an_dataset_class_name(training, i));
    return AN_OK;
}

an_status an_open_class_weights(an_config *config, an_context *ctx, an_dataset *training, double **weights,
                                int64_t *count) {
    an_class_info info;
    an_class_info_init(&info, sizeof info);
    int given = 0;
    *weights = NULL;
    *count = 0;
    if (an_config_is(config, path, "off")) return AN_OK;
    const bool balanced = an_config_is(config, path, "balanced");
    if (config->settings->train.loss.reduction == AN_REDUCTION_SAMPLE_MEAN)
        return an_key_refuse(config, ctx, path,
                             "train.loss.reduction is sample_mean, which weighs samples too; remove one of them");
    if (!training) return an_key_refuse(config, ctx, path, "the samples of a stream are not known before it runs");
    AN_TRY_RETURN(an_dataset_class_info(training, &info));
    if (info.classes == 0)
        return an_key_refuse(config, ctx, path, "the targets of data.train are not classes; remove it");
    const int64_t listed = balanced || are_named(config) ? info.classes : an_config_size(config, path);
    if (listed < info.classes)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %s has %lld weights, but data.train has %lld classes",
                        an_config_place(config, path), path, (long long)listed, (long long)info.classes);
    AN_TRY_RETURN(an_alloc(ctx, (void **)weights, (size_t)listed, sizeof **weights));
    *count = listed;
    if (balanced) return balance(ctx, training, *weights, listed);
    if (are_named(config)) return read_named(config, ctx, training, *weights, listed);
    return an_config_reals(config, path, (int)listed, *weights, &given);
}

/* ---- samples ---- */

static const char *const column_path = AN_SETTING(data.weights), field_name[] = "weights"; /* as the sources have it */

an_status an_open_sample_weights(an_config *config, an_context *ctx, an_dataset *training, const char **field) {
    *field = config->settings->data.weights ? field_name : NULL;
    if (!*field) return AN_OK;
    if (!training || an_field_find(training, field_name) < 0)
        return an_key_refuse(config, ctx, column_path,
                             "only tables (csv), JSON lines and .npz files have weights of samples; remove it");
    if (config->settings->train.loss.reduction == AN_REDUCTION_SAMPLE_MEAN)
        return an_key_refuse(config, ctx, column_path,
                             "train.loss.reduction is sample_mean, which weighs samples too; remove one of them");
    return AN_OK;
}
