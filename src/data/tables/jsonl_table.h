/* What the files of the reader of JSON lines share: an open file, and what its columns are. */
#ifndef AN_DATA_TABLES_JSONL_TABLE_H
#define AN_DATA_TABLES_JSONL_TABLE_H

#include "base/files/reader.h"
#include "data/tables/encoding.h"
#include "data/tables/jsonl_record.h"

/* Weights, if there are any, are the last field. */
enum { AN_JSONL_INPUTS, AN_JSONL_TARGETS, AN_JSONL_KINDS, AN_JSONL_WEIGHTS = AN_JSONL_KINDS, AN_JSONL_FIELDS };

typedef struct an_jsonl_use {
    int kind;       /* AN_JSONL_INPUTS, AN_JSONL_TARGETS or AN_JSONL_WEIGHTS */
    int64_t offset; /* of its first number in the field */
} an_jsonl_use;

typedef struct an_jsonl_table {
    an_context *ctx;
    const char *path;
    an_reader file;
    int64_t *begins; /* of the records, and the file's end */
    size_t count, capacity;
    size_t longest; /* bytes of a record */
    an_jsonl_column *columns;
    an_jsonl_use *uses;
    int column_count;
    int64_t widths[AN_JSONL_FIELDS]; /* numbers of a field */
    an_dtype dtypes[AN_JSONL_FIELDS];
    int kinds; /* without weights */
    bool has_weights;
    int32_t *labels; /* of every record, if targets are classes; NULL: they are numbers */
    const char **names;
    size_t name_count, name_capacity;
    const an_dataset *like;
    an_encoding *encoding; /* the names of the classes; NULL: those of another dataset, or none */
    int64_t classes;       /* the largest class + 1 */
    int64_t first;
    an_arena arena;
} an_jsonl_table;

/* What a thread needs to read one. */
typedef struct an_jsonl_workspace {
    const an_jsonl_table *table;
    char *text;
    bool *seen;
    char *fields[AN_JSONL_FIELDS]; /* of the sample that is being read */
} an_jsonl_workspace;

bool an_jsonl_workspace_make(an_jsonl_workspace *w, const an_jsonl_table *t);
void an_jsonl_workspace_release(an_jsonl_workspace *w);

/* Finds where the records begin. */
an_status an_jsonl_index(an_jsonl_table *t);
/* Chooses the columns and finds out how long they are, from the first record. */
an_status an_jsonl_columns(an_jsonl_table *t, const an_jsonl_source *source);
/* If targets are classes, reads the labels of all records. */
an_status an_jsonl_classes(an_jsonl_table *t, const an_jsonl_source *source);

/* Brings a record into the workspace; and reads it. */
an_status an_jsonl_load(const an_jsonl_table *t, int64_t record, an_jsonl_workspace *w, an_json *json, an_note note);
an_status an_jsonl_read_at(const an_jsonl_table *t, int64_t record, an_jsonl_workspace *w, an_jsonl_reader *reader,
                           an_note note);
/* "x.jsonl: byte 12, in record 3: what: 'name'"; the name may be "". */
an_status an_jsonl_refuse(const an_jsonl_table *t, int64_t record, size_t at, const char *what, const char *name,
                          an_note note);

#endif
