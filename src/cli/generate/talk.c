#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/integer.h"
#include "cli/generate/generate.h"

typedef struct {
    const cli_chat *chat;
    const cli_call *call;
    cli_vocabulary *vocabulary;
    an_generator *generator;
    an_sampling_options sampling;
    int64_t context;
    an_chat_message *messages; /* questions and answers by turns */
    char **texts;              /* of each, which are ours */
    int64_t count, capacity;
    bool has_terminal;
    int64_t turn, forgotten;
} talk;

/* ---- Ctrl-C ends an answer ---- */

static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
    (void)number;
    interrupted = 1;
}

/* ---- what was said ---- */

/* Takes the text over. */
static bool remember(talk *t, const char *role, char *content) {
    if (t->count == t->capacity) {
        const int64_t capacity = 2 * t->capacity + 16;
        an_chat_message *messages = realloc(t->messages, (size_t)capacity * sizeof *messages);
        if (messages) t->messages = messages;
        char **texts = messages ? realloc(t->texts, (size_t)capacity * sizeof *texts) : NULL;
        if (!texts) return false;
        t->texts = texts;
        t->capacity = capacity;
    }
    t->texts[t->count] = content;
    t->messages[t->count++] = (an_chat_message){role, content};
    return true;
}

static void forget(talk *t, int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; i++) free(t->texts[i]);
    for (int64_t i = first + count; i < t->count; i++) {
        t->texts[i - count] = t->texts[i];
        t->messages[i - count] = t->messages[i];
    }
    t->count -= count;
}

/* The tokens of the conversation. What is too long for the context loses its oldest question and answer. */
static int encode(talk *t, int32_t **tokens, int64_t *token_count) {
    const int64_t room = an_smaller(t->sampling.max_tokens, t->context / 4); /* for the answer */
    for (;;) {
        const int code = cli_chat_encode(t->chat, "--chat", t->messages, t->count, tokens, token_count);
        if (code != CLI_DONE || *token_count + room <= t->context) return code;
        free(*tokens);
        *tokens = NULL;
        if (t->count < 3)
            return cli_fail(t->call,
                            "the message has %s tokens with its template; it must leave room for an answer in the "
                            "context of %s tokens (--context)",
                            cli_count(*token_count).text, cli_count(t->context).text);
        forget(t, 0, 2);
        if (t->forgotten++ == 0)
            cli_tell("The conversation no longer fits in the context of %s tokens: the model does not see its "
                     "beginning any more.",
                     cli_count(t->context).text);
    }
}

/* ---- an answer ---- */

static int step(talk *t, cli_written *written, an_generation_end *end) {
    an_generated token;
    int64_t count = 0;
    int length;
    if (an_generator_step(t->generator, &token, &count) != AN_OK) return cli_fail(t->call, "%s", an_last_error(NULL));
    if (count == 0) {
        *end = AN_GENERATION_STOP;
        return CLI_DONE;
    }
    *end = token.end;
    const char *bytes = cli_vocabulary_decode(t->vocabulary, token.token, &length);
    if (bytes) cli_written_add(written, bytes, length);
    if (!bytes || !written->has_room) return cli_fail(t->call, "not enough memory for the answer");
    cli_written_stop(written, t->call->sets, t->call->set_count);
    if ((written->stopped || interrupted) && token.end == AN_GENERATION_GOES_ON) {
        an_generator_stop(t->generator, token.sequence);
        *end = AN_GENERATION_STOP;
    }
    cli_written_show(written, t->call->sets, t->call->set_count, *end != AN_GENERATION_GOES_ON);
    return CLI_DONE;
}

static void explain(const talk *t, an_generation_end end) {
    if (interrupted && t->has_terminal)
        cli_tell("(interrupted)");
    else if (end == AN_GENERATION_LENGTH)
        cli_tell("(the answer was cut after %s tokens; --max-tokens sets how many it may have)",
                 cli_count(t->sampling.max_tokens).text);
    else if (end == AN_GENERATION_CONTEXT)
        cli_tell("(the answer ends here because the context of %s tokens is full)", cli_count(t->context).text);
}

static int answer(talk *t) {
    int32_t *tokens = NULL;
    int64_t count = 0;
    an_generation_end end = AN_GENERATION_GOES_ON;
    cli_written written = {.has_room = true};
    int code = encode(t, &tokens, &count);
    t->sampling.sequence = t->turn++;
    if (code == CLI_DONE && an_generator_add(t->generator, tokens, count, &t->sampling) != AN_OK)
        code = cli_fail(t->call, "%s", an_last_error(NULL));
    free(tokens);
    while (code == CLI_DONE && end == AN_GENERATION_GOES_ON && !ferror(stdout)) code = step(t, &written, &end);
    if (code == CLI_DONE) cli_written_add(&written, "", 0); /* an answer without a token is a text too */
    if (code == CLI_DONE && (!written.has_room || !remember(t, "assistant", written.text)))
        code = cli_fail(t->call, "not enough memory for the conversation");
    if (code != CLI_DONE) {
        free(written.text);
        return code;
    }
    putchar('\n');
    fflush(stdout);
    explain(t, end);
    return CLI_DONE;
}

static int answer_interruptible(talk *t) {
    struct sigaction ours = {.sa_handler = interrupt}, before;
    interrupted = 0;
    if (!t->has_terminal) return answer(t);
    sigaction(SIGINT, &ours, &before);
    const int code = answer(t);
    sigaction(SIGINT, &before, NULL);
    return code;
}

/* ---- the conversation ---- */

static int say(talk *t, const char *line, size_t length) {
    char *own = malloc(length + 1);
    if (own) {
        memcpy(own, line, length);
        own[length] = 0;
    }
    if (!own || !remember(t, "user", own)) {
        free(own);
        return cli_fail(t->call, "not enough memory for the conversation");
    }
    const int code = answer_interruptible(t);
    if (code == CLI_DONE || !t->has_terminal) return code;
    forget(t, t->count - 1, 1); /* a person may say it in other words */
    return CLI_DONE;
}

static int listen(talk *t) {
    char *line = NULL;
    size_t room = 0;
    int code = CLI_DONE;
    while (code == CLI_DONE && !ferror(stdout)) {
        if (t->has_terminal) fputs("\n> ", stderr);
        errno = 0;
        ssize_t length = getline(&line, &room, stdin);
        if (length < 0) break;
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) length--;
        if (memchr(line, 0, (size_t)length))
            code = cli_fail(t->call, "standard input: a message has a byte of value 0");
        else if (length > 0)
            code = say(t, line, (size_t)length);
    }
    if (code == CLI_DONE && ferror(stdin)) code = cli_fail(t->call, "standard input: %s", strerror(errno));
    if (code == CLI_DONE && t->turn == 0 && !t->has_terminal)
        code = cli_fail(t->call, "standard input is empty; write one message per line");
    if (t->has_terminal) fputc('\n', stderr);
    free(line);
    return code;
}

int cli_talk(const cli_chat *chat, cli_vocabulary *vocabulary, an_generator *generator,
             const an_sampling_options *sampling) {
    talk t = {.chat = chat,
              .call = chat->call,
              .vocabulary = vocabulary,
              .generator = generator,
              .sampling = *sampling,
              .has_terminal = isatty(STDIN_FILENO)};
    an_generator_info info;
    an_generator_info_init(&info, sizeof info);
    if (an_generator_info_get(generator, &info) != AN_OK) return cli_fail(t.call, "%s", an_last_error(NULL));
    t.context = info.context;
    if (t.has_terminal)
        cli_tell("%s, template %s, context of %s tokens.\nCtrl-C ends an answer, Ctrl-D ends the conversation.",
                 chat->call->argument, an_chat_template_name((int)chat->format.type), cli_count(t.context).text);
    const int code = listen(&t);
    forget(&t, 0, t.count);
    free(t.messages);
    free(t.texts);
    return code;
}
