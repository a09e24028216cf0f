/* Adapters in PEFT's format: adapter_config.json must say what the model's adapter is, and
 * adapter_model.safetensors has its weights. */
#include "interchange/adapter.h"

#include <string.h>

#include "base/files/reader.h"
#include "base/text/json.h"
#include "base/text/text.h"

enum { MOST_BYTES = 1 << 22 };

typedef struct {
    an_context *ctx;
    const an_adapter *adapter; /* of the model */
    const char *path;
    an_json json;
    bool has_rank, dora;
    double alpha;
    an_text unknown; /* keys, with commas */
} reading;

static an_status refuse(const reading *r, const char *key, const char *problem) {
    return AN_ERROR(r->ctx, AN_ERR_UNSUPPORTED, "%s: %s %s", r->path, key, problem);
}

static bool is_harmless(const char *key) {
    static const char *const keys[] = {
        /* what the names of the tensors say as well */
        "target_modules", "exclude_modules", "layers_to_transform", "layers_pattern", "modules_to_save",
        /* how weights lie in the base: a change of a layer has the same shape in both */
        "fan_in_fan_out",
        /* where it comes from, and how it was started */
        "base_model_name_or_path", "revision", "auto_mapping", "inference_mode", "init_lora_weights", "task_type",
        "peft_version", "loftq_config", "eva_config", "corda_config", "lora_ga_config", "ensure_weight_tying",
        /* of training, which the run's own config says */
        "lora_dropout", "runtime_config", "ephemeral_gpu_offload",
        /* of engines that anneal does not have */
        "megatron_config", "megatron_core", "qalora_group_size", NULL};
    int i = 0;
    while (keys[i] && strcmp(keys[i], key) != 0) i++;
    return keys[i] != NULL;
}

/* Whether a value is null, false, an empty list or an empty table: then what it stands for is off. */
static bool is_off(an_json *json) {
    an_json_string key;
    bool on = true;
    switch (an_json_peek(json)) {
    case 'n': return an_json_skip(json);
    case 'f':
    case 't': return an_json_bool(json, &on) && !on;
    case '[': return an_json_array(json) && !an_json_element(json) && !json->problem;
    case '{': return an_json_object(json) && !an_json_member(json, &key) && !json->problem;
    default: return false;
    }
}

static an_status read_key(reading *r, const char *key) {
    static const char *const off[] = {"use_qalora",
                                      "lora_bias",
                                      "rank_pattern",
                                      "alpha_pattern",
                                      "layer_replication",
                                      "trainable_token_indices",
                                      "target_parameters",
                                      "arrow_config",
                                      "alora_invocation_tokens",
                                      "use_bdlora",
                                      "kasa_config",
                                      "monteclora_config",
                                      "velora_config",
                                      NULL};
    an_json *json = &r->json;
    an_json_string text;
    int64_t rank;
    bool flag;
    if (is_harmless(key)) {
        an_json_skip(json);
        return AN_OK;
    }
    for (int i = 0; off[i]; i++)
        if (!strcmp(off[i], key)) {
            if (is_off(json)) return AN_OK;
            return json->problem ? AN_OK : refuse(r, key, "is set, which is not supported");
        }
    if (!strcmp(key, "peft_type")) {
        if (!an_json_string_value(json, &text) || !strcmp(text.bytes, "LORA")) return AN_OK;
        return AN_ERROR(r->ctx, AN_ERR_UNSUPPORTED, "%s: peft_type is '%s'; only LORA is supported", r->path,
                        AN_QUOTE(text.bytes));
    }
    if (!strcmp(key, "bias")) {
        if (!an_json_string_value(json, &text) || !strcmp(text.bytes, "none")) return AN_OK;
        return refuse(r, key, "is not none: biases cannot be trained beside an adapter");
    }
    if (!strcmp(key, "r")) {
        r->has_rank = true;
        if (!an_json_count(json, &rank) || rank == r->adapter->rank) return AN_OK;
        return AN_ERROR(r->ctx, AN_ERR_ARGUMENT, "%s: r is %lld, but the rank of the model's adapter is %lld", r->path,
                        (long long)rank, (long long)r->adapter->rank);
    }
    if (!strcmp(key, "lora_alpha")) {
        an_json_real(json, &r->alpha);
        return AN_OK;
    }
    if (!strcmp(key, "use_rslora")) {
        if (!an_json_bool(json, &flag) || flag == r->adapter->rslora) return AN_OK;
        return AN_ERROR(r->ctx, AN_ERR_ARGUMENT, "%s: use_rslora is %s, but rslora of the model's adapter is %s",
                        r->path, flag ? "true" : "false", flag ? "off" : "on");
    }
    if (!strcmp(key, "use_dora")) {
        r->dora = !is_off(json);
        return AN_OK;
    }
    an_text_add(&r->unknown, "%s%s", r->unknown.length ? ", " : "", AN_QUOTE(key));
    an_json_skip(json);
    return AN_OK;
}

static an_status read_config(reading *r) {
    an_context *ctx = r->ctx;
    an_json_string key;
    r->alpha = 8; /* PEFT's default */
    if (an_json_object(&r->json))
        while (an_json_member(&r->json, &key)) {
            AN_TRY_RETURN(read_key(r, key.bytes));
            if (r->json.problem) break;
        }
    if (!r->json.problem) an_json_end(&r->json);
    if (r->json.problem)
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: not a valid adapter_config.json: %s, at byte %zu", r->path,
                        r->json.problem, r->json.at);
    if (!r->has_rank) return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: has no r, the rank of the adapter", r->path);
    if (r->alpha != r->adapter->alpha)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: lora_alpha is %g, but alpha of the model's adapter is %g", r->path,
                        r->alpha, r->adapter->alpha);
    if (r->dora != r->adapter->dora)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: use_dora is %s, but dora of the model's adapter is %s", r->path,
                        r->dora ? "true" : "false", r->dora ? "off" : "on");
    if (r->unknown.length > 0)
        an_log_write(ctx, AN_LOG_WARNING, "%s: unknown keys, which may change what the adapter computes: %s", r->path,
                     r->unknown.bytes);
    return r->unknown.status;
}

static an_status check_config(reading *r) {
    an_status status;
    an_context *ctx = r->ctx;
    char message[AN_MESSAGE_BYTES], *text = NULL;
    size_t bytes = 0;
    const an_note note = {message, sizeof message};
    an_reader file;
    AN_TRY_RETURN(an_note_raise(ctx, an_reader_open(&file, r->path, note), note));
    an_text_init(&r->unknown, ctx);
    AN_CHECK(ctx, file.size <= MOST_BYTES, AN_ERR_UNSUPPORTED,
             "%s: has %lld bytes, but an adapter_config.json has at most %d", r->path, (long long)file.size,
             MOST_BYTES);
    bytes = (size_t)file.size;
    AN_TRY(an_alloc_raw(ctx, (void **)&text, bytes));
    AN_TRY(an_note_raise(ctx, an_reader_read(&file, 0, text, bytes, note), note));
    an_json_init(&r->json, text, bytes);
    AN_TRY(read_config(r));
    status = AN_OK;
fail:
    an_text_destroy(&r->unknown);
    an_release(ctx, (void **)&text, bytes, 1);
    an_reader_close(&file);
    return status;
}

an_status an_adapter_check(an_context *ctx, const an_graph *graph, const char *folder) {
    an_text path;
    if (graph->adapter.rank == 0)
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "the model has no adapter, so '%s' cannot be loaded: add one with an_graph_add_lora", folder);
    an_text_init(&path, ctx);
    an_text_add(&path, "%s/adapter_config.json", folder);
    an_status status = path.status;
    reading r = {.ctx = ctx, .adapter = &graph->adapter, .path = path.bytes};
    if (status == AN_OK) status = check_config(&r);
    an_text_destroy(&path);
    return status;
}
