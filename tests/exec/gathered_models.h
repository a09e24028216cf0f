/* Models with what gathered weights can meet, besides those of recompute_models.h. */
#ifndef TESTS_GATHERED_MODELS_H
#define TESTS_GATHERED_MODELS_H

#include "anneal/builders.h"
#include "anneal/graph.h"
#include "support/support.h"

static inline an_value matmul(an_graph *g, an_value a, an_value b) {
    return an_matmul(g, a, b, false, false);
}

/* Views of weights, and views of those, that forward and backward share; a weight that blocks share; frozen ones;
 * one that nothing reads, one that no gradient reaches, one that is handed out; a scalar; sizes that fill
 * pages and sizes that do not. */
static inline an_status build_odd(an_graph **graph, an_context *ctx) {
    enum { WIDTH = 32 };
    an_graph *g = NULL;
    an_status status = an_graph_create(&g, ctx, "odd");
    if (status != AN_OK) return status;
    const an_dim batch = an_symbol_dim(g, "batch"), wide[] = {batch, WIDTH}, square_dims[] = {WIDTH, WIDTH},
                 row[] = {WIDTH}, parts[] = {3, WIDTH, WIDTH}, flat[] = {WIDTH * WIDTH};
    const an_value x = an_input(g, "x", AN_DTYPE_F32, 2, wide), y = an_input(g, "y", AN_DTYPE_F32, 2, wide);
    const an_value shared = an_param(g, "shared", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 0.2, 1, flat);
    const an_value gain = an_param(g, "gain", AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 1.5, 0, NULL);
    const an_value still = an_frozen_param(g, "still", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 0.2, 2, square_dims);
    an_value h = matmul(g, x, still);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "b.%d", i);
        an_block_begin(g, name, 1);
        const an_value stack = an_param(g, "stack", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 0.2, 3, parts);
        const an_value bias = an_param(g, "bias", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 0.2, 1, row);
        (void)an_param(g, "unread", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 0.2, 1, row);
        const an_value aside = an_param(g, "aside", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 0.2, 1, row);
        an_value middle = an_reshape(g, an_slice(g, stack, 0, 1, 2), 2, square_dims);
        an_value last = an_reshape(g, an_slice(g, stack, 0, 2, 3), 2, square_dims);
        h = an_add(g, an_tanh(g, matmul(g, h, middle)), bias);
        h = an_add(g, h, matmul(g, h, an_transpose(g, last, 0, 1)));
        h = matmul(g, h, an_reshape(g, shared, 2, square_dims));
        if (i == 1) an_graph_set_output(g, an_multiply(g, h, aside), "aside");
        an_block_end(g);
    }
    const an_value out = an_multiply(g, h, gain);
    an_graph_set_output(g, out, "out");
    an_graph_set_output(g, gain, "gain");
    an_graph_set_loss(g, an_squared_error(g, out, y), y);
    *graph = g;
    return AN_OK;
}

/* A unit of more parameters than a node may have inputs. */
static inline an_status build_many(an_graph **graph, an_context *ctx) {
    enum { WIDTH = 24, PARAMETERS = 40 };
    an_graph *g = NULL;
    an_status status = an_graph_create(&g, ctx, "many");
    if (status != AN_OK) return status;
    const an_dim batch = an_symbol_dim(g, "batch"), wide[] = {batch, WIDTH}, row[] = {WIDTH};
    const an_value x = an_input(g, "x", AN_DTYPE_F32, 2, wide), y = an_input(g, "y", AN_DTYPE_F32, 2, wide);
    an_value h = x;
    for (int block = 0; block < 2; block++) {
        char name[16];
        snprintf(name, sizeof name, "b.%d", block);
        an_block_begin(g, name, 1);
        for (int i = 0; i < PARAMETERS; i++) {
            snprintf(name, sizeof name, "w%d", i);
            h = an_tanh(g, an_multiply(g, h, an_param(g, name, AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 1, 1, row)));
        }
        an_block_end(g);
    }
    an_graph_set_output(g, h, "out");
    an_graph_set_loss(g, an_squared_error(g, h, y), y);
    *graph = g;
    return AN_OK;
}

#endif
