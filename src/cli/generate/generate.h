/* Parts of anneal generate. */
#ifndef AN_CLI_GENERATE_GENERATE_H
#define AN_CLI_GENERATE_GENERATE_H

#include "anneal/chat.h"
#include "anneal/data.h"
#include "anneal/generate.h"
#include "anneal/pretrained.h"
#include "cli/checkpoint/source.h"
#include "cli/train/open.h"

/* ---- vocabulary.c: texts to tokens and back ---- */

/* What a model's tokens mean. One more kind of vocabulary is one more case in its functions. */
typedef struct cli_vocabulary {
    const cli_call *call;
    an_context *ctx;
    bool bytes;          /* a token is a byte */
    an_dataset *dataset; /* tokens are the characters of this text */
    an_tokenizer *tokenizer;
    an_encoder *encoder;   /* of the tokenizer. No bytes, and none of these: only numbers are known */
    const char *path;      /* where the tokenizer came from */
    char beside[CLI_PATH]; /* that place, if a run on tokens has it */
    int32_t end;           /* token that ends a text; -1: none */
    char bytes_of_token[AN_TOKEN_BYTES];
    char *text; /* of a token of the tokenizer */
    size_t text_capacity;
} cli_vocabulary;

/* That of a run's config; NULL: of a published model. An exit code, after a message. */
int cli_vocabulary_open(cli_vocabulary *vocabulary, const cli_call *call, an_context *ctx, const cli_checkpoint *from,
                        an_config *config);
void cli_vocabulary_close(cli_vocabulary *vocabulary);
bool cli_vocabulary_knows_text(const cli_vocabulary *vocabulary);
/* Allocates the tokens of a text. An exit code, after a message that begins with `what`. */
int cli_vocabulary_encode(const cli_vocabulary *vocabulary, const char *what, const char *text, size_t length,
                          int32_t **tokens, int64_t *count);
/* The bytes of a token, valid until the next call; NULL: there is no memory for them. */
const char *cli_vocabulary_decode(cli_vocabulary *vocabulary, int32_t token, int *length);

/* ---- written.c: what was generated for a prompt ---- */

typedef struct cli_written {
    char *text;
    size_t length, capacity;
    size_t shown;  /* bytes that are on standard output */
    bool stopped;  /* by a stop string, which is cut off */
    bool has_room; /* false: there was no memory */
} cli_written;

void cli_written_add(cli_written *written, const char *bytes, int length);
/* Cuts the text at the first of these strings that it contains, from `stops` that are not empty. */
void cli_written_stop(cli_written *written, const char *const *stops, int count);
/* Prints what no stop string can cut off any more; all of it at the end. */
void cli_written_show(cli_written *written, const char *const *stops, int count, bool is_end);

/* ---- prompts.c: what is continued ---- */

typedef struct cli_sequence {
    char *prompt; /* NULL: it came as tokens. Of a conversation: the line that its messages lie in */
    an_chat_message *messages;
    int64_t message_count;
    int32_t *tokens;
    int64_t count, generated;
    cli_written written;
    an_generation_end end;
    bool has_ended;
} cli_sequence;

typedef struct cli_prompts {
    const cli_call *call;
    cli_vocabulary *vocabulary;
    struct cli_chat *chat; /* NULL: texts, not conversations */
    cli_sequence *sequences;
    int64_t count, capacity;
} cli_prompts;

/* All of them give an exit code, after a message. */
int cli_prompts_text(cli_prompts *prompts, const char *what, const char *text, size_t length);
int cli_prompts_tokens(cli_prompts *prompts, const char *list);
/* One on each line: a text, or a conversation as JSON. */
int cli_prompts_file(cli_prompts *prompts, const char *path);
void cli_prompts_destroy(cli_prompts *prompts);

/* ---- chat.c: how conversations are written ---- */

typedef struct cli_chat {
    const cli_call *call;
    an_context *ctx;
    const cli_vocabulary *vocabulary;
    an_chat_format format;
    char memory[AN_CHAT_SYSTEM_BYTES];
    int32_t end; /* token that ends a message; -1: none */
} cli_chat;

/* The template by its name, or (NULL) that of the run or the model. `system` may be NULL. */
int cli_chat_open(cli_chat *chat, const cli_vocabulary *vocabulary, an_config *config, const char *template_name,
                  const char *system);
/* Allocates the tokens of a conversation that is to be answered. The message begins with `what`. */
int cli_chat_encode(const cli_chat *chat, const char *what, const an_chat_message *messages, int64_t count,
                    int32_t **tokens, int64_t *token_count);

/* ---- published.c: how a published model is meant to generate ---- */

typedef struct cli_published {
    const cli_call *call; /* NULL: the model is a run's */
    int64_t context;
    bool is_gguf;
    an_pretrained_sampling sampling;
} cli_published;

int cli_published_open(cli_published *published, const cli_call *call, an_context *ctx);
/* Puts its settings in the place of options that were not given, and tells so. */
void cli_published_apply(const cli_published *published, an_sampling_options *sampling);

/* Tokens that end a text. */
enum { CLI_STOPS = AN_PRETRAINED_STOPS + 2 };
typedef struct cli_stops {
    int32_t tokens[CLI_STOPS];
    int count;
} cli_stops;
/* Adds one, unless it is there or negative. */
void cli_stops_add(cli_stops *stops, int32_t token);

/* ---- talk.c: a conversation with whoever writes to standard input ---- */

int cli_talk(const cli_chat *chat, cli_vocabulary *vocabulary, an_generator *generator,
             const an_sampling_options *sampling);

#endif
