/* Checks that model, data and loss of a config agree, and creates streams, whose samples have the shapes that the
 * model reads. */
#include "anneal/stream.h"
#include "kinds/models/models.h"
#include "open/open.h"

/* ---- streams ---- */

an_status an_open_stream(an_dataset **dataset, an_config *config, const an_graph *g) {
    an_context *ctx = an_graph_context(g);
    int64_t context = 0;
    if (an_key_is_there(config, AN_SETTING(model.context))) AN_TRY_RETURN(an_model_context(config, ctx, &context));
    return an_key_blame(config, ctx, an_dataset_create_stream(dataset, g, context), AN_SETTING(model));
}

/* ---- the loss ---- */

static an_status refuse(an_config *config, an_context *ctx, an_status status, const char *key) {
    return AN_ERROR(ctx, status, "%s: %s: %s; remove it", an_config_place(config, key), key, an_last_error(ctx));
}

/* 0 leaves alone what a graph of a file has. */
an_status an_open_loss(an_config *config, an_graph *g) {
    an_context *ctx = an_graph_context(g);
    const an_settings *s = config->settings;
    an_status status = AN_OK;
    if (s->train.loss.label_smoothing > 0) status = an_graph_set_label_smoothing(g, s->train.loss.label_smoothing);
    if (status != AN_OK) return refuse(config, ctx, status, AN_SETTING(train.loss.label_smoothing));
    if (s->train.loss.focal > 0) status = an_graph_set_focal(g, s->train.loss.focal);
    return status == AN_OK ? AN_OK : refuse(config, ctx, status, AN_SETTING(train.loss.focal));
}

/* ---- types ---- */

/* A graph of a file has its types; `auto` follows them. */
an_status an_open_precision(an_config *config, const an_graph *g, an_dtype *precision) {
    const an_dtype asked = config->settings->train.precision;
    an_graph_info info;
    an_graph_info_init(&info, sizeof info);
    an_context *ctx = an_graph_context(g);
    if (!an_key_is_there(config, AN_SETTING(model.graph))) return AN_OK;
    AN_TRY_RETURN(an_graph_info_get(g, &info));
    const bool wide = info.dtype == AN_DTYPE_F64;
    if (wide && asked == AN_DTYPE_NONE) *precision = AN_DTYPE_NONE;
    if (asked == AN_DTYPE_NONE || wide == (asked == AN_DTYPE_F64)) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_DTYPE,
                    "%s: train.precision is %s, but the parameters of the graph are %s; remove train.precision, or "
                    "change the graph",
                    an_config_place(config, AN_SETTING(train.precision)), an_dtype_name(asked),
                    an_dtype_name(info.dtype));
}

/* ---- inputs ---- */

/* Whether both have types of numbers, which differ. */
static bool has_other_type(const an_config *config, const char *source) {
    static const char *const training = AN_SETTING(data.train.dtype);
    return an_key_is_there(config, AN_KEY(source, "dtype")) && an_key_is_there(config, training) &&
           an_config_is(config, AN_KEY(source, "dtype"), "f64") != an_config_is(config, training, "f64");
}

an_status an_open_fit(an_config *config, an_graph *g, const an_dataset *dataset, const char *source) {
    an_context *ctx = an_graph_context(g);
    const bool is_text = an_key_is_there(config, AN_SETTING(model.graph)),
               wide = an_config_is(config, AN_KEY(source, "dtype"), "f64");
    const an_status status = an_graph_check_data(g, dataset);
    if (status == AN_OK) return AN_OK;
    if (has_other_type(config, source))
        return AN_ERROR(ctx, status, "%s: %s.dtype is %s, but data.train.dtype is %s; set both to the same type",
                        an_config_place(config, AN_KEY(source, "dtype")), source, wide ? "f64" : "f32",
                        wide ? "f32" : "f64");
    return AN_ERROR(ctx, status, "%s: %s: %s; change %s, or %s",
                    an_config_place(config, is_text ? AN_SETTING(model.graph) : AN_SETTING(model)), source,
                    an_last_error(ctx),
                    is_text ? "the graph's input" : "the model's sizes (auto takes those of data.train)", source);
}
