/* A table that is being read: which columns it has, and the numbers that its cells become.
 *
 *     data/tables/csv_files.c    files into bytes
 *     data/tables/csv_scan.c     bytes into cells
 *     data/tables/csv_delimiter.c what stands between columns
 *     data/tables/csv_columns.c  which columns are inputs and targets
 *     data/tables/csv_cells.c    cells into numbers
 *     data/tables/csv_notations.c what columns are, by all of their cells
 *     data/tables/csv_rows.c     all rows, in one pass or three
 *     data/tables/csv.c          the dataset
 *     data/tables/csv_kept.c     cells of a finished table as text
 *     data/tables/csv_facts.c    what the columns contain, without a dataset
 */
#ifndef AN_DATA_TABLES_CSV_TABLE_H
#define AN_DATA_TABLES_CSV_TABLE_H

#include "data/tables/csv_scan.h"
#include "data/tables/encoding.h"

enum { AN_CSV_UNUSED = -1 }; /* beside AN_ENCODED_INPUTS and AN_ENCODED_TARGETS */

typedef struct an_csv_use {
    int kind;     /* AN_ENCODED_INPUTS, AN_ENCODED_TARGETS or AN_CSV_UNUSED */
    int64_t rank; /* among the columns of the field */
} an_csv_use;

typedef struct an_csv_field {
    int64_t columns;  /* of the table; one number is stored for each */
    int64_t elements; /* of a sample; more than the columns where some are categories */
    an_dtype dtype;
    char *numbers;   /* rows × columns; of a category its number, or -1: none */
    int64_t *origin; /* the table's column of each of them, from 0 */
} an_csv_field;

/* What is known of the cells of a column before names get their numbers. */
typedef struct an_csv_odd {
    const char *path; /* NULL: there is none */
    int64_t line;
    char text[48];
} an_csv_odd;

typedef struct an_csv_look {
    an_notation_seen seen;
    an_csv_odd text, differing; /* the first text, and the first number or date that is written in another way */
} an_csv_look;

typedef struct an_csv_file {
    const char *path;
    int64_t first; /* row */
} an_csv_file;

/* What did not become numbers. */
typedef struct an_csv_left_out {
    int64_t rows;
    int64_t cells;        /* with a category that the encoding does not have */
    char first_cell[160]; /* the first of these, and its place */
} an_csv_left_out;

typedef struct an_csv_table {
    an_context *ctx;
    const an_csv_source *source; /* while it is read */
    const char *path;            /* as it was given */
    an_csv_file *files;
    size_t file_count, loaded; /* the file whose bytes are these, from 1; 0: none is */
    char *bytes;
    size_t size, bytes_capacity;
    char delimiter;
    an_csv_field fields[AN_ENCODED_KINDS];
    int kinds;              /* 1: no targets */
    int64_t rows, capacity; /* that are stored; memory is for `capacity` */
    int64_t *lines;         /* of each row */
    uint64_t *groups;       /* hash of each row's group; NULL: they are in none */
    int64_t group;          /* column of the groups; -1: none */
    double *weights;        /* of each row; NULL: they have none */
    int64_t weight;         /* column of the weights; -1: none */
    int64_t first, last;    /* rows of the part */
    int64_t columns;        /* of the file */
    bool header;            /* the first line has names */
    const char **names;     /* of the columns, if there is a header */
    int64_t *sorted;        /* columns in the order of their names */
    an_csv_use *uses;       /* of every column */
    int64_t classes;        /* the largest target + 1 */
    an_encoding *own;       /* NULL: another table's is used */
    const an_encoding *encoding;
    bool expands;                         /* some inputs are categories or dates */
    int64_t dates;                        /* input columns with dates */
    int64_t *date_ranks;                  /* of each input among them; -1: it is none. NULL: none is */
    int64_t *instants;                    /* rows × dates, in seconds since 1970, as f32 has no room for them */
    an_name_set *sets[AN_ENCODED_KINDS];  /* of columns whose names are being collected; NULL: none are */
    an_csv_look *looks[AN_ENCODED_KINDS]; /* while cells are only looked at; NULL: they are stored */
    bool found_text;                      /* where only numbers were expected, and there is no encoding yet */
    an_csv_left_out left_out;
    const char *unread; /* what to say of numbers and dates that were read as text; NULL: nothing */
    const char *notice;
    an_arena arena;
} an_csv_table;

/* ---- stored numbers ---- */

static inline size_t an_csv_row_bytes(const an_csv_field *field) {
    return (size_t)field->columns * an_dtype_size(field->dtype);
}

static inline void an_csv_put(const an_csv_field *field, int64_t row, int64_t rank, double number) {
    void *const numbers = field->numbers;
    const int64_t at = row * field->columns + rank;
    if (field->dtype == AN_DTYPE_I32)
        ((int32_t *)numbers)[at] = (int32_t)number;
    else if (field->dtype == AN_DTYPE_F64)
        ((double *)numbers)[at] = number;
    else
        ((float *)numbers)[at] = (float)number;
}

static inline double an_csv_get(const an_csv_field *field, int64_t row, int64_t rank) {
    const void *const numbers = field->numbers;
    const int64_t at = row * field->columns + rank;
    return field->dtype == AN_DTYPE_I32   ? ((const int32_t *)numbers)[at]
           : field->dtype == AN_DTYPE_F64 ? ((const double *)numbers)[at]
                                          : (double)((const float *)numbers)[at];
}

/* ---- reading ---- */

/* Whether columns of this kind may be numbers and dates in other notations, and whether they may be names. */
bool an_csv_reads_notations(const an_csv_table *table, int kind);
bool an_csv_takes_names(const an_csv_table *table, int kind);

/* A cell that has a use. */
typedef struct an_csv_place {
    an_csv_table *t;
    const an_csv_scan *scan;
    const an_csv_cell *cell;
    an_csv_use use;
    an_note note;
} an_csv_place;

/* Stores the cell in the row that comes next, or looks at it. */
an_status an_csv_take(const an_csv_place *place);
/* Stores the cell as the weight of the row that comes next. */
an_status an_csv_take_weight(an_csv_table *table, const an_csv_scan *scan, const an_csv_cell *cell, an_note note);

/* Reads the first line, which the scan stands at, and decides what every column is. The scan then
 * stands at the first row. */
an_status an_csv_choose_columns(an_csv_table *table, an_csv_scan *scan);

/* Steps over the first line of a further file, if it has names. These must be the same. */
an_status an_csv_check_columns(an_csv_table *table, an_csv_scan *scan);

/* The columns that the first lines have with this delimiter; 1: they do not all have the same number, or only one. */
int64_t an_csv_count_columns(an_csv_scan scan, char delimiter);
/* The comma, semicolon, tab or bar that gives the most columns. The commas of 1,5;2,5 are no delimiters. */
char an_csv_find_delimiter(const an_csv_scan *scan);
/* After a table could not be read: says so if its file has another delimiter. Gives the status. */
an_status an_csv_blame_delimiter(const an_csv_table *table, an_status status);

/* The files that the source's path stands for. */
an_status an_csv_find_files(an_csv_table *table);
/* Loads a file, and stands before its first line. One file is loaded at a time. */
an_status an_csv_load(an_csv_table *table, size_t file, an_csv_scan *scan);
void an_csv_unload(an_csv_table *table);

/* The column that is called so, or else has this number, from 1. */
an_status an_csv_find_column(const an_csv_table *table, const char *name, int64_t *column);

/* Reads cells of a finished table, `user`, again, as text. */
an_status an_csv_read_cells(void *user, an_cells *cells);

/* Cells are only looked at from begin to end; in between, the encoding is decided. */
an_status an_csv_look_begin(an_csv_table *table);
void an_csv_look_at(const an_csv_place *place);
an_status an_csv_decide(an_csv_table *table);
void an_csv_look_end(an_csv_table *table);
/* Counts the columns with dates, once the encoding is known. */
an_status an_csv_count_dates(an_csv_table *table);

/* Reads all rows, and makes the encoding if there is none. */
an_status an_csv_read_rows(an_csv_table *table);

#endif
