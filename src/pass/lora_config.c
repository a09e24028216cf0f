#include "pass/lora_config.h"

#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/reader.h"
#include "base/status.h"
#include "base/structs.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "ir/published.h"

enum { MOST_BYTES = 1 << 22, MOST_TARGETS = 4096 };

typedef struct {
    an_context *ctx;
    an_arena *arena;
    an_lora_options *options;
    const char *path;
    an_json json;
    const char **targets, **train;
    bool has_alpha;
} reading;

/* One more pattern of a list that has `count`; `key` is for messages. The format has one %s for a name, which it
 * quotes, or for a pattern. */
static an_status add_pattern(const reading *r, const char *key, const char *format, const char *name,
                             const char ***list, int64_t count) {
    an_context *ctx = r->ctx;
    char *text;
    const size_t capacity = strlen(format) + strlen(name) + 1;
    if (count == MOST_TARGETS)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: %s has more than %d names", r->path, key, MOST_TARGETS);
    if (strstr(format, "\\Q") && (!*name || strstr(name, "\\E")))
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: %s has '%s', which is not the name of a layer", r->path, key,
                        AN_QUOTE(name));
    if (!*list) AN_TRY_RETURN(an_arena_alloc(r->arena, (void **)list, MOST_TARGETS, sizeof **list));
    AN_TRY_RETURN(an_arena_alloc(r->arena, (void **)&text, capacity, 1));
    snprintf(text, capacity, format, name);
    (*list)[count] = text;
    return AN_OK;
}

/* PEFT takes a layer whose name is that of the list, or ends in it behind a dot. */
static an_status add_target(reading *r, const char *name, bool is_pattern) {
    static const char key[] = "target_modules";
    if (is_pattern)
        AN_TRY_RETURN(add_pattern(r, key, "^(?:%s)\\.weight$", name, &r->targets, r->options->target_count));
    else
        AN_TRY_RETURN(add_pattern(r, key, "(?:^|\\.)\\Q%s\\E\\.weight$", an_published_bare(name), &r->targets,
                                  r->options->target_count));
    r->options->target_count++;
    return AN_OK;
}

/* What is trained whole: a layer, or all layers inside of it. Names for models of other kinds may be among
 * them, so they need not match. */
static an_status read_whole(reading *r) {
    an_json_string name;
    if (!an_json_array(&r->json)) return AN_OK;
    while (an_json_element(&r->json)) {
        if (!an_json_string_value(&r->json, &name)) break;
        AN_TRY_RETURN(add_pattern(r, "modules_to_save", "(?:^|\\.)\\Q%s\\E\\.", an_published_bare(name.bytes),
                                  &r->train, r->options->train_count));
        r->options->train_count++;
    }
    return AN_OK;
}

static an_status read_targets(reading *r) {
    an_context *ctx = r->ctx;
    an_json_string name;
    if (an_json_peek(&r->json) == '"') {
        if (!an_json_string_value(&r->json, &name)) return AN_OK;
        if (strcmp(name.bytes, "all-linear") != 0) return add_target(r, name.bytes, true);
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: target_modules is all-linear; set the targets yourself, such as q_proj and v_proj",
                        r->path);
    }
    if (!an_json_array(&r->json)) return AN_OK;
    while (an_json_element(&r->json))
        if (an_json_string_value(&r->json, &name)) AN_TRY_RETURN(add_target(r, name.bytes, false));
    return AN_OK;
}

static an_status read_key(reading *r, const char *key) {
    an_json *json = &r->json;
    an_lora_options *o = r->options;
    if (!strcmp(key, "r")) {
        an_json_count(json, &o->rank);
    } else if (!strcmp(key, "lora_alpha")) {
        r->has_alpha = an_json_real(json, &o->alpha);
    } else if (!strcmp(key, "use_rslora")) {
        an_json_bool(json, &o->rslora);
    } else if (!strcmp(key, "use_dora") && an_json_peek(json) != 'n') {
        an_json_bool(json, &o->dora);
    } else if (!strcmp(key, "target_modules") && an_json_peek(json) != 'n') {
        return read_targets(r);
    } else if (!strcmp(key, "modules_to_save") && an_json_peek(json) != 'n') {
        return read_whole(r);
    } else if ((!strcmp(key, "exclude_modules") || !strcmp(key, "layers_to_transform") ||
                !strcmp(key, "layers_pattern")) &&
               an_json_peek(json) != 'n') {
        return AN_ERROR(
            r->ctx, AN_ERR_UNSUPPORTED,
            "%s: %s is set, so target_modules does not say which layers the adapter has; set the targets yourself",
            r->path, key);
    } else {
        an_json_skip(json);
    }
    return AN_OK;
}

static an_status read_text(reading *r) {
    an_context *ctx = r->ctx;
    an_lora_options *o = r->options;
    an_json_string key;
    an_json_object(&r->json);
    while (an_json_member(&r->json, &key)) AN_TRY_RETURN(read_key(r, key.bytes));
    if (!r->json.problem) an_json_end(&r->json);
    if (r->json.problem)
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: not a valid adapter_config.json: %s, at byte %zu", r->path,
                        r->json.problem, r->json.at);
    if (o->rank == 0) return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: has no r, the rank of the adapter", r->path);
    if (o->target_count == 0)
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: has no target_modules, the layers that the adapter changes", r->path);
    if (!r->has_alpha) o->alpha = 8; /* PEFT's default */
    o->targets = r->targets;
    o->train = r->train;
    return AN_OK;
}

an_status an_lora_config_read(an_lora_options *options, an_arena *arena) {
    an_context *ctx = arena->ctx;
    char path[AN_FILE_PATH], message[AN_MESSAGE_BYTES], *text = NULL;
    const an_note note = {message, sizeof message};
    an_reader file;
    if (options->target_count != 0 || options->train_count != 0 || options->rank != 0 || !an_is_auto(options->alpha) ||
        options->rslora || options->dora)
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "an_lora_options has `from`, whose adapter says targets, train, rank, alpha, rslora and dora, and "
            "some of these as well");
    if (!an_path_join(path, options->from, "adapter_config.json"))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %.100s…", options->from);
    AN_TRY_RETURN(an_note_raise(ctx, an_reader_open(&file, path, note), note));
    an_status status =
        file.size <= MOST_BYTES
            ? AN_OK
            : AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: has %lld bytes, but an adapter_config.json has at most %d", path,
                       (long long)file.size, MOST_BYTES);
    const size_t bytes = (size_t)file.size;
    if (status == AN_OK) status = an_arena_alloc(arena, (void **)&text, bytes + 1, 1);
    if (status == AN_OK) status = an_note_raise(ctx, an_reader_read(&file, 0, text, bytes, note), note);
    an_reader_close(&file);
    AN_TRY_RETURN(status);
    reading r = {.ctx = ctx, .arena = arena, .options = options, .path = path};
    an_json_init(&r.json, text, bytes);
    return read_text(&r);
}
