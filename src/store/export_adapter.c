/* The adapter of a checkpoint in PEFT's format. */
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/guard.h"
#include "base/memory.h"
#include "base/word.h"
#include "ir/adapter.h"
#include "store/inspect.h"

/* GPT-2's published classes have "transformer." before every layer, and ours has not. */
static const char *prefix_of(const char *name) {
    return !strncmp(name, "h.", 2) && an_is_digit(name[2]) ? "transformer." : "";
}

static an_status rename_tensor(const an_export_names *names, const char *name, const char **other) {
    static const char format[] = "base_model.model.%s%s";
    an_context *ctx = names->arena->ctx;
    char *text;
    const size_t capacity = sizeof format + strlen(prefix_of(name)) + strlen(name);
    AN_TRY_RETURN(an_arena_alloc(names->arena, (void **)&text, capacity, 1));
    snprintf(text, capacity, format, prefix_of(name), name);
    *other = text;
    return AN_OK;
}

static size_t layer_length(const char *name) {
    return strlen(name) - strlen(AN_ADAPTER_FIRST);
}

/* The last part of a layer's name. */
static const char *last_part(const char *name, size_t *length) {
    size_t end = layer_length(name), begin = end;
    while (begin > 0 && name[begin - 1] != '.') begin--;
    *length = end - begin;
    return name + begin;
}

/* Whether a layer of the model that has no adapter ends in this part: then only whole names tell them apart. */
static bool is_ambiguous(const an_graph *graph, const char *part, size_t length) {
    for (size_t i = 0; i < graph->parameter_count; i++) {
        static const char weight[] = ".weight";
        const char *name = graph->parameters[i].name;
        if (an_adapter_has(name) || !an_ends_in(name, weight)) continue;
        const size_t end = strlen(name) - strlen(weight);
        if (end < length || strncmp(name + end - length, part, length) != 0) continue;
        if (end > length && name[end - length - 1] != '.') continue;
        bool has = false;
        for (size_t k = 0; k < graph->parameter_count && !has; k++) {
            const char *other = graph->parameters[k].name;
            has = an_ends_in(other, AN_ADAPTER_FIRST) && layer_length(other) == end && !strncmp(other, name, end);
        }
        if (!has) return true;
    }
    return false;
}

/* Whether an earlier adapter has the same last part. */
static bool was_listed(const an_graph *graph, size_t before, const char *part, size_t length) {
    for (size_t i = 0; i < before; i++) {
        size_t other;
        if (!an_ends_in(graph->parameters[i].name, AN_ADAPTER_FIRST)) continue;
        const char *listed = last_part(graph->parameters[i].name, &other);
        if (other == length && !strncmp(listed, part, length)) return true;
    }
    return false;
}

static an_status list_targets(an_json_writer *json, const an_graph *graph) {
    char name[AN_PATH_BYTES];
    an_json_write_array(json, "target_modules");
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const char *parameter = graph->parameters[i].name;
        size_t length;
        if (!an_ends_in(parameter, AN_ADAPTER_FIRST)) continue;
        const char *part = last_part(parameter, &length);
        if (is_ambiguous(graph, part, length))
            snprintf(name, sizeof name, "%s%.*s", prefix_of(parameter), (int)layer_length(parameter), parameter);
        else if (!was_listed(graph, i, part, length))
            snprintf(name, sizeof name, "%.*s", (int)length, part);
        else
            continue;
        an_json_write_string(json, NULL, name);
    }
    an_json_write_end(json);
    return AN_OK;
}

static an_status write_config(const an_checkpoint *c, const char *file) {
    an_status status;
    an_context *ctx = c->ctx;
    const an_saved_adapter *saved = &c->manifest->adapter;
    an_graph *graph = NULL;
    an_text text;
    char *form = NULL, message[1024] = "";
    const an_note note = {message, sizeof message};
    bool transposed = false;
    an_text_init(&text, ctx);
    AN_TRY(an_checkpoint_text(c, "graph.ang", &form));
    AN_TRY(an_graph_parse(&graph, ctx, form, strlen(form)));
    for (size_t i = 0; i < graph->parameter_count; i++)
        transposed = transposed || *prefix_of(graph->parameters[i].name);
    an_json_writer json = an_text_json(&text, AN_JSON_MARGIN);
    an_json_write_object(&json, NULL);
    an_json_write_string(&json, "peft_type", "LORA");
    an_json_write_string(&json, "task_type", "CAUSAL_LM");
    an_json_write_string(&json, "base_model_name_or_path", *saved->base ? saved->base : NULL);
    an_json_write_integer(&json, "r", saved->adapter.rank);
    an_json_write_real(&json, "lora_alpha", saved->adapter.alpha);
    an_json_write_real(&json, "lora_dropout", saved->adapter.dropout);
    an_json_write_bool(&json, "use_rslora", saved->adapter.rslora);
    an_json_write_bool(&json, "use_dora", false);
    an_json_write_bool(&json, "fan_in_fan_out", transposed); /* GPT-2's weights are [in, out] there */
    an_json_write_string(&json, "bias", "none");
    an_json_write_bool(&json, "inference_mode", true);
    AN_TRY(list_targets(&json, graph));
    an_json_write_finish(&json);
    AN_TRY(text.status);
    AN_TRY(an_note_raise(ctx, an_file_replace(file, text.bytes, text.length, note), note));
    status = AN_OK;
fail:
    an_text_destroy(&text);
    an_graph_destroy(&graph);
    an_string_release(ctx, &form);
    return status;
}

an_status an_checkpoint_export_adapter(const an_checkpoint *checkpoint, const char *folder) {
    AN_GUARD;
    AN_NEED(checkpoint, folder);
    an_status status;
    an_context *ctx = checkpoint->ctx;
    char config[AN_FILE_PATH], weights[AN_FILE_PATH], message[1024] = "";
    const an_note note = {message, sizeof message};
    an_arena arena;
    an_arena_init(&arena, ctx);
    AN_CHECK(ctx, checkpoint->manifest && checkpoint->manifest->adapter.adapter.rank > 0, AN_ERR_UNSUPPORTED,
             "%s: has no adapter; only a run with lora.targets has one", checkpoint->path);
    AN_CHECK(ctx,
             an_path_join(config, folder, "adapter_config.json") &&
                 an_path_join(weights, folder, "adapter_model.safetensors"),
             AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
    AN_TRY(an_note_raise(ctx, an_folders_make(folder, note), note));
    AN_TRY(an_export_write(checkpoint, weights, &(an_export_names){.rename = rename_tensor, .arena = &arena}));
    AN_TRY(write_config(checkpoint, config));
    status = AN_OK;
fail:
    an_arena_destroy(&arena);
    return status;
}
