/* Samples to predict, in a file that is read as the training data was. */
#include "base/files/foreign.h"
#include "base/guard.h"
#include "config/structs.h"
#include "kinds/data/data.h"

/* The first part stands for a mixture. */
static const an_data_kind *find_source(const an_config *config, const char **path) {
    const an_data_kind *kind = an_data_kind_at(config, *path);
    if (!kind || !(kind->kind.flags & AN_KIND_MIXTURE)) return kind;
    *path = AN_SETTING(data.train.parts[0]);
    return an_data_kind_at(config, *path);
}

static an_status open_file(an_samples_opening *o) {
    const an_data_kind *kind = find_source(o->source.config, &o->source.path);
    const char *file = o->model->path;
    if (kind && kind->open && !kind->open_samples)
        return AN_ERROR(o->source.ctx, AN_ERR_UNSUPPORTED,
                        "data of type %s cannot be predicted on; use anneal generate, or give a .npy file with tokens",
                        kind->kind.name);
    if (!kind || !kind->open_samples)
        return AN_ERROR(o->source.ctx, AN_ERR_UNSUPPORTED,
                        "the run's data came from a program, so nothing says how to read '%s'; give a .npy file", file);
    const an_foreign *foreign = kind->is_text ? an_foreign_find(file) : NULL;
    if (foreign) return AN_ERROR(o->source.ctx, AN_ERR_PARSE, "%s: %s", file, an_foreign_describe(foreign, file).text);
    return kind->open_samples(o);
}

an_status an_samples_open(an_dataset **dataset, an_context *ctx, an_config *config, const an_samples_options *options,
                          an_samples_info *info) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, config, options);
    an_samples_options model;
    an_samples_info about = {.size = sizeof about};
    const an_dataset *vocabulary = NULL;
    *dataset = NULL;
    AN_TRY_RETURN(an_samples_options_read(ctx, &model, options));
    if (info) AN_TRY_RETURN(an_samples_info_check(ctx, info));
    if (!model.path || !*model.path || model.elements < 1)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "samples to predict need a path, and at least one element");
    an_samples_opening o = {
        .source = {.dataset = dataset,
                   .vocabulary = &vocabulary,
                   .config = config,
                   .ctx = ctx,
                   .path = AN_SETTING(data.train)},
        .model = &model,
        .info = &about,
    };
    AN_TRY_RETURN(open_file(&o));
    return info ? an_samples_info_write(ctx, info, &about) : AN_OK;
}
