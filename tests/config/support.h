/* Configs from texts, for tests. */
#ifndef TESTS_CONFIG_SUPPORT_H
#define TESTS_CONFIG_SUPPORT_H

#include "anneal/config.h"
#include "support/support.h"

static inline an_context *make_context(void) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_context *ctx = NULL;
    options.threads = 1;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    return ctx;
}

/* A text as the file of this name would have it. */
static inline an_config_options options_of(const char *file, const char *text, int set_count, const char *const *sets) {
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    options.file = file;
    options.text = text;
    options.length = strlen(text);
    options.set_count = set_count;
    options.sets = sets;
    return options;
}

/* A text as folder/run.yaml would have it. */
static inline an_status open_text(an_config **config, an_context *ctx, const char *text, int set_count,
                                  const char *const *sets) {
    const an_config_options options = options_of("folder/run.yaml", text, set_count, sets);
    return an_config_create(config, ctx, &options);
}

static inline an_config *config_of(an_context *ctx, const char *text) {
    an_config *config = NULL;
    OK(ctx, open_text(&config, ctx, text, 0, NULL));
    return config;
}

#define ASSERT_STRING(ctx, config, path, expected)      \
    do {                                                \
        const char *got_ = NULL;                        \
        OK(ctx, an_config_string(config, path, &got_)); \
        assert_string_equal(got_, expected);            \
    } while (0)

#endif
