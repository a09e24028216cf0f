#include <stdlib.h>
#include <string.h>

#include "cli/generate/generate.h"

int cli_vocabulary_open(cli_vocabulary *v, const cli_call *call, an_context *ctx, an_config *config) {
    *v = (cli_vocabulary){.call = call, .ctx = ctx};
    const bool is_mixture = config && an_config_is(config, "data.train.type", "mixture");
    char key[64];
    an_text_source source;
    an_text_source_init(&source, sizeof source);
#define KEY(name) (snprintf(key, sizeof key, "%s.%s", is_mixture ? "data.train.parts[0]" : "data.train", name), key)
    if (!config || !an_config_is(config, KEY("type"), "text")) return CLI_DONE;
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
    an_dataset_destroy(&v->dataset);
}

bool cli_vocabulary_knows_text(const cli_vocabulary *v) {
    return v->bytes || v->dataset;
}

int cli_vocabulary_encode(const cli_vocabulary *v, const char *what, const char *text, size_t length, int32_t **tokens,
                          int64_t *count) {
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

int cli_vocabulary_decode(const cli_vocabulary *v, int32_t token, char bytes[AN_TOKEN_BYTES]) {
    int length = 0;
    if (v->bytes) {
        bytes[0] = (char)(unsigned char)token;
        return 1;
    }
    return an_dataset_token_text(v->dataset, token, bytes, &length) == AN_OK ? length : 0;
}
