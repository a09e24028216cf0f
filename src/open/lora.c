/* lora: adds the adapter of the config to its model, and loads one to start from. */
#include <stdio.h>

#include "anneal/optimizer.h"
#include "open/open.h"

bool an_open_adapts(an_config *config) {
    return an_config_origin_of(config, "lora.targets") != AN_ORIGIN_NONE ||
           an_config_origin_of(config, "lora.from") != AN_ORIGIN_NONE;
}

static an_status blame(an_config *config, an_context *ctx, an_status status, const char *path) {
    return AN_ERROR(ctx, status, "%s: %s", an_config_place(config, path), an_last_error(ctx));
}

an_status an_open_lora(an_config *config, an_context *ctx, an_graph *graph, an_dtype precision, bool f32_storage) {
    an_lora_options o;
    an_lora_options_init(&o, sizeof o);
    if (!an_open_adapts(config)) return AN_OK;
    const bool is_described = an_config_origin_of(config, "lora.targets") != AN_ORIGIN_NONE;
    AN_TRY_RETURN(an_config_fill(config, "lora", an_lora_options, &o));
    if (!is_described) {
        AN_TRY_RETURN(an_config_path(config, "lora.from", &o.from));
        o.rank = 0;
        o.target_count = 0;
        o.train_count = 0;
    }
    /* With f32 storage only products read the low type; everything else would have to convert the base in every
     * step. */
    if (an_config_is(config, "lora.base", "auto") && !f32_storage) o.base = precision;
    if (an_config_is(config, "lora.base", "q8_0")) o.base = AN_DTYPE_Q8_0;
    const an_status status = an_graph_add_lora(graph, &o);
    return status == AN_OK ? AN_OK : blame(config, ctx, status, is_described ? "lora" : "lora.from");
}

an_status an_open_adapter(an_trainer *trainer, an_config *config, an_context *ctx) {
    static const char from[] = "lora.from";
    char place[AN_MESSAGE_BYTES];
    an_init_options o;
    an_init_options_init(&o, sizeof o);
    if (!an_open_adapts(config) || an_config_origin_of(config, from) == AN_ORIGIN_NONE) return AN_OK;
    AN_TRY_RETURN(an_config_path(config, from, &o.path));
    snprintf(place, sizeof place, "%s: %s", an_config_place(config, from), from);
    o.place = place;
    o.adapter = true;
    return an_trainer_init(trainer, &o);
}
