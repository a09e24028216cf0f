/* anneal tokenize: files of text to a file of tokens.
 *
 * The input is cut into parts of about 256 KiB, at places that depend on the files alone. Threads encode parts, and one
 * thread writes their tokens in order: the output has the same bytes for any number of threads. After some parts the
 * place is written down, so that a later call goes on there.
 */
#ifndef AN_CLI_TOKENIZE_TOKENIZE_H
#define AN_CLI_TOKENIZE_TOKENIZE_H

#include "anneal/pretrained.h"
#include "cli/main/cli.h"

enum { TOKENIZE_PATH = 4096, TOKENIZE_MESSAGE = 1024, TOKENIZE_BATCH = 32 }; /* parts that are in memory at once */

/* Where the input is, and what was made of what lies before. */
typedef struct place {
    int64_t file, offset;
    int64_t tokens, documents;
} place;

typedef struct input {
    char *const *paths;
    int count;
    place at;
    int descriptor; /* of the present file; -1: none */
    bool lines;     /* it has a JSON object on each line */
} input;

/* A part of a file. */
typedef struct part {
    char *bytes;
    size_t length, capacity;
    const char *path;
    int64_t offset;
    bool lines;
    bool ends; /* the file ends with it */
    int32_t *tokens;
    size_t count, token_capacity;
    int64_t documents;
    char error[TOKENIZE_MESSAGE]; /* "": none */
} part;

/* Reads the next part and moves the place behind it. False: there is none, or `error` is set. */
bool tokenize_read(input *input, part *part, char error[TOKENIZE_MESSAGE]);
void tokenize_close(input *input);

typedef struct encoding {
    const an_tokenizer *tokenizer;
    const char *key; /* of JSON lines */
    int32_t end;     /* token behind each document; -1: none */
    int threads;
} encoding;

/* Encodes parts, each with its own thread while there are threads. False: no memory, or no threads. */
bool tokenize_encode(const encoding *encoding, part *parts, int count);

/* Puts the files of the tokenizer beside the file of tokens, in TOKENS.tokenizer. `end` is the token behind each
 * document, which is written down where the files do not say it; NULL: none. Of a GGUF file nothing is copied. */
bool tokenize_put_beside(const char *tokenizer, const char *tokens, const char *end, char error[TOKENIZE_MESSAGE]);

typedef struct output {
    char path[TOKENIZE_PATH], partial[TOKENIZE_PATH], progress[TOKENIZE_PATH];
    int descriptor;
    int width;    /* bytes of a token: 2 or 4 */
    uint64_t job; /* what is tokenized, and how */
    bool continued;
} output;

/* Opens the file of the output, and finds the place of an earlier call with the same job. */
bool tokenize_begin(output *output, const char *path, int width, uint64_t job, place *at, char error[TOKENIZE_MESSAGE]);
bool tokenize_write(output *output, const part *part, char error[TOKENIZE_MESSAGE]);
/* Writes the place down. What was written before is durable. */
bool tokenize_keep(output *output, const place *at, char error[TOKENIZE_MESSAGE]);
/* Gives the file its header and its name. */
bool tokenize_end(output *output, const place *at, char error[TOKENIZE_MESSAGE]);
void tokenize_release(output *output);

/* A number for what is tokenized and how: the tokenizer, the files, their sizes and times. */
bool tokenize_job(const encoding *encoding, const input *input, const char *tokenizer, uint64_t *job,
                  char error[TOKENIZE_MESSAGE]);

/* ---- lines.c ---- */

/* The next text of a part: all of it, or that of a line of JSON, in which strings are decoded in place. False: there
 * is none any more, or the part has an error. */
bool tokenize_next_text(part *part, const char *key, size_t *at, const char **text, size_t *length);

/* ---- train.c ---- */

typedef struct tokenize_training {
    const char *to, *key, *pre;
    int64_t vocabulary, minimum; /* least 0: the default */
} tokenize_training;

/* Makes a tokenizer.json from all files of the call; what repeats are special tokens. An exit code, after a message. */
int tokenize_train(const cli_call *call, an_context *ctx, const tokenize_training *o);

#endif
