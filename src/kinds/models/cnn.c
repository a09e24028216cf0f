/* Models of type cnn: convolutions, for images. */
#include "kinds/models/models.h"
#include "kinds/models/rows.h"

static const an_option options[] = {
    OPTION_AT(70, "model.channels", COUNT, "auto", "auto", FROM(1), FIXED(MODEL), INTO(IN(an_cnn_options, channels)),
              "channels of an image; auto takes the number from the data"),
    OPTION_AT(80, "model.height", COUNT, "auto", "auto", FROM(1), FIXED(MODEL), INTO(IN(an_cnn_options, height)),
              "height of an image; auto takes it from the data"),
    OPTION_AT(90, "model.width", COUNT, "auto", "auto", FROM(1), FIXED(MODEL), INTO(IN(an_cnn_options, width)),
              "width of an image; auto takes it from the data"),
    CLASSES_OPTION(INTO(IN(an_cnn_options, classes))),
    OPTION_AT(120, "model.filters", COUNTS, "[32, 64]", "", FROM(1), FIXED(MODEL),
              INTO(LIST(an_cnn_options, filters, filter_count)), "filters of each convolution; enough for digits"),
    OPTION_AT(130, "model.hidden", COUNT, "128", "", FROM(1), FIXED(MODEL), INTO(IN(an_cnn_options, hidden)),
              "size of the layer after the convolutions; enough for digits"),
    ACTIVATION_OPTION(INTO(IN(an_cnn_options, activation))),
    BATCH_NORM_OPTION(INTO(IN(an_cnn_options, batch_norm))),
    DROPOUT_OPTION(INTO(IN(an_cnn_options, dropout))),
    OPTIONS_END,
};

static an_status open_model(an_model_opening *o) {
    an_context *ctx = o->ctx;
    static const char *const sizes[] = {"model.channels", "model.height", "model.width", "model.classes"};
    an_cnn_options m;
    an_cnn_options_init(&m, sizeof m);
    AN_TRY_RETURN(an_model_expect_sizes(o, sizes, 4));
    if (o->inputs.ndims == 3) {
        m.channels = o->inputs.dims[0];
        m.height = o->inputs.dims[1];
        m.width = o->inputs.dims[2];
    }
    m.dtype = o->dtype;
    if (an_config_is(o->config, "model.classes", "auto")) AN_TRY_RETURN(an_model_classes(o));
    m.classes = o->classes;
    AN_TRY_RETURN(an_config_fill(o->config, "model", an_cnn_options, &m));
    m.normalize_inputs = an_model_normalizes(o->config, "data.normalize.inputs");
    return an_model_cnn(o->graph, ctx, &m);
}

const an_model_kind an_model_kind_cnn = {
    .kind = {.name = "cnn", .options = options, .samples = AN_GIVES_NUMBERS},
    .open = open_model,
    .takes_images = true,
};
