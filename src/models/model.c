#include "models/model.h"

#include <stdio.h>

/* More elements than any machine can hold; products of a few of them still fit in 64 bits of a dimension. */
static const int64_t largest_size = (int64_t)1 << 40;

an_status an_model_check_options(an_context *ctx, const char *model, const void *options) {
    if (options) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: options is NULL, but the sizes have no defaults", model);
}

an_status an_model_check_sizes(an_context *ctx, const char *model, const an_model_size *sizes, int count) {
    for (int i = 0; i < count; i++)
        if (sizes[i].value < 1 || sizes[i].value > largest_size)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %s is %lld; it must be from 1 to 2^40", model, sizes[i].name,
                            (long long)sizes[i].value);
    return AN_OK;
}

an_status an_model_check_layers(an_context *ctx, const char *model, int64_t layers) {
    enum { MOST = 4096 }; /* as the options model.layers have */
    if (layers <= MOST) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: layers is %lld; a model can have at most %d", model, (long long)layers,
                    MOST);
}

an_status an_model_check_heads(an_context *ctx, const char *model, int64_t width, int64_t heads) {
    if (width % heads == 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "%s: %lld heads cannot share a width of %lld: the width must be a multiple of the number of heads, "
                    "such as %lld",
                    model, (long long)heads, (long long)width, (long long)((width / heads + 1) * heads));
}

an_status an_model_check_dropout(an_context *ctx, const char *model, double dropout) {
    if (dropout >= 0 && dropout < 1) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "%s: dropout is %g; the share of values to drop must be at least 0 and less than 1", model,
                    dropout);
}

an_status an_model_check_activation(an_context *ctx, const char *model, an_activation activation) {
    if (activation >= AN_ACTIVATION_RELU && activation <= AN_ACTIVATION_SILU) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: activation is %d, which is not a value of an_activation", model,
                    (int)activation);
}

an_status an_model_check_loss(an_context *ctx, const char *model, an_loss_kind loss) {
    if ((unsigned)loss <= AN_LOSS_BINARY) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: loss is %d, which is not a value of an_loss_kind", model, (int)loss);
}

an_status an_model_check_normalize(an_context *ctx, const char *model, an_loss_kind loss, bool targets) {
    if (!targets || loss == AN_LOSS_SQUARED) return AN_OK;
    return AN_ERROR(
        ctx, AN_ERR_ARGUMENT,
        "%s: normalize_targets is set, but the targets of a cross entropy are classes or labels, which have no scale",
        model);
}

an_status an_model_choose_dtype(an_context *ctx, const char *model, an_dtype asked, an_dtype *dtype) {
    *dtype = asked == AN_DTYPE_NONE ? AN_DTYPE_F32 : asked;
    if (*dtype == AN_DTYPE_F32 || *dtype == AN_DTYPE_F64) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_DTYPE, "%s: parameters must be f32 or f64, not %s: choose lower precision in the plan",
                    model, an_dtype_name(asked));
}

void an_model_block_begin(an_graph *g, const char *name, int64_t index) {
    char numbered[64]; /* names are ours and short */
    snprintf(numbered, sizeof numbered, "%s.%lld", name, (long long)index);
    an_block_begin(g, numbered, an_model_depth_after(index));
}

int an_model_depth_after(int64_t blocks) {
    return (int)blocks + 1; /* a graph has far fewer blocks than an int can count, and says so itself */
}

an_value an_model_activate(an_graph *g, an_value src, an_activation activation) {
    switch (activation) {
    case AN_ACTIVATION_RELU: return an_relu(g, src);
    case AN_ACTIVATION_GELU: return an_gelu(g, src);
    case AN_ACTIVATION_TANH: return an_tanh(g, src);
    case AN_ACTIVATION_SILU: return an_silu(g, src);
    case AN_ACTIVATION_LIMIT: break;
    }
    return src;
}

an_status an_model_finish(an_graph **graph, an_graph *g) {
    an_status status;
    AN_TRY(an_graph_verify(g));
    *graph = g;
    return AN_OK;
fail:
    an_graph_destroy(&g);
    return status;
}
