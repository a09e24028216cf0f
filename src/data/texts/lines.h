/* JSON lines whose members are texts. They are read once, from the first record to the last, when a dataset is made. */
#ifndef AN_DATA_TEXTS_LINES_H
#define AN_DATA_TEXTS_LINES_H

#include "data/tables/jsonl_table.h"

typedef struct an_lines {
    an_jsonl_table table; /* its file, and where records begin */
    an_jsonl_workspace workspace;
    int64_t first, last; /* records of the part */
} an_lines;

/* Opens a file and finds its records. The path must outlive it. */
an_status an_lines_open(an_lines *lines, an_context *ctx, const char *path, double begin, double end);
void an_lines_close(an_lines *lines);

/* Makes a record ready to be read. Strings of it are valid until the next call. */
an_status an_lines_read(an_lines *lines, int64_t record, an_json *json);
/* "x.jsonl: byte 12, in record 3: what: 'name'"; the name may be "". */
an_status an_lines_refuse(const an_lines *lines, int64_t record, size_t at, const char *what, const char *name);

#endif
