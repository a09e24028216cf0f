/* Mistral Nemo and later models without spaces between [INST], [/INST] and what is said. */
#include "text/chat/record.h"

/* The system message is part of the last message, and only of a user's. */
static an_status write_messages(an_chat_writing *w) {
    const char *system = w->format->system && *w->format->system ? w->format->system : NULL;
    int64_t first = 0;
    an_chat_role r = AN_CHAT_ROLE_USER;
    if (w->count > 0) AN_TRY_RETURN(an_chat_find_role(w, 0, &r));
    if (r == AN_CHAT_ROLE_SYSTEM) system = w->messages[first++].content;
    if (w->count > first) AN_TRY_RETURN(an_chat_find_role(w, w->count - 1, &r));
    if (system && r != AN_CHAT_ROLE_USER)
        return an_chat_refuse(
            w, 0,
            "writes a system message only before a question that has no answer yet; remove the system "
            "message, or write its text at the beginning of the first question");
    an_chat_add_token(w, w->format->bos);
    for (int64_t i = first; i < w->count; i++) {
        AN_TRY_RETURN(an_chat_find_role(w, i, &r));
        if ((r == AN_CHAT_ROLE_USER) != ((i - first) % 2 == 0) || r == AN_CHAT_ROLE_SYSTEM)
            return an_chat_refuse(w, i, "needs questions of the user and answers of the assistant by turns");
        if (r == AN_CHAT_ROLE_USER) {
            an_chat_add_token(w, "[INST]");
            if (system && i == w->count - 1) {
                an_chat_add(w, system);
                an_chat_add(w, "\n\n");
            }
            an_chat_add(w, w->messages[i].content);
            an_chat_add_token(w, "[/INST]");
            continue;
        }
        an_chat_answer_begin(w, r);
        an_chat_add(w, w->messages[i].content);
        an_chat_add_token(w, w->format->eos);
        an_chat_answer_end(w, r);
    }
    return AN_OK;
}

const an_chat_record an_chat_template_mistral = {
    .name = "mistral",
    .write = write_messages,
    .tokens = {"[INST]", "[/INST]"},
    .ends_with_eos = true,
    .needs = {"[INST]", "[/INST]", "eos_token", "loop.last and system_message"},
    .refuses = {"[INST] ", " [/INST]", "<<SYS>>", "[SYSTEM_PROMPT]", "trim", "strip", "<think>", "strftime"},
};
