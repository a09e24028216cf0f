/* A sequence of tokens, in a file or in memory, and the dataset that divides it into samples: shared by text, token
 * files and Megatron's. */
#ifndef AN_DATA_TEXTS_SEQUENCES_H
#define AN_DATA_TEXTS_SEQUENCES_H

#include "base/files/reader.h"
#include "data/dataset.h"

/* How a token is stored, in the lower byte first. */
typedef struct an_token_type {
    const char *name;
    size_t width;
    int64_t (*decode)(const unsigned char *bytes);
} an_token_type;
extern const an_token_type an_token_u8, an_token_i8, an_token_u16, an_token_i16, an_token_u32, an_token_i32,
    an_token_i64;

/* How documents are told apart within a sample. */
typedef enum an_documents { AN_DOCUMENTS_NONE, AN_DOCUMENTS_END_TOKEN, AN_DOCUMENTS_BORDERS } an_documents;

typedef struct an_sequences {
    an_context *ctx;
    an_reader file;
    const char *path;      /* in the arena */
    unsigned char *memory; /* instead of the file, if not NULL */
    size_t memory_bytes;
    const an_token_type *type;
    int64_t offset; /* of token 0 in the file, in bytes */
    int64_t tokens; /* of the whole source */
    int64_t context;
    int64_t first; /* token of the part */

    an_documents documents;
    bool ignore_borders;
    int32_t end_token;
    int64_t *borders; /* sorted: the token that a document begins with */
    int64_t border_count, border_capacity;

    an_vocabulary vocabulary; /* its count is 0 if there is none */
    uint32_t *points;         /* the vocabulary's, if it is its own */
    size_t point_count;
    an_arena arena;
} an_sequences;

/* A zeroed one that knows its path. */
an_status an_sequences_create(an_sequences **sequences, an_context *ctx, const char *path, int64_t context);
void an_sequences_destroy(an_sequences **sequences);

/* Makes a dataset of what was found out, which then owns the sequences; on error they are still the caller's. `limit`
 * holds for what is read if `checked`, and is the source's promise if not. */
an_status an_sequences_dataset(an_dataset **dataset, an_sequences *sequences, double begin, double end, int64_t limit,
                               bool checked);

/* Writes the documents field of a sample that begins with token `begin`, and takes away targets. */
void an_documents_write(const an_sequences *sequences, int64_t begin, const int32_t *tokens, int32_t *targets,
                        int32_t *documents);

#endif
