/* Reads records of preferences: {"prompt", "chosen", "rejected"}, which are three texts or three lists of messages.
 * Other members may be anything. */
#include <string.h>

#include "data/texts/chat_reading.h"

enum { PROMPT, CHOSEN, REJECTED, MEMBERS };

static const char *const names[MEMBERS] = {"prompt", "chosen", "rejected"};

typedef struct {
    an_json_string texts[MEMBERS];
    size_t begins[MEMBERS], counts[MEMBERS]; /* of the record's messages */
    size_t at[MEMBERS];                      /* places in the record */
    int text_count, list_count;
} members;

static an_status read_member(an_chat_reading *r, an_json *json, members *m, int i) {
    const int begin = an_json_peek(json);
    m->at[i] = json->at;
    if (m->texts[i].bytes || m->counts[i] > 0) {
        an_json_refuse(json, json->at, "a member of a pair appears twice");
    } else if (begin == '[') {
        m->begins[i] = r->message_count;
        AN_TRY_RETURN(an_chat_read_messages(r, json));
        m->counts[i] = r->message_count - m->begins[i];
        m->list_count++;
    } else {
        an_json_string_once(json, &m->texts[i], "'prompt', 'chosen' and 'rejected' are texts or lists of messages");
        m->text_count++;
    }
    return AN_OK;
}

static an_status read_members(an_chat_reading *r, an_json *json, members *m) {
    an_json_string key;
    *m = (members){.text_count = 0};
    r->message_count = 0;
    if (!an_json_object(json)) return AN_OK;
    while (an_json_member(json, &key)) {
        int i = 0;
        while (i < MEMBERS && strcmp(key.bytes, names[i]) != 0) i++;
        if (i < MEMBERS)
            AN_TRY_RETURN(read_member(r, json, m, i));
        else
            an_json_skip(json);
    }
    an_json_end(json);
    if (json->problem) return AN_OK;
    if (m->text_count + m->list_count < MEMBERS)
        an_json_refuse(json, 0, "a pair has 'prompt', 'chosen' and 'rejected'");
    else if (m->list_count != 0 && m->list_count != MEMBERS)
        an_json_refuse(json, 0, "'prompt', 'chosen' and 'rejected' are all texts, or all lists of messages");
    return AN_OK;
}

/* The prompt and one answer, as a conversation of its own: an_chat_write reads messages one after another. */
static an_status add_messages(an_chat_reading *r, const members *m, int answer) {
    an_context *ctx = r->ctx;
    const size_t given = m->counts[PROMPT], said = m->counts[answer], all = given + said;
    const size_t begin = r->message_count;
    AN_TRY_RETURN(an_grow(ctx, (void **)&r->messages, &r->message_capacity, begin + all, sizeof *r->messages));
    memcpy(r->messages + begin, r->messages + m->begins[PROMPT], given * sizeof *r->messages);
    memcpy(r->messages + begin + given, r->messages + m->begins[answer], said * sizeof *r->messages);
    an_chat_reading conversation = *r;
    conversation.messages = r->messages + begin;
    conversation.message_count = all;
    const an_status status = an_chat_add_conversation(&conversation, m->at[answer], given);
    r->text = conversation.text; /* what it grew */
    r->spans = conversation.spans;
    r->span_capacity = conversation.span_capacity;
    return status;
}

static an_status add_answer(an_chat_reading *r, const members *m, int answer) {
    r->text.length = 0;
    if (m->list_count > 0) return add_messages(r, m, answer);
    return an_chat_add_completion(r, &m->texts[PROMPT], &m->texts[answer]);
}

/* Both answers share the room of a sample. The longer one is cut, down to the other or to half of the room, and then
 * both are. The last token of each is only a target. */
static void cut_pair(int64_t room, int64_t *chosen, int64_t *rejected) {
    const int64_t half = room / 2, a = *chosen - 1, b = *rejected - 1;
    const int64_t maximum = room - b > half ? room - b : half;
    const int64_t kept = a < maximum ? a : maximum;
    if (a + b <= room) return;
    *chosen = kept + 1;
    *rejected = (b < room - kept ? b : room - kept) + 1;
}

an_status an_chat_read_pair(an_chat_reading *r) {
    an_pieces *p = r->pieces;
    an_tokenized *t = &p->tokenized;
    an_json json;
    members m;
    const size_t begin = t->count;
    AN_TRY_RETURN(an_lines_read(r->lines, r->record, &json));
    AN_TRY_RETURN(read_members(r, &json, &m));
    if (json.problem) return an_lines_refuse(r->lines, r->record, json.at, json.problem, "");
    AN_TRY_RETURN(add_answer(r, &m, CHOSEN));
    const size_t middle = t->count;
    AN_TRY_RETURN(add_answer(r, &m, REJECTED));
    int64_t chosen = (int64_t)(middle - begin), rejected = (int64_t)(t->count - middle);
    const int64_t all = chosen + rejected;
    p->all_tokens += all;
    cut_pair(r->source->context, &chosen, &rejected);
    p->cut += chosen + rejected < all;
    p->cut_tokens += all - chosen - rejected;
    if (!an_chat_learns(r, begin, chosen) || !an_chat_learns(r, middle, rejected)) {
        p->left_out++;
        t->count = begin;
        return AN_OK;
    }
    AN_TRY_RETURN(an_chat_keep_piece(r, begin, chosen));
    AN_TRY_RETURN(an_chat_keep_piece(r, middle, rejected));
    t->count = middle + (size_t)rejected;
    return AN_OK;
}
