/* A convolutional classifier of images. */
#include "models/model.h"

#include "base/guard.h"
#include "models/normalize.h"

static const char model[] = "cnn";
static const double momentum = 0.1, epsilon = 1e-5; /* of batch norm, as usual */

enum { WINDOW = 3, PADDING = 1, POOL = 2 };

static an_status check(an_context *ctx, const an_cnn_options *options) {
    const an_model_size sizes[] = {AN_MODEL_SIZE(options, channels), AN_MODEL_SIZE(options, height),
                                   AN_MODEL_SIZE(options, width), AN_MODEL_SIZE(options, classes),
                                   AN_MODEL_SIZE(options, hidden)};
    AN_TRY_RETURN(an_model_check_sizes(ctx, model, sizes, AN_COUNT(sizes)));
    if (options->filter_count < 1)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: filter_count is %d; there must be at least one convolution", model,
                        options->filter_count);
    if (!options->filters)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: filters is NULL; it must point to the filters of each of %d convolutions", model,
                        options->filter_count);
    int64_t height = options->height, width = options->width;
    for (int i = 0; i < options->filter_count; i++, height /= POOL, width /= POOL) {
        AN_TRY_RETURN(
            an_model_check_sizes(ctx, model, &(an_model_size){"a number of filters", options->filters[i]}, 1));
        if (height < POOL || width < POOL)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "%s: an image of %lld × %lld is too small for %d convolutions, because each of them halves "
                            "it; at most %d are possible",
                            model, (long long)options->height, (long long)options->width, options->filter_count, i);
    }
    AN_TRY_RETURN(an_model_check_activation(ctx, model, options->activation));
    return an_model_check_dropout(ctx, model, options->dropout);
}

an_status an_model_cnn(an_graph **graph, an_context *ctx, const an_cnn_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, graph);
    an_cnn_options own, *const options = &own;
    an_convolution_options same; /* the image keeps its size */
    an_convolution_options_init(&same, sizeof same);
    an_pool_options pool;
    an_pool_options_init(&pool, sizeof pool);
    an_dtype dtype = AN_DTYPE_NONE;
    an_graph *g = NULL;

    *graph = NULL;
    AN_TRY_RETURN(an_model_check_options(ctx, model, given));
    AN_TRY_RETURN(an_cnn_options_read(ctx, &own, given));
    AN_TRY_RETURN(check(ctx, options));
    AN_TRY_RETURN(an_model_choose_dtype(ctx, model, options->dtype, &dtype));
    AN_TRY_RETURN(an_graph_create(&g, ctx, model));
    same.padding[0] = same.padding[1] = PADDING;
    pool.window[0] = pool.window[1] = POOL;

    an_dim batch = an_symbol_dim(g, "batch");
    an_value x = an_input(g, "image", dtype, AN_DIMS(batch, options->channels, options->height, options->width));
    an_value targets = an_input(g, "targets", AN_DTYPE_I32, AN_DIMS(batch));
    an_value samples = options->dropout > 0 ? an_input(g, "samples", AN_DTYPE_I64, AN_DIMS(batch)) : AN_NONE;

    if (options->normalize_inputs) x = an_model_normalize(g, x);
    for (int i = 0; i < options->filter_count; i++) {
        an_model_block_begin(g, "convolution", i);
        /* a bias in front of batch norm would be taken out again */
        x = an_convolution_layer_with(g, x, NULL, options->filters[i], WINDOW, &same, !options->batch_norm);
        if (options->batch_norm) x = an_batch_norm_layer(g, x, "norm", momentum, epsilon);
        x = an_max_pool(g, an_model_activate(g, x, options->activation), &pool);
        an_block_end(g);
    }
    an_block_begin(g, "hidden", an_model_depth_after(options->filter_count));
    x = an_linear(g, an_reshape(g, x, AN_DIMS(batch, AN_REST)), NULL, options->hidden);
    x = an_model_activate(g, x, options->activation);
    if (options->dropout > 0) x = an_dropout(g, x, samples, options->dropout);
    an_block_end(g);

    an_block_begin(g, "output", an_model_depth_after(options->filter_count + 1));
    an_value logits = an_linear(g, x, NULL, options->classes);
    an_block_end(g);
    an_graph_set_output(g, logits, "logits");
    an_graph_set_loss(g, an_cross_entropy(g, logits, targets, NULL), targets);
    return an_model_finish(graph, g);
}
