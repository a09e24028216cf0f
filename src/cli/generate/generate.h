/* Parts of anneal generate. */
#ifndef AN_CLI_GENERATE_GENERATE_H
#define AN_CLI_GENERATE_GENERATE_H

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
    an_encoder *encoder; /* of the tokenizer. No bytes, and none of these: only numbers are known */
    int32_t end;         /* token that ends a text; -1: none */
    char bytes_of_token[AN_TOKEN_BYTES];
    char *text; /* of a token of the tokenizer */
    size_t text_capacity;
} cli_vocabulary;

/* That of a run's config; NULL: of a published model. An exit code, after a message. */
int cli_vocabulary_open(cli_vocabulary *vocabulary, const cli_call *call, an_context *ctx, an_config *config);
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

#endif
