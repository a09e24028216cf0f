/* What the models share: checks of their options, numbered blocks, and the end of a build. */
#ifndef AN_MODELS_MODEL_H
#define AN_MODELS_MODEL_H

#include "anneal/models.h"
#include "models/structs.h"
#include "ops/layers.h"

/* One size of a model's options, by its name there. */
typedef struct an_model_size {
    const char *name;
    int64_t value;
} an_model_size;
#define AN_MODEL_SIZE(options, member) \
    { #member, (options)->member }

/* Refuses options that are NULL: sizes have no defaults. */
an_status an_model_check_options(an_context *ctx, const char *model, const void *options);

/* Refuses sizes below 1 and sizes that no machine can hold. */
an_status an_model_check_sizes(an_context *ctx, const char *model, const an_model_size *sizes, int count);

/* Refuses more layers than a graph can reasonably have: each is built, so that their number alone takes time and
 * memory. */
an_status an_model_check_layers(an_context *ctx, const char *model, int64_t layers);

/* Refuses a width that the heads cannot share. */
an_status an_model_check_heads(an_context *ctx, const char *model, int64_t width, int64_t heads);

an_status an_model_check_dropout(an_context *ctx, const char *model, double dropout);
an_status an_model_check_activation(an_context *ctx, const char *model, an_activation activation);
/* Refuses to normalise targets that are classes. */
an_status an_model_check_loss(an_context *ctx, const char *model, an_loss_kind loss);
an_status an_model_check_normalize(an_context *ctx, const char *model, an_loss_kind loss, bool targets);

/* The type of a model's parameters: f32 unless f64 is asked for. */
an_status an_model_choose_dtype(an_context *ctx, const char *model, an_dtype asked, an_dtype *dtype);

/* an_block_begin for block `index` of a row of them: "h.0" is at depth 1, since embeddings are at 0. */
void an_model_block_begin(an_graph *g, const char *name, int64_t index);

/* The depth of what follows `blocks` numbered blocks: the final norm, the head. */
int an_model_depth_after(int64_t blocks);

an_value an_model_activate(an_graph *g, an_value src, an_activation activation);

/* Verifies the graph and hands it over; destroys it if it is wrong. */
an_status an_model_finish(an_graph **graph, an_graph *g);

#endif
