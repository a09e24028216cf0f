/* lora: adds the adapter of the config to its model, and loads one to start from. */
#include <stdio.h>

#include "anneal/adapter.h"
#include "kinds/models/models.h"
#include "open/open.h"

an_status an_open_lora(an_config *config, an_context *ctx, an_graph *graph, an_dtype precision, bool f32_storage) {
    an_lora_options o;
    an_lora_options_init(&o, sizeof o);
    if (!an_model_adapts(config)) return AN_OK;
    const bool is_described = an_key_is_there(config, AN_SETTING(lora.targets));
    AN_TRY_RETURN(an_config_fill(config, AN_SETTING(lora), an_lora_options, &o));
    if (!is_described) {
        o.from = config->settings->lora.from;
        o.rank = 0;
        o.target_count = 0;
        o.train_count = 0;
    }
    /* With f32 storage only products read the low type; everything else would have to convert the base in every
     * step. */
    if (an_config_is(config, AN_SETTING(lora.base), "auto") && !f32_storage) o.base = precision;
    return an_key_blame(config, ctx, an_graph_add_lora(graph, &o),
                        is_described ? AN_SETTING(lora) : AN_SETTING(lora.from));
}

an_status an_open_adapter(an_trainer *trainer, an_config *config) {
    static const char *const key = AN_SETTING(lora.from);
    char place[AN_MESSAGE_BYTES];
    an_load_options o;
    an_load_options_init(&o, sizeof o);
    if (!config->settings->lora.from) return AN_OK;
    snprintf(place, sizeof place, "%s: %s", an_config_place(config, key), key);
    o.path = config->settings->lora.from;
    o.place = place;
    o.adapter = true;
    return an_trainer_load_weights(trainer, &o);
}
