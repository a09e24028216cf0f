/* Types of layers in a model of type sequential: names and options. The order of layers.def is that of an_layer_type.
 */
#include "anneal/models.h"
#include "base/options/option_rows.h"
#include "kinds/kinds.h"

#define BIAS_OPTION                                                                                 \
    OPTION_AT(20, "model.layers.bias", BOOL, "on", "", ANY, FIXED(MODEL), INTO(IN(an_layer, bias)), \
              "bias added to the outputs")

#define WINDOW_OPTION                                                                                       \
    OPTION_AT(50, "model.layers.window", COUNT, "2", "", FROM(1), FIXED(MODEL), INTO(IN(an_layer, window)), \
              "window size in both directions; 2 halves an image")

#define STRIDE_OPTION                                                                                              \
    OPTION_AT(70, "model.layers.stride", COUNT, "auto", "auto", FROM(1), FIXED(MODEL), INTO(IN(an_layer, stride)), \
              "distance from one window to the next; auto is the window size")

#define PADDING_OPTION                                                                                        \
    OPTION_AT(90, "model.layers.padding", COUNT, "0", "", FROM(0), FIXED(MODEL), INTO(IN(an_layer, padding)), \
              "padding around the image; none")

#define EPSILON_OPTION                                                                                            \
    OPTION_AT(110, "model.layers.epsilon", REAL, "1e-5", "", ABOVE(0), FIXED(MODEL), INTO(IN(an_layer, epsilon)), \
              "value added to the variance; same as PyTorch")

static const an_option linear_options[] = {
    OPTION_AT(10, "model.layers.size", COUNT, "auto", "auto", FROM(1), FIXED(MODEL), INTO(IN(an_layer, features)),
              "output features; auto, in the last layer, is what the targets need"),
    BIAS_OPTION,
    OPTIONS_END,
};

static const an_option convolution_options[] = {
    BIAS_OPTION,
    OPTION_AT(30, "model.layers.filters", COUNT, REQUIRED, "", FROM(1), FIXED(MODEL), INTO(IN(an_layer, filters)),
              "output channels"),
    OPTION_AT(40, "model.layers.window", COUNT, "3", "", FROM(1), FIXED(MODEL), INTO(IN(an_layer, window)),
              "window size in both directions; 3 is the usual size"),
    OPTION_AT(60, "model.layers.stride", COUNT, "1", "", FROM(1), FIXED(MODEL), INTO(IN(an_layer, stride)),
              "distance from one window to the next; 1 visits every position"),
    OPTION_AT(80, "model.layers.padding", COUNT, "auto", "auto", FROM(0), FIXED(MODEL), INTO(IN(an_layer, padding)),
              "zeros added around the image; auto keeps the image size at stride 1"),
    OPTIONS_END,
};

static const an_option max_pool_options[] = {
    WINDOW_OPTION,
    STRIDE_OPTION,
    PADDING_OPTION,
    OPTIONS_END,
};

static const an_option average_pool_options[] = {
    WINDOW_OPTION,
    STRIDE_OPTION,
    PADDING_OPTION,
    OPTIONS_END,
};

static const an_option dropout_options[] = {
    OPTION_AT(100, "model.layers.rate", REAL, "0.1", "", BELOW(0, 1), FIXED(MODEL), INTO(IN(an_layer, rate)),
              "share of activations to drop; 0.1 is mild"),
    OPTIONS_END,
};

static const an_option batch_norm_options[] = {
    EPSILON_OPTION,
    OPTION_AT(120, "model.layers.momentum", REAL, "0.1", "", BETWEEN(0, 1), FIXED(MODEL), INTO(IN(an_layer, momentum)),
              "momentum of the running statistics; same as PyTorch"),
    OPTIONS_END,
};

static const an_option layer_norm_options[] = {
    EPSILON_OPTION,
    OPTIONS_END,
};

static const an_option rms_norm_options[] = {
    EPSILON_OPTION,
    OPTIONS_END,
};

const an_kind an_layer_kind_linear = {.name = "linear", .options = linear_options};
const an_kind an_layer_kind_convolution = {.name = "convolution", .options = convolution_options};
const an_kind an_layer_kind_max_pool = {.name = "max_pool", .options = max_pool_options};
const an_kind an_layer_kind_average_pool = {.name = "average_pool", .options = average_pool_options};
const an_kind an_layer_kind_flatten = {.name = "flatten"};
const an_kind an_layer_kind_relu = {.name = "relu"};
const an_kind an_layer_kind_gelu = {.name = "gelu"};
const an_kind an_layer_kind_tanh = {.name = "tanh"};
const an_kind an_layer_kind_silu = {.name = "silu"};
const an_kind an_layer_kind_sigmoid = {.name = "sigmoid"};
const an_kind an_layer_kind_dropout = {.name = "dropout", .options = dropout_options};
const an_kind an_layer_kind_batch_norm = {.name = "batch_norm", .options = batch_norm_options};
const an_kind an_layer_kind_layer_norm = {.name = "layer_norm", .options = layer_norm_options};
const an_kind an_layer_kind_rms_norm = {.name = "rms_norm", .options = rms_norm_options};
