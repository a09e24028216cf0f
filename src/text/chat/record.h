/* Chat templates: a file with its record for each kind, and a line in chat_templates.def. */
#ifndef AN_TEXT_CHAT_RECORD_H
#define AN_TEXT_CHAT_RECORD_H

#include <string.h>

#include "base/status.h"
#include "text/chat/chat.h"

typedef enum { AN_CHAT_ROLE_SYSTEM, AN_CHAT_ROLE_USER, AN_CHAT_ROLE_ASSISTANT, AN_CHAT_ROLES } an_chat_role;
extern const char *const an_chat_role_names[AN_CHAT_ROLES];

/* A conversation that is written. */
typedef struct an_chat_writing {
    const struct an_chat_record *record;
    an_text *text;
    const an_chat_format *format;
    const an_chat_message *messages;
    int64_t count;
    bool prompt;
    an_chat_span *spans; /* NULL: not wanted */
    int64_t span_count;
    an_chat_span *tokens; /* NULL: not wanted */
    int64_t token_count;
} an_chat_writing;

enum { AN_CHAT_MARKS = 8 };

typedef struct an_chat_record {
    const char *name;
    an_status (*write)(an_chat_writing *w);
    const char *tokens[4]; /* that the tokenizer must have; the last ends an answer, unless that is the token eos */
    bool ends_with_eos;
    /* What tells the template of a tokenizer_config.json, a program in Jinja that is not run: all of `needs` are in its
     * text, and none of `refuses`, with which the content is changed, or something is added. No `needs`: it is never
     * recognized. */
    const char *needs[AN_CHAT_MARKS], *refuses[AN_CHAT_MARKS];
    bool has_system; /* the text may have a system message, which belongs to the format */
} an_chat_record;

/* By the number of an_chat_template; NULL: there is none. */
const an_chat_record *an_chat_record_at(int template);

#define AN_CHAT(name) extern const an_chat_record an_chat_template_##name;
#include "text/chat/templates.def"
#undef AN_CHAT

/* ---- for records ---- */

void an_chat_add(const an_chat_writing *w, const char *text); /* NULL: nothing */
void an_chat_add_bytes(const an_chat_writing *w, an_bytes text);
/* A token of the template itself, as opposed to the same characters in a message. */
void an_chat_add_token(an_chat_writing *w, const char *token);
/* Before and behind what the assistant says; other roles are not noted. */
void an_chat_answer_begin(an_chat_writing *w, an_chat_role r);
void an_chat_answer_end(an_chat_writing *w, an_chat_role r);
/* Without white space at both ends, as Python's strip has it. */
an_bytes an_chat_trimmed(const char *content);

an_status an_chat_find_role(const an_chat_writing *w, int64_t message, an_chat_role *r);
an_status an_chat_refuse(const an_chat_writing *w, int64_t message, const char *what);

/* ChatML, which others are kinds of. */
void an_chatml_header(an_chat_writing *w, an_chat_role r);
void an_chatml_message(an_chat_writing *w, an_chat_role r, const char *content);

#endif
