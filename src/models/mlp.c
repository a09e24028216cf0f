/* A multilayer perceptron. */
#include "models/model.h"

#include "base/guard.h"
#include "models/embed.h"
#include "models/normalize.h"

static const char model[] = "mlp";
static const double momentum = 0.1, epsilon = 1e-5; /* of batch norm, as usual */

static an_status check(an_context *ctx, const an_mlp_options *options) {
    const an_model_size sizes[] = {AN_MODEL_SIZE(options, inputs), AN_MODEL_SIZE(options, outputs)};
    AN_TRY_RETURN(an_model_check_sizes(ctx, model, sizes, AN_COUNT(sizes)));
    if (options->hidden_count < 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: hidden_count is %d; it must be 0 or more", model,
                        options->hidden_count);
    if (options->hidden_count > 0 && !options->hidden)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: hidden is NULL; it must point to the widths of %d hidden layers",
                        model, options->hidden_count);
    for (int i = 0; i < options->hidden_count; i++)
        AN_TRY_RETURN(
            an_model_check_sizes(ctx, model, &(an_model_size){"a hidden layer's width", options->hidden[i]}, 1));
    AN_TRY_RETURN(an_model_check_loss(ctx, model, options->loss));
    AN_TRY_RETURN(an_model_check_activation(ctx, model, options->activation));
    AN_TRY_RETURN(an_model_check_normalize(ctx, model, options->loss, options->normalize_targets));
    AN_TRY_RETURN(an_model_check_embedded(ctx, model, options->embedded, options->embedded_count, options->inputs));
    return an_model_check_dropout(ctx, model, options->dropout);
}

an_status an_model_mlp(an_graph **graph, an_context *ctx, const an_mlp_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, graph);
    an_mlp_options own, *const options = &own;
    an_dtype dtype = AN_DTYPE_NONE;
    an_graph *g = NULL;

    *graph = NULL;
    AN_TRY_RETURN(an_model_check_options(ctx, model, given));
    AN_TRY_RETURN(an_mlp_options_read(ctx, &own, given));
    AN_TRY_RETURN(check(ctx, options));
    AN_TRY_RETURN(an_model_choose_dtype(ctx, model, options->dtype, &dtype));
    AN_TRY_RETURN(an_graph_create(&g, ctx, model));

    const bool classes = options->loss == AN_LOSS_CROSS_ENTROPY, drops = options->dropout > 0;
    an_dim batch = an_symbol_dim(g, "batch");
    an_value x = an_input(g, "x", dtype, AN_DIMS(batch, options->inputs));
    an_value targets = classes ? an_input(g, "targets", AN_DTYPE_I32, AN_DIMS(batch))
                               : an_input(g, "targets", dtype, AN_DIMS(batch, options->outputs));
    an_value samples = drops ? an_input(g, "samples", AN_DTYPE_I64, AN_DIMS(batch)) : AN_NONE;
    an_value numbers = options->normalize_inputs ? an_model_normalize(g, x) : x;
    x = options->embedded_count > 0 ? an_model_embed(g, x, numbers, options->embedded, options->embedded_count)
                                    : numbers;

    for (int i = 0; i < options->hidden_count && g->status == AN_OK; i++) {
        an_model_block_begin(g, "hidden", i);
        if (options->batch_norm) { /* a bias in front of it would be taken out again */
            x = an_linear_plain(g, x, NULL, options->hidden[i]);
            x = an_batch_norm_layer(g, x, "norm", momentum, epsilon);
        } else {
            x = an_linear(g, x, NULL, options->hidden[i]);
        }
        x = an_model_activate(g, x, options->activation);
        if (drops) x = an_dropout(g, x, samples, options->dropout);
        an_block_end(g);
    }
    an_block_begin(g, "output", an_model_depth_after(options->hidden_count));
    an_value y = an_linear(g, x, NULL, options->outputs);
    an_block_end(g);
    if (options->loss == AN_LOSS_SQUARED) {
        an_model_end_squared(g, y, targets, options->normalize_targets);
    } else {
        an_graph_set_output(g, y, "y");
        an_graph_set_loss(g, classes ? an_cross_entropy(g, y, targets, NULL) : an_binary_cross_entropy(g, y, targets),
                          targets);
    }
    return an_model_finish(graph, g);
}
