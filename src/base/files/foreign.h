/* Files of other programs that hold data which anneal reads in another format, or by a config of its own. Needs no
 * context. */
#ifndef AN_BASE_FILES_FOREIGN_H
#define AN_BASE_FILES_FOREIGN_H

#include <stdbool.h>

typedef struct an_foreign {
    const char *kind;   /* "a workbook of Excel" */
    const char *advice; /* how to convert it; FILE stands for its path */
    bool is_read;       /* the advice is a config that reads it as it is */
} an_foreign;

/* Reads the first bytes of a file. Where these say nothing, and are no text, its name does. NULL: it is none, or cannot
 * be read. */
const an_foreign *an_foreign_find(const char *path);

/* What to say of such a file: "this is a Parquet file, which anneal does not read; convert it: …". */
typedef struct an_foreign_text {
    char text[512];
} an_foreign_text;
an_foreign_text an_foreign_describe(const an_foreign *foreign, const char *path);

#endif
