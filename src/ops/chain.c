/* Chains of elementwise ops, alone (chain) and as the end of a product (product_chain). The fuse pass makes them. */
#include "kernels/elementwise/chain.h"

#include <stdio.h>
#include <string.h>

#include "kernels/elementwise/binary.h"
#include "kernels/product/chain.h"
#include "ops/chain_program.h"
#include "ops/common.h"
#include "ops/fuse.h"
#include "ops/product.h"

enum { FLOPS_A_STAGE = 8 }; /* between an addition and an activation */

/* Reads the program and gives every stage its type; that of the last is the type of output 0. A chain computes in
 * one. */
static an_status check_program(an_graph *g, const an_node *node, const char *program, an_chain *chain) {
    an_context *ctx = g->ctx;
    const char *wrong;
    /* Where blocks of q8_0 may be, an_node_infer has checked. */
    for (int i = 0; i < node->input_count; i++) AN_TRY_RETURN(an_expect_weights(g, node, i));
    if (!an_chain_parse(ctx, program, node->input_count, chain, &wrong))
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "program '%.200s': %s", program ? program : "", wrong);
    const an_dtype real = an_compute_dtype(an_node_input(node, 0)->dtype);
    bool same = true;
    for (int i = 0; i < chain->count; i++)
        if (chain->stages[i].dtype == AN_DTYPE_NONE) chain->stages[i].dtype = real;
    for (int i = 0; i < node->input_count; i++) same = same && an_compute_dtype(an_node_input(node, i)->dtype) == real;
    for (int i = 0; i < chain->count; i++) same = same && an_compute_dtype(chain->stages[i].dtype) == real;
    return same ? AN_OK : an_node_mistake(g, node, AN_ERR_DTYPE, "a chain mixes f64 with lower types");
}

/* ---- chain ---- */

static const an_attribute chain_attributes[] = {AN_ATTRIBUTE(an_chain_attributes, program, STRING), {0}};

static an_status chain_infer(an_graph *g, an_node *node) {
    an_chain_attributes *a = node->attributes;
    const an_result *src = an_node_input(node, 0);
    AN_TRY_RETURN(check_program(g, node, a->program, &a->chain));
    an_result_set(&node->outputs[0], a->chain.stages[a->chain.count - 1].dtype, src->ndims, src->dims);
    for (int i = 1; i < node->input_count; i++) {
        const an_result *more = an_node_input(node, i);
        int ndims;
        an_dim dims[AN_MAX_DIMS];
        bool fits = an_broadcast_dims(g, src, more, &ndims, dims) && ndims == src->ndims;
        for (int d = 0; fits && d < ndims; d++) fits = dims[d] == src->dims[d];
        if (!fits)
            return an_node_mistake(g, node, AN_ERR_SHAPE, "input %d, %s, does not broadcast to input 0, %s", i,
                                   AN_DESCRIBE(g, more), AN_DESCRIBE(g, src));
    }
    return AN_OK;
}

static an_cost chain_cost(const an_graph *g, const an_node *node) {
    const an_chain_attributes *a = node->attributes;
    double stages = 1;
    for (const char *at = a->program; *at; at++) stages += *at == ' ';
    return an_cost_elementwise(g, node, FLOPS_A_STAGE * stages);
}

const an_op an_op_chain = {
    .name = "chain",
    .inputs_min = 1,
    .inputs_max = AN_ELEMENTWISE_INPUTS,
    .outputs = 1,
    .along = an_along_elements,
    .attribute_bytes = sizeof(an_chain_attributes),
    .attributes = chain_attributes,
    .infer = chain_infer,
    .cost = chain_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .in_place = (1 << AN_ELEMENTWISE_INPUTS) - 1, /* a row is written when all of its inputs have been read */
    .kernels = AN_KERNELS(chain),
};

/* ---- product_chain ---- */

static const an_attribute product_chain_attributes[] = {
    AN_ATTRIBUTE(an_product_chain_attributes, transpose_a, BOOL),
    AN_ATTRIBUTE(an_product_chain_attributes, transpose_b, BOOL),
    AN_ATTRIBUTE(an_product_chain_attributes, dtype, DTYPE),
    AN_ATTRIBUTE(an_product_chain_attributes, program, STRING),
    AN_ATTRIBUTE(an_product_chain_attributes, kept, INT),
    AN_ATTRIBUTE(an_product_chain_attributes, rounds_a, BOOL),
    AN_ATTRIBUTE(an_product_chain_attributes, added, INT),
    {0},
};

/* An operand of a stage lies as dst does, or along its last dimension. */
static bool fits_dst(an_graph *g, const an_result *dst, const an_result *operand) {
    if (!an_result_is_dense(g, operand)) return false;
    if (operand->ndims == 1) return operand->dims[0] == dst->dims[dst->ndims - 1];
    bool same = operand->ndims == dst->ndims;
    for (int i = 0; same && i < dst->ndims; i++) same = operand->dims[i] == dst->dims[i];
    return same;
}

static an_status product_chain_infer(an_graph *g, an_node *node) {
    an_product_chain_attributes *a = node->attributes;
    const an_chain *chain = &a->chain;
    AN_TRY_RETURN(check_program(g, node, a->program, &a->chain));
    if (a->added < 0 || a->added >= AN_PRODUCT_SUM_PAIRS || 2 * (1 + a->added) > node->input_count ||
        node->input_count - 2 * (1 + a->added) > AN_PRODUCT_CHAIN_MORE || (a->added > 0 && a->transpose_a))
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "%d inputs do not match %lld added products",
                               node->input_count, (long long)a->added);
    const int operands = 2 * (1 + (int)a->added);
    for (int i = 0; i < operands; i += 2) {
        AN_TRY_RETURN(an_expect_ndims(g, node, i, 2, AN_MAX_DIMS));
        AN_TRY_RETURN(an_expect_ndims(g, node, i + 1, 2, 2));
    }
    const an_result *left = an_node_input(node, 0), *right = an_node_input(node, 1);
    an_result *dst = &node->outputs[0];
    const int last = left->ndims - 1;
    const bool is_kept = node->output_count == 2;
    if (left->dims[a->transpose_a ? last - 1 : last] != right->dims[a->transpose_b ? 1 : 0] ||
        (a->transpose_a && left->ndims > 2))
        return an_node_mistake(g, node, AN_ERR_SHAPE, "a is %s and b is %s: their shapes do not match",
                               AN_DESCRIBE(g, left), AN_DESCRIBE(g, right));
    for (int i = 2; i < operands; i += 2) {
        const an_result *more = an_node_input(node, i), *by = an_node_input(node, i + 1);
        bool fits = more->ndims == left->ndims && more->dims[more->ndims - 1] == by->dims[a->transpose_b ? 1 : 0] &&
                    by->dims[a->transpose_b ? 0 : 1] == right->dims[a->transpose_b ? 0 : 1];
        for (int d = 0; fits && d < last; d++) fits = more->dims[d] == left->dims[d];
        if (!fits)
            return an_node_mistake(g, node, AN_ERR_SHAPE, "the product of inputs %d and %d, %s and %s, cannot be added",
                                   i, i + 1, AN_DESCRIBE(g, more), AN_DESCRIBE(g, by));
    }
    if ((a->dtype != AN_DTYPE_NONE && !an_dtype_is_float(a->dtype)) || node->output_count < 1 ||
        node->output_count > 2 || is_kept != (a->kept >= 0) || a->kept >= chain->count)
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "dtype %s, kept stage %lld and %d outputs do not match",
                               an_dtype_name(a->dtype), (long long)a->kept, node->output_count);
    if (a->rounds_a && (right->dtype != AN_DTYPE_Q8_0 || a->transpose_a || !a->transpose_b ||
                        an_compute_dtype(left->dtype) != AN_DTYPE_F32))
        return an_node_mistake(g, node, AN_ERR_DTYPE, "a is rounded, but a is %s and b is %s", AN_DESCRIBE(g, left),
                               AN_DESCRIBE(g, right));
    an_result_like(dst, left);
    dst->dtype = chain->stages[chain->count - 1].dtype;
    if (a->transpose_a) dst->dims[0] = left->dims[1];
    dst->dims[last] = right->dims[a->transpose_b ? 0 : 1];
    if (is_kept) {
        an_result_like(&node->outputs[1], dst);
        node->outputs[1].dtype = chain->stages[a->kept].dtype;
    }
    for (int i = operands; i < node->input_count; i++)
        if (!fits_dst(g, dst, an_node_input(node, i)))
            return an_node_mistake(g, node, AN_ERR_SHAPE,
                                   "input %d is %s; it must have the layout of dst, %s, or lie along its columns", i,
                                   AN_DESCRIBE(g, an_node_input(node, i)), AN_DESCRIBE(g, dst));
    return AN_OK;
}

static an_cost product_chain_cost(const an_graph *g, const an_node *node) {
    const an_product_chain_attributes *a = node->attributes;
    int64_t depth = 0;
    double stages = 1;
    for (const char *at = a->program; *at; at++) stages += *at == ' ';
    for (int i = 0; i <= a->added; i++) {
        int64_t one = 0;
        an_dimensions_value(&g->dimensions, an_node_input(node, 2 * i + 1)->dims[a->transpose_b ? 1 : 0], &one);
        depth += one;
    }
    return an_cost_of(g, node, an_result_elements(g, &node->outputs[0]) * (2 * (double)depth + FLOPS_A_STAGE * stages));
}

static an_along product_chain_along(const an_along_question *q) {
    const an_product_chain_attributes *a = q->node->attributes;
    if (q->input >= 2 * (1 + a->added)) return an_along_elements(q);
    const an_along answer = an_product_operand_along(q, a->transpose_a, a->transpose_b);
    return answer == AN_ALONG_ADDED ? AN_ALONG_MIXED : answer; /* the chain follows the sum */
}

const an_op an_op_matmul_chain = {
    .name = "matmul_chain",
    .inputs_min = 2,
    .inputs_max = AN_PRODUCT_CHAIN_INPUTS,
    .outputs = AN_OUTPUTS_ANY,
    .along = product_chain_along,
    .attribute_bytes = sizeof(an_product_chain_attributes),
    .attributes = product_chain_attributes,
    .infer = product_chain_infer,
    .cost = product_chain_cost,
    .autocast = AN_AUTOCAST_KEEP,
    /* nothing in place: dst holds unfinished sums before the operands of stages are read */
    .blocks_in = ((1u << 2 * AN_PRODUCT_SUM_PAIRS) - 1) / 3 * 2,
    .kernels = AN_KERNELS(product_chain),
};

/* ---- fusion ---- */

enum { PROGRAM_BYTES = 256 };

/* A chain that grows: what it starts from, its inputs, its text. */
typedef struct {
    const an_node *product; /* or a sum of products. NULL: input 0 is the value it starts from */
    bool transpose_a, transpose_b, rounds_a;
    an_dtype product_dtype;
    int operands, input_count, stages; /* operands: inputs of the products */
    an_result *inputs[AN_PRODUCT_CHAIN_INPUTS];
    char program[PROGRAM_BYTES];
    int64_t kept;
    an_result *kept_result; /* whose other readers will read output 1; NULL: none */
} growing;

static bool is_stage(const an_graph *g, const an_node *n) {
    const bool is_bias = n->op == AN_BUILTIN(g, bias); /* along the last axis it is an add */
    if (!an_op_is_plain(g->ctx, n->op) || !an_chain_kernel(g->ctx, is_bias ? AN_BUILTIN(g, add) : n->op)) return false;
    if (is_bias) return ((const an_bias_attributes *)n->attributes)->axis == n->outputs[0].ndims - 1;
    return !n->op->attribute_bytes && n->input_count <= AN_CHAIN_OPERANDS && n->output_count == 1;
}

static bool same_dims(const an_result *a, const an_result *b) {
    bool same = a->ndims == b->ndims;
    for (int i = 0; same && i < a->ndims; i++) same = a->dims[i] == b->dims[i];
    return same;
}

/* The number of an input; added if it is new. -1: there is no room. */
static int take_input(growing *c, an_result *r) {
    const int maximum = c->product ? c->operands + AN_PRODUCT_CHAIN_MORE : AN_ELEMENTWISE_INPUTS;
    for (int i = c->operands; i < c->input_count; i++)
        if (c->inputs[i] == r) return i;
    if (c->input_count == maximum) return -1;
    c->inputs[c->input_count] = r;
    return c->input_count++;
}

/* Appends a node as a stage; input `slot` of it is the chain's value. */
static bool append(an_graph *g, growing *c, const an_node *n, int slot) {
    const char *name = n->op == AN_BUILTIN(g, bias) ? AN_BUILTIN(g, add)->name : n->op->name;
    size_t used = strlen(c->program);
    if (c->stages == AN_CHAIN_STAGES) return false;
    used += (size_t)snprintf(c->program + used, PROGRAM_BYTES - used, "%s%s(", used ? " " : "", name);
    for (int i = 0; i < n->input_count && used < PROGRAM_BYTES; i++) {
        an_result *r = n->inputs[i].result;
        if (!r) return false;
        if (i == slot) {
            used += (size_t)snprintf(c->program + used, PROGRAM_BYTES - used, "%sx", i ? "," : "");
            continue;
        }
        if (c->product && !fits_dst(g, &n->outputs[0], r)) return false;
        const int number = take_input(c, r);
        if (number < 0) return false;
        used += (size_t)snprintf(c->program + used, PROGRAM_BYTES - used, "%s%d", i ? "," : "", number);
    }
    if (used >= PROGRAM_BYTES) return false;
    used += (size_t)snprintf(c->program + used, PROGRAM_BYTES - used, "):%s", an_dtype_name(n->outputs[0].dtype));
    c->stages++;
    return used < PROGRAM_BYTES;
}

/* What a value's node is as the beginning of a chain. False: nothing of the kind. */
static bool begin(an_graph *g, growing *c, const an_result *r) {
    const an_node *n = r->node;
    *c = (growing){.kept = -1};
    if (r->output != 0 || r->root != r) return false;
    if ((n->op == &an_op_matmul || n->op == &an_op_matmul_sum) && an_op_is_plain(g->ctx, n->op)) {
        const an_product_attributes *a = n->attributes;
        if (an_node_input(n, 1)->ndims != 2 || (a->transpose_a && an_node_input(n, 0)->ndims != 2)) return false;
        *c = (growing){.product = n,
                       .transpose_a = a->transpose_a,
                       .transpose_b = a->transpose_b,
                       .rounds_a = a->rounds_a,
                       .product_dtype = r->dtype,
                       .operands = n->input_count,
                       .input_count = n->input_count,
                       .kept = -1};
        for (int i = 0; i < n->input_count; i++) c->inputs[i] = n->inputs[i].result;
        return true;
    }
    if (n->op == &an_op_matmul_chain || n->op == &an_op_chain) {
        const an_product_chain_attributes *a = n->op == &an_op_matmul_chain ? n->attributes : NULL;
        const char *const *text = an_node_attribute(n, "program", AN_ATTRIBUTE_STRING);
        if (!text) return false;
        const char *program = *text;
        if (a) {
            c->product = n;
            c->transpose_a = a->transpose_a;
            c->transpose_b = a->transpose_b;
            c->rounds_a = a->rounds_a;
            c->product_dtype = a->dtype;
            c->operands = 2 * (1 + (int)a->added);
            c->kept = a->kept;
            if (a->kept >= 0) c->kept_result = &n->outputs[1];
        }
        for (int i = 0; i < n->input_count; i++) c->inputs[c->input_count++] = n->inputs[i].result;
        snprintf(c->program, sizeof c->program, "%s", program);
        c->stages = 1;
        for (const char *at = program; *at; at++) c->stages += *at == ' ';
        return strlen(program) < sizeof c->program;
    }
    if (!is_stage(g, n) || !same_dims(an_node_input(n, 0), r)) return false;
    c->inputs[c->input_count++] = n->inputs[0].result;
    return append(g, c, n, 0);
}

/* Whether a chain may swallow a value: nobody else reads it, or those who do come in the backward part and can read a
 * copy that the chain keeps. */
static bool may_swallow(growing *c, an_result *r, const an_node *reader, bool may_keep) {
    bool others = false;
    for (const an_use *u = r->first_use; u; u = u->next) {
        if (u->node == reader) continue;
        if (reader->phase == AN_PHASE_BACKWARD || u->node->phase == AN_PHASE_FORWARD) return false;
        others = true;
    }
    if (!others) return true;
    if (!may_keep || !c->product || c->kept >= 0 || c->stages == 0) return false;
    c->kept = c->stages - 1;
    c->kept_result = r;
    return true;
}

static int readers_slot(const an_result *r, const an_node *reader) {
    int slot = -1;
    for (int i = 0; i < reader->input_count; i++)
        if (reader->inputs[i].result == r) slot = slot < 0 ? i : AN_MAX_INPUTS; /* read twice: no chain */
    return slot;
}

static void replace(an_graph *g, growing *c, an_node *last) {
    an_value inputs[AN_PRODUCT_CHAIN_INPUTS];
    for (int i = 0; i < c->input_count; i++) inputs[i] = an_graph_value(g, c->inputs[i]);
    an_chain_attributes chain = {.program = c->program};
    an_product_chain_attributes product = {.transpose_a = c->transpose_a,
                                           .transpose_b = c->transpose_b,
                                           .dtype = c->product_dtype,
                                           .program = c->program,
                                           .kept = c->kept,
                                           .rounds_a = c->rounds_a,
                                           .added = c->product ? c->operands / 2 - 1 : 0};
    const an_phase phase = g->added.phase;
    g->added.before = last;
    g->added.origin = last;
    g->added.phase = last->phase;
    an_value fused =
        an_graph_add_outputs(g, c->product ? &an_op_matmul_chain : &an_op_chain, c->input_count, inputs,
                             c->product ? (const void *)&product : (const void *)&chain, c->kept >= 0 ? 2 : 1);
    g->added.before = NULL;
    g->added.origin = NULL;
    g->added.phase = phase;
    an_result *dst = an_graph_result(g, fused);
    if (!dst) return;
    dst->node->origin = last->origin;
    an_result_replace(&last->outputs[0], dst);
    if (!c->kept_result) return;
    for (an_use *u = c->kept_result->first_use, *next; u; u = next) {
        next = u->next;
        if (u->node != last && u->node != dst->node) an_node_set_input(u->node, u->slot, &dst->node->outputs[1]);
    }
}

/* A product's end is looked for in every operand before a chain is begun with another elementwise op. */
void an_fuse_elementwise(an_graph *g, an_node *node, bool may_keep) {
    if (!node->outputs[0].first_use || !is_stage(g, node)) return;
    for (int with_product = 1; with_product >= 0; with_product--)
        for (int i = 0; i < node->input_count; i++) {
            an_result *r = node->inputs[i].result;
            growing c;
            if (!r || !same_dims(r, &node->outputs[0]) || readers_slot(r, node) != i) continue;
            if (!begin(g, &c, r) || (c.product != NULL) != with_product) continue;
            if (!an_op_has_kernels(g->ctx, c.product ? &an_op_matmul_chain : &an_op_chain))
                continue; /* not on this device */
            if (!may_swallow(&c, r, node, may_keep) || !append(g, &c, node, i)) continue;
            replace(g, &c, node);
            return;
        }
}
