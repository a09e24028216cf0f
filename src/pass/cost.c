/* A roofline: an instruction takes as long as its arithmetic or its traffic, whichever is more.
 *
 * The rates are those of the kernels for AVX-512 and AMX on two cores of an Emerald Rapids Xeon, rounded. Recompute
 * asks for ratios only, and these hardly depend on the rates: what a block computes forward and backward are the same
 * kinds of ops in about the same shares. tests/exec/test_recompute_time.c compares with what is measured. */
#include "pass/cost.h"

#include "pass/pass.h"

static const double bandwidth = 20e9;   /* bytes a second; some of them come from a cache */
static const double vector_rate = 25e9; /* flops a second of exp, tanh, random numbers and the like */
static const double function_rate =
    0.6e9; /* functions a second where they are counted apart: the softmax of attention */

/* Flops a second of products, convolutions and attention. */
static double dense_rate(const an_node *node) {
    const an_result *r = node->input_count > 0 ? node->inputs[0].result : NULL;
    switch (r ? r->dtype : AN_DTYPE_F32) {
    case AN_DTYPE_BF16: return 900e9;
    case AN_DTYPE_F64: return 125e9;
    default: return 250e9;
    }
}

/* From so many flops a byte on, an op is one that uses what it has read again and again. */
static const double dense_intensity = 16;

double an_node_seconds(const an_graph *g, const an_node *node) {
    if (!an_node_runs(node)) return 0;
    const an_cost cost = an_node_cost(g, node);
    const double rate = cost.flops < dense_intensity * cost.bytes ? vector_rate : dense_rate(node);
    const double arithmetic = cost.flops / rate + cost.functions / function_rate, traffic = cost.bytes / bandwidth;
    return arithmetic > traffic ? arithmetic : traffic;
}
