/* Which columns of a table a config uses. */
#ifndef AN_CLI_INIT_COLUMNS_H
#define AN_CLI_INIT_COLUMNS_H

#include "cli/init/init.h"

typedef enum init_use { INIT_INPUT, INIT_TARGET, INIT_GROUP, INIT_LEFT_OUT } init_use;

typedef struct init_column {
    an_csv_column facts;
    char label[64]; /* its name as init_show gives it, or "column 3" */
    init_use use;
    bool has_notation; /* its numbers are read in another notation than the plain one */
    bool is_date;
    const char *reason; /* why it is left out */
} init_column;

typedef struct init_columns {
    const an_csv_facts *facts;
    an_csv_info info;
    init_column *list;
    int64_t target; /* the first of them */
    int64_t target_count;
} init_columns;

/* Decides what every column is; an exit code, after a message. To be freed whatever this returns. */
int init_columns_choose(init_columns *all, init_found *f, const an_csv_facts *facts);
void init_columns_free(init_columns *all);
/* The columns and what was decided, on standard error. */
void init_columns_tell(const init_columns *all);

#endif
