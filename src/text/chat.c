#include "text/chat.h"

#include <string.h>

#include "base/guard.h"
#include "base/structs.h"

typedef enum { SYSTEM, USER, ASSISTANT, ROLES } role;
static const char *const role_names[ROLES] = {[SYSTEM] = "system", [USER] = "user", [ASSISTANT] = "assistant"};

typedef struct {
    an_text *text;
    const an_chat_format *format;
    const an_chat_message *messages;
    int64_t count;
    bool prompt;
    an_chat_span *spans; /* NULL: not wanted */
    int64_t span_count;
    an_chat_span *tokens; /* NULL: not wanted */
    int64_t token_count;
} writing;

static void add(const writing *w, const char *text) {
    if (text) an_text_bytes(w->text, text, strlen(text));
}

static void add_bytes(const writing *w, an_bytes text) {
    an_text_bytes(w->text, text.bytes, text.length);
}

/* A token of the template itself, as opposed to the same characters in a message. */
static void add_token(writing *w, const char *token) {
    const size_t begin = w->text->length;
    if (!token) return;
    add(w, token);
    if (w->tokens) w->tokens[w->token_count++] = (an_chat_span){begin, begin + strlen(token)};
}

/* ---- what the assistant says ---- */

static void begin_span(writing *w, role r) {
    if (w->spans && r == ASSISTANT) w->spans[w->span_count].begin = w->text->length;
}

static void end_span(writing *w, role r) {
    if (w->spans && r == ASSISTANT) w->spans[w->span_count++].end = w->text->length;
}

/* ---- white space, as Python's strip has it ---- */

/* Bytes of the white space that a text begins with, up to three; 0: it does not. */
static size_t space_at(const unsigned char *t, size_t length) {
    if (length == 0) return 0;
    if (t[0] == ' ' || (t[0] >= 0x09 && t[0] <= 0x0d) || (t[0] >= 0x1c && t[0] <= 0x1f)) return 1;
    if (length >= 2 && t[0] == 0xc2 && (t[1] == 0x85 || t[1] == 0xa0)) return 2;
    if (length < 3) return 0;
    if (t[0] == 0xe1 && t[1] == 0x9a && t[2] == 0x80) return 3;                 /* U+1680 */
    if (t[0] == 0xe2 && t[1] == 0x80 && t[2] >= 0x80 && t[2] <= 0x8a) return 3; /* U+2000 to U+200A */
    if (t[0] == 0xe2 && t[1] == 0x80 && (t[2] == 0xa8 || t[2] == 0xa9 || t[2] == 0xaf))
        return 3;                                                /* U+2028, 2029, 202F */
    if (t[0] == 0xe2 && t[1] == 0x81 && t[2] == 0x9f) return 3;  /* U+205F */
    return t[0] == 0xe3 && t[1] == 0x80 && t[2] == 0x80 ? 3 : 0; /* U+3000 */
}

static an_bytes trimmed(const char *content) {
    const unsigned char *begin = (const unsigned char *)content, *end = begin + strlen(content);
    for (size_t n; (n = space_at(begin, (size_t)(end - begin))) > 0;) begin += n;
    for (size_t n = 1; n <= 3 && n <= (size_t)(end - begin);) /* white space of n bytes at the end */
        if (space_at(end - n, n) == n) {
            end -= n;
            n = 1;
        } else
            n++;
    return (an_bytes){(const char *)begin, (size_t)(end - begin)};
}

/* ---- one function a template ---- */

static an_status refuse(const writing *w, int64_t message, const char *what) {
    return AN_ERROR(w->text->ctx, AN_ERR_ARGUMENT, "message %lld: the template %s %s", (long long)message + 1,
                    an_chat_template_name((int)w->format->type), what);
}

static an_status find_role(const writing *w, int64_t message, role *r) {
    const char *name = w->messages[message].role;
    for (int i = 0; i < ROLES; i++)
        if (!strcmp(role_names[i], name)) {
            *r = (role)i;
            return AN_OK;
        }
    return AN_ERROR(w->text->ctx, AN_ERR_ARGUMENT,
                    "message %lld: the role is '%s'; only system, user and assistant are supported",
                    (long long)message + 1, AN_QUOTE(name));
}

static void chatml_header(writing *w, role r) {
    add_token(w, "<|im_start|>");
    add(w, role_names[r]);
    add(w, "\n");
}

static void chatml_message(writing *w, role r, const char *content) {
    chatml_header(w, r);
    begin_span(w, r);
    add(w, content);
    add_token(w, "<|im_end|>");
    end_span(w, r);
    add(w, "\n");
}

static an_status write_chatml(writing *w) {
    an_context *ctx = w->text->ctx;
    static const char qwen[] = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
    const char *system = w->format->system ? w->format->system : w->format->type == AN_CHAT_QWEN ? qwen : "";
    for (int64_t i = 0; i < w->count; i++) {
        role r = SYSTEM;
        AN_TRY_RETURN(find_role(w, i, &r));
        if (i == 0 && r != SYSTEM && *system) chatml_message(w, SYSTEM, system);
        chatml_message(w, r, w->messages[i].content);
    }
    if (w->prompt) chatml_header(w, ASSISTANT);
    return AN_OK;
}

/* ---- Qwen 3: an answer to the last question shows what was thought before it, if only nothing ---- */

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
    return !strcmp(message->role, role_names[USER]) && !is_tools;
}

static void qwen3_answer(writing *w, int64_t message, int64_t last_question) {
    an_bytes thought;
    const char *answer;
    split_thought(w->messages[message].content, &thought, &answer);
    chatml_header(w, ASSISTANT);
    begin_span(w, ASSISTANT);
    if (message > last_question && (message == w->count - 1 || thought.length > 0)) {
        add(w, "<think>\n");
        add_bytes(w, thought);
        add(w, "\n</think>\n\n");
        answer = skip_lines(answer);
    }
    add(w, answer);
    add_token(w, "<|im_end|>");
    end_span(w, ASSISTANT);
    add(w, "\n");
}

static an_status write_qwen3(writing *w) {
    an_context *ctx = w->text->ctx;
    const char *system = w->format->system ? w->format->system : "";
    int64_t last_question = w->count - 1;
    while (last_question >= 0 && !is_question(&w->messages[last_question])) last_question--;
    if (last_question < 0) last_question = w->count - 1;
    for (int64_t i = 0; i < w->count; i++) {
        role r = SYSTEM;
        AN_TRY_RETURN(find_role(w, i, &r));
        if (i == 0 && r != SYSTEM && *system) chatml_message(w, SYSTEM, system);
        if (r == ASSISTANT)
            qwen3_answer(w, i, last_question);
        else
            chatml_message(w, r, w->messages[i].content);
    }
    if (w->prompt) chatml_header(w, ASSISTANT);
    return AN_OK;
}

/* ---- Llama 3, and 3.1, whose system message begins with two dates ---- */

static void llama3_header(writing *w, role r) {
    add_token(w, "<|start_header_id|>");
    add(w, role_names[r]);
    add_token(w, "<|end_header_id|>");
    add(w, "\n\n");
}

static void llama3_message(writing *w, role r, const char *content) {
    llama3_header(w, r);
    begin_span(w, r);
    add_bytes(w, trimmed(content));
    add_token(w, "<|eot_id|>");
    end_span(w, r);
}

static an_status write_llama3(writing *w) {
    an_context *ctx = w->text->ctx;
    const char *system = w->format->system ? w->format->system : "";
    add_token(w, w->format->bos);
    for (int64_t i = 0; i < w->count; i++) {
        role r = SYSTEM;
        AN_TRY_RETURN(find_role(w, i, &r));
        if (i == 0 && r != SYSTEM && *system) llama3_message(w, SYSTEM, system);
        llama3_message(w, r, w->messages[i].content);
    }
    if (w->prompt) llama3_header(w, ASSISTANT);
    return AN_OK;
}

static an_status write_llama31(writing *w) {
    an_context *ctx = w->text->ctx;
    const char *system = w->format->system ? w->format->system : "";
    int64_t first = 0;
    role r = USER;
    if (w->count > 0) AN_TRY_RETURN(find_role(w, 0, &r));
    if (r == SYSTEM) system = w->messages[first++].content;
    add_token(w, w->format->bos);
    llama3_header(w, SYSTEM);
    add(w, "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
    add_bytes(w, trimmed(system));
    add_token(w, "<|eot_id|>");
    for (int64_t i = first; i < w->count; i++) {
        AN_TRY_RETURN(find_role(w, i, &r));
        llama3_message(w, r, w->messages[i].content);
    }
    if (w->prompt) llama3_header(w, ASSISTANT);
    return AN_OK;
}

/* ---- Mistral and Zephyr ---- */

/* The system message is part of the last message, and only of a user's. */
static an_status write_mistral(writing *w) {
    an_context *ctx = w->text->ctx;
    const char *system = w->format->system && *w->format->system ? w->format->system : NULL;
    int64_t first = 0;
    role r = USER;
    if (w->count > 0) AN_TRY_RETURN(find_role(w, 0, &r));
    if (r == SYSTEM) system = w->messages[first++].content;
    if (w->count > first) AN_TRY_RETURN(find_role(w, w->count - 1, &r));
    if (system && r != USER)
        return refuse(w, 0,
                      "writes a system message only before a question that has no answer yet; remove the system "
                      "message, or write its text at the beginning of the first question");
    add_token(w, w->format->bos);
    for (int64_t i = first; i < w->count; i++) {
        AN_TRY_RETURN(find_role(w, i, &r));
        if ((r == USER) != ((i - first) % 2 == 0) || r == SYSTEM)
            return refuse(w, i, "needs questions of the user and answers of the assistant by turns");
        if (r == USER) {
            add_token(w, "[INST]");
            if (system && i == w->count - 1) {
                add(w, system);
                add(w, "\n\n");
            }
            add(w, w->messages[i].content);
            add_token(w, "[/INST]");
            continue;
        }
        begin_span(w, r);
        add(w, w->messages[i].content);
        add_token(w, w->format->eos);
        end_span(w, r);
    }
    return AN_OK;
}

static void zephyr_message(writing *w, role r, const char *content) {
    add(w, "<|");
    add(w, role_names[r]);
    add(w, "|>\n");
    begin_span(w, r);
    add(w, content);
    add_token(w, w->format->eos);
    end_span(w, r);
    add(w, "\n");
}

static an_status write_zephyr(writing *w) {
    an_context *ctx = w->text->ctx;
    const char *system = w->format->system ? w->format->system : "";
    for (int64_t i = 0; i < w->count; i++) {
        role r = SYSTEM;
        AN_TRY_RETURN(find_role(w, i, &r));
        if (i == 0 && r != SYSTEM && *system) zephyr_message(w, SYSTEM, system);
        zephyr_message(w, r, w->messages[i].content);
    }
    if (w->prompt) add(w, "<|assistant|>\n");
    return AN_OK;
}

/* ---- the table ---- */

static const struct {
    const char *name;
    an_status (*write)(writing *w);
    const char *tokens[4]; /* that the tokenizer must have; the last ends an answer, unless that is the token eos */
} templates[] = {
    [AN_CHAT_CHATML] = {"chatml", write_chatml, {"<|im_start|>", "<|im_end|>"}},
    [AN_CHAT_LLAMA3] = {"llama3", write_llama3, {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
    [AN_CHAT_MISTRAL] = {"mistral", write_mistral, {"[INST]", "[/INST]"}},
    [AN_CHAT_ZEPHYR] = {"zephyr", write_zephyr, {NULL}}, /* <|user|> is plain text to its tokenizer */
    [AN_CHAT_QWEN] = {"qwen", write_chatml, {"<|im_start|>", "<|im_end|>"}},
    [AN_CHAT_LLAMA31] = {"llama3.1", write_llama31, {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
    [AN_CHAT_QWEN3] = {"qwen3", write_qwen3, {"<|im_start|>", "<|im_end|>"}}};
enum { TEMPLATES = sizeof templates / sizeof *templates };

const char *an_chat_template_name(int index) {
    return index >= 0 && index < TEMPLATES ? templates[index].name : NULL;
}

const char *an_chat_token(an_chat_template type, int index) {
    return templates[type].tokens[index];
}

static an_status write_all(writing *w) {
    an_context *ctx = w->text->ctx;
    if (w->format->type < 0 || (int)w->format->type >= TEMPLATES)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "type is %d, which is not a value of an_chat_template",
                        (int)w->format->type);
    AN_TRY_RETURN(templates[w->format->type].write(w));
    return w->text->status;
}

an_status an_chat_write(an_text *text, const an_chat_format *format, const an_chat_message *messages, int64_t count,
                        bool prompt, an_chat_span *spans, int64_t *span_count) {
    writing w = {
        .text = text, .format = format, .messages = messages, .count = count, .prompt = prompt, .spans = spans};
    const an_status status = write_all(&w);
    if (span_count) *span_count = w.span_count;
    return status;
}

an_status an_chat_write_tokens(an_text *text, const an_chat_format *format, const an_chat_message *messages,
                               int64_t count, bool prompt, an_chat_span *tokens, int64_t *token_count) {
    writing w = {
        .text = text, .format = format, .messages = messages, .count = count, .prompt = prompt, .tokens = tokens};
    const an_status status = write_all(&w);
    *token_count = w.token_count;
    return status;
}

an_status an_chat_check(an_context *ctx, const an_chat_message *messages, int64_t count) {
    an_status status;
    AN_CHECK(ctx, count >= 0 && (count == 0 || messages), AN_ERR_ARGUMENT,
             "messages is NULL, or its count of %lld below 0", (long long)count);
    for (int64_t i = 0; i < count; i++)
        AN_CHECK(ctx, messages[i].role && messages[i].content, AN_ERR_ARGUMENT, "message %lld: role or content is NULL",
                 (long long)i + 1);
    return AN_OK;
fail:
    return status;
}

const char *an_chat_end(const an_chat_format *format) {
    AN_NEED_OR(NULL, format);
    an_chat_format own;
    if (an_chat_format_read(NULL, &own, format) != AN_OK || own.type < 0 || (int)own.type >= TEMPLATES) return NULL;
    if (own.type == AN_CHAT_MISTRAL || own.type == AN_CHAT_ZEPHYR) return own.eos;
    const char *last = NULL;
    for (int i = 0; templates[own.type].tokens[i]; i++) last = templates[own.type].tokens[i];
    return last;
}

an_status an_chat_render(an_context *ctx, const an_chat_format *format, const an_chat_message *messages, int64_t count,
                         bool prompt, char *text, size_t capacity, size_t *length) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, format, length);
    an_status status;
    an_chat_format own;
    an_text written;
    an_text_init(&written, ctx);
    AN_TRY(an_chat_format_read(ctx, &own, format));
    AN_TRY(an_chat_check(ctx, messages, count));
    AN_CHECK(ctx, capacity == 0 || text, AN_ERR_ARGUMENT, "text is NULL, but its capacity is %zu", capacity);
    AN_TRY(an_chat_write(&written, &own, messages, count, prompt, NULL, NULL));
    *length = written.length;
    const size_t copied = written.length < capacity ? written.length : capacity;
    if (copied > 0) memcpy(text, written.bytes, copied);
    status = AN_OK;
fail:
    an_text_destroy(&written);
    return status;
}
