/* A predictor, and the model that it is made for. */
#ifndef AN_PREDICT_PREDICTOR_H
#define AN_PREDICT_PREDICTOR_H

#include "anneal/predict.h"
#include "predict/ranges.h"
#include "train/feed.h"

struct an_predictor {
    an_context *ctx;   /* its own, and that of the first lane */
    an_context *owner; /* that its struct is from */
    an_context *team;  /* the threads that take parts; NULL: none */
    an_graph *graph;
    an_params *params;
    an_plan *plan;
    struct an_predictor_lane *lanes;
    int lane_count;
    const char *input, *output, *batch;  /* names in the graph's memory */
    int64_t most, part_most, team_least; /* samples: of a call, of a lane's run, and from which on a team is worth it */
    int64_t input_elements, output_elements;
    an_ranges ranges;
};

/* A model to predict with, whoever has it: a trainer or a checkpoint. */
typedef struct an_predictor_model {
    const char *graph; /* as text */
    const char *batch; /* the symbol of samples */
    int symbol_count;  /* all others */
    const char *symbols[AN_MAX_FEED_SYMBOLS];
    int64_t values[AN_MAX_FEED_SYMBOLS];
    an_dtype precision; /* these two as in an_plan_options */
    bool f32_storage;
    double work; /* flops of one sample */
} an_predictor_model;

/* Flops of the forward pass of one sample: of a batch, as a form of a plan has it, by its samples. */
double an_predictor_work(const an_graph *form, const char *batch);

/* A plan of prediction alone, for so many samples at most. */
an_status an_predictor_plan(an_plan **plan, an_context *ctx, const an_graph *graph, const an_predictor_model *model,
                            int64_t most);

/* A predictor that still has no weights, in contexts like this one. */
an_status an_predictor_make(an_predictor **predictor, an_context *ctx, const an_predictor_model *model,
                            const an_predictor_options *options);

/* Makes anew what it and its programs keep of the weights, once these have changed; errors go to `ctx`. */
an_status an_predictor_keep_again(an_predictor *predictor, an_context *ctx);

#endif
