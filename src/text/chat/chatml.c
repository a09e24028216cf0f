/* ChatML, and Qwen 2.5, which has a system message of its own. */
#include "text/chat/record.h"

void an_chatml_header(an_chat_writing *w, an_chat_role r) {
    an_chat_add_token(w, "<|im_start|>");
    an_chat_add(w, an_chat_role_names[r]);
    an_chat_add(w, "\n");
}

void an_chatml_message(an_chat_writing *w, an_chat_role r, const char *content) {
    an_chatml_header(w, r);
    an_chat_answer_begin(w, r);
    an_chat_add(w, content);
    an_chat_add_token(w, "<|im_end|>");
    an_chat_answer_end(w, r);
    an_chat_add(w, "\n");
}

static an_status write_messages(an_chat_writing *w, const char *usual_system) {
    const char *system = w->format->system ? w->format->system : usual_system;
    for (int64_t i = 0; i < w->count; i++) {
        an_chat_role r = AN_CHAT_ROLE_SYSTEM;
        AN_TRY_RETURN(an_chat_find_role(w, i, &r));
        if (i == 0 && r != AN_CHAT_ROLE_SYSTEM && *system) an_chatml_message(w, AN_CHAT_ROLE_SYSTEM, system);
        an_chatml_message(w, r, w->messages[i].content);
    }
    if (w->prompt) an_chatml_header(w, AN_CHAT_ROLE_ASSISTANT);
    return AN_OK;
}

static an_status write_chatml(an_chat_writing *w) {
    return write_messages(w, "");
}

static an_status write_qwen(an_chat_writing *w) {
    return write_messages(w, "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.");
}

const an_chat_record an_chat_template_chatml = {
    .name = "chatml",
    .write = write_chatml,
    .tokens = {"<|im_start|>", "<|im_end|>"},
    .needs = {"<|im_start|>", "<|im_end|>"},
    .refuses = {"<think>", "reasoning", "trim", "strip", "strftime", "date", "bos_token"},
    .has_system = true,
};

const an_chat_record an_chat_template_qwen = {
    .name = "qwen",
    .write = write_qwen,
    .tokens = {"<|im_start|>", "<|im_end|>"},
};
