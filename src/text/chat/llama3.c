/* Llama 3, and 3.1, whose system message begins with two dates. */
#include "text/chat/record.h"

static void llama3_header(an_chat_writing *w, an_chat_role r) {
    an_chat_add_token(w, "<|start_header_id|>");
    an_chat_add(w, an_chat_role_names[r]);
    an_chat_add_token(w, "<|end_header_id|>");
    an_chat_add(w, "\n\n");
}

static void llama3_message(an_chat_writing *w, an_chat_role r, const char *content) {
    llama3_header(w, r);
    an_chat_answer_begin(w, r);
    an_chat_add_bytes(w, an_chat_trimmed(content));
    an_chat_add_token(w, "<|eot_id|>");
    an_chat_answer_end(w, r);
}

static an_status write_llama3(an_chat_writing *w) {
    const char *system = w->format->system ? w->format->system : "";
    an_chat_add_token(w, w->format->bos);
    for (int64_t i = 0; i < w->count; i++) {
        an_chat_role r = AN_CHAT_ROLE_SYSTEM;
        AN_TRY_RETURN(an_chat_find_role(w, i, &r));
        if (i == 0 && r != AN_CHAT_ROLE_SYSTEM && *system) llama3_message(w, AN_CHAT_ROLE_SYSTEM, system);
        llama3_message(w, r, w->messages[i].content);
    }
    if (w->prompt) llama3_header(w, AN_CHAT_ROLE_ASSISTANT);
    return AN_OK;
}

static an_status write_llama31(an_chat_writing *w) {
    const char *system = w->format->system ? w->format->system : "";
    int64_t first = 0;
    an_chat_role r = AN_CHAT_ROLE_USER;
    if (w->count > 0) AN_TRY_RETURN(an_chat_find_role(w, 0, &r));
    if (r == AN_CHAT_ROLE_SYSTEM) system = w->messages[first++].content;
    an_chat_add_token(w, w->format->bos);
    llama3_header(w, AN_CHAT_ROLE_SYSTEM);
    an_chat_add(w, "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
    an_chat_add_bytes(w, an_chat_trimmed(system));
    an_chat_add_token(w, "<|eot_id|>");
    for (int64_t i = first; i < w->count; i++) {
        AN_TRY_RETURN(an_chat_find_role(w, i, &r));
        llama3_message(w, r, w->messages[i].content);
    }
    if (w->prompt) llama3_header(w, AN_CHAT_ROLE_ASSISTANT);
    return AN_OK;
}

const an_chat_record an_chat_template_llama3 = {
    .name = "llama3",
    .write = write_llama3,
    .tokens = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
    .needs = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "trim"},
    .refuses = {"<think>", "Cutting Knowledge", "strftime", "date_string", "Environment", "tool", "function"},
};

const an_chat_record an_chat_template_llama31 = {
    .name = "llama3.1",
    .write = write_llama31,
    .tokens = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
    .needs = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "trim", "Cutting Knowledge Date: December 2023",
              "Today Date: ", "26 Jul 2024"},
    .refuses = {"<think>", "strftime"},
};
