#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/json_message.h"
#include "cli/generate/generate.h"

static cli_sequence *add_sequence(cli_prompts *p) {
    if (p->count == p->capacity) {
        const int64_t capacity = 2 * p->capacity + 16;
        cli_sequence *larger = realloc(p->sequences, (size_t)capacity * sizeof *larger);
        if (!larger) return NULL;
        p->sequences = larger;
        p->capacity = capacity;
    }
    cli_sequence *s = &p->sequences[p->count++];
    *s = (cli_sequence){.written = {.has_room = true}};
    return s;
}

/* A sequence with a copy of its prompt; NULL after a message. */
static cli_sequence *add_prompt(cli_prompts *p, const char *text, size_t length) {
    cli_sequence *s = add_sequence(p);
    if (s) s->prompt = malloc(length + 1);
    if (!s || !s->prompt) {
        cli_fail(p->call, "not enough memory for %lld prompts", (long long)p->count);
        return NULL;
    }
    memcpy(s->prompt, text, length);
    s->prompt[length] = 0;
    return s;
}

int cli_prompts_text(cli_prompts *p, const char *what, const char *text, size_t length) {
    cli_sequence *s = add_prompt(p, text, length);
    if (!s) return CLI_FAILED;
    if (length == 0) return cli_fail(p->call, "%s: is empty; the model needs something to continue", what);
    return cli_vocabulary_encode(p->vocabulary, what, text, length, &s->tokens, &s->count);
}

/* ---- conversations ---- */

/* False: no memory. */
static bool read_messages(an_json *json, cli_sequence *s) {
    size_t capacity = 0;
    if (s->messages) an_json_refuse(json, json->at, "'messages' appears twice");
    if (an_json_peek(json) != '[') an_json_refuse(json, json->at, "'messages' is a list");
    if (!an_json_array(json)) return true;
    while (an_json_element(json)) {
        if ((size_t)s->message_count == capacity) {
            capacity = 2 * capacity + 8;
            an_chat_message *larger = realloc(s->messages, capacity * sizeof *larger);
            if (!larger) return false;
            s->messages = larger;
        }
        if (!an_json_message(json, &s->messages[s->message_count++])) break;
    }
    return true;
}

static int add_conversation(cli_prompts *p, const char *what, const char *line, size_t length) {
    cli_sequence *s = add_prompt(p, line, length);
    an_json json;
    an_json_string key;
    bool has_room = true;
    if (!s) return CLI_FAILED;
    an_json_init(&json, s->prompt, length);
    if (an_json_object(&json)) {
        while (has_room && an_json_member(&json, &key))
            if (strcmp(key.bytes, "messages") != 0)
                an_json_skip(&json);
            else
                has_room = read_messages(&json, s);
    }
    if (!has_room) return cli_fail(p->call, "%s: not enough memory for its messages", what);
    an_json_end(&json);
    if (!json.problem && s->message_count == 0)
        an_json_refuse(&json, 0,
                       "there are no messages; write {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}]}");
    if (json.problem) return cli_fail(p->call, "%s: byte %zu: %s", what, json.at, json.problem);
    if (!strcmp(s->messages[s->message_count - 1].role, "assistant"))
        return cli_fail(p->call, "%s: the last message is the assistant's, so there is nothing to answer", what);
    return cli_chat_encode(p->chat, what, s->messages, s->message_count, &s->tokens, &s->count);
}

/* ---- files and numbers ---- */

int cli_prompts_file(cli_prompts *p, const char *path) {
    FILE *file = fopen(path, "rb");
    char *line = NULL, what[512];
    size_t room = 0;
    int code = file ? CLI_DONE : cli_fail(p->call, "%s: cannot be read: %s", path, strerror(errno));
    ssize_t length = 0;
    for (int64_t number = 1; code == CLI_DONE && (length = getline(&line, &room, file)) >= 0; number++) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) length--;
        snprintf(what, sizeof what, "%s: line %lld", path, (long long)number);
        code =
            p->chat ? add_conversation(p, what, line, (size_t)length) : cli_prompts_text(p, what, line, (size_t)length);
    }
    if (code == CLI_DONE && ferror(file)) code = cli_fail(p->call, "%s: cannot be read: %s", path, strerror(errno));
    if (code == CLI_DONE && p->count == 0)
        code = cli_fail(p->call, "%s: is empty; write one %s per line", path, p->chat ? "conversation" : "prompt");
    if (file) fclose(file);
    free(line);
    return code;
}

int cli_prompts_tokens(cli_prompts *p, const char *list) {
    cli_sequence *s = add_sequence(p);
    if (s) s->tokens = malloc((strlen(list) + 1) * sizeof *s->tokens);
    if (!s || !s->tokens) return cli_fail(p->call, "not enough memory for the prompt");
    for (const char *at = list;; at++) {
        char *end;
        errno = 0;
        const long number = strtol(at, &end, 10);
        if (end == at || errno || number < 0 || number > INT32_MAX || (*end && *end != ','))
            return cli_misuse(p->call, "--tokens takes whole numbers with commas between them, as in 12,7,99, not '%s'",
                              list);
        s->tokens[s->count++] = (int32_t)number;
        if (!*end) return CLI_DONE;
        at = end;
    }
}

void cli_prompts_destroy(cli_prompts *p) {
    for (int64_t i = 0; i < p->count; i++) {
        free(p->sequences[i].prompt);
        free(p->sequences[i].messages);
        free(p->sequences[i].tokens);
        free(p->sequences[i].written.text);
    }
    free(p->sequences);
}
