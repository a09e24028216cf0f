/* Qwen 3: ChatML in which an answer to the last question shows what was thought before it, if only nothing. */
#include "text/chat/record.h"

static const char *last_of(const char *text, const char *part) {
    const char *last = NULL;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) last = at;
    return last;
}

static an_bytes strip_lines(an_bytes text) {
    while (text.length > 0 && text.bytes[text.length - 1] == '\n') text.length--;
    for (; text.length > 0 && *text.bytes == '\n'; text.length--) text.bytes++;
    return text;
}

static const char *skip_lines(const char *text) {
    return text + strspn(text, "\n");
}

/* Parts an answer into <think>what was thought</think> and what follows it. */
static void split_thought(const char *content, an_bytes *thought, const char **answer) {
    static const char open[] = "<think>", close[] = "</think>";
    const char *end = strstr(content, close);
    *thought = (an_bytes){content, 0};
    *answer = content;
    if (!end) return;
    *answer = skip_lines(last_of(content, close) + sizeof close - 1);
    const char *begin = content;
    for (const char *at = content; (at = strstr(at, open)) != NULL && at < end; at++) begin = at + sizeof open - 1;
    *thought = strip_lines((an_bytes){begin, (size_t)(end - begin)});
}

/* What a tool answered is written as a user's message, and is no question. */
static bool is_question(const an_chat_message *message) {
    static const char head[] = "<tool_response>", tail[] = "</tool_response>";
    const size_t length = strlen(message->content);
    const bool is_tools = !strncmp(message->content, head, sizeof head - 1) && length >= sizeof tail - 1 &&
                          !strcmp(message->content + length - (sizeof tail - 1), tail);
    return !strcmp(message->role, an_chat_role_names[AN_CHAT_ROLE_USER]) && !is_tools;
}

static void qwen3_answer(an_chat_writing *w, int64_t message, int64_t last_question) {
    an_bytes thought;
    const char *answer;
    split_thought(w->messages[message].content, &thought, &answer);
    an_chatml_header(w, AN_CHAT_ROLE_ASSISTANT);
    an_chat_answer_begin(w, AN_CHAT_ROLE_ASSISTANT);
    if (message > last_question && (message == w->count - 1 || thought.length > 0)) {
        an_chat_add(w, "<think>\n");
        an_chat_add_bytes(w, thought);
        an_chat_add(w, "\n</think>\n\n");
        answer = skip_lines(answer);
    }
    an_chat_add(w, answer);
    an_chat_add_token(w, "<|im_end|>");
    an_chat_answer_end(w, AN_CHAT_ROLE_ASSISTANT);
    an_chat_add(w, "\n");
}

static an_status write_messages(an_chat_writing *w) {
    const char *system = w->format->system ? w->format->system : "";
    int64_t last_question = w->count - 1;
    while (last_question >= 0 && !is_question(&w->messages[last_question])) last_question--;
    if (last_question < 0) last_question = w->count - 1;
    for (int64_t i = 0; i < w->count; i++) {
        an_chat_role r = AN_CHAT_ROLE_SYSTEM;
        AN_TRY_RETURN(an_chat_find_role(w, i, &r));
        if (i == 0 && r != AN_CHAT_ROLE_SYSTEM && *system) an_chatml_message(w, AN_CHAT_ROLE_SYSTEM, system);
        if (r == AN_CHAT_ROLE_ASSISTANT)
            qwen3_answer(w, i, last_question);
        else
            an_chatml_message(w, r, w->messages[i].content);
    }
    if (w->prompt) an_chatml_header(w, AN_CHAT_ROLE_ASSISTANT);
    return AN_OK;
}

const an_chat_record an_chat_template_qwen3 = {
    .name = "qwen3",
    .write = write_messages,
    .tokens = {"<|im_start|>", "<|im_end|>"},
    .needs = {"<|im_start|>", "<|im_end|>", "enable_thinking is false", "<think>\\n\\n</think>\\n\\n",
              "ns.last_query_index", "reasoning_content.strip('\\n')"},
    .refuses = {"trim", "strftime", "date", "bos_token", "macro"},
};
