/* A predictor, and the model that it is made for. */
#ifndef AN_PREDICT_PREDICTOR_H
#define AN_PREDICT_PREDICTOR_H

#include "anneal/checkpoint.h"
#include "anneal/predict.h"
#include "predict/ranges.h"
#include "train/feed.h"

enum { AN_SENTENCE_INPUTS = 3 }; /* tokens, token types and the mask of padding */

struct an_predictor {
    an_context *ctx;   /* its own, and that of the first lane */
    an_context *owner; /* that its struct is from */
    an_context *team;  /* the threads that take parts; NULL: none */
    an_graph *graph;
    an_params *params;
    an_plan *plan;
    struct an_predictor_lane *lanes;
    int lane_count;
    const char *inputs[AN_SENTENCE_INPUTS]; /* names; the first alone, or all three of a sentence */
    int input_count;
    const char *output, *batch; /* names in the graph's memory */
    int64_t maximum, part_most,
        team_least; /* samples: of a call, of a lane's run, and from which on a team is worth it */
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

/* A model from a checkpoint, or a published one. */
typedef struct an_opened_model {
    an_context *ctx;
    an_checkpoint *checkpoint; /* NULL: it is the published model of this path, which must outlive it */
    const char *published;
    an_graph *graph;
    char *text;               /* of the graph */
    an_predictor_model model; /* in their memory */
} an_opened_model;

/* Reads the graph and what prediction has to know, and no weights. */
an_status an_opened_model_open(an_opened_model *opened, an_context *ctx, const char *path,
                               const an_predictor_options *options);
void an_opened_model_close(an_opened_model *opened);
/* Reads the weights into the parameters of this graph, a copy of the model's. */
an_status an_opened_model_load(const an_opened_model *opened, an_context *ctx, an_model_weights weights,
                               an_params *params, const an_graph *graph);
/* The same into parameters of other types, tensor by tensor by their names. */
an_status an_opened_model_convert(const an_opened_model *opened, an_context *ctx, an_model_weights weights,
                                  an_params *params);

/* Copies a trainer's present weights, as it shows them; `to` is of the same model. */
an_status an_params_take_from(an_params *to, const an_trainer *trainer);

/* The model of a trainer; `text` is its graph, and both must outlive it. */
void an_predictor_model_of(an_predictor_model *model, const an_trainer *trainer, const char *text);

/* Flops of the forward pass of one sample: of a batch, as a form of a plan has it, by its samples. */
double an_predictor_work(const an_graph *form, const char *batch);

/* A plan of prediction alone, for so many samples at most. */
an_status an_predictor_plan(an_plan **plan, an_context *ctx, const an_graph *graph, const an_predictor_model *model,
                            int64_t maximum);

/* A predictor that still has no weights, in contexts like this one. */
an_status an_predictor_make(an_predictor **predictor, an_context *ctx, const an_predictor_model *model,
                            const an_predictor_options *options);

/* Makes anew what it and its programs keep of the weights, once these have changed; errors go to `ctx`. */
an_status an_predictor_keep_again(an_predictor *predictor, an_context *ctx);

#endif
