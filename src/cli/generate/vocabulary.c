#include <stdlib.h>
#include <string.h>

#include "base/options/settings.h"
#include "cli/generate/generate.h"

/* That of the data, or of the model that training began with. NULL: the config names none. */
static an_status find_tokenizer(an_config *config, const char *own, const char **path) {
    const char *const keys[] = {own, AN_SETTING(model.from), AN_SETTING(model.init.from)};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (an_config_origin_of(config, keys[i]) != AN_ORIGIN_NONE && !an_config_is(config, keys[i], "auto"))
            return an_config_path(config, keys[i], path);
    return AN_OK;
}

static int open_tokenizer(cli_vocabulary *v, const cli_checkpoint *from, an_config *config, const char *own) {
    const char *path = NULL;
    an_tokenizer_info info;
    an_tokenizer_info_init(&info, sizeof info);
    an_status status = AN_OK;
    if (config)
        status = find_tokenizer(config, own, &path);
    else
        path = v->call->argument;
    if (status == AN_OK && !path && cli_checkpoint_tokenizer(from, config, v->beside)) path = v->beside;
    if (status == AN_OK && !path) return CLI_DONE;
    if (status == AN_OK) status = an_pretrained_tokenizer(&v->tokenizer, v->ctx, path);
    if (status == AN_OK) status = an_encoder_create(&v->encoder, v->tokenizer);
    if (status == AN_OK) status = an_tokenizer_info_get(v->tokenizer, &info);
    if (status == AN_OK) {
        v->path = path;
        v->end = info.eos;
        return CLI_DONE;
    }
    cli_refuse(v->call, v->ctx, NULL, status);
    fprintf(stderr, "The model's tokenizer makes tokens of a prompt. Without it, give the prompt with --tokens.\n");
    return CLI_FAILED;
}

int cli_vocabulary_open(cli_vocabulary *v, const cli_call *call, an_context *ctx, const cli_checkpoint *from,
                        an_config *config) {
    *v = (cli_vocabulary){.call = call, .ctx = ctx, .end = -1};
    const bool is_mixture = config && an_config_is(config, AN_SETTING(data.train.type), "mixture");
    char key[64];
    an_text_source source;
    an_text_source_init(&source, sizeof source);
#define KEY(name)                                                                                                     \
    (snprintf(key, sizeof key, "%s.%s", is_mixture ? AN_SETTING(data.train.parts[0]) : AN_SETTING(data.train), name), \
     key)
    if (!config) return open_tokenizer(v, from, NULL, NULL);
    if (!an_config_is(config, KEY("type"), "text")) return open_tokenizer(v, from, config, KEY("tokenizer"));
    v->bytes = !an_config_is(config, KEY("tokens"), "chars");
    if (v->bytes) return CLI_DONE;
    source.tokens = AN_TEXT_CHARACTERS;
    source.context = 1;
    an_status status = an_config_path(config, KEY("path"), &source.path);
#undef KEY
    if (status == AN_OK) status = an_dataset_create_text(&v->dataset, ctx, &source);
    if (status == AN_OK) return CLI_DONE;
    cli_refuse(call, ctx, NULL, status);
    fprintf(stderr, "The characters of the training text define the model's tokens, so generation needs that file.\n");
    return CLI_FAILED;
}

void cli_vocabulary_close(cli_vocabulary *v) {
    an_encoder_destroy(&v->encoder);
    an_tokenizer_destroy(&v->tokenizer);
    an_dataset_destroy(&v->dataset);
    free(v->text);
}

bool cli_vocabulary_knows_text(const cli_vocabulary *v) {
    return v->bytes || v->dataset || v->tokenizer;
}

static int encode_text(const cli_vocabulary *v, const char *what, const char *text, size_t length, int32_t **tokens,
                       int64_t *count) {
    const int32_t *found = NULL;
    if (an_encoder_run(v->encoder, text, length, NULL, &found, count) != AN_OK)
        return cli_fail(v->call, "%s: %s", what, an_last_error(NULL));
    *tokens = malloc(((size_t)*count + 1) * sizeof **tokens);
    if (!*tokens) return cli_fail(v->call, "not enough memory for a prompt of %zu bytes", length);
    memcpy(*tokens, found, (size_t)*count * sizeof **tokens);
    return CLI_DONE;
}

int cli_vocabulary_encode(const cli_vocabulary *v, const char *what, const char *text, size_t length, int32_t **tokens,
                          int64_t *count) {
    if (v->tokenizer) return encode_text(v, what, text, length, tokens, count);
    *tokens = malloc((length + 1) * sizeof **tokens); /* a token has a byte or more */
    if (!*tokens) return cli_fail(v->call, "not enough memory for a prompt of %zu bytes", length);
    if (v->bytes) {
        for (size_t i = 0; i < length; i++) (*tokens)[i] = (unsigned char)text[i];
        *count = (int64_t)length;
        return CLI_DONE;
    }
    const an_status status = an_dataset_encode(v->dataset, text, length, *tokens, (int64_t)length, count);
    return status == AN_OK ? CLI_DONE : cli_fail(v->call, "%s: %s", what, an_last_error(v->ctx));
}

static const char *decode_token(cli_vocabulary *v, int32_t token, int *length) {
    size_t needed = 0;
    if (an_tokenizer_decode(v->tokenizer, &token, 1, false, v->text, v->text_capacity, &needed) != AN_OK) return NULL;
    if (needed > v->text_capacity) {
        char *larger = realloc(v->text, needed);
        if (!larger) return NULL;
        v->text = larger;
        v->text_capacity = needed;
        return decode_token(v, token, length);
    }
    *length = (int)needed;
    return needed ? v->text : "";
}

const char *cli_vocabulary_decode(cli_vocabulary *v, int32_t token, int *length) {
    *length = 0;
    if (v->tokenizer) return decode_token(v, token, length);
    if (v->bytes) {
        v->bytes_of_token[0] = (char)(unsigned char)token;
        *length = 1;
    } else if (an_dataset_token_text(v->dataset, token, v->bytes_of_token, length) != AN_OK) {
        *length = 0;
    }
    return v->bytes_of_token;
}
