/* The adapter of a checkpoint in PEFT's format. */
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/memory.h"
#include "base/word.h"
#include "interchange/export_file.h"
#include "ir/adapter.h"
#include "ir/published.h"

typedef struct {
    an_export_names names; /* first: what is renamed knows no other */
    const an_graph *graph;
} naming;

static an_status rename_tensor(const an_export_names *names, const char *name, const char **other) {
    static const char format[] = "base_model.model.%s%s";
    const char *prefix = an_published_prefix(((const naming *)names)->graph, name);
    char *text;
    const size_t capacity = sizeof format + strlen(prefix) + strlen(name);
    AN_TRY_RETURN(an_arena_alloc(names->arena, (void **)&text, capacity, 1));
    snprintf(text, capacity, format, prefix, name);
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
            snprintf(name, sizeof name, "%s%.*s", an_published_prefix(graph, parameter), (int)layer_length(parameter),
                     parameter);
        else if (!was_listed(graph, i, part, length))
            snprintf(name, sizeof name, "%.*s", (int)length, part);
        else
            continue;
        an_json_write_string(json, NULL, name);
    }
    an_json_write_end(json);
    return AN_OK;
}

/* The layer of a parameter that is trained whole; its length is 0 if it is frozen, or of the adapter. */
static size_t whole_length(const an_parameter *p) {
    const char *dot = strrchr(p->name, '.');
    if (an_adapter_has(p->name) || an_node_output(p->node, 0)->storage != AN_STORAGE_MASTER) return 0;
    return dot ? (size_t)(dot - p->name) : strlen(p->name);
}

/* Layers that are trained whole, each once; *classifies: a classifier is among them. */
static void list_whole(an_json_writer *json, const an_graph *graph, bool *classifies) {
    char name[AN_PATH_BYTES];
    bool any = false;
    *classifies = false;
    for (size_t i = 0; i < graph->parameter_count; i++) any = any || whole_length(&graph->parameters[i]) > 0;
    if (!any) {
        an_json_write_null(json, "modules_to_save");
        return;
    }
    an_json_write_array(json, "modules_to_save");
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const char *parameter = graph->parameters[i].name;
        const size_t length = whole_length(&graph->parameters[i]);
        bool listed = length == 0;
        for (size_t k = 0; k < i && !listed; k++)
            listed =
                whole_length(&graph->parameters[k]) == length && !strncmp(graph->parameters[k].name, parameter, length);
        if (listed) continue;
        snprintf(name, sizeof name, "%s%.*s", an_published_prefix(graph, parameter), (int)length, parameter);
        *classifies = *classifies || !strcmp(name, "classifier");
        an_json_write_string(json, NULL, name);
    }
    an_json_write_end(json);
}

static an_status write_config(const an_checkpoint *c, const an_graph *graph, const char *file) {
    an_status status;
    an_context *ctx = c->ctx;
    const an_saved_adapter *saved = &c->manifest->adapter;
    an_text text;
    char message[1024] = "";
    const an_note note = {message, sizeof message};
    bool transposed = false, classifies = false, language = false;
    an_text_init(&text, ctx);
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const char *name = graph->parameters[i].name;
        transposed = transposed || !strcmp(an_published_prefix(graph, name), "transformer.");
        language = language || !strcmp(name, "wte.weight") || !strcmp(name, "model.embed_tokens.weight");
    }
    an_json_writer json = an_text_json(&text, AN_JSON_MARGIN);
    an_json_write_object(&json, NULL);
    an_json_write_string(&json, "peft_type", "LORA");
    an_json_write_string(&json, "base_model_name_or_path", *saved->base ? saved->base : NULL);
    an_json_write_integer(&json, "r", saved->adapter.rank);
    an_json_write_real(&json, "lora_alpha", saved->adapter.alpha);
    an_json_write_real(&json, "lora_dropout", saved->adapter.dropout);
    an_json_write_bool(&json, "use_rslora", saved->adapter.rslora);
    an_json_write_bool(&json, "use_dora", saved->adapter.dora);
    an_json_write_bool(&json, "fan_in_fan_out", transposed); /* GPT-2's weights are [in, out] there */
    an_json_write_string(&json, "bias", "none");
    an_json_write_bool(&json, "inference_mode", true);
    AN_TRY(list_targets(&json, graph));
    list_whole(&json, graph, &classifies);
    /* With SEQ_CLS, PEFT looks for a trained classifier in the file. */
    an_json_write_string(&json, "task_type", classifies ? "SEQ_CLS" : language ? "CAUSAL_LM" : NULL);
    an_json_write_finish(&json);
    AN_TRY(text.status);
    AN_TRY(an_note_raise(ctx, an_file_replace(file, text.bytes, text.length, note), note));
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

an_status an_export_adapter(const an_checkpoint *checkpoint, const char *folder) {
    an_status status;
    an_context *ctx = checkpoint->ctx;
    char config[AN_FILE_PATH], weights[AN_FILE_PATH], message[1024] = "", *text = NULL;
    const an_note note = {message, sizeof message};
    an_graph *graph = NULL;
    an_arena arena;
    an_arena_init(&arena, ctx);
    AN_CHECK(ctx, checkpoint->manifest && checkpoint->manifest->adapter.adapter.rank > 0, AN_ERR_UNSUPPORTED,
             "%s: has no adapter; only a run with lora.targets has one", checkpoint->path);
    AN_CHECK(ctx,
             an_path_join(config, folder, "adapter_config.json") &&
                 an_path_join(weights, folder, "adapter_model.safetensors"),
             AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
    AN_TRY(an_note_raise(ctx, an_folders_make(folder, note), note));
    AN_TRY(an_checkpoint_text(checkpoint, "graph.ang", &text));
    AN_TRY(an_graph_parse(&graph, ctx, text, strlen(text)));
    const naming names = {.names = {.rename = rename_tensor, .arena = &arena}, .graph = graph};
    AN_TRY(an_export_write(checkpoint, weights, &names.names));
    AN_TRY(write_config(checkpoint, graph, config));
    status = AN_OK;
fail:
    an_graph_destroy(&graph);
    an_string_release(ctx, &text);
    an_arena_destroy(&arena);
    return status;
}
