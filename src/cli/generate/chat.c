#include <stdlib.h>
#include <string.h>

#include "base/options/settings.h"
#include "cli/generate/generate.h"

static int find_name(cli_chat *c, const char *name) {
    char list[256] = "";
    size_t length = 0;
    for (int i = 0; an_chat_template_name(i); i++) {
        if (!strcmp(an_chat_template_name(i), name)) {
            c->format.type = (an_chat_template)i;
            return CLI_DONE;
        }
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", an_chat_template_name(i));
    }
    return cli_misuse(c->call, "--template takes one of %s, not '%s'", list, name);
}

/* The one that a run was trained with has a name in its config, unless it was recognized. */
static int find_template(cli_chat *c, an_config *config, const char *name) {
    static const char *const key = AN_SETTING(data.train.template);
    if (name) return find_name(c, name);
    if (config && an_config_is(config, AN_SETTING(data.train.type), "chat") && !an_config_is(config, key, "auto")) {
        const an_status status = an_config_string(config, key, &name);
        return status == AN_OK ? find_name(c, name) : cli_refuse(c->call, c->ctx, NULL, status);
    }
    const an_status status = an_pretrained_chat(&c->format, c->ctx, c->vocabulary->path, c->memory);
    if (status == AN_OK) return CLI_DONE;
    const int code = cli_refuse(c->call, c->ctx, NULL, status);
    if (status == AN_ERR_UNSUPPORTED)
        fprintf(stderr, "Name a template with --template, or write the conversation yourself with --prompt.\n");
    return code;
}

static int find_system(cli_chat *c, an_config *config, const char *system) {
    static const char *const key = AN_SETTING(data.train.system);
    if (system) c->format.system = system;
    if (system || !config || an_config_origin_of(config, key) == AN_ORIGIN_NONE) return CLI_DONE;
    const an_status status = an_config_string(config, key, &c->format.system);
    return status == AN_OK ? CLI_DONE : cli_refuse(c->call, c->ctx, NULL, status);
}

int cli_chat_open(cli_chat *c, const cli_vocabulary *v, an_config *config, const char *template_name,
                  const char *system) {
    *c = (cli_chat){.call = v->call, .ctx = v->ctx, .vocabulary = v};
    an_tokenizer_info info;
    an_tokenizer_info_init(&info, sizeof info);
    an_chat_format_init(&c->format, sizeof c->format);
    if (!v->tokenizer)
        return cli_fail(v->call,
                        "%s: was trained without a tokenizer, so it has no tokens that part the messages of a "
                        "conversation; use --prompt",
                        v->call->argument);
    an_tokenizer_info_get(v->tokenizer, &info);
    if (info.bos >= 0) c->format.bos = an_tokenizer_token(v->tokenizer, info.bos, NULL);
    if (info.eos >= 0) c->format.eos = an_tokenizer_token(v->tokenizer, info.eos, NULL);
    int code = find_template(c, config, template_name);
    if (code == CLI_DONE) code = find_system(c, config, system);
    if (code != CLI_DONE) return code;
    const char *end = an_chat_end(&c->format);
    c->end = end ? an_tokenizer_id(v->tokenizer, end, strlen(end)) : -1;
    return CLI_DONE;
}

int cli_chat_encode(const cli_chat *c, const char *what, const an_chat_message *messages, int64_t count,
                    int32_t **tokens, int64_t *token_count) {
    const int32_t *found;
    if (an_chat_encode(c->ctx, c->vocabulary->encoder, &c->format, messages, count, true, &found, token_count) != AN_OK)
        return cli_fail(c->call, "%s: %s", what, an_last_error(c->ctx));
    *tokens = malloc(((size_t)*token_count + 1) * sizeof **tokens);
    if (!*tokens) return cli_fail(c->call, "not enough memory for a prompt of %lld tokens", (long long)*token_count);
    memcpy(*tokens, found, (size_t)*token_count * sizeof **tokens);
    return CLI_DONE;
}
