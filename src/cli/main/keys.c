/* The keys of configs, for listings and completions. */
#include "cli/main/cli.h"

bool cli_key_at(int index, an_config_key *key) {
    static an_context *ctx; /* holds the texts of keys until the command ends */
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = 1;
    options.alone = true;
    if (!ctx && an_context_create(&ctx, &options) != AN_OK) return false;
    return an_config_key_get(ctx, index, key) == AN_OK;
}
