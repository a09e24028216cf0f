/* The weights of a model as the model has them, whatever files they lie in. */
#include <string.h>

#include "base/status.h"
#include "formats/conv1d.h"
#include "formats/weights_view.h"
#include "interchange/publish.h"
#include "ir/published.h"
#include "pretrained/joints.h"

typedef struct {
    an_context *ctx;
    const an_graph *graph;
    const char *path;
    an_weights *weights;
    an_view_tensor *tensors; /* of each parameter, and behind them of other heads */
    size_t count;
    const an_family *family; /* whose files may have heads for other tasks; NULL: none has */
    bool with_heads;
} matching;

static size_t find_parameter(const an_graph *g, const char *name) {
    size_t i = 0;
    while (i < g->parameter_count && strcmp(g->parameters[i].name, name) != 0) i++;
    return i;
}

static bool has_shape(const an_safetensor *tensor, const an_result *parameter, bool turned) {
    bool same = tensor->ndims == parameter->ndims;
    for (int i = 0; i < tensor->ndims && same; i++)
        same = tensor->dims[i] == parameter->dims[turned ? tensor->ndims - 1 - i : i];
    return same;
}

static bool is_float(an_dtype dtype) {
    return dtype == AN_DTYPE_F32 || dtype == AN_DTYPE_F64 || dtype == AN_DTYPE_F16 || dtype == AN_DTYPE_BF16;
}

static an_status match_tensor(matching *m, int64_t index) {
    an_context *ctx = m->ctx;
    an_safetensor tensor;
    AN_TRY_RETURN(m->weights->get(m->weights, index, &tensor));
    const char *name = an_published_bare(tensor.name);
    size_t at = find_parameter(m->graph, tensor.name);
    if (at == m->graph->parameter_count) at = find_parameter(m->graph, name);
    if (at == m->graph->parameter_count) {
        if (an_conv1d_is_buffer(name) || !strcmp(name, "embeddings.position_ids")) return AN_OK; /* no weights */
        if (m->family && an_family_is_head(m->family, name)) {
            if (m->with_heads) m->tensors[m->count++] = (an_view_tensor){.index = index, .name = name};
            return AN_OK;
        }
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: has the tensor '%s', which is not part of its model", m->path,
                        AN_QUOTE(tensor.name));
    }
    const an_result *parameter = an_node_output(m->graph->parameters[at].node, 0);
    an_view_tensor *t = &m->tensors[at];
    if (t->name)
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: has the weight '%s' twice", m->path, m->graph->parameters[at].name);
    *t = (an_view_tensor){.index = index, .name = m->graph->parameters[at].name};
    if (!has_shape(&tensor, parameter, false))
        t->transposed = tensor.ndims == 2 && an_conv1d_has(t->name) && has_shape(&tensor, parameter, true);
    if ((!t->transposed && !has_shape(&tensor, parameter, false)) || !is_float(tensor.type->dtype))
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: the shape or type of '%s' is not that of its model", m->path,
                        AN_QUOTE(tensor.name));
    return AN_OK;
}

/* A square matrix does not show how it lies, but others of its file do. */
static void turn_squares(const matching *m) {
    bool turned = false;
    for (size_t i = 0; i < m->graph->parameter_count; i++) turned = turned || m->tensors[i].transposed;
    for (size_t i = 0; i < m->graph->parameter_count; i++)
        if (turned && an_conv1d_has(m->tensors[i].name)) m->tensors[i].transposed = true;
}

static int64_t rows_of(const void *graph, const char *name) {
    const an_graph *g = graph;
    const size_t at = find_parameter(g, name);
    return at < g->parameter_count ? an_node_output(g->parameters[at].node, 0)->dims[0] : 0;
}

an_status an_model_weights_view(an_weights *weights, const an_graph *graph, const char *path, bool with_heads) {
    an_status status;
    an_context *ctx = weights->ctx;
    AN_TRY_RETURN(an_weights_part(weights, rows_of, graph, NULL));
    const size_t count = graph->parameter_count, maximum = count + (size_t)weights->count + 1;
    matching m = {
        .ctx = ctx, .graph = graph, .path = path, .weights = weights, .count = count, .with_heads = with_heads};
    for (size_t i = 0; i < count && !m.family; i++) m.family = an_family_of_body(graph->parameters[i].name);
    AN_TRY(an_alloc(ctx, (void **)&m.tensors, maximum, sizeof *m.tensors));
    for (int64_t i = 0; i < weights->count; i++) AN_TRY(match_tensor(&m, i));
    for (size_t i = 0; i < count; i++)
        AN_CHECK(ctx, m.tensors[i].name, AN_ERR_DAMAGED, "%s: does not have the weight '%s' of its model", path,
                 graph->parameters[i].name);
    turn_squares(&m);
    AN_TRY(an_weights_view(weights, m.tensors, m.count));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&m.tensors, maximum, sizeof *m.tensors);
    return status;
}
