/* lora: adds the adapter of the config to its model, and loads one to start from. */
#include <stdio.h>

#include "anneal/optimizer.h"
#include "open/open.h"

enum { MOST_TARGETS = 256 };

bool an_open_adapts(an_config *config) {
    return an_config_origin_of(config, "lora.targets") != AN_ORIGIN_NONE ||
           an_config_origin_of(config, "lora.from") != AN_ORIGIN_NONE;
}

static an_status blame(an_config *config, an_context *ctx, an_status status, const char *path) {
    return AN_ERROR(ctx, status, "%s: %s", an_config_place(config, path), an_last_error(ctx));
}

/* The patterns of a list. */
static an_status get_patterns(an_config *config, an_context *ctx, const char *list, const char *patterns[MOST_TARGETS],
                              int *count) {
    *count = an_config_size(config, list);
    if (*count > MOST_TARGETS)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %d patterns are listed; at most %d are possible",
                        an_config_place(config, list), *count, MOST_TARGETS);
    for (int i = 0; i < *count; i++) {
        char path[AN_PATH_TEXT];
        snprintf(path, sizeof path, "%s[%d]", list, i);
        AN_TRY_RETURN(an_config_string(config, path, &patterns[i]));
    }
    return AN_OK;
}

an_status an_open_lora(an_config *config, an_context *ctx, an_graph *graph, an_dtype precision, bool f32_storage) {
    const char *targets[MOST_TARGETS], *train[MOST_TARGETS];
    int train_count = 0;
    an_lora_options o;
    an_lora_options_init(&o, sizeof o);
    if (!an_open_adapts(config)) return AN_OK;
    const bool is_described = an_config_origin_of(config, "lora.targets") != AN_ORIGIN_NONE;
    if (!is_described) AN_TRY_RETURN(an_config_path(config, "lora.from", &o.from));
    if (is_described) AN_TRY_RETURN(get_patterns(config, ctx, "lora.targets", targets, &o.target_count));
    if (is_described) AN_TRY_RETURN(get_patterns(config, ctx, "lora.train", train, &train_count));
    o.targets = targets;
    o.train = train;
    o.train_count = train_count;
    if (is_described) AN_TRY_RETURN(an_config_count(config, "lora.rank", &o.rank));
    if (!an_config_is(config, "lora.alpha", "auto")) AN_TRY_RETURN(an_config_real(config, "lora.alpha", &o.alpha));
    AN_TRY_RETURN(an_config_real(config, "lora.dropout", &o.dropout));
    AN_TRY_RETURN(an_config_bool(config, "lora.rslora", &o.rslora));
    AN_TRY_RETURN(an_config_bool(config, "lora.dora", &o.dora));
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
