/* Zephyr: the headers of messages are plain text to its tokenizer, so it needs no tokens. */
#include "text/chat/record.h"

static void write_message(an_chat_writing *w, an_chat_role r, const char *content) {
    an_chat_add(w, "<|");
    an_chat_add(w, an_chat_role_names[r]);
    an_chat_add(w, "|>\n");
    an_chat_answer_begin(w, r);
    an_chat_add(w, content);
    an_chat_add_token(w, w->format->eos);
    an_chat_answer_end(w, r);
    an_chat_add(w, "\n");
}

static an_status write_messages(an_chat_writing *w) {
    const char *system = w->format->system ? w->format->system : "";
    for (int64_t i = 0; i < w->count; i++) {
        an_chat_role r = AN_CHAT_ROLE_SYSTEM;
        AN_TRY_RETURN(an_chat_find_role(w, i, &r));
        if (i == 0 && r != AN_CHAT_ROLE_SYSTEM && *system) write_message(w, AN_CHAT_ROLE_SYSTEM, system);
        write_message(w, r, w->messages[i].content);
    }
    if (w->prompt) an_chat_add(w, "<|assistant|>\n");
    return AN_OK;
}

const an_chat_record an_chat_template_zephyr = {
    .name = "zephyr",
    .write = write_messages,
    .ends_with_eos = true,
    .needs = {"<|user|>", "<|assistant|>", "<|system|>", "eos_token"},
    .refuses = {"<|end|>", "trim", "strip", "<think>", "strftime"},
};
