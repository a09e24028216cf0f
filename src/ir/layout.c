/* Where parameters, states and inputs lie in their flat buffers.
 *
 * Trainable parameters are in canonical order (first an_param call) on a grid of pages, each beginning on a page, so
 * that no page holds two parameters and shards can be cut between pages. Padding is zero and never written.
 */
#include "anneal/plan.h"
#include "ir/graph.h"

/* Of one buffer: the sum of all of a plan fits in 64 bits. */
static const int64_t max_bytes = INT64_MAX / 16;

static an_status too_large(an_graph *g, const an_node *node) {
    return an_node_mistake(
        g, node, AN_ERR_OVERFLOW,
        "the size of %s in bytes does not fit in 64 bits, or a symbol in it has no maximum: check its sizes",
        AN_DESCRIBE(g, &node->outputs[0]));
}

/* Nodes that can send it a gradient. */
static int readers(const an_result *r) {
    int count = 0;
    for (const an_use *use = r->first_use; use; use = use->next) count += use->node->op->grad != NULL;
    return count;
}

static an_status lay_out_parameter(an_graph *g, an_parameter *p, an_flat_sizes *sizes) {
    an_result *r = &p->node->outputs[0];
    int64_t bytes;
    bool frozen = r->storage == AN_STORAGE_FROZEN;
    if (!an_result_maximum_bytes(g, r, &bytes) || bytes > max_bytes) return too_large(g, p->node);
    p->elements = 1;
    for (int d = 0; d < r->ndims; d++) p->elements *= r->dims[d]; /* no more than there are bytes */
    int64_t padded = (p->elements + AN_PAGE - 1) / AN_PAGE * AN_PAGE;
    if (frozen) {
        p->offset = sizes->frozen_bytes;
        r->place = p->offset;
        sizes->frozen_bytes += an_dtype_bytes(r->dtype, padded);
        return sizes->frozen_bytes <= max_bytes ? AN_OK : too_large(g, p->node);
    }
    if (sizes->trainable_dtype != AN_DTYPE_NONE && sizes->trainable_dtype != r->dtype)
        return an_node_mistake(g, p->node, AN_ERR_DTYPE,
                               "'%s' is %s, but earlier trainable parameters are %s: all trainable parameters of a "
                               "model must have the same type",
                               p->name, an_dtype_name(r->dtype), an_dtype_name(sizes->trainable_dtype));
    sizes->trainable_dtype = r->dtype;
    p->is_shared = readers(r) > 1;
    p->offset = sizes->trainable_elements;
    r->place = an_dtype_bytes(r->dtype, p->offset);
    sizes->trainable_elements += padded;
    return sizes->trainable_elements <= max_bytes / (int64_t)sizeof(double) ? AN_OK : too_large(g, p->node);
}

an_status an_graph_lay_out(an_graph *g, bool inputs, an_flat_sizes *sizes) {
    *sizes = (an_flat_sizes){0};
    for (size_t i = 0; i < g->parameter_count; i++) AN_TRY_RETURN(lay_out_parameter(g, &g->parameters[i], sizes));
    sizes->gradient_elements = sizes->trainable_elements;
    for (size_t i = 0; i < g->source_count; i++) {
        an_result *r = &g->sources[i]->outputs[0];
        int64_t *end = r->storage == AN_STORAGE_INPUT   ? &sizes->input_bytes
                       : r->storage == AN_STORAGE_STATE ? &sizes->state_bytes
                                                        : &sizes->program_state_bytes;
        if (r->storage == AN_STORAGE_INPUT && !inputs) continue;
        if (!an_result_maximum_bytes(g, r, &r->bytes) || r->bytes > max_bytes) return too_large(g, g->sources[i]);
        r->place = *end;
        *end += (int64_t)an_round_up((size_t)r->bytes, AN_ALIGNMENT);
        if (*end > max_bytes) return too_large(g, g->sources[i]);
    }
    return AN_OK;
}
