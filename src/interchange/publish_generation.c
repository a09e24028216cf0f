/* generation_config.json of a folder that is written: which tokens begin and end a text, and how the model was meant
 * to generate. A model that came from a folder brings its own. */
#include <string.h>

#include "base/files/file.h"
#include "base/status.h"
#include "formats/gguf.h"
#include "interchange/publish.h"

static void write_stops(an_json_writer *j, const an_pretrained_sampling *s, int32_t end) {
    if (s->stop_count > 1) {
        an_json_write_array(j, "eos_token_id");
        for (int i = 0; i < s->stop_count; i++) an_json_write_integer(j, NULL, s->stop_tokens[i]);
        an_json_write_end(j);
    } else if (s->stop_count == 1 || end >= 0) {
        an_json_write_integer(j, "eos_token_id", s->stop_count == 1 ? s->stop_tokens[0] : end);
    }
}

static void write_all(an_json_writer *j, const an_pretrained_sampling *s, const an_tokenizer_info *tokens) {
    an_json_write_object(j, NULL);
    if (tokens->bos >= 0) an_json_write_integer(j, "bos_token_id", tokens->bos);
    write_stops(j, s, tokens->eos);
    if (tokens->pad >= 0) an_json_write_integer(j, "pad_token_id", tokens->pad);
    if (s->temperature > 0) {
        an_json_write_bool(j, "do_sample", true);
        an_json_write_real(j, "temperature", s->temperature);
        an_json_write_integer(j, "top_k",
                              s->top_k >= 0 ? s->top_k : 0); /* without it, transformers takes one of its own */
        if (s->top_p >= 0) an_json_write_real(j, "top_p", s->top_p);
        if (s->min_p >= 0) an_json_write_real(j, "min_p", s->min_p);
    }
    if (s->repetition_penalty >= 0) an_json_write_real(j, "repetition_penalty", s->repetition_penalty);
    an_json_write_finish(j);
}

/* What a GGUF file says; a folder has the file itself. */
static an_status get_sampling(const an_publication *p, an_pretrained_sampling *s) {
    an_context *ctx = p->ctx;
    an_pretrained *from = NULL;
    an_pretrained_sampling_init(s, sizeof *s);
    if (!p->from || !an_gguf_is(p->from)) return AN_OK;
    AN_TRY_RETURN(an_pretrained_open(&from, ctx, p->from));
    const an_status status = an_pretrained_sampling_get(from, s);
    an_pretrained_close(&from);
    if (strcmp(p->from, p->tokenizer) != 0) s->stop_count = 0; /* tokens have other numbers */
    return status;
}

static an_status get_tokens(const an_publication *p, an_tokenizer_info *info) {
    an_context *ctx = p->ctx;
    an_tokenizer *tokenizer = NULL;
    an_tokenizer_info_init(info, sizeof *info);
    AN_TRY_RETURN(an_pretrained_tokenizer(&tokenizer, ctx, p->tokenizer));
    const an_status status = an_tokenizer_info_get(tokenizer, info);
    an_tokenizer_destroy(&tokenizer);
    return status;
}

an_status an_publish_generation(const an_publication *p, const char *folder) {
    an_context *ctx = p->ctx;
    char path[AN_FILE_PATH], message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    an_pretrained_sampling sampling;
    an_tokenizer_info tokens;
    an_text text;
    if (!an_path_join(path, folder, "generation_config.json"))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
    if (!p->tokenizer || p->description->family == &an_family_bert || an_file_exists(path)) return AN_OK;
    AN_TRY_RETURN(get_sampling(p, &sampling));
    AN_TRY_RETURN(get_tokens(p, &tokens));
    an_text_init(&text, ctx);
    an_json_writer json = an_text_json(&text, AN_JSON_LINES);
    write_all(&json, &sampling, &tokens);
    an_status status = text.status;
    if (status == AN_OK) status = an_note_raise(ctx, an_file_replace(path, text.bytes, text.length, note), note);
    an_text_destroy(&text);
    return status;
}
