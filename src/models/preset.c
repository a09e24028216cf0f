/* Models by name. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/text/nearest.h"
#include "models/model.h"

enum { CONTEXT = 1024, VOCABULARY = 50257 }; /* of every published GPT-2 */

static const struct {
    const char *name;
    int64_t layers, heads, width;
} presets[] = {
    {"gpt2-124m", 12, 12, 768},
    {"gpt2-355m", 24, 16, 1024},
    {"gpt2-774m", 36, 20, 1280},
    {"gpt2-1.5b", 48, 25, 1600},
};

const char *an_model_preset_name(int index) {
    return index >= 0 && index < AN_COUNT(presets) ? presets[index].name : NULL;
}

static an_status unknown(an_context *ctx, const char *name) {
    char list[256] = "";
    size_t length = 0;
    an_nearest nearest;
    an_nearest_init(&nearest, name, strlen(name));
    for (int i = 0; i < AN_COUNT(presets); i++) {
        an_nearest_consider(&nearest, presets[i].name, strlen(presets[i].name));
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", presets[i].name);
    }
    return AN_ERROR(ctx, AN_ERR_UNKNOWN, "there is no preset '%.80s'; the presets are %s%s", name, list,
                    AN_NEAREST(&nearest));
}

an_status an_model_preset_options(an_context *ctx, const char *name, an_gpt2_options *options) {
    if (!name) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the name of the preset is NULL");
    an_gpt2_options own;
    AN_TRY_RETURN(an_gpt2_options_check(ctx, options));
    AN_TRY_RETURN(an_gpt2_options_read(ctx, &own, options));
    for (int i = 0; i < AN_COUNT(presets); i++) {
        if (strcmp(presets[i].name, name) != 0) continue;
        own.layers = presets[i].layers;
        own.heads = presets[i].heads;
        own.width = presets[i].width;
        own.context = CONTEXT;
        own.vocabulary = VOCABULARY;
        return an_gpt2_options_write(ctx, options, &own);
    }
    return unknown(ctx, name);
}

an_status an_model_preset(an_graph **graph, an_context *ctx, const char *name, an_dtype dtype) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, graph, name);
    an_gpt2_options options;
    an_gpt2_options_init(&options, sizeof options);
    *graph = NULL;
    options.dtype = dtype;
    AN_TRY_RETURN(an_model_preset_options(ctx, name, &options));
    return an_model_gpt2(graph, ctx, &options);
}
