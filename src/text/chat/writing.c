/* What chat templates are written with. */
#include "text/chat/record.h"

const char *const an_chat_role_names[AN_CHAT_ROLES] = {
    [AN_CHAT_ROLE_SYSTEM] = "system", [AN_CHAT_ROLE_USER] = "user", [AN_CHAT_ROLE_ASSISTANT] = "assistant"};

void an_chat_add(const an_chat_writing *w, const char *text) {
    if (text) an_text_bytes(w->text, text, strlen(text));
}

void an_chat_add_bytes(const an_chat_writing *w, an_bytes text) {
    an_text_bytes(w->text, text.bytes, text.length);
}

void an_chat_add_token(an_chat_writing *w, const char *token) {
    const size_t begin = w->text->length;
    if (!token) return;
    an_chat_add(w, token);
    if (w->tokens) w->tokens[w->token_count++] = (an_chat_span){begin, begin + strlen(token)};
}

/* ---- what the assistant says ---- */

void an_chat_answer_begin(an_chat_writing *w, an_chat_role r) {
    if (w->spans && r == AN_CHAT_ROLE_ASSISTANT) w->spans[w->span_count].begin = w->text->length;
}

void an_chat_answer_end(an_chat_writing *w, an_chat_role r) {
    if (w->spans && r == AN_CHAT_ROLE_ASSISTANT) w->spans[w->span_count++].end = w->text->length;
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

an_bytes an_chat_trimmed(const char *content) {
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

an_status an_chat_refuse(const an_chat_writing *w, int64_t message, const char *what) {
    return AN_ERROR(w->text->ctx, AN_ERR_ARGUMENT, "message %lld: the template %s %s", (long long)message + 1,
                    w->record->name, what);
}

an_status an_chat_find_role(const an_chat_writing *w, int64_t message, an_chat_role *r) {
    const char *name = w->messages[message].role;
    for (int i = 0; i < AN_CHAT_ROLES; i++)
        if (!strcmp(an_chat_role_names[i], name)) {
            *r = (an_chat_role)i;
            return AN_OK;
        }
    return AN_ERROR(w->text->ctx, AN_ERR_ARGUMENT,
                    "message %lld: the role is '%s'; only system, user and assistant are supported",
                    (long long)message + 1, AN_QUOTE(name));
}
