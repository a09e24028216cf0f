#include "pretrained/sampling.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/reader.h"
#include "base/guard.h"
#include "base/status.h"
#include "formats/gguf_keys.h"
#include "pretrained/description.h"
#include "pretrained/structs.h"

enum {
    MOST_BYTES = 1 << 20, /* of the file */
    USUAL_TOP_K = 50      /* transformers' own, where a file samples and has no top_k */
};

typedef struct {
    an_context *ctx;
    const char *path;
    int64_t vocabulary;
    an_pretrained_sampling *to;
} reading;

/* ---- values ---- */

enum { TEMPERATURE, TOP_P, MIN_P, PENALTY, REALS };
static const struct {
    const char *key, *gguf;
    double maximum;
    bool above; /* it must be above 0 */
    const char *range;
} reals[REALS] = {
    [TEMPERATURE] = {"temperature", "general.sampling.temp", 1e6, false, "from 0 to 1e6"},
    [TOP_P] = {"top_p", "general.sampling.top_p", 1, true, "above 0 and at most 1"},
    [MIN_P] = {"min_p", "general.sampling.min_p", 1, false, "from 0 to 1"},
    [PENALTY] = {"repetition_penalty", "general.sampling.penalty_repeat", 1e6, true, "above 0 and at most 1e6"},
};

static an_status take_real(const reading *r, int row, const char *key, double value) {
    an_pretrained_sampling *s = r->to;
    double *const places[REALS] = {&s->temperature, &s->top_p, &s->min_p, &s->repetition_penalty};
    if (!(reals[row].above ? value > 0 : value >= 0) || !(value <= reals[row].maximum))
        return AN_ERROR(r->ctx, AN_ERR_DAMAGED, "%s: %s is %g, but it must be %s", r->path, key, value,
                        reals[row].range);
    *places[row] = value;
    return AN_OK;
}

static an_status take_top_k(const reading *r, const char *key, int64_t value) {
    if (value < 0)
        return AN_ERROR(r->ctx, AN_ERR_DAMAGED,
                        "%s: %s is %" PRId64 ", but it must be a number of tokens, or 0 for all", r->path, key, value);
    r->to->top_k = value;
    return AN_OK;
}

static an_status take_stop(const reading *r, const char *key, int64_t token) {
    an_pretrained_sampling *s = r->to;
    if (token < 0 || token >= r->vocabulary || token > INT32_MAX)
        return AN_ERROR(r->ctx, AN_ERR_DAMAGED, "%s: %s names token %" PRId64 ", but there are %" PRId64 " tokens",
                        r->path, key, token, r->vocabulary);
    for (int i = 0; i < s->stop_count; i++)
        if (s->stop_tokens[i] == token) return AN_OK;
    if (s->stop_count == AN_PRETRAINED_STOPS)
        return AN_ERROR(r->ctx, AN_ERR_UNSUPPORTED, "%s: %s names more than %d tokens", r->path, key,
                        AN_PRETRAINED_STOPS);
    s->stop_tokens[s->stop_count++] = (int32_t)token;
    return AN_OK;
}

/* ---- generation_config.json ---- */

/* Keys without an effect on the tokens of one sequence: who wrote the file, how long a text may be (the caller says
 * that), caches, and what a call returns. */
static bool is_harmless(const char *key) {
    static const char *const harmless[] = {
        "_from_model_config", "_commit_hash", "transformers_version", "bos_token_id", "pad_token_id",
        "decoder_start_token_id", "max_length", "max_new_tokens", "use_cache", "cache_implementation", "cache_config",
        "max_cache_len", "prefill_chunk_size", "compile_config", "disable_compile", "output_attentions",
        "output_hidden_states", "output_scores", "output_logits", "return_dict_in_generate", "renormalize_logits",
        "remove_invalid_values", "low_memory",
        /* of other ways to find the same tokens */
        "is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold",
        "assistant_lookbehind", "target_lookbehind", "prompt_lookup_num_tokens", "max_matching_ngram_size",
        /* of beams, whose number is another key */
        "length_penalty", "early_stopping", NULL};
    int i = 0;
    while (harmless[i] && strcmp(harmless[i], key) != 0) i++;
    return harmless[i] != NULL;
}

static void ignore(an_pretrained_sampling *s, const char *key) {
    static const char more[] = ", ...";
    const size_t length = strlen(s->ignored), left = sizeof s->ignored - length;
    char added[AN_PRETRAINED_IGNORED];
    const int needed = snprintf(added, sizeof added, "%s%s", length ? ", " : "", AN_QUOTE(key));
    if ((size_t)needed + sizeof more <= left)
        memcpy(s->ignored + length, added, (size_t)needed + 1);
    else if (sizeof more <= left && (length < sizeof more || strcmp(s->ignored + length - strlen(more), more) != 0))
        memcpy(s->ignored + length, more, sizeof more);
}

/* Most settings are off at 0 or 1. */
static void read_unknown(const reading *r, an_json *j, const char *key) {
    const int first = an_json_peek(j);
    double number = 0;
    an_stated v = {0};
    bool on = false;
    if (first == '-' || (first >= '0' && first <= '9'))
        on = an_json_real(j, &number) && number != 0 && number != 1;
    else
        on = an_stated_read_off(j, &v) && v.number != 0;
    if (on) ignore(r->to, key);
}

static an_status read_stops(const reading *r, an_json *j, const char *key) {
    int64_t token = 0;
    if (an_json_peek(j) != '[') {
        if (!an_json_integer(j, &token)) return AN_OK; /* the caller sees the problem */
        return take_stop(r, key, token);
    }
    an_json_array(j);
    while (an_json_element(j) && an_json_integer(j, &token)) AN_TRY_RETURN(take_stop(r, key, token));
    return AN_OK;
}

enum { KEY_TOP_K = REALS, KEY_STOPS, KEY_SAMPLES, KEYS };
static const char *const other_keys[] = {"top_k", "eos_token_id", "do_sample"};

static int find_key(const char *key) {
    for (int i = 0; i < REALS; i++)
        if (!strcmp(reals[i].key, key)) return i;
    for (int i = REALS; i < KEYS; i++)
        if (!strcmp(other_keys[i - REALS], key)) return i;
    return KEYS;
}

/* A problem of the JSON is left to the caller. */
static an_status read_value(const reading *r, an_json *j, int number, const char *key, bool *samples) {
    double real = 0;
    int64_t integer = 0;
    if (an_json_peek(j) == 'n') { /* as if the key was absent */
        an_json_skip(j);
        return AN_OK;
    }
    if (number < REALS) return an_json_real(j, &real) ? take_real(r, number, key, real) : AN_OK;
    if (number == KEY_TOP_K) return an_json_integer(j, &integer) ? take_top_k(r, key, integer) : AN_OK;
    if (number == KEY_STOPS) return read_stops(r, j, key);
    an_json_bool(j, samples);
    return AN_OK;
}

static an_status read_keys(const reading *r, an_json *j) {
    an_context *ctx = r->ctx;
    an_pretrained_sampling *s = r->to;
    an_json_string key;
    bool samples = false;
    unsigned seen = 0;
    an_json_object(j);
    while (an_json_member(j, &key)) {
        const int number = find_key(key.bytes);
        if (number < KEYS && (seen & 1u << number))
            an_json_refuse(j, j->at, "this key appears twice");
        else if (number < KEYS)
            AN_TRY_RETURN(read_value(r, j, number, key.bytes, &samples));
        else if (is_harmless(key.bytes))
            an_json_skip(j);
        else
            read_unknown(r, j, key.bytes);
        if (number < KEYS) seen |= 1u << number;
        if (j->problem)
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: byte %zu, the value of '%s': %s", r->path, j->at,
                            AN_QUOTE(key.bytes), j->problem);
    }
    if (!an_json_end(j)) return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: byte %zu: %s", r->path, j->at, j->problem);
    if (samples && s->temperature < 0) s->temperature = 1;
    if (samples && s->top_k < 0) s->top_k = USUAL_TOP_K;
    if (!samples) s->temperature = seen & 1u << KEY_SAMPLES ? 0 : -1;
    return AN_OK;
}

an_status an_sampling_read(an_pretrained_sampling *sampling, an_context *ctx, const char *path, int64_t vocabulary) {
    an_status status;
    char message[AN_MESSAGE_BYTES], *text = NULL;
    const an_note note = {message, sizeof message};
    size_t bytes = 0;
    an_reader file = {0};
    an_json j;
    const reading r = {.ctx = ctx, .path = path, .vocabulary = vocabulary, .to = sampling};
    AN_TRY(an_note_raise(ctx, an_reader_open(&file, path, note), note));
    AN_CHECK(ctx, file.size <= MOST_BYTES, AN_ERR_UNSUPPORTED, "%s: has %lld bytes, but such a file has at most %d",
             path, (long long)file.size, MOST_BYTES);
    bytes = (size_t)file.size + 1;
    AN_TRY(an_alloc_raw(ctx, (void **)&text, bytes));
    AN_TRY(an_note_raise(ctx, an_reader_read(&file, 0, text, bytes - 1, note), note));
    an_json_init(&j, text, bytes - 1);
    AN_TRY(read_keys(&r, &j));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&text, bytes, 1);
    an_reader_close(&file);
    return status;
}

/* ---- GGUF ---- */

static an_status read_gguf_keys(const reading *r, const an_gguf *file) {
    static const char top_k[] = "general.sampling.top_k";
    static const char *const stops[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"};
    int64_t number = -1;
    for (int i = 0; i < REALS; i++) {
        double value = 0;
        if (!an_gguf_find(file, reals[i].gguf)) continue;
        AN_TRY_RETURN(an_gguf_real(file, reals[i].gguf, &value));
        AN_TRY_RETURN(take_real(r, i, reals[i].gguf, value));
    }
    AN_TRY_RETURN(an_gguf_integer(file, top_k, &number));
    if (an_gguf_find(file, top_k)) AN_TRY_RETURN(take_top_k(r, top_k, number));
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        if (!an_gguf_find(file, stops[i])) continue;
        AN_TRY_RETURN(an_gguf_integer(file, stops[i], &number));
        AN_TRY_RETURN(take_stop(r, stops[i], number));
    }
    return AN_OK;
}

an_status an_sampling_read_gguf(an_pretrained_sampling *sampling, an_context *ctx, const char *path,
                                int64_t vocabulary) {
    an_gguf *file = NULL;
    const reading r = {.ctx = ctx, .path = path, .vocabulary = vocabulary, .to = sampling};
    AN_TRY_RETURN(an_gguf_open(&file, ctx, path));
    const an_status status = read_gguf_keys(&r, file);
    an_gguf_close(&file);
    return status;
}

/* ---- both ---- */

an_status an_pretrained_sampling_get(const an_pretrained *pretrained, an_pretrained_sampling *sampling) {
    AN_GUARD;
    an_context *ctx = pretrained ? an_pretrained_description(pretrained)->ctx : NULL;
    AN_NEED_IN(ctx, pretrained, sampling);
    char path[AN_FILE_PATH];
    an_pretrained_info info;
    an_pretrained_sampling own;
    an_pretrained_info_init(&info, sizeof info);
    an_pretrained_sampling_init(&own, sizeof own);
    AN_TRY_RETURN(an_pretrained_info_get(pretrained, &info));
    if (info.is_gguf)
        AN_TRY_RETURN(an_sampling_read_gguf(&own, ctx, info.path, info.vocabulary));
    else if (an_path_join(path, info.path, "generation_config.json") && an_file_exists(path))
        AN_TRY_RETURN(an_sampling_read(&own, ctx, path, info.vocabulary));
    return an_pretrained_sampling_write(ctx, sampling, &own);
}
