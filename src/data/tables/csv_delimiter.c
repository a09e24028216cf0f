/* What stands between the columns of a table. */
#include <stdio.h>

#include "data/tables/csv_table.h"
#include "data/tables/notation.h"

enum { LOOKED_AT = 20 };

int64_t an_csv_count_columns(an_csv_scan scan, char delimiter) {
    int64_t columns = 0;
    scan.delimiter = delimiter;
    for (int line = 0; line < LOOKED_AT && an_csv_more(&scan); line++) {
        an_csv_cell cell = {.last = false};
        int64_t cells = 0;
        for (; !cell.last; cells++)
            if (an_csv_next(&scan, &cell, (an_note){0}) != AN_OK) return 1;
        if (line > 0 && cells != columns) return 1;
        columns = cells;
    }
    return columns;
}

/* Whether all cells of the first lines are numbers or dates, as those of a table with decimal commas are. */
static bool are_numbers(an_csv_scan scan, char delimiter) {
    scan.delimiter = delimiter;
    for (int line = 0; line < LOOKED_AT && an_csv_more(&scan); line++)
        for (an_csv_cell cell = {.last = false}; !cell.last;) {
            if (an_csv_next(&scan, &cell, (an_note){0}) != AN_OK) return false;
            if (!an_csv_is_missing(&cell) && !an_notation_reads(cell.start, cell.length)) return false;
        }
    return true;
}

char an_csv_find_delimiter(const an_csv_scan *scan) {
    static const char candidates[] = {';', '\t', '|', ','};
    char found = ',';
    int64_t maximum = 1;
    for (size_t i = 0; i < sizeof candidates; i++) {
        const int64_t columns = an_csv_count_columns(*scan, candidates[i]);
        const bool is_comma = candidates[i] == ',';
        if (is_comma ? columns < maximum : columns <= maximum) continue;
        if (is_comma && maximum > 1 && are_numbers(*scan, found)) continue;
        maximum = columns;
        found = candidates[i];
    }
    return found;
}

/* ---- one that differs ---- */

/* "semicolons (;)" */
typedef struct {
    char text[32];
} between;

static between describe(char delimiter) {
    static const struct {
        char delimiter;
        const char *text;
    } names[] = {
        {',', "commas (,)"}, {';', "semicolons (;)"}, {'\t', "tabs (\\t)"}, {'|', "bars (|)"}, {' ', "spaces"}};
    between made;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].delimiter == delimiter) {
            snprintf(made.text, sizeof made.text, "%s", names[i].text);
            return made;
        }
    snprintf(made.text, sizeof made.text, "'%c'", delimiter);
    return made;
}

an_status an_csv_blame_delimiter(const an_csv_table *t, an_status status) {
    an_csv_scan scan;
    if (t->loaded == 0 || status == AN_ERR_MEMORY) return status;
    const char *path = t->files[t->loaded - 1].path;
    const char asked = t->source->delimiter;
    an_csv_begin(&scan, path, asked, t->bytes, t->size);
    const char found = an_csv_find_delimiter(&scan);
    const int64_t columns = an_csv_count_columns(scan, found);
    if (found == asked || columns <= an_csv_count_columns(scan, asked)) return status;
    const bool trained = t->source->encoding != NULL; /* on another table */
    return AN_ERROR(t->ctx, status, "%s: this file has %s between its columns, not %s as %s; %s \"%s\"", path,
                    describe(found).text, describe(asked).text,
                    trained ? "the training data has" : "data.train.delimiter says",
                    trained ? "convert the file, or set its delimiter to" : "set data.train.delimiter to",
                    found == '\t' ? "\\t" : (char[]){found, 0});
}
