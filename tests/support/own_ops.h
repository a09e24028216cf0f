/* An op of a program's own for tests: steep_relu(x, slope) = slope·x above 0, with its gradient op, f32 and dense.
 * With a slope of 1 its bits are relu's. */
#ifndef TESTS_SUPPORT_OWN_OPS_H
#define TESTS_SUPPORT_OWN_OPS_H

#include "anneal/experimental.h"
#include "support/support.h"

typedef struct {
    int64_t unused;
    double slope;
} steep_attributes;

static const an_attribute steep_table[] = {{"slope", AN_ATTRIBUTE_FLOAT, offsetof(steep_attributes, slope), false},
                                           {"unused", AN_ATTRIBUTE_INT, offsetof(steep_attributes, unused), false},
                                           {0}};

static int64_t own_elements(const an_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->ndims; i++) n *= t->dims[i];
    return n;
}

static bool own_is_f32(const an_call *call) {
    return call->dst[0].dtype == AN_DTYPE_F32;
}

static int steep_runs;

static an_status run_steep(const an_call *call) {
    const float slope = (float)((const steep_attributes *)call->attributes)->slope, *src = call->src[0].data;
    float *dst = call->dst[0].data;
    steep_runs++;
    if (call->src[0].dtype != AN_DTYPE_F32) return an_kernel_fail(call, AN_ERR_KERNEL, "src is not f32");
    for (int64_t i = 0; i < own_elements(&call->dst[0]); i++) dst[i] = src[i] < 0 ? 0 : slope * src[i];
    return AN_OK;
}

static an_status run_steep_diff(const an_call *call) {
    const float slope = (float)((const steep_attributes *)call->attributes)->slope, *diff_dst = call->src[0].data,
                *src = call->src[1].data;
    float *diff_src = call->dst[0].data;
    for (int64_t i = 0; i < own_elements(&call->dst[0]); i++) diff_src[i] = src[i] <= 0 ? 0 : slope * diff_dst[i];
    return AN_OK;
}

static void own_like(const an_own_node *node, an_value src, an_own_output *output) {
    output->dtype = an_value_dtype(node->graph, src);
    output->ndims = an_value_ndims(node->graph, src);
    for (int i = 0; i < output->ndims; i++) output->dims[i] = an_value_dim(node->graph, src, i);
}

static const char *infer_steep(const an_own_node *node, an_own_output *outputs) {
    if (!(((const steep_attributes *)node->attributes)->slope > 0)) return "the slope is not above 0";
    own_like(node, node->inputs[0], &outputs[0]);
    return NULL;
}

static void grad_steep(const an_own_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    const an_value inputs[] = {diff_dst[0], node->inputs[0]};
    (void)want;
    diff_src[0] = (an_own)(node->graph, "steep_relu_diff", 2, inputs, node->attributes);
}

static const an_kernel steep_kernels[] = {{.name = "plain", .applies = own_is_f32, .run = run_steep}, {0}};
static const an_kernel steep_diff_kernels[] = {{.name = "plain", .applies = own_is_f32, .run = run_steep_diff}, {0}};

static inline an_own_op steep_record(void) {
    return (an_own_op){.size = sizeof(an_own_op),
                       .name = "steep_relu",
                       .inputs_min = 1,
                       .inputs_max = 1,
                       .outputs = 1,
                       .attribute_bytes = sizeof(steep_attributes),
                       .attributes = steep_table,
                       .infer = infer_steep,
                       .gradient = grad_steep,
                       .kernels = steep_kernels,
                       .flops = 2,
                       .autocast = AN_AUTOCAST_F32,
                       .dense = 1,
                       .in_place = 1};
}

static inline an_own_op steep_diff_record(void) {
    an_own_op op = steep_record();
    op.name = "steep_relu_diff";
    op.inputs_min = op.inputs_max = 2;
    op.gradient = NULL;
    op.kernels = steep_diff_kernels;
    op.dense = op.in_place = 3;
    return op;
}

static inline an_status add_steep(an_context *ctx) {
    const an_own_op op = steep_record(), diff = steep_diff_record();
    const an_status status = an_context_add_op(ctx, &op);
    return status == AN_OK ? an_context_add_op(ctx, &diff) : status;
}

#endif
