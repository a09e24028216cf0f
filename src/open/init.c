/* model.init: loads initial weights. */
#include <stdio.h>

#include "open/open.h"

an_status an_open_init(an_trainer *trainer, an_config *config, an_context *ctx) {
    static const char rename[] = "model.init.rename";
    const bool own = an_config_origin_of(config, "model.init.from") == AN_ORIGIN_NONE; /* of a model that brings them */
    const char *from = own ? "model.from" : "model.init.from";
    an_status status;
    char place[AN_MESSAGE_BYTES];
    an_init_rename *renames = NULL;
    an_init_options o;
    an_init_options_init(&o, sizeof o);
    if (an_config_origin_of(config, from) == AN_ORIGIN_NONE) return AN_OK;
    const int count = an_config_size(config, rename);
    AN_TRY(an_config_path(config, from, &o.path));
    const bool has_type = an_config_origin_of(config, "model.graph") == AN_ORIGIN_NONE &&
                          an_config_origin_of(config, "model.from") == AN_ORIGIN_NONE;
    if (has_type) AN_TRY(an_config_string(config, "model.type", &o.model_type));
    snprintf(place, sizeof place, "%s: %s", an_config_place(config, from), own ? from : "model.init");
    o.place = place;
    AN_TRY(an_config_fill(config, "model.init", an_init_options, &o));
    o.new_heads = own;
    AN_TRY(an_alloc(ctx, (void **)&renames, (size_t)count, sizeof *renames));
    for (int i = 0; i < count; i++) AN_TRY(an_config_entry(config, rename, i, &renames[i].pattern, &renames[i].text));
    o.rename_count = count;
    o.renames = renames;
    AN_TRY(an_trainer_init(trainer, &o));
fail:
    an_release(ctx, (void **)&renames, (size_t)count, sizeof *renames);
    return status;
}
