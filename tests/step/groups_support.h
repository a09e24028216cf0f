/* A context that counts its warnings, models, and the group of a parameter: what tests of parameter groups share. */
#ifndef TESTS_STEP_GROUPS_SUPPORT_H
#define TESTS_STEP_GROUPS_SUPPORT_H

#include "anneal/models.h"
#include "anneal/train.h"
#include "support/support.h"

typedef struct {
    int count;
    char text[512];
} warnings;

static an_context *ctx;
static warnings warned;

static inline void note(void *user, an_log_level level, const char *text) {
    warnings *w = user;
    if (level != AN_LOG_WARNING) return;
    w->count++;
    snprintf(w->text, sizeof w->text, "%s", text);
}

static inline int setup(void **state) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    (void)state;
    options.log = note;
    options.log_user = &warned;
    return an_context_create(&ctx, &options) != AN_OK;
}

static inline int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return 0;
}

static inline an_graph *gpt2(void) {
    an_graph *g = NULL;
    const an_gpt2_options o = {.size = sizeof o, .layers = 2, .heads = 2, .width = 8, .context = 16, .vocabulary = 11};
    OK(ctx, an_model_gpt2(&g, ctx, &o));
    return g;
}

static inline an_graph *llama(bool tied) {
    an_graph *g = NULL;
    const an_llama_options o = {
        DEFAULTS(an_llama_options), .layers = 3, .heads = 4, .kv_heads = 2, .width = 16, .hidden = 24, .context = 16,
        .vocabulary = 11,           .tied = tied};
    OK(ctx, an_model_llama(&g, ctx, &o));
    return g;
}

static inline an_group_info info_of(const an_groups *groups, const char *parameter) {
    an_group_info info;
    an_group_info_init(&info, sizeof info);
    int index = -1;
    OK(ctx, an_groups_find(groups, parameter, &index));
    OK(ctx, an_groups_get(groups, index, &info));
    return info;
}

#endif
