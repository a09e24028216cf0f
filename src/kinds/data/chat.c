/* Type chat: conversations, and prompts with their answers. Tokens of answers are trained. */
#include <stdio.h>

#include "anneal/pretrained.h"
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PATH_OPTION(INTO(IN(an_chat_source, path))),
    TOKENIZER_OPTION,
    OPTION_AT(300, "data.train.context", COUNT, "auto", "auto", FROM(2), FIXED(SAMPLES), DERIVED,
              "tokens of a sample; longer records are cut; auto is the model's context"),
    TEMPLATE_OPTION,
    SYSTEM_OPTION,
    OPTION_AT(
        350, "data.train.packing", BOOL, "on", "", ANY, FIXED(SAMPLES), INTO(IN(an_chat_source, packed)),
        "several records in a sample, with attention inside each of them only; on, because padding takes as long as "
        "text"),
    OPTION_AT(360, "data.train.prompts", BOOL, "off", "", ANY, FIXED(SAMPLES), INTO(IN(an_chat_source, prompts)),
              "prompts, and all that the assistant does not say, are trained too; off, because a model should learn to "
              "answer"),
    PART_OPTION(INTO(RANGE(an_chat_source, begin, end))),
    OPTIONS_END,
};

/* How conversations are written. A template that is not known matters only if there are conversations. */
static an_status get_format(an_config *config, an_context *ctx, const char *path, const char *tokenizer,
                            an_chat_format *format, char *memory, char *why, size_t why_bytes) {
    const an_key key = an_key_join(path, "template");
    *why = 0;
    for (int i = 0; an_chat_template_name(i); i++)
        if (an_config_is(config, key.text, an_chat_template_name(i))) {
            format->type = (an_chat_template)i;
            return AN_OK;
        }
    const an_status status = an_pretrained_chat(format, ctx, tokenizer, memory);
    if (status != AN_ERR_UNSUPPORTED) return status;
    snprintf(why, why_bytes, "%s (%s)", an_last_error(ctx), key.text);
    return AN_OK;
}

static an_status open_chat(const an_data_opening *o, bool pairs, const an_tokenizer *tokenizer,
                           const char *tokenizer_path) {
    an_context *ctx = o->ctx;
    an_config *config = o->config;
    const char *path = o->path;
    char memory[AN_CHAT_SYSTEM_BYTES], why[AN_MESSAGE_BYTES];
    an_tokenizer_info info;
    an_chat_format format;
    an_chat_source s;
    an_tokenizer_info_init(&info, sizeof info);
    an_chat_format_init(&format, sizeof format);
    an_chat_source_init(&s, sizeof s);
    AN_TRY_RETURN(an_tokenizer_info_get(tokenizer, &info));
    AN_TRY_RETURN(get_format(config, ctx, path, tokenizer_path, &format, memory, why, sizeof why));
    if (info.bos >= 0) format.bos = an_tokenizer_token(tokenizer, info.bos, NULL);
    if (info.eos >= 0) format.eos = an_tokenizer_token(tokenizer, info.eos, NULL);
    if (an_key_is_there(config, AN_KEY(path, "system")))
        AN_TRY_RETURN(an_config_string(config, AN_KEY(path, "system"), &format.system));
    s.tokenizer = tokenizer;
    s.format = *why ? NULL : &format;
    s.no_format = *why ? why : NULL;
    AN_TRY_RETURN(an_config_fill(config, path, an_chat_source, &s));
    AN_TRY_RETURN(an_data_context(config, ctx, path, &s.context));
    s.pairs = pairs;
    return an_dataset_create_chat(o->dataset, ctx, &s);
}

an_status an_data_open_chat(const an_data_opening *o, bool pairs) {
    an_status status;
    const char *place = NULL;
    an_tokenizer *tokenizer = NULL;
    AN_TRY(an_data_tokenizer(o, &tokenizer, &place));
    AN_TRY(open_chat(o, pairs, tokenizer, place));
    status = AN_OK;
fail:
    an_tokenizer_destroy(&tokenizer);
    return status;
}

static an_status open_source(const an_data_opening *o) {
    return an_data_open_chat(o, false);
}

const an_data_kind an_data_chat = {
    .kind = {.name = "chat", .options = options, .samples = AN_GIVES_TOKENS},
    .open = open_source,
    .is_text = true,
};
