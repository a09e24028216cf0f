/* Models of type mlp: linear layers. */
#include "kinds/fields.h"
#include "kinds/models/models.h"
#include "kinds/models/rows.h"

static const an_option options[] = {
    OPTION_AT(30, "model.inputs", COUNT, "auto", "auto", FROM(1), FIXED(MODEL), INTO(IN(an_mlp_options, inputs)),
              "features of a sample; auto takes the number from the data"),
    OPTION_AT(40, "model.outputs", COUNT, "auto", "auto", FROM(1), FIXED(MODEL), INTO(IN(an_mlp_options, outputs)),
              "features or classes of a target; auto takes the number from the data"),
    OPTION_AT(50, "model.hidden", COUNTS, "[64, 64]", "", FROM(1), FIXED(MODEL),
              INTO(LIST(an_mlp_options, hidden, hidden_count)), "sizes of the hidden layers; small ones to start with"),
    EMBEDDING_OPTION,
    ACTIVATION_OPTION(INTO(IN(an_mlp_options, activation))),
    BATCH_NORM_OPTION(INTO(IN(an_mlp_options, batch_norm))),
    DROPOUT_OPTION(INTO(IN(an_mlp_options, dropout))),
    LOSS_OPTION,
    OPTIONS_END,
};

static an_status open_model(an_model_opening *o) {
    an_context *ctx = o->ctx;
    static const char *const sizes[] = {"model.inputs", "model.outputs"};
    an_mlp_options m;
    an_mlp_options_init(&m, sizeof m);
    m.dtype = o->dtype;
    AN_TRY_RETURN(an_model_loss_kind(o, &m.loss));
    AN_TRY_RETURN(an_model_expect_sizes(o, sizes, 2));
    m.inputs = an_field_elements(&o->inputs);
    if (an_config_is(o->config, "model.outputs", "auto") && m.loss == AN_LOSS_CROSS_ENTROPY)
        AN_TRY_RETURN(an_model_classes(o));
    m.outputs = m.loss == AN_LOSS_CROSS_ENTROPY ? o->classes : an_field_elements(&o->targets);
    AN_TRY_RETURN(an_config_fill(o->config, "model", an_mlp_options, &m));
    m.normalize_inputs = an_model_normalizes(o->config, "data.normalize.inputs");
    m.normalize_targets = an_model_normalizes(o->config, "data.normalize.targets");
    an_embedded_column embedded[AN_MODEL_MOST_EMBEDDED];
    AN_TRY_RETURN(an_model_embedded(o, embedded, &m.embedded_count));
    m.embedded = embedded;
    return an_model_mlp(o->graph, ctx, &m);
}

const an_model_kind an_model_kind_mlp = {
    .kind = {.name = "mlp", .options = options, .samples = AN_GIVES_NUMBERS},
    .open = open_model,
    .embeds = true,
    .takes_rows = true,
};
