/* Datasets: arrays in memory, files of images, tables, text and tokens, mixtures of these, and readers that a program
 * provides.
 *
 * A dataset has a number of samples and reads any of them by index. A sample has named fields, inputs first, then
 * targets. The trainer decides the order in which samples are read; a dataset has no order. To open data, fill the
 * source struct of its format by its _init function, set the path, and call an_dataset_create_FORMAT.
 *
 * Everything in a file is checked before it is used. An error names the file, the place in it and what is wrong there.
 * A file must not change while a dataset is open; if it does, the result is wrong samples or an error, never a crash.
 *
 * A context must outlive its datasets. None of the functions here is collective.
 */
#ifndef ANNEAL_DATA_H
#define ANNEAL_DATA_H

#include "anneal/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

/* ---- datasets ---- */

typedef struct an_dataset an_dataset;

/* A target that losses ignore. It is not checked against a limit. */
enum { AN_TARGET_IGNORED = -100 };

/* A field of a sample. */
typedef struct an_field {
    size_t size;
    const char *name;
    int64_t dims[AN_MAX_DIMS]; /* of one sample */
    int64_t limit;             /* for integers: they are at least 0 and below it; 0: unknown */
    an_dtype dtype;
    int ndims;
    bool target; /* may contain AN_TARGET_IGNORED */
    uint8_t reserved[7];
} an_field;
AN_API void an_field_init(an_field *field, size_t size);

/* Destroys a dataset and sets the pointer to NULL. */
AN_API void an_dataset_destroy(an_dataset **dataset);

/* The number of samples, at least 1. */
AN_API int64_t an_dataset_count(const an_dataset *dataset);

/* The fields of a sample. */
AN_API int an_dataset_field_count(const an_dataset *dataset);
AN_API an_status an_dataset_field(const an_dataset *dataset, int index, an_field *field);

/* Reads n samples of every field into the caller's memory, dense, in the order of the indices. */
AN_API an_status an_dataset_read(an_dataset *dataset, int64_t n, const int64_t *indices, void *const *fields);

/* A message about how the samples were read: rows that were left out, files that were skipped, unknown categories. It
 * lives as long as the dataset. NULL: nothing to report. */
AN_API const char *an_dataset_notice(const an_dataset *dataset);

/* The name of a class, which lives as long as the dataset; NULL if classes have no names or the number is out of
 * range. */
AN_API const char *an_dataset_class_name(const an_dataset *dataset, int64_t number);

/* How the columns of a table became the numbers of a sample: names of columns, categories, classes, and the values of
 * missing cells. Read other tables for the same model with it, so that a number means the same in all of them. For JSON
 * lines and folders of images, an encoding is the names of the classes. */
typedef struct an_encoding an_encoding;

/* ---- a part of a source ---- In the sources below, `begin` and `end` are fractions from 0 to 1; the defaults are 0
 * and 1. 0 and 0.9 select the first nine tenths, 0.9 and 1 the rest; no sample is in both, and none is lost. Fractions
 * count tokens if the source has tokens, and samples otherwise. */

/* ---- arrays in memory ---- */

/* The first dimension of every array is the sample (the last one in Fortran). Arrays are not copied: they must outlive
 * the dataset, and later changes to them are seen. Any strides are allowed. */
typedef struct an_array_source {
    size_t size;
    const an_array *arrays;   /* inputs first, then targets */
    const char *const *names; /* NULL: "inputs" and "targets" */
    double begin, end;
    int array_count;
    int target_count; /* 0: the last array is the targets, if there are two or more */
    bool has_targets; /* true by default; false: all arrays are inputs */
    uint8_t reserved[7];
} an_array_source;
AN_API void an_array_source_init(an_array_source *source, size_t size);
AN_API an_status an_dataset_create_arrays(an_dataset **dataset, an_context *ctx, const an_array_source *source);

/* ---- tables: CSV, may be compressed with gzip ---- */

typedef enum an_csv_header {
    AN_CSV_HEADER_AUTO = 0, /* the first line is a header if it contains words; a mix of words and numbers is refused */
    AN_CSV_HEADER_YES = 1,
    AN_CSV_HEADER_NO = 2,
    AN_CSV_HEADER_LIMIT = 0x7fffffff
} an_csv_header;

/* What becomes of a missing cell: an empty one, NA, N/A, NaN, nan, NULL, null or ?. */
typedef enum an_csv_missing {
    AN_CSV_MISSING_REFUSE = 0,
    AN_CSV_MISSING_DROP = 1, /* rows with such a cell are not samples */
    AN_CSV_MISSING_MEAN = 2, /* the mean of the column's numbers in these samples; in a column of categories: none */
    AN_CSV_MISSING_CONSTANT = 3, /* `constant`; in a column of categories: none */
    AN_CSV_MISSING_LIMIT = 0x7fffffff
} an_csv_missing;

/* What becomes of text in input columns. */
typedef enum an_csv_categories {
    AN_CSV_CATEGORIES_REFUSE = 0,
    AN_CSV_CATEGORIES_ONE_HOT = 1, /* a column with text has one number for each of its different cells, 0 or 1 */
    AN_CSV_CATEGORIES_LIMIT = 0x7fffffff
} an_csv_categories;

/* How numbers are written. A notation other than plain is decided from all cells of a column: 1,234.5 or 1.234,5, 1 234
 * or 1'234, each with a currency or percent sign, which must be the same in all cells and is dropped. Cells in
 * different notations are refused, and so are cells that can be read in two ways, such as 1,234 in all rows. */
typedef enum an_csv_numbers {
    AN_CSV_NUMBERS_PLAIN = 0, /* digits and a decimal point; all else is text */
    AN_CSV_NUMBERS_AUTO = 1,
    AN_CSV_NUMBERS_POINT = 2, /* as AUTO; if a column can be read in two ways, the decimal mark is a point */
    AN_CSV_NUMBERS_COMMA = 3, /* as AUTO; if a column can be read in two ways, the decimal mark is a comma */
    AN_CSV_NUMBERS_LIMIT = 0x7fffffff
} an_csv_numbers;

/* What dates in input columns become. As features, a date is the days since 1970-01-01, sine and cosine of its time of
 * year and of its day of the week and, if it has a time, sine and cosine of that. Dates are those of ISO 8601,
 * 17.05.2024, 17/05/2024 and 05/17/2024. */
typedef enum an_csv_dates {
    AN_CSV_DATES_TEXT = 0, /* categories */
    AN_CSV_DATES_AUTO = 1, /* features; refused if all cells of a column could begin with the day or the month */
    AN_CSV_DATES_DAY_FIRST = 2,
    AN_CSV_DATES_MONTH_FIRST = 3,
    AN_CSV_DATES_LIMIT = 0x7fffffff
} an_csv_dates;

/* Cells may be quoted as in RFC 4180. Numbers have a decimal point in every locale, unless `numbers` says otherwise.
 * inf is refused. Columns that are neither inputs nor targets may contain anything.
 *
 * With `classes`, targets are numbers, 0 or more, or names. Names are numbered in the order of their bytes. With
 * `encoding`, columns are found by that table's names if both tables have a header, and cells and missing numbers get
 * the encoding's values. A class that the encoding does not have is refused. A category that it does not have sets none
 * of its column's numbers, and is counted in the notice. */
typedef struct an_csv_source {
    size_t size;
    const char *path;
    const char *const *inputs;  /* names of columns, or their numbers from 1; none: all that are not targets */
    const char *const *targets; /* the same; none: the last column */
    double begin, end;
    const an_encoding *encoding; /* of another table; must outlive the dataset. NULL: this table makes its own */
    /* column whose cells say which samples belong together, for an_dataset_split; NULL: none. It is an input only if it
     * is listed */
    const char *group;
    double constant;
    /* column with the weight of each sample, 0 or more; NULL: none. It becomes the field "weights", f64, for
     * an_trainer_options.sample_weights, and is an input only if it is listed. With `encoding`, the column may be
     * absent */
    const char *weights;
    /* files to read one after another, in this order, instead of `path`; each may be a pattern. NULL: none */
    const char *const *paths;
    int input_count, target_count;
    an_csv_header header;
    an_dtype dtype; /* of inputs, and of targets that are not classes: F32 or F64; NONE: F32 */
    an_csv_missing missing;
    an_csv_categories categories;
    int path_count;
    /* of inputs, and of targets that are not classes; with `encoding`, notations are those of that table */
    an_csv_numbers numbers;
    an_csv_dates dates;
    bool has_targets; /* true by default */
    bool classes;     /* targets are classes: i32, 0 or more; with one column, a sample has a single number */
    char delimiter;   /* a comma by default */
    uint8_t reserved[1];
} an_csv_source;
AN_API void an_csv_source_init(an_csv_source *source, size_t size);
AN_API an_status an_dataset_create_csv(an_dataset **dataset, an_context *ctx, const an_csv_source *source);

/* ---- arrays of NumPy: .npy, and .npz with or without compression ---- */

/* The first dimension of an array is the sample. Types are f2, f4, f8, i1 to i8, u1 to u8 and b1, little-endian.
 * "inputs" have the type `dtype`; "targets" are i32 if the array has integers, or else have the type `dtype`. Arrays
 * that are compressed, or in Fortran order, are held in memory; others are read from the file. */
typedef struct an_npy_source {
    size_t size;
    const char *path;   /* of a .npy file with the inputs, or of a .npz file; the kind is found by the content */
    const char *labels; /* a file with the targets; NULL: they are in the .npz file, or there are none */
    const char *inputs; /* name of the array in a .npz file; NULL: inputs, x, X, x_train or arr_0, whichever is there */
    const char *targets; /* the same; NULL: targets, y, y_train or arr_1; they may be absent */
    double begin, end;
    an_dtype dtype;        /* F32 or F64; NONE: F32 */
    bool flat;             /* inputs have one dimension */
    bool channel;          /* inputs that are matrices get a channel dimension in front: [1, height, width] */
    bool scaled;           /* u1 inputs are divided by 255; true by default */
    bool weights_optional; /* the file may be without `weights`: then there are none */
    /* Name of an array in the .npz file of the inputs, with a number of 0 or more for each sample; NULL: none. It is
     * the field "weights", f64, for an_trainer_options.sample_weights. */
    const char *weights;
} an_npy_source;
AN_API void an_npy_source_init(an_npy_source *source, size_t size);
AN_API an_status an_dataset_create_npy(an_dataset **dataset, an_context *ctx, const an_npy_source *source);

/* ---- arrays in HDF5 files ---- */

/* The first dimension of an array is the sample. Types are integers of 8 to 64 bits and IEEE reals of 16, 32 and 64.
 * "inputs" have the type `dtype`; "targets" are i32 if the array has integers, or else have the type `dtype`. Samples
 * are read from the file when they are needed. Of packed arrays (deflate, shuffle, fletcher32), up to 256 MiB of chunks
 * stay in memory. A number that does not fit in the type, or is not finite, is an error. Links into other files, arrays
 * whose numbers are in other files, and other filters are refused. AN_ERR_UNSUPPORTED too if the plugin for HDF5 or
 * HDF5 itself is not installed.
 * A program that uses HDF5 itself must not call it in another thread while such a dataset is opened, read or destroyed,
 * unless its HDF5 is made for several threads. */
typedef struct an_hdf5_source {
    size_t size;
    const char *path;
    const char *inputs;  /* path of the array in the file, "group/x"; NULL: inputs, x or X, whichever is there */
    const char *targets; /* the same; NULL: targets, y or Y; they may be absent */
    double begin, end;
    an_dtype dtype;   /* F32 or F64; NONE: F32 */
    bool flat;        /* inputs have one dimension */
    bool channel;     /* inputs that are matrices get a channel dimension in front: [1, height, width] */
    bool scaled;      /* inputs that are bytes without a sign are divided by 255; true by default */
    bool has_targets; /* true by default; false: only inputs are read */
} an_hdf5_source;
AN_API void an_hdf5_source_init(an_hdf5_source *source, size_t size);
AN_API an_status an_dataset_create_hdf5(an_dataset **dataset, an_context *ctx, const an_hdf5_source *source);

/* ---- JSON lines: one object a line ---- */

/* "inputs" are the numbers of the columns of inputs, one after another, with one dimension; "targets" likewise. A
 * column is a member of the object: a number, true or false, or a list of numbers, of equal length in all records;
 * lists of lists are taken in order. A name with dots is a member of an object inside. Other members may be anything.
 * With `classes`, or if the first record's target is a string, there is one target, which is a class: i32. Names of
 * classes are numbered in the order of their bytes. Records are read from the file when they are needed; each
 * takes eight bytes of memory, and four for its class. */
typedef struct an_jsonl_source {
    size_t size;
    const char *path;
    const char *const *inputs;  /* names of columns; none: all members of the first record that are not targets */
    const char *const *targets; /* the same; none: the last member */
    const an_dataset *like;     /* an open dataset whose class numbers are used; NULL: number the names */
    double begin, end;
    /* member with the weight of each record, 0 or more; NULL: none. It becomes the field "weights", f64, for
     * an_trainer_options.sample_weights, and is not an input */
    const char *weights;
    int input_count, target_count;
    an_dtype dtype;        /* of numbers: F32 or F64; NONE: F32 */
    bool has_targets;      /* true by default */
    bool classes;          /* the target is a class: 0, 1, 2, … or a name */
    bool weights_optional; /* the first record may be without `weights`: then there are none */
    uint8_t reserved[1];
} an_jsonl_source;
AN_API void an_jsonl_source_init(an_jsonl_source *source, size_t size);
AN_API an_status an_dataset_create_jsonl(an_dataset **dataset, an_context *ctx, const an_jsonl_source *source);

/* ---- folders of images, PNG and JPEG ---- */

/* A folder with one folder for each class. Classes are numbered, and files are samples, in the order of their names,
 * compared byte by byte. The content of a file decides its kind. Hidden files and files of other kinds are skipped;
 * an_dataset_notice says how many. A file is decoded when its sample is read, by the thread that reads it. It can have
 * 2^26 pixels at most.
 *
 * "inputs" are f32 [channels, height, width], "targets" are i32. Images of another size are stretched by a bilinear
 * filter, which becomes a mean over the area when an image shrinks, in integers. Transparency, gamma, colour profiles
 * and recorded orientations are ignored. `begin` and `end` apply to every class. */
typedef struct an_images_source {
    size_t size;
    const char *path;
    /* an open dataset of images: classes are numbered as there, and sizes that are 0 are its sizes; NULL: none */
    const an_dataset *like;
    double begin, end;
    int64_t height, width; /* 0: as in the first file */
    int channels;          /* 1: grey; 3: red, green, blue; 0: as in the first file */
    bool has_targets;      /* true by default; false: `path` is a file, or a folder of files without classes */
    bool flat;             /* inputs have one dimension */
    bool scaled;           /* bytes are divided by 255; true by default */
    uint8_t reserved[1];
} an_images_source;
AN_API void an_images_source_init(an_images_source *source, size_t size);
AN_API an_status an_dataset_create_images(an_dataset **dataset, an_context *ctx, const an_images_source *source);

/* ---- IDX, the format of MNIST; may be compressed with gzip ---- */

/* "inputs" are f32. "targets" are i32 if the file has integers, or else f32. A sample that is a matrix gets a channel
 * dimension in front: [1, height, width]. Both files are held in memory, uncompressed. */
typedef struct an_idx_source {
    size_t size;
    const char *inputs;
    const char *targets; /* NULL: none */
    double begin, end;
    bool flat;   /* inputs have one dimension */
    bool scaled; /* u8 values are divided by 255; true by default. Other types are never scaled */
    uint8_t reserved[6];
} an_idx_source;
AN_API void an_idx_source_init(an_idx_source *source, size_t size);
AN_API an_status an_dataset_create_idx(an_dataset **dataset, an_context *ctx, const an_idx_source *source);

/* ---- text and tokens ---- Fields "tokens" and "targets", i32 [context]. Sample i is made of the tokens i·context to
 * (i+1)·context of the source. Targets are the tokens shifted by one, so the last of these tokens is only a target. */

typedef enum an_text_tokens {
    AN_TEXT_BYTES = 0,
    AN_TEXT_CHARACTERS = 1, /* Unicode code points of UTF-8, numbered in ascending order over the whole file */
    AN_TEXT_LIMIT = 0x7fffffff
} an_text_tokens;

/* Bytes are read when they are needed. Characters, and files compressed with gzip, are held in memory, one to four
 * bytes each. */
typedef struct an_text_source {
    size_t size;
    const char *path;
    int64_t context;
    /* use the character numbers of this dataset, which must have all of the characters; NULL: number them */
    const an_dataset *vocabulary;
    double begin, end;
    an_text_tokens tokens;
    uint32_t reserved;
} an_text_source;
AN_API void an_text_source_init(an_text_source *source, size_t size);
AN_API an_status an_dataset_create_text(an_dataset **dataset, an_context *ctx, const an_text_source *source);

typedef enum an_token_format {
    AN_TOKENS_AUTO = 0, /* llm.c's format, recognized by its first number, or else U16 */
    AN_TOKENS_U16 = 1,  /* tokens of two bytes, without a header */
    AN_TOKENS_U32 = 2,  /* tokens of four bytes, without a header */
    AN_TOKENS_LIMIT = 0x7fffffff
} an_token_format;

/* A file of tokens. A sample can contain the end of one document and the beginning of the next. `documents` adds a
 * field "documents", i32 [context], with the number of each token's document within the sample, for attention that
 * stays inside documents. A document ends with `end_token`. */
typedef struct an_token_source {
    size_t size;
    const char *path;
    int64_t context;
    int64_t limit; /* as in an_dataset_set_limit, for both fields; 0: unknown */
    double begin, end;
    an_token_format format;
    int32_t end_token; /* with `documents` */
    bool documents;
    bool ignore_borders; /* with `documents`: the last token of a document has no target */
    uint8_t reserved[6];
} an_token_source;
AN_API void an_token_source_init(an_token_source *source, size_t size);
AN_API an_status an_dataset_create_tokens(an_dataset **dataset, an_context *ctx, const an_token_source *source);

/* Megatron's indexed files PREFIX.bin and PREFIX.idx. The index says where documents end. With `documents`, these
 * borders are held in memory, eight bytes each. */
typedef struct an_megatron_source {
    size_t size;
    const char *prefix; /* without .bin */
    int64_t context;
    int64_t limit;
    double begin, end;
    bool documents;
    bool ignore_borders;
    uint8_t reserved[6];
} an_megatron_source;
AN_API void an_megatron_source_init(an_megatron_source *source, size_t size);
AN_API an_status an_dataset_create_megatron(an_dataset **dataset, an_context *ctx, const an_megatron_source *source);

/* ---- texts for fine-tuning ---- */

/* JSON lines for fine-tuning a language model. A record has a member `text`; or `prompt` and `completion`; or
 * `messages`, a list of objects with `role` and `content`. Fields "tokens" and "targets", i32 [context]. A model
 * learns all of a text, a completion, and what the assistant says in a conversation, each with the token that ends
 * it; other targets are AN_TARGET_IGNORED. A record that is longer than context + 1 tokens is truncated, and a record
 * with nothing to learn is left out: an_dataset_notice says how many. With `packed`, a sample has several records, and
 * a field "documents", i32 [context], for attention that stays inside each record. All tokens are held in memory, five
 * bytes each.
 *
 * With `pairs`, a record has `prompt`, `chosen` and `rejected`: three texts, or three lists of messages. A sample is
 * one record: the prompt with the chosen answer, document 0, and the prompt with the rejected one, document 1. Only
 * answers are learned. If both do not fit into `context` tokens, the longer one is truncated first. The field
 * "preferred", i32 without dimensions, is 1: the class of the chosen answer for an_graph_add_dpo. `packed` and
 * `prompts` must have their defaults. */
typedef struct an_chat_source {
    size_t size;
    const char *path;
    const struct an_tokenizer *tokenizer; /* text.h; needed only for the call */
    const struct an_chat_format *format;  /* chat.h: how the model writes conversations; NULL: these are refused */
    int64_t context;
    double begin, end;
    const char *no_format; /* without a format: why there is none, for the message; NULL: none was given */
    bool packed;           /* true by default */
    bool prompts;          /* prompts are learned too */
    bool pairs;            /* records are pairs of a chosen and a rejected answer */
    uint8_t reserved[5];
} an_chat_source;
AN_API void an_chat_source_init(an_chat_source *source, size_t size);
AN_API an_status an_dataset_create_chat(an_dataset **dataset, an_context *ctx, const an_chat_source *source);

/* JSON lines of sentences with classes, for BERT. A record has members `text` and `label`, a name or a number of 0 or
 * more, and may have `text_pair`, a second sentence. Fields "tokens", "token_types" and "mask", i32 [length], and
 * "targets", i32 without dimensions. A record is truncated to `context` tokens, from the end of its longer text:
 * an_dataset_notice says how many were. Shorter records are padded to the longest record of the file. Names of classes
 * are numbered in the order of their bytes. All tokens are held in memory, four bytes each. */
typedef struct an_sentence_source {
    size_t size;
    const char *path;
    const struct an_tokenizer *tokenizer; /* text.h; needed only for the call */
    const an_dataset *like;               /* an open dataset whose class numbers are used; NULL: number the names */
    int64_t context;
    double begin, end;
    bool has_targets; /* true by default; otherwise labels are not read */
    bool padded;      /* samples have `context` tokens, however long the records are */
    uint8_t reserved[6];
} an_sentence_source;
AN_API void an_sentence_source_init(an_sentence_source *source, size_t size);
AN_API an_status an_dataset_create_sentences(an_dataset **dataset, an_context *ctx, const an_sentence_source *source);

/* ---- splits ---- */

typedef enum an_split_by {
    AN_SPLIT_SHUFFLE = 0,  /* any samples */
    AN_SPLIT_STRATIFY = 1, /* the same share of every class; samples must have one class each */
    AN_SPLIT_TIME = 2,     /* the last samples */
    AN_SPLIT_GROUP = 3,    /* whole groups, so the share is only approximate */
    AN_SPLIT_LIMIT = 0x7fffffff
} an_split_by;

/* A split of a dataset into two parts without a common sample. The parts depend only on the samples and these values,
 * so they are the same in every run. Shuffle and time take no memory; stratify and group take 8 bytes per sample, and
 * stratify reads every sample once, except images, whose classes are their folders. */
typedef struct an_split_source {
    size_t size;
    an_dataset *source;
    double evaluation; /* the share of samples, above 0 and below 1 */
    uint64_t seed;     /* of shuffle, stratify and group */
    an_split_by by;
    /* the source is destroyed with the last of the parts; if they cannot be created, it remains the caller's */
    bool owns;
    uint8_t reserved[3];
} an_split_source;
AN_API void an_split_source_init(an_split_source *source, size_t size);
AN_API an_status an_dataset_split(an_dataset **training, an_dataset **evaluation, an_context *ctx,
                                  const an_split_source *source);

/* ==== details ==== the rest of the interface */

/* ---- datasets of the program ---- */

/* A dataset that the caller provides. Several threads may call `read` and `locate` at the same time, so these functions
 * get no context: an error is a status and a text. */
typedef struct an_dataset_record {
    size_t size;
    int64_t count;
    const an_field *fields; /* copied, with their names */
    /* Writes samples indices[0 … n-1], in this order and dense, to fields[0 … field_count-1]. The indices are below
     * `count`. The message of an error is truncated to its capacity. */
    an_status (*read)(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                      size_t message_capacity);
    /* Where an element of a sample comes from ("train.bin: byte 1234"), for messages. NULL: messages give its index. */
    void (*locate)(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity);
    void (*close)(void *user); /* called once, by an_dataset_destroy; may be NULL */
    void *user;
    int field_count;
    uint32_t reserved;
} an_dataset_record;
AN_API void an_dataset_record_init(an_dataset_record *record, size_t size);

/* Creates a dataset from a record, which is copied. */
AN_API an_status an_dataset_create(an_dataset **dataset, an_context *ctx, const an_dataset_record *record);

/* ---- looking at a dataset ---- */

/* The name of the table column that an element of a field comes from. It lives as long as the dataset. NULL: there is
 * no such column, or it has no name. */
AN_API const char *an_dataset_column(const an_dataset *dataset, int field, int64_t element);

/* Texts that belong to samples but are not inputs, such as an id. For a table, these are cells as written; columns are
 * named, or numbered from 1. For JSON lines and sentences, they are members of the records; a member that a record does
 * not have is "". For images, the column "file" has the path of the file. The texts live as long as the cells. */
typedef struct an_cells an_cells;
/* Reads the columns of all samples from the file again, O(bytes). The cells do not need the dataset afterwards.
 * AN_ERR_UNSUPPORTED: this kind of data has no texts. */
AN_API an_status an_cells_create(an_cells **cells, const an_dataset *dataset, int count, const char *const *columns);
/* The name of a column; of a column that was given by number, the name in the header. NULL if the index is out of
 * range. */
AN_API const char *an_cells_name(const an_cells *cells, int column);
/* The text of a sample. `column` is an index into the list of columns. NULL if an index is out of range. */
AN_API const char *an_cells_get(const an_cells *cells, int64_t sample, int column);
AN_API void an_cells_destroy(an_cells **cells);

/* The classes of the targets. */
typedef struct an_class_info {
    size_t size;
    int64_t classes;      /* the largest class plus one; 0: targets are not classes */
    int64_t seen;         /* number of different classes in the samples */
    int64_t first_absent; /* the smallest class without samples; `classes`: every class has samples */
} an_class_info;
AN_API void an_class_info_init(an_class_info *info, size_t size);
/* Reads every sample once, O(samples), and so finds classes that are out of range. For folders of images, the names of
 * the folders are enough. */
AN_API an_status an_dataset_class_info(an_dataset *dataset, an_class_info *info);
/* Counts the targets of classes 0 … count - 1; others are ignored. Reads every sample once, O(samples). */
AN_API an_status an_dataset_count_classes(an_dataset *dataset, int64_t count, int64_t *targets);

/* Sets a limit: from now on, reading refuses values of an integer field that are below 0 or not below the limit (rows
 * of a table, classes of a loss), with a message that names the file, the place and the value. Not while other threads
 * read. */
AN_API an_status an_dataset_set_limit(an_dataset *dataset, const char *field, int64_t limit);

/* Gives the number of different tokens; 0: the dataset is not text. */
AN_API an_status an_dataset_vocabulary(const an_dataset *dataset, int64_t *count);
enum { AN_TOKEN_BYTES = 4 };
/* Gives the bytes of a token: at most AN_TOKEN_BYTES, without a final NUL. */
AN_API an_status an_dataset_token_text(const an_dataset *dataset, int32_t token, char bytes[AN_TOKEN_BYTES],
                                       int *length);
/* Encodes a text with the dataset's vocabulary. *count is the number of tokens; at most `capacity` of them are written.
 * With capacity 0, `tokens` may be NULL. */
AN_API an_status an_dataset_encode(const an_dataset *dataset, const char *text, size_t length, int32_t *tokens,
                                   int64_t capacity, int64_t *count);

/* ---- encodings ---- */

/* Reads an encoding from JSON, as an_encoding_write writes it and a checkpoint has it (an_checkpoint_text of
 * "encoding.json"), or writes it as JSON. Release the text with an_string_release. */
AN_API an_status an_encoding_parse(an_encoding **encoding, an_context *ctx, const char *text, size_t length);
AN_API an_status an_encoding_write(const an_encoding *encoding, char **text);
AN_API void an_encoding_destroy(an_encoding **encoding);
/* The name of a class; NULL if classes have no names or the number is out of range. */
AN_API const char *an_encoding_class(const an_encoding *encoding, int64_t number);
/* An input column of categories: inputs begin to begin + count - 1 of a sample, one for each category. */
typedef struct an_category_info {
    size_t size;
    const char *name; /* of the column; NULL: it has none */
    int64_t begin, count;
} an_category_info;
AN_API void an_category_info_init(an_category_info *info, size_t size);
AN_API int64_t an_encoding_category_count(const an_encoding *encoding);
AN_API an_status an_encoding_category(const an_encoding *encoding, int64_t index, an_category_info *info);
/* Whether samples mean the same in both encodings. The names of columns may differ. */
AN_API bool an_encoding_agrees(const an_encoding *encoding, const an_encoding *other);
/* The encoding of a dataset; NULL: it has none. It lives as long as the dataset, or as the encoding that its source was
 * given. */
AN_API const an_encoding *an_dataset_encoding(const an_dataset *dataset);

/* ---- statistics of a field of numbers ---- They are computed in f64, chunk by chunk, and the chunks are combined in a
 * fixed tree: the same samples always give the same bits. */

typedef struct an_features an_features;

/* Computes statistics over the first samples of a dataset; 0: all. A sample of the field is divided into `count` equal
 * parts, such as the channels of an image, each of which is a feature; 0: every element is a feature. A number that is
 * not finite is refused, and the message says where it is. O(samples). */
AN_API an_status an_features_create(an_features **features, an_dataset *dataset, int field, int64_t samples,
                                    int64_t count);
AN_API void an_features_destroy(an_features **features);
AN_API int64_t an_features_count(const an_features *features);

typedef struct an_feature_info {
    size_t size;
    const char *name; /* of its column, which lives as long as the dataset; NULL: it has none */
    double mean;
    double deviation; /* the square root of the mean square of x - mean; not finite if squares do not fit in f64 */
    double minimum, maximum; /* equal if the feature is constant */
} an_feature_info;
AN_API void an_feature_info_init(an_feature_info *info, size_t size);
AN_API an_status an_features_get(const an_features *features, int64_t feature, an_feature_info *info);

/* ---- mixtures ---- */

/* Samples of several datasets with equal fields, in a fixed order. From its beginning up to any sample, the order
 * contains each source in proportion to its weight, with an error below one sample for every doubling of the number of
 * sources. Each source is read from its first sample. The mixture ends when one source runs out, so the others are not
 * read to their ends. With `count`, it has that many samples, and a source that runs out starts again. Texts must have
 * the same vocabulary, and tables encodings that agree. The sources must outlive the mixture. */
typedef struct an_mixture_source {
    size_t size;
    an_dataset *const *sources;
    const double *weights; /* above 0; they need not sum to 1; NULL: equal weights */
    int64_t count;         /* 0: until the first source runs out */
    int source_count;
    bool owns; /* the sources are destroyed with the mixture; if it cannot be created, they remain the caller's */
    uint8_t reserved[3];
} an_mixture_source;
AN_API void an_mixture_source_init(an_mixture_source *source, size_t size);
AN_API an_status an_dataset_create_mixture(an_dataset **dataset, an_context *ctx, const an_mixture_source *source);

/* ---- augmentation ---- */

typedef enum an_flip {
    AN_FLIP_OFF = 0,
    AN_FLIP_HORIZONTAL = 1, /* left and right are exchanged in every second image */
    AN_FLIP_VERTICAL = 2,   /* top and bottom */
    AN_FLIP_LIMIT = 0x7fffffff
} an_flip;

/* Random changes of training images, in this order: flip, crop, shift, rotate, contrast, brightness, erase. 0: none.
 * The changes of a sample depend only on the run's seed, the epoch and the sample. Inputs must be f32 [channels,
 * height, width]; flat samples are allowed if the source knows that they are images: IDX, .npy and folders of images.
 *
 * Mixup comes last, and its inputs may be any numbers. A sample i is blended with another sample j of the training
 * data, as j is after its own changes in this epoch: x = λ·x_i + (1 - λ)·x_j, with λ of the distribution Beta(mixup,
 * mixup), rounded to a multiple of 2^-24. Targets that are numbers are blended as well. For targets that are classes,
 * the loss is λ times that of the class of i plus 1 - λ times that of the class of j. The loss that a step reports is
 * this one. Evaluations are never mixed. */
typedef struct an_augment_options {
    size_t size;
    double rotate;     /* maximum angle in degrees, either way; the outside is 0 */
    double brightness; /* factor of 1 ± up to this, 0 to 1 */
    double contrast;   /* factor of 1 ± up to this on differences from the image's mean, 0 to 1 */
    double erase;      /* maximum share of the image that a rectangle of zeros covers */
    int64_t shift;     /* maximum number of pixels in each direction; the outside is 0 */
    int64_t crop;      /* the same; the outside is the mirror image, as if the image were padded by it and cropped */
    double mixup;      /* 0.001 to 1,000; 0.2 is usual for images; 0: none */
    an_flip flip;
    uint32_t reserved;
} an_augment_options;
AN_API void an_augment_options_init(an_augment_options *options, size_t size);

/* ---- batches ---- */

/* After `epoch` finished epochs, a step has `accumulate` micro-batches: an entry for 4 begins with epoch 5. The first
 * entry is for 0, the start of the run. This struct never grows. */
typedef struct an_accumulate_entry {
    int64_t epoch, accumulate;
} an_accumulate_entry;

/* How the samples of a step are divided. This belongs to the run: it does not depend on threads or ranks. Give
 * `global`, or `micro` and `accumulate` (global = micro × accumulate). If all are given, they must agree. */
typedef struct an_batch_options {
    size_t size;
    int64_t global;     /* samples in a step; the last step of an epoch may have fewer */
    int64_t micro;      /* maximum number of samples in one forward and backward pass; 0: what fits in memory */
    int64_t accumulate; /* micro-batches in a step, in place of `global` */
    int64_t leaves;     /* 0: chosen from the model and `global` (docs/bits.md) */
    const an_accumulate_entry *table; /* instead of `accumulate`: a table by finished epochs, in ascending order */
    int table_count;
    bool drop_last; /* skip the last step of an epoch if it has fewer samples */
    uint8_t reserved[3];
} an_batch_options;
AN_API void an_batch_options_init(an_batch_options *options, size_t size);

/* Which samples each step of a run takes. This is arithmetic: no call is O(samples). */
typedef struct an_batches an_batches;

/* Creates batches. `samples` is the number of samples in an epoch; 0: a stream, which has no epochs. */
AN_API an_status an_batches_create(an_batches **batches, an_context *ctx, int64_t samples,
                                   const an_batch_options *options);
AN_API void an_batches_destroy(an_batches **batches);

/* The length of a run, or of a part of it. This struct never grows. */
typedef enum an_length_unit {
    AN_LENGTH_STEPS = 0,
    AN_LENGTH_EPOCHS = 1,
    AN_LENGTH_TOKENS = 2,
    AN_LENGTH_SAMPLES = 3,
    AN_LENGTH_SHARE = 4, /* fraction of the run, 0 to 1 */
    AN_LENGTH_TIME = 5,  /* seconds */
    AN_LENGTH_LIMIT = 0x7fffffff
} an_length_unit;
typedef struct an_length {
    an_length_unit unit;
    double amount; /* a whole number for steps, tokens and samples */
} an_length;

/* How often something happens in a run. Set one of the three; none: never. This struct never grows. */
typedef struct an_interval {
    int64_t steps;
    double epochs; /* 2: at the ends of epochs 2, 4, 6, …, however many steps each has; epoch 1 is the first */
    double seconds;
} an_interval;

/* How lengths are converted to steps. */
typedef struct an_length_options {
    size_t size;
    int64_t from; /* step at which the length begins, from 0, as epochs may have different numbers of steps */
    int64_t run;  /* steps of the run, for fractions of it; 0: unknown */
    int64_t tokens_a_sample; /* 1 by default */
} an_length_options;
AN_API void an_length_options_init(an_length_options *options, size_t size);

/* Gives the number of steps of a length, rounded up. A length in time is refused, and so are epochs of a stream, a
 * fraction of a run whose length is unknown, and more than 2^53 steps. */
AN_API an_status an_batches_steps(const an_batches *batches, const an_length *length, const an_length_options *options,
                                  int64_t *steps);
/* Gives the number of steps of a length that *ends* at step `options->from`. */
AN_API an_status an_batches_steps_before_end(const an_batches *batches, const an_length *length,
                                             const an_length_options *options, int64_t *steps);

/* The first step of an epoch, and its number of steps. `epoch` is the number of finished epochs, so epochs count from 0
 * here; steps count from 0 too. */
AN_API int64_t an_batches_epoch_begin(const an_batches *batches, int64_t epoch);
AN_API int64_t an_batches_epoch_steps(const an_batches *batches, int64_t epoch);
/* After how many finished epochs steps have a different number of samples. The first is 0, the start of the run; -1
 * after the last. */
AN_API int64_t an_batches_change(const an_batches *batches, int index);

/* ==== experimental ==== may change at any release before 1.0 */

/* ---- what a table contains ---- The kinds and notations that are recognized may change. */

/* Facts about every column of a table, to decide which columns are inputs and which are targets. */
typedef struct an_csv_facts an_csv_facts;
/* Counts the cells of a table, O(cells). Memory is bounded by the columns and their different cells, and the bytes of
 * one file. `delimiter` 0: the comma, semicolon, tab or bar that gives the most columns. */
AN_API an_status an_csv_facts_create(an_csv_facts **facts, an_context *ctx, const char *path, char delimiter);
AN_API void an_csv_facts_destroy(an_csv_facts **facts);

typedef struct an_csv_info {
    size_t size;
    int64_t rows, columns;
    char delimiter;
    bool header; /* the first line has no numbers, and is not a row of categories like those below it */
    uint8_t reserved[6];
} an_csv_info;
AN_API void an_csv_info_init(an_csv_info *info, size_t size);
AN_API an_status an_csv_facts_info(const an_csv_facts *facts, an_csv_info *info);

/* The maximum number of different cells of a column that are counted. */
enum { AN_CSV_MOST_VALUES = 1000 };

typedef enum an_csv_kind {
    AN_CSV_KIND_PLAIN = 0,  /* plain numbers, or text */
    AN_CSV_KIND_NUMBER = 1, /* numbers in another notation */
    AN_CSV_KIND_DATE = 2,
    AN_CSV_KIND_UNCLEAR_NUMBER = 3, /* the decimal mark could be a point or a comma */
    AN_CSV_KIND_UNCLEAR_DATE = 4,   /* the day or the month could be first */
    AN_CSV_KIND_MIXED = 5,          /* most are numbers or dates, but not all, or not all in one notation */
    AN_CSV_KIND_LIMIT = 0x7fffffff
} an_csv_kind;

typedef struct an_csv_column {
    size_t size;
    const char *name;                /* in the header; lives as long as the facts; NULL: it has none */
    int64_t numbers, texts, missing; /* cells */
    int64_t values;          /* different cells that are not missing; above AN_CSV_MOST_VALUES: too many to count */
    double minimum, maximum; /* of the numbers; 0 without numbers */
    const char *notation;    /* "1.234,5 €", "DD.MM.YYYY"; NULL for kinds that are neither numbers nor dates */
    const char *example;     /* one of the cells; NULL for kind AN_CSV_KIND_PLAIN */
    /* what the cells are with AN_CSV_NUMBERS_AUTO and AN_CSV_DATES_AUTO, if that differs from the counts above */
    an_csv_kind kind;
    bool whole; /* every number is a whole number */
    uint8_t reserved[3];
} an_csv_column;
AN_API void an_csv_column_init(an_csv_column *column, size_t size);
/* Columns count from 0. */
AN_API an_status an_csv_facts_column(const an_csv_facts *facts, int64_t index, an_csv_column *column);
/* One of the different cells of a column, in the order of their bytes, and the number of its rows. The text lives as
 * long as the facts. NULL if the index is out of range, or if the column has too many different cells. `count` may be
 * NULL. */
AN_API const char *an_csv_facts_value(const an_csv_facts *facts, int64_t index, int64_t value, int64_t *count);

#ifdef __cplusplus
}
#endif
#endif
