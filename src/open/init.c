/* model.init: loads initial weights. */
#include <stdio.h>

#include "kinds/keys.h"
#include "open/open.h"

an_status an_open_init(an_trainer *trainer, an_config *config, an_context *ctx) {
    static const char *const rename = AN_SETTING(model.init.rename);
    const bool own = !config->settings->model.init.from; /* of a model that brings them */
    const char *from = own ? AN_SETTING(model.from) : AN_SETTING(model.init.from);
    an_status status;
    char place[AN_MESSAGE_BYTES];
    an_load_rename *renames = NULL;
    an_load_options o;
    an_load_options_init(&o, sizeof o);
    if (!an_key_is_there(config, from)) return AN_OK;
    const int count = an_config_size(config, rename);
    AN_TRY(an_config_path(config, from, &o.path));
    if (!an_key_is_there(config, AN_SETTING(model.graph)) && !an_key_is_there(config, AN_SETTING(model.from)))
        o.model_type = config->settings->model.type;
    snprintf(place, sizeof place, "%s: %s", an_config_place(config, from), own ? from : AN_SETTING(model.init));
    o.place = place;
    AN_TRY(an_config_fill(config, AN_SETTING(model.init), an_load_options, &o));
    o.new_heads = own;
    AN_TRY(an_alloc(ctx, (void **)&renames, (size_t)count, sizeof *renames));
    for (int i = 0; i < count; i++) AN_TRY(an_config_entry(config, rename, i, &renames[i].pattern, &renames[i].text));
    o.rename_count = count;
    o.renames = renames;
    AN_TRY(an_trainer_load_weights(trainer, &o));
fail:
    an_release(ctx, (void **)&renames, (size_t)count, sizeof *renames);
    return status;
}
