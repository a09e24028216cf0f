/* Where samples come from: arrays in memory, files of images, tables, text and tokens, mixtures of these, and whatever a
 * program writes a reader for.
 *
 * A dataset has a count of samples and reads any of them by number. A sample has named fields, inputs first, then targets.
 * The order in which a run goes through the samples is the trainer's; a dataset has none.
 *
 * Nothing of a file is believed before it was checked. An error names the file, the place in it and what was wrong there. A
 * file must not change while a dataset is open; one that does gives wrong samples or an error, never a crash.
 */
#ifndef ANNEAL_DATA_H
#define ANNEAL_DATA_H

#include "anneal/anneal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- datasets ---- None of these is collective. */

typedef struct an_dataset an_dataset;

/* A target that losses leave out. It is not held against a limit. */
enum { AN_TARGET_IGNORED = -100 };

/* What a sample has under one name. */
typedef struct an_field {
    size_t size;
    const char *name;
    an_dtype dtype;
    int ndims;
    int64_t dims[AN_MAX_DIMS]; /* of one sample */
    int64_t limit;             /* of integers: they are from 0 to below it; 0: not known */
    bool target;               /* may be AN_TARGET_IGNORED */
} an_field;

/* A dataset of the caller's own. Several threads may call `read` and `locate` at once, so they have no context: an error is told
 * by a status and a text. */
typedef struct an_dataset_record {
    size_t size;
    int64_t count;
    int field_count;
    const an_field *fields; /* copied, names too */
    /* Writes samples indices[0 … n-1], in this order and dense, to fields[0 … field_count-1]. The indices are below `count`. The
     * message is what an error will say; it is cut at its capacity. */
    an_status (*read)(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                      size_t message_capacity);
    /* Where an element of a sample comes from ("train.bin: byte 1234"), for messages. NULL: its number is said. */
    void (*locate)(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity);
    void (*close)(void *user); /* called once, by an_dataset_destroy; NULL: nothing to do */
    void *user;
} an_dataset_record;

AN_API an_status an_dataset_create(an_dataset **dataset, an_context *ctx, const an_dataset_record *record);
AN_API void an_dataset_destroy(an_dataset **dataset);

AN_API int64_t an_dataset_count(const an_dataset *dataset); /* at least 1 */
AN_API int an_dataset_field_count(const an_dataset *dataset);
AN_API an_status an_dataset_field(const an_dataset *dataset, int index, an_field *field);

/* Reads n samples of every field into memory of the caller's, dense, in the order of the indices. */
AN_API an_status an_dataset_read(an_dataset *dataset, int64_t n, const int64_t *indices, void *const *fields);

/* The classes that targets name. */
typedef struct an_class_info {
    size_t size;
    int64_t classes;      /* the largest number, and one; 0: targets are not classes */
    int64_t seen;         /* how many different ones samples have */
    int64_t first_absent; /* the smallest that no sample has; `classes`: samples have all */
} an_class_info;
/* Reads every sample once, O(samples), so it also finds a number that is out of range. */
AN_API an_status an_dataset_class_info(an_dataset *dataset, an_class_info *info);

/* From now on reading refuses numbers of an integer field that are not from 0 to below the limit (the rows of a table, the classes
 * of a loss), with the file, the place and the number. Not while others read. */
AN_API an_status an_dataset_set_limit(an_dataset *dataset, const char *field, int64_t limit);

/* ---- a part of a source ---- In the sources below, `begin` and `end` are shares of it, from 0 to 1: 0 and 0.9 are its first
 * nine tenths, 0.9 and 1 the rest, nothing twice and nothing left out. `end` 0 means 1. Shares are of tokens where there are
 * tokens, else of samples. */

/* ---- arrays in memory ---- */

/* The first dimension of every array is the sample (the last one in Fortran). Arrays are not copied: they must outlive the dataset,
 * and what is written to them is what will be read. Any strides. */
typedef struct an_array_source {
    size_t size;
    int array_count;
    const an_array *arrays;   /* inputs first, then targets */
    const char *const *names; /* NULL: "inputs" and "targets" */
    int target_count;         /* how many of them are targets; 0: the last, if there are two or more */
    double begin, end;
} an_array_source;
AN_API an_status an_dataset_create_arrays(an_dataset **dataset, an_context *ctx, const an_array_source *source);

/* ---- IDX, the format of MNIST; also compressed by gzip ---- */

/* "inputs" are f32: numbers of u8 divided by 255, all others as they are. A matrix of numbers per sample gets a channel in front:
 * [1, height, width]. "targets" are i32 where the file has integers, else f32. Both files are held in memory as they are (the
 * compressed ones uncompressed). */
typedef struct an_idx_source {
    size_t size;
    const char *inputs;
    const char *targets; /* NULL: none */
    bool flat;           /* inputs have one dimension */
    bool unscaled;       /* u8 as 0 to 255 */
    double begin, end;
} an_idx_source;
AN_API an_status an_dataset_create_idx(an_dataset **dataset, an_context *ctx, const an_idx_source *source);

/* ---- tables: CSV, also compressed by gzip ---- */

typedef enum an_csv_header {
    AN_CSV_HEADER_AUTO = 0, /* the first line is one if it has words; one with words and numbers is refused */
    AN_CSV_HEADER_YES = 1,
    AN_CSV_HEADER_NO = 2
} an_csv_header;

/* Cells may be quoted, as RFC 4180 says. Numbers have a decimal point whatever the locale is; inf, nan and empty cells are refused.
 * Columns that are neither inputs nor targets may hold anything. */
typedef struct an_csv_source {
    size_t size;
    const char *path;
    an_csv_header header;
    char delimiter; /* 0: a comma */
    int input_count, target_count;
    const char *const *inputs;  /* names of columns, or their numbers from 1 on; none: all that are no targets */
    const char *const *targets; /* none: the last column; with target_count -1: there are no targets */
    bool classes;               /* targets are i32, from 0 on; of one column, a number per sample */
    an_dtype dtype;             /* of inputs and of targets that are no classes: F32 or F64; NONE: F32 */
    double begin, end;
} an_csv_source;
AN_API an_status an_dataset_create_csv(an_dataset **dataset, an_context *ctx, const an_csv_source *source);

/* ---- text and tokens ---- "tokens" and "targets", i32 [context]. Sample i is the tokens i·context to (i+1)·context of the source,
 * the last of them only a target: targets are the tokens that follow. */

typedef enum an_text_tokens {
    AN_TEXT_BYTES = 0,
    AN_TEXT_CHARACTERS = 1 /* code points of UTF-8; their numbers are those of the whole file's characters, sorted */
} an_text_tokens;

/* Bytes are read when they are asked for; characters, and a file that is compressed by gzip, are held in memory, one to four bytes
 * each. */
typedef struct an_text_source {
    size_t size;
    const char *path;
    an_text_tokens tokens;
    int64_t context;
    const an_dataset *vocabulary; /* characters have their numbers there, and all must be there; NULL: as above */
    double begin, end;
} an_text_source;
AN_API an_status an_dataset_create_text(an_dataset **dataset, an_context *ctx, const an_text_source *source);

/* The number of different tokens; 0: the dataset is not of text. */
AN_API an_status an_dataset_vocabulary(const an_dataset *dataset, int64_t *count);
/* The bytes that a token stands for: at most AN_TOKEN_BYTES, and not ended by NUL. */
enum { AN_TOKEN_BYTES = 4 };
AN_API an_status an_dataset_token_text(const an_dataset *dataset, int32_t token, char bytes[AN_TOKEN_BYTES],
                                       int *length);
/* The tokens of a text. *count is how many there are; at most `capacity` of them are written: with 0, `tokens` may be NULL. */
AN_API an_status an_dataset_encode(const an_dataset *dataset, const char *text, size_t length, int32_t *tokens,
                                   int64_t capacity, int64_t *count);

typedef enum an_token_format {
    AN_TOKENS_AUTO = 0, /* llm.c's, by its first number, else U16 */
    AN_TOKENS_U16 = 1,  /* nothing but tokens of two bytes */
    AN_TOKENS_U32 = 2   /* of four */
} an_token_format;

/* Documents that follow each other in a source are cut into samples like anything else. `documents` adds a field "documents", i32
 * [context]: the number of its document within the sample, for attention that stays inside of documents. A document ends
 * with `end_token`. */
typedef struct an_token_source {
    size_t size;
    const char *path;
    an_token_format format;
    int64_t context;
    int64_t limit; /* as an_dataset_set_limit, for both fields; 0: not known */
    bool documents;
    int32_t end_token;    /* with `documents` */
    bool borders_ignored; /* with `documents`: the last token of a document has no target */
    double begin, end;
} an_token_source;
AN_API an_status an_dataset_create_tokens(an_dataset **dataset, an_context *ctx, const an_token_source *source);

/* Megatron's indexed files PREFIX.bin and PREFIX.idx. Documents end where the index says so; with `documents` their borders are held
 * in memory, eight bytes each. */
typedef struct an_megatron_source {
    size_t size;
    const char *prefix; /* without .bin */
    int64_t context;
    int64_t limit;
    bool documents;
    bool borders_ignored;
    double begin, end;
} an_megatron_source;
AN_API an_status an_dataset_create_megatron(an_dataset **dataset, an_context *ctx, const an_megatron_source *source);

/* ---- mixtures ---- */

/* Samples of several datasets with equal fields, in a fixed order that has, from its start to any place, of each source its share
 * (short of or beyond it by less than one for every doubling of the number of sources). A source is gone through from its first sample
 * on. The mixture has as many samples as there are before a source is out of them; so the others are not used to their ends. With
 * `count` it has that many, and a source that is out of samples starts anew. Texts must have one vocabulary. The sources
 * must outlive the mixture. */
typedef struct an_mixture_source {
    size_t size;
    int source_count;
    an_dataset *const *sources;
    const double *weights; /* above 0, of any sum; NULL: equal ones */
    int64_t count;         /* 0: until the first source is out of samples */
    bool owns; /* the sources are destroyed with the mixture; if it cannot be made, they stay the caller's */
} an_mixture_source;
AN_API an_status an_dataset_create_mixture(an_dataset **dataset, an_context *ctx, const an_mixture_source *source);

/* ---- batches ---- */

/* From this epoch on, leaves have so many micro-batches. */
typedef struct an_accumulate_entry {
    int64_t epoch, accumulate;
} an_accumulate_entry;

/* How a step's samples are cut. All of it belongs to the run, never to the launch. Give `global`, or `micro` and `accumulate`
 * (global = micro × accumulate × leaves); if all are given they must agree. */
typedef struct an_batch_options {
    size_t size;
    int64_t global;     /* samples in a step; the last one of an epoch may have fewer */
    int64_t micro;      /* the most samples in one forward and backward; 0: a whole leaf */
    int64_t accumulate; /* micro-batches in a leaf */
    int64_t leaves;     /* 0: 1 */
    bool drop_last;     /* an epoch's short last step is left out */
    int table_count;    /* accumulate by epoch, instead: from table[i].epoch on */
    const an_accumulate_entry *table;
} an_batch_options;

/* Which samples each step of a run takes: arithmetic, so nothing of it is O(samples). Not collective. */
typedef struct an_batches an_batches;

/* `samples` are those of an epoch; 0: a stream, which has no epochs. */
AN_API an_status an_batches_create(an_batches **batches, an_context *ctx, int64_t samples,
                                   const an_batch_options *options);
AN_API void an_batches_destroy(an_batches **batches);

/* A length of a run, or of a part of it. This struct never grows. */
typedef enum an_length_unit {
    AN_LENGTH_STEPS = 0,
    AN_LENGTH_EPOCHS = 1,
    AN_LENGTH_TOKENS = 2,
    AN_LENGTH_SAMPLES = 3,
    AN_LENGTH_SHARE = 4, /* of the run, 0 to 1 */
    AN_LENGTH_TIME = 5   /* seconds */
} an_length_unit;
typedef struct an_length {
    an_length_unit unit;
    double amount; /* whole, for steps, tokens and samples */
} an_length;

/* How often something happens in a run: one of the three is set; none: never. This struct never grows. */
typedef struct an_interval {
    int64_t steps;
    double epochs; /* at the end of every so many epochs, however many steps each one has */
    double seconds;
} an_interval;

/* What lengths are counted by. */
typedef struct an_length_options {
    size_t size;
    int64_t from;            /* the step at which the length begins: epochs need not all have as many steps */
    int64_t run;             /* steps of the run, which shares are of; 0: not known */
    int64_t tokens_a_sample; /* 0: 1 */
} an_length_options;

/* The steps of a length; a part of a step counts as one. A length in time is refused, and so are epochs of a stream, a share of a run
 * whose length is not known, and more than 2^53 steps. */
AN_API an_status an_batches_steps(const an_batches *batches, const an_length *length, const an_length_options *options,
                                  int64_t *steps);
/* The steps of a length that *ends* at step `options->from`. */
AN_API an_status an_batches_steps_before_end(const an_batches *batches, const an_length *length,
                                             const an_length_options *options, int64_t *steps);

/* The first step of an epoch, and how many it has; epochs count from 0. */
AN_API int64_t an_batches_epoch_begin(const an_batches *batches, int64_t epoch);
AN_API int64_t an_batches_epoch_steps(const an_batches *batches, int64_t epoch);
/* The epochs from which on steps have another number of samples: by number, the first is 0; -1 after the last. */
AN_API int64_t an_batches_change(const an_batches *batches, int index);

#ifdef __cplusplus
}
#endif
#endif
