#include "pass/call.h"

#include <string.h>

static an_status overflow(const an_graph *g, const an_node *node) {
    return AN_ERROR(g->ctx, AN_ERR_OVERFLOW,
                    "%s at '%s': a size is too small, does not fit in 64 bits, or uses a symbol that has no value",
                    node->op->name, node->path);
}

an_status an_node_resolve_attributes(const an_graph *g, const an_node *node, void *attributes) {
    if (node->op->attribute_bytes) memcpy(attributes, node->attributes, node->op->attribute_bytes);
    for (const an_attribute *a = node->op->attributes; a && a->name; a++) {
        void *at = (char *)attributes + a->offset;
        if (a->type == AN_ATTRIBUTE_DIM) {
            if (!an_dimensions_value(&g->dimensions, *(an_dim *)at, at) || *(int64_t *)at < 0) return overflow(g, node);
        } else if (a->type == AN_ATTRIBUTE_DIMS) {
            an_dim_list *list = at;
            for (int i = 0; i < list->count; i++)
                if (!an_dimensions_value(&g->dimensions, list->values[i], &list->values[i]) || list->values[i] < 1)
                    return overflow(g, node);
        }
    }
    return AN_OK;
}

/* A size that shrinks where a symbol grows (cache-tokens) is not largest at the largest values, so its bound is
 * taken. */
static bool largest_tensor(const an_graph *g, const an_result *r, an_tensor *tensor) {
    int64_t bytes;
    if (!an_result_tensor(g, r, tensor) || !an_result_maximum_bytes(g, r, &bytes)) return false;
    for (int i = 0; i < r->ndims; i++) (void)an_dimensions_maximum(&g->dimensions, r->dims[i], &tensor->dims[i]);
    return true;
}

an_status an_node_call_make(const an_graph *g, const an_node *node, an_node_call *c) {
    an_context *ctx = g->ctx;
    c->call = (an_call){.ctx = ctx,
                        .attributes = c->attributes,
                        .src_count = node->input_count,
                        .dst_count = node->output_count,
                        .src = c->src,
                        .dst = c->dst};
    if (node->op->attribute_bytes > sizeof c->attributes)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s has more than %d bytes of attributes", node->op->name,
                        AN_MAX_ATTRIBUTE_BYTES);
    AN_TRY_RETURN(an_node_resolve_attributes(g, node, c->attributes));
    for (int i = 0; i < node->input_count; i++) {
        const an_result *r = an_node_input(node, i);
        c->src[i] = (an_tensor){0};
        if (r && !largest_tensor(g, r, &c->src[i])) return overflow(g, node);
    }
    for (int i = 0; i < node->output_count; i++)
        if (!largest_tensor(g, &node->outputs[i], &c->dst[i])) return overflow(g, node);
    return AN_OK;
}
