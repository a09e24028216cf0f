/* Splits a table in text form (RFC 4180) into cells. */
#ifndef AN_DATA_TABLES_CSV_SCAN_H
#define AN_DATA_TABLES_CSV_SCAN_H

#include "data/dataset.h"

/* The longest cell. A quote that nobody closed would otherwise take in the rest of a file. */
enum { AN_CSV_CELL_BYTES = 16 << 20 };

typedef struct an_csv_scan {
    const char *path; /* for messages */
    const char *at, *end;
    char delimiter;
    int64_t line, column; /* of the next cell, from 1 */
} an_csv_scan;

typedef struct an_csv_cell {
    const char *start; /* what stands between the quotes, doubled ones not replaced; else without blanks around it */
    size_t length;
    int64_t line, column;
    bool last; /* of its line */
} an_csv_cell;

/* Begins after a byte order mark, if there is one. */
void an_csv_begin(an_csv_scan *scan, const char *path, char delimiter, const char *text, size_t length);
/* Steps over empty lines; false at the end of the text. Called at the beginning of a line. */
bool an_csv_more(an_csv_scan *scan);
an_status an_csv_next(an_csv_scan *scan, an_csv_cell *cell, an_note note);

/* Writes its text, with one quote for two, and a NUL: at most length + 1 bytes. Gives how many without the NUL. */
size_t an_csv_copy(const an_csv_cell *cell, char *text);
/* Whether it is empty or a word that stands for nothing. */
bool an_csv_is_missing(const an_csv_cell *cell);
/* AN_ERR_PARSE with "FILE: line L, column C: " in front. */
an_status an_csv_refuse(const an_csv_scan *scan, const an_csv_cell *cell, const char *what, an_note note);

#endif
