/* One record of a JSON-lines file: an object, some of whose members are the columns of a sample. */
#ifndef AN_DATA_TABLES_JSONL_RECORD_H
#define AN_DATA_TABLES_JSONL_RECORD_H

#include "base/text/json.h"
#include "data/dataset.h"

enum { AN_JSONL_COLUMNS = 4096, AN_JSONL_NAME = 256 };

/* A member of the object, or, with dots in its name, of an object inside it. */
typedef struct an_jsonl_column {
    const char *name;
    int64_t count; /* of numbers; lists of lists are taken in order. -1: not known yet, any number is right */
    bool text;     /* the value is a string */
} an_jsonl_column;

/* What reads a record. Numbers of column c are given one by one; `text` is NULL for numbers. Gives
 * false after an_json_refuse. */
typedef struct an_jsonl_reader {
    an_jsonl_column *columns;
    int count;
    bool *seen; /* of each column; scratch */
    bool (*take)(void *user, an_json *json, int column, int64_t index, double number, const an_json_string *text);
    void *user;
    int missing; /* the column that a record does not have, if that is what is wrong; -1: it is not */
} an_jsonl_reader;

/* Reads a record, which is changed by that. What is wrong is json->problem, at json->at. */
bool an_jsonl_read(an_jsonl_reader *reader, an_json *json);

#endif
