/* Sources of texts that a tokenizer makes tokens of: for fine-tuning language models (chat,
 * preferences) and BERT (sentences). */
#include <stdio.h>

#include "anneal/pretrained.h"
#include "open/open.h"

/* The tokenizer's own path, or the model that the weights come from. */
static an_status get_tokenizer(an_config *config, an_context *ctx, const char *path, const char **place) {
    const an_key key = an_key_join(path, "tokenizer");
    if (!an_config_is(config, key.text, "auto")) return an_config_path(config, key.text, place);
    static const char *const models[] = {"model.from", "model.init.from"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (an_config_origin_of(config, models[i]) != AN_ORIGIN_NONE) return an_config_path(config, models[i], place);
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "%s: nothing says which tokenizer makes tokens of the text; set %s to a tokenizer.json, its "
                    "folder, or a GGUF file",
                    an_config_place(config, path), key.text);
}

/* ---- chat and preferences ---- */

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

static an_status open_chat(an_dataset **dataset, an_config *config, an_context *ctx, const char *path,
                           const an_tokenizer *tokenizer, const char *tokenizer_path) {
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
    if (an_config_origin_of(config, AN_KEY(path, "system")) != AN_ORIGIN_NONE)
        AN_TRY_RETURN(an_config_string(config, AN_KEY(path, "system"), &format.system));
    s.tokenizer = tokenizer;
    s.format = *why ? NULL : &format;
    s.no_format = *why ? why : NULL;
    AN_TRY_RETURN(an_config_fill(config, path, an_chat_source, &s));
    AN_TRY_RETURN(an_open_context(config, ctx, path, &s.context));
    s.pairs = an_config_is(config, AN_KEY(path, "type"), "preferences");
    return an_dataset_create_chat(dataset, ctx, &s);
}

an_status an_open_chat(an_dataset **dataset, an_config *config, an_context *ctx, const char *path) {
    an_status status;
    const char *place = NULL;
    an_tokenizer *tokenizer = NULL;
    AN_TRY(get_tokenizer(config, ctx, path, &place));
    AN_TRY(an_pretrained_tokenizer(&tokenizer, ctx, place));
    AN_TRY(open_chat(dataset, config, ctx, path, tokenizer, place));
    status = AN_OK;
fail:
    an_tokenizer_destroy(&tokenizer);
    return status;
}

/* ---- sentences ---- */

/* What evaluates has samples as long as those that were trained on, and their numbers of classes. */
static an_status open_sentences(an_dataset **dataset, const an_dataset *like, an_config *config, an_context *ctx,
                                const char *path, const an_tokenizer *tokenizer) {
    an_sentence_source s;
    an_field field;
    an_sentence_source_init(&s, sizeof s);
    an_field_init(&field, sizeof field);
    s.tokenizer = tokenizer;
    AN_TRY_RETURN(an_config_fill(config, path, an_sentence_source, &s));
    AN_TRY_RETURN(an_open_context(config, ctx, path, &s.context));
    s.padded = !an_config_is(config, AN_KEY(path, "context"), "auto");
    if (like && !s.padded) {
        AN_TRY_RETURN(an_field_get(like, 0, &field));
        s.context = field.dims[0];
        s.padded = true;
    }
    if (like && an_dataset_class_name(like, 0)) s.like = like;
    return an_dataset_create_sentences(dataset, ctx, &s);
}

an_status an_open_sentences(an_dataset **dataset, const an_dataset *like, an_config *config, an_context *ctx,
                            const char *path) {
    an_status status;
    const char *place = NULL;
    an_tokenizer *tokenizer = NULL;
    AN_TRY(get_tokenizer(config, ctx, path, &place));
    AN_TRY(an_pretrained_tokenizer(&tokenizer, ctx, place));
    AN_TRY(open_sentences(dataset, like, config, ctx, path, tokenizer));
    status = AN_OK;
fail:
    an_tokenizer_destroy(&tokenizer);
    return status;
}
