/* Data of preferences: the loss of the model becomes that of direct preference optimization. */
#include "anneal/adapter.h"
#include "kinds/fields.h"
#include "kinds/models/models.h"
#include "open/open.h"

static const char *const key = AN_SETTING(train.loss.beta);

static const double usual_beta = 0.1; /* as in most published runs */

an_status an_open_dpo(an_config *config, an_context *ctx, an_graph *graph, const an_dataset *training) {
    const double beta = config->settings->train.loss.beta; /* 0: auto */
    if (an_field_find(training, "preferred") < 0)
        return beta == 0 ? AN_OK
                         : AN_ERROR(ctx, AN_ERR_ARGUMENT,
                                    "%s: %s is for data of type preferences, which data.train is not; remove it",
                                    an_config_place(config, key), key);
    if (!an_model_adapts(config))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: data of type preferences needs an adapter, because the model is compared with its frozen "
                        "base, which has no second copy; set lora.targets, such as [q_proj, v_proj]",
                        an_config_place(config, AN_SETTING(data.train)));
    return an_key_blame(config, ctx, an_graph_add_dpo(graph, beta > 0 ? beta : usual_beta), AN_SETTING(data.train));
}
