/* A model that has everything a checkpoint of many ranks can meet: blocks and what lies between them, parameters of many pages and of a part of one, frozen ones, run states. */
#ifndef TESTS_STORE_RANKS_SUPPORT_H
#define TESTS_STORE_RANKS_SUPPORT_H

#include "anneal/models.h"
#include "exec/params.h"
#include "exec/plan.h"
#include "exec/shards.h"
#include "support/support.h"

enum { WIDTH = 83, BLOCKS = 3 };

static inline an_status build_model(an_graph **graph, an_context *ctx) {
    const an_status status = an_graph_create(graph, ctx, "many");
    if (status != AN_OK) return status;
    an_graph *g = *graph;
    const an_dim batch = an_symbol_dim(g, "batch");
    const an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, 7)),
                   y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch, 2));
    an_value h = an_linear(g, x, "in", WIDTH);
    for (int i = 0; i < BLOCKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "blocks.%d", i);
        an_block_begin(g, name, i + 1);
        h = an_batch_norm_layer(g, an_linear(g, h, "fc", WIDTH), "norm", 0.1, 1e-5);
        h = an_multiply(g, an_relu(g, h),
                        an_frozen_param(g, "scale", AN_DTYPE_F32, AN_INITIALIZER_UNIFORM, 1, AN_DIMS(WIDTH)));
        an_block_end(g);
    }
    h = an_linear(g, h, "out", 2);
    an_graph_set_output(g, h, "out");
    an_graph_set_loss(g, an_squared_error(g, h, y), y);
    return an_graph_verify(g);
}

static inline an_status plan_model(an_plan **plan, an_context *ctx, an_graph *g) {
    return plan_for(plan, ctx, g, "batch", 4, AN_PROGRAM_TRAINING);
}

#endif
