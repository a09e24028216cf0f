#include "data/tables/csv_scan.h"

#include <inttypes.h>
#include <string.h>

void an_csv_begin(an_csv_scan *scan, const char *path, char delimiter, const char *text, size_t length) {
    static const char mark[] = "\xef\xbb\xbf";
    const size_t skip = length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    *scan = (an_csv_scan){path, text + skip, text + length, delimiter, 1, 1};
}

static bool at_line_end(const an_csv_scan *s) {
    return s->at == s->end || *s->at == '\n' || *s->at == '\r';
}

static void step_over_line_end(an_csv_scan *s) {
    if (s->at < s->end && *s->at == '\r') s->at++; /* alone, or before a newline */
    if (s->at < s->end && *s->at == '\n') s->at++;
    s->line++;
    s->column = 1;
}

bool an_csv_more(an_csv_scan *s) {
    while (s->at < s->end && at_line_end(s)) step_over_line_end(s);
    return s->at < s->end;
}

an_status an_csv_refuse(const an_csv_scan *scan, const an_csv_cell *cell, const char *what, an_note note) {
    enum { SHOWN = 40 };
    char shown[SHOWN + 1];
    const size_t length = cell->length < SHOWN ? cell->length : SHOWN;
    for (size_t i = 0; i < length; i++) { /* a message is one line, whatever the file has */
        const unsigned char c = (unsigned char)cell->start[i];
        shown[i] = c < ' ' || c == 0x7f ? '?' : (char)c;
    }
    shown[length] = 0;
    return AN_NOTE(note, AN_ERR_PARSE, "%s: line %" PRId64 ", column %" PRId64 ": '%s%s' %s", scan->path, cell->line,
                   cell->column, shown, length < cell->length ? "…" : "", what);
}

static bool blank(const an_csv_scan *s, char c) {
    return (c == ' ' || c == '\t') && c != s->delimiter;
}

static an_status scan_plain(an_csv_scan *s, an_csv_cell *cell, an_note note) {
    const char *start = s->at, *end;
    while (!at_line_end(s) && *s->at != s->delimiter) s->at++;
    end = s->at;
    while (start < end && blank(s, *start)) start++;
    while (start < end && blank(s, end[-1])) end--;
    cell->start = start;
    cell->length = (size_t)(end - start);
    if (cell->length <= AN_CSV_CELL_BYTES) return AN_OK;
    return an_csv_refuse(s, cell, "is longer than 16 MiB, and no cell may be; check the delimiter", note);
}

static an_status refuse_open(const an_csv_scan *s, an_csv_cell *cell, an_note note) {
    cell->length = (size_t)(s->at - cell->start);
    return an_csv_refuse(s, cell,
                         cell->length > AN_CSV_CELL_BYTES
                             ? "has an opening quote, and no closing one in the 16 MiB after it, which is the longest "
                               "cell; close it, or write \"\" for a quote that is part of the cell"
                             : "has an opening quote without a closing one",
                         note);
}

static an_status scan_quoted(an_csv_scan *s, an_csv_cell *cell, an_note note) {
    cell->start = ++s->at;
    for (;; s->at++) {
        if (s->at == s->end || s->at - cell->start > AN_CSV_CELL_BYTES) return refuse_open(s, cell, note);
        if (*s->at == '\n' || (*s->at == '\r' && (s->at + 1 == s->end || s->at[1] != '\n'))) s->line++;
        if (*s->at != '"') continue;
        if (s->at + 1 == s->end || s->at[1] != '"') break;
        s->at++; /* two of them stand for one */
    }
    cell->length = (size_t)(s->at++ - cell->start);
    while (!at_line_end(s) && blank(s, *s->at)) s->at++;
    if (!at_line_end(s) && *s->at != s->delimiter)
        return an_csv_refuse(s, cell, "has more text after its closing quote", note);
    return AN_OK;
}

an_status an_csv_next(an_csv_scan *s, an_csv_cell *cell, an_note note) {
    an_status status;
    *cell = (an_csv_cell){s->at, 0, s->line, s->column, false};
    while (!at_line_end(s) && blank(s, *s->at)) s->at++;
    if (s->at < s->end && *s->at == '"')
        status = scan_quoted(s, cell, note);
    else
        status = scan_plain(s, cell, note);
    if (status != AN_OK) return status;
    cell->last = at_line_end(s);
    if (cell->last) {
        step_over_line_end(s);
    } else {
        s->at++;
        s->column++;
    }
    return AN_OK;
}

size_t an_csv_copy(const an_csv_cell *cell, char *text) {
    size_t length = 0;
    for (size_t at = 0; at < cell->length; at++) {
        text[length++] = cell->start[at];
        if (cell->start[at] == '"' && at + 1 < cell->length && cell->start[at + 1] == '"') at++;
    }
    text[length] = 0;
    return length;
}

bool an_csv_is_missing(const an_csv_cell *cell) {
    static const char *const words[] = {"NA", "N/A", "NaN", "nan", "NULL", "null", "?"};
    enum { LONGEST = 4 };
    if (cell->length == 0) return true;
    if (cell->length > LONGEST || (*cell->start != 'N' && *cell->start != 'n' && *cell->start != '?')) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == cell->length && !memcmp(words[i], cell->start, cell->length)) return true;
    return false;
}
