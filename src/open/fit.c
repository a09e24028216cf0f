/* Checks that model, data and loss of a config agree, and creates streams, whose samples have the shapes that the
 * model reads. */
#include <string.h>

#include "open/open.h"

/* ---- streams ---- */

an_status an_open_stream(an_dataset **dataset, an_config *config, const an_graph *g) {
    an_context *ctx = an_graph_context(g);
    int64_t context = 0;
    if (an_config_origin_of(config, "model.context") != AN_ORIGIN_NONE)
        AN_TRY_RETURN(an_open_model_context(config, ctx, &context));
    const an_status status = an_dataset_create_stream(dataset, g, context);
    if (status == AN_OK) return AN_OK;
    return AN_ERROR(ctx, status, "%s: %s", an_config_place(config, "model"), an_last_error(ctx));
}

/* ---- the loss ---- */

static an_status set_number(an_config *config, an_graph *g, const char *path, an_status (*set)(an_graph *, double)) {
    an_context *ctx = an_graph_context(g);
    double number;
    AN_TRY_RETURN(an_config_real(config, path, &number));
    if (number == 0) return AN_OK; /* a graph may have its own */
    const an_status status = set(g, number);
    if (status == AN_OK) return AN_OK;
    return AN_ERROR(ctx, status, "%s: %s: %s; remove it", an_config_place(config, path), path, an_last_error(ctx));
}

an_status an_open_loss(an_config *config, an_graph *g, bool *sample_mean) {
    an_context *ctx = an_graph_context(g);
    *sample_mean = an_config_is(config, "train.loss.reduction", "sample_mean");
    AN_TRY_RETURN(set_number(config, g, "train.loss.label_smoothing", an_graph_set_label_smoothing));
    return set_number(config, g, "train.loss.focal", an_graph_set_focal);
}

/* ---- types ---- */

/* A graph of a file has its types; `auto` follows them. */
an_status an_open_precision(an_config *config, const an_graph *g, an_dtype *precision) {
    const char *asked;
    an_graph_info info;
    an_graph_info_init(&info, sizeof info);
    an_context *ctx = an_graph_context(g);
    if (an_config_origin_of(config, "model.graph") == AN_ORIGIN_NONE) return AN_OK;
    AN_TRY_RETURN(an_config_string(config, "train.precision", &asked));
    AN_TRY_RETURN(an_graph_info_get(g, &info));
    const bool wide = info.dtype == AN_DTYPE_F64;
    if (wide && !strcmp(asked, "auto")) *precision = AN_DTYPE_NONE;
    if (!strcmp(asked, "auto") || wide == !strcmp(asked, "f64")) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_DTYPE,
                    "%s: train.precision is %s, but the parameters of the graph are %s; remove train.precision, or "
                    "change the graph",
                    an_config_place(config, "train.precision"), asked, an_dtype_name(info.dtype));
}

/* ---- inputs ---- */

/* Whether both have types of numbers, which differ. */
static bool has_other_type(const an_config *config, const char *source) {
    return an_config_origin_of(config, AN_KEY(source, "dtype")) != AN_ORIGIN_NONE &&
           an_config_origin_of(config, "data.train.dtype") != AN_ORIGIN_NONE &&
           an_config_is(config, AN_KEY(source, "dtype"), "f64") != an_config_is(config, "data.train.dtype", "f64");
}

an_status an_open_fit(an_config *config, an_graph *g, const an_dataset *dataset, const char *source) {
    an_context *ctx = an_graph_context(g);
    const bool is_text = an_config_origin_of(config, "model.graph") != AN_ORIGIN_NONE,
               wide = an_config_is(config, AN_KEY(source, "dtype"), "f64");
    const an_status status = an_graph_check_data(g, dataset);
    if (status == AN_OK) return AN_OK;
    if (has_other_type(config, source))
        return AN_ERROR(ctx, status, "%s: %s.dtype is %s, but data.train.dtype is %s; set both to the same type",
                        an_config_place(config, AN_KEY(source, "dtype")), source, wide ? "f64" : "f32",
                        wide ? "f32" : "f64");
    return AN_ERROR(ctx, status, "%s: %s: %s; change %s, or %s",
                    an_config_place(config, is_text ? "model.graph" : "model"), source, an_last_error(ctx),
                    is_text ? "the graph's input" : "the model's sizes (auto takes those of data.train)", source);
}
