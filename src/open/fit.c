/* What model, data and loss of a config must agree on; and streams, whose samples are what the model reads. */
#include <string.h>

#include "base/context.h"
#include "kernels/loss/loss.h"
#include "open/open.h"
#include "ops/source.h"

extern const an_op an_op_cross_entropy;

/* ---- streams ---- */

static an_status read_nothing(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    (void)user, (void)n, (void)indices, (void)fields;
    if (message_capacity > 0) message[0] = 0;
    return AN_ERR_STATE; /* a trainer on a stream has no loader */
}

/* A field for an input: a dimension that is a symbol is the model's context. */
static an_status make_field(an_field *field, an_config *config, const an_graph *g, const an_result *r) {
    an_context *ctx = g->ctx;
    *field = (an_field)AN_INIT(*field);
    field->name = ((const an_input_attributes *)r->node->attributes)->name;
    field->dtype = r->dtype;
    field->ndims = r->ndims - 1;
    field->target = an_graph_result(g, g->targets) == r;
    for (int d = 1; d < r->ndims; d++) {
        field->dims[d - 1] = r->dims[d];
        if (r->dims[d] >= 0) continue;
        if (an_config_origin_of(config, "model.context") == AN_ORIGIN_NONE)
            return AN_ERROR(ctx, AN_ERR_SHAPE,
                            "%s: the model's input '%s' is %s, and a stream does not say how large that is; write "
                            "numbers for all but the samples",
                            an_config_place(config, "model"), field->name, AN_DESCRIBE(g, r));
        AN_TRY_RETURN(an_config_count(config, "model.context", &field->dims[d - 1]));
    }
    return AN_OK;
}

an_status an_open_stream(an_dataset **dataset, an_sources *sources, an_config *config, const an_graph *g) {
    an_context *ctx = g->ctx;
    an_field fields[AN_MAX_FEEDS];
    an_dataset_record record = AN_INIT(record);
    for (size_t i = 0; i < g->source_count && record.field_count < AN_MAX_FEEDS; i++) {
        const an_result *r = &g->sources[i]->outputs[0];
        if (r->storage != AN_STORAGE_INPUT) continue;
        if (!strcmp(((const an_input_attributes *)r->node->attributes)->name, "samples") && r->dtype == AN_DTYPE_I64)
            continue;
        AN_TRY_RETURN(make_field(&fields[record.field_count++], config, g, r));
    }
    record.count = 1;
    record.fields = fields;
    record.read = read_nothing;
    AN_TRY_RETURN(an_dataset_create(dataset, ctx, &record));
    sources->datasets[sources->count++] = *dataset;
    return AN_OK;
}

/* ---- the loss ---- */

an_status an_open_loss(an_config *config, an_graph *g, bool *sample_mean) {
    an_context *ctx = g->ctx;
    double smoothing;
    bool found = false;
    *sample_mean = an_config_is(config, "train.loss.reduction", "sample_mean");
    AN_TRY_RETURN(an_config_real(config, "train.loss.label_smoothing", &smoothing));
    if (smoothing == 0) return AN_OK; /* a graph may have its own */
    for (an_node *n = g->first; n; n = n->next) {
        if (n->op != &an_op_cross_entropy) continue;
        ((an_cross_entropy_attributes *)n->attributes)->label_smoothing = smoothing;
        found = true;
    }
    if (found) return AN_OK;
    return AN_ERROR(
        ctx, AN_ERR_ARGUMENT,
        "%s: train.loss.label_smoothing is for classes, but the model's loss is no cross entropy; take it out",
        an_config_place(config, "train.loss.label_smoothing"));
}

/* ---- types ---- */

/* A graph of a file has its types; `auto` follows them. */
an_status an_open_precision(an_config *config, const an_graph *g, an_dtype *precision) {
    const char *asked;
    an_graph_info info = AN_INIT(info);
    an_context *ctx = an_graph_context(g);
    if (!an_config_is(config, "model.type", "graph")) return AN_OK;
    AN_TRY_RETURN(an_config_string(config, "train.precision", &asked));
    AN_TRY_RETURN(an_graph_info_get(g, &info));
    const bool wide = info.dtype == AN_DTYPE_F64;
    if (wide && !strcmp(asked, "auto")) *precision = AN_DTYPE_NONE;
    if (!strcmp(asked, "auto") || wide == !strcmp(asked, "f64")) return AN_OK;
    return AN_ERROR(
        ctx, AN_ERR_DTYPE,
        "%s: train.precision is %s, but the parameters of the graph are %s; take it out, or change the graph",
        an_config_place(config, "train.precision"), asked, an_dtype_name(info.dtype));
}

/* ---- inputs ---- */

an_status an_open_fit(an_config *config, an_graph *g, const an_dataset *dataset, const char *source) {
    an_context *ctx = g->ctx;
    an_feed feed;
    const bool is_text = an_config_is(config, "model.type", "graph");
    const an_status status = an_feed_make(&feed, g, dataset);
    if (status == AN_OK) return AN_OK;
    if (an_config_is(config, "train.precision", "f64") && an_config_is(config, AN_KEY(source, "dtype"), "f32"))
        return AN_ERROR(ctx, status, "%s: train.precision is f64, and %s has f32; give %s.dtype: f64",
                        an_config_place(config, "train.precision"), source, source);
    return AN_ERROR(ctx, status, "%s: %s: %s; change %s, or %s",
                    an_config_place(config, is_text ? "model.graph" : "model"), source, ctx->error.message,
                    is_text ? "the graph's input" : "the model's sizes (auto takes those of data.train)", source);
}
