/* What the columns of a table are, by all of their cells: numbers, dates or names. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "data/tables/csv_table.h"

typedef an_csv_table table;

/* Classes are names, whatever they look like, and a date is no target. */
static bool reads_numbers(const table *t, int kind) {
    const bool classes = kind == AN_ENCODED_TARGETS && t->fields[kind].dtype == AN_DTYPE_I32;
    return t->source->numbers != AN_CSV_NUMBERS_PLAIN && !classes;
}

static bool reads_dates(const table *t, int kind) {
    return t->source->dates != AN_CSV_DATES_TEXT && kind == AN_ENCODED_INPUTS;
}

bool an_csv_reads_notations(const table *t, int kind) {
    return reads_numbers(t, kind) || reads_dates(t, kind);
}

bool an_csv_takes_names(const table *t, int kind) {
    return kind == AN_ENCODED_INPUTS ? t->source->categories == AN_CSV_CATEGORIES_ONE_HOT
                                     : t->source->classes && t->fields[AN_ENCODED_TARGETS].columns == 1;
}

/* ---- looking ---- */

an_status an_csv_look_begin(table *t) {
    an_context *ctx = t->ctx;
    for (int kind = 0; kind < t->kinds; kind++) {
        const size_t columns = (size_t)t->fields[kind].columns;
        AN_TRY_RETURN(an_alloc(ctx, (void **)&t->looks[kind], columns, sizeof(an_csv_look)));
        for (size_t i = 0; i < columns; i++) {
            t->looks[kind][i].seen.reads_numbers = reads_numbers(t, kind);
            t->looks[kind][i].seen.reads_dates = reads_dates(t, kind);
        }
    }
    return AN_OK;
}

void an_csv_look_end(table *t) {
    for (int kind = 0; kind < t->kinds; kind++)
        an_release(t->ctx, (void **)&t->looks[kind], (size_t)t->fields[kind].columns, sizeof(an_csv_look));
}

static void keep_odd(an_csv_odd *odd, const an_csv_place *p) {
    const size_t maximum = sizeof odd->text - 1, length = p->cell->length < maximum ? p->cell->length : maximum;
    if (odd->path) return;
    odd->path = p->scan->path;
    odd->line = p->cell->line;
    memcpy(odd->text, p->cell->start, length);
    odd->text[length] = 0;
}

void an_csv_look_at(const an_csv_place *p) {
    an_csv_look *look = &p->t->looks[p->use.kind][p->use.rank];
    if (an_csv_is_missing(p->cell)) return;
    const an_notation_cell cell = an_notation_see(&look->seen, p->cell->start, p->cell->length);
    if (cell == AN_CELL_TEXT) keep_odd(&look->text, p);
    if (cell == AN_CELL_DIFFERS) keep_odd(&look->differing, p);
}

/* ---- deciding ---- */

/* The column that a message is about: "column 3 ('price')". */
typedef struct {
    char text[80];
} column_text;

static column_text column_of(const table *t, int kind, int64_t rank) {
    column_text made;
    const int64_t column = t->fields[kind].origin[rank];
    const char *name = t->header ? t->names[column] : "";
    snprintf(made.text, sizeof made.text, *name ? "column %" PRId64 " ('%.40s')" : "column %" PRId64, column + 1,
             an_quote_describe(name).text);
    return made;
}

/* One cell of text in a column of numbers is a mistake, and no category. */
static an_status refuse_mixed(const table *t, int kind, int64_t rank) {
    const an_csv_look *look = &t->looks[kind][rank];
    const an_csv_odd *odd = look->seen.texts > 0 ? &look->text : &look->differing;
    const int64_t column = t->fields[kind].origin[rank] + 1;
    if (look->seen.texts > 0)
        return AN_ERROR(t->ctx, AN_ERR_PARSE,
                        "%s: line %" PRId64 ", column %" PRId64 ": '%s' is not a %s, but most cells of the column are",
                        odd->path, odd->line, column, an_quote_describe(odd->text).text,
                        look->seen.dates > 0 ? "date" : "number");
    return AN_ERROR(
        t->ctx, AN_ERR_PARSE,
        "%s: line %" PRId64 ", column %" PRId64 ": '%s' is not written as other cells of the column are, such as '%s'",
        odd->path, odd->line, column, an_quote_describe(odd->text).text, an_quote_describe(look->seen.example).text);
}

static an_status refuse_unclear(const table *t, int kind, int64_t rank, an_notation_verdict verdict) {
    const an_quote_text example = an_quote_describe(t->looks[kind][rank].seen.example);
    if (verdict == AN_VERDICT_UNCLEAR_DATES)
        return AN_ERROR(t->ctx, AN_ERR_PARSE,
                        "%s: %s: dates such as '%s' could begin with the day or with the month; set data.train.dates "
                        "to day_first or month_first",
                        t->path, column_of(t, kind, rank).text, example.text);
    return AN_ERROR(t->ctx, AN_ERR_PARSE,
                    "%s: %s: the decimal mark of numbers such as '%s' could be a point or a comma; set "
                    "data.train.numbers to point or comma",
                    t->path, column_of(t, kind, rank).text, example.text);
}

static an_status decide(const table *t, int kind, int64_t rank, bool commas) {
    an_column *column = &t->own->columns[kind][rank];
    const an_notation_verdict verdict =
        an_notation_decide(&t->looks[kind][rank].seen, commas, t->source->numbers, t->source->dates, &column->notation);
    switch (verdict) {
    case AN_VERDICT_TEXT:
        if (an_csv_takes_names(t, kind))
            column->kind = kind == AN_ENCODED_INPUTS ? AN_COLUMN_CATEGORY : AN_COLUMN_CLASS;
        return AN_OK; /* or reading it will say that it is no number */
    case AN_VERDICT_DATES: column->kind = AN_COLUMN_DATE; return AN_OK;
    case AN_VERDICT_MIXED: return refuse_mixed(t, kind, rank);
    case AN_VERDICT_NUMBERS: return AN_OK;
    default: return refuse_unclear(t, kind, rank, verdict);
    }
}

/* A column that became categories, although all of its cells are numbers or dates in some notation. */
static an_status note_unread(table *t) {
    for (int64_t i = 0; i < t->fields[AN_ENCODED_INPUTS].columns && !t->unread; i++) {
        const an_notation_seen *seen = &t->looks[AN_ENCODED_INPUTS][i].seen;
        char text[384];
        if (seen->unread == 0 || seen->unread != seen->texts || seen->numbers + seen->dates > 0) continue;
        snprintf(text, sizeof text,
                 "%s: cells such as '%s' are read as categories; to read them as numbers or dates, set "
                 "data.train.numbers or data.train.dates to auto",
                 column_of(t, AN_ENCODED_INPUTS, i).text, an_quote_describe(seen->example).text);
        return an_arena_string(&t->arena, &t->unread, text, strlen(text));
    }
    return AN_OK;
}

an_status an_csv_decide(table *t) {
    bool commas = false;
    for (int kind = 0; kind < t->kinds; kind++)
        for (int64_t i = 0; i < t->fields[kind].columns; i++)
            commas = commas || an_notation_has_commas(&t->looks[kind][i].seen);
    for (int kind = 0; kind < t->kinds; kind++)
        for (int64_t i = 0; i < t->fields[kind].columns; i++)
            if (an_csv_takes_names(t, kind) || an_csv_reads_notations(t, kind))
                AN_TRY_RETURN(decide(t, kind, i, commas));
    return note_unread(t);
}

/* ---- dates ---- */

an_status an_csv_count_dates(table *t) {
    const an_csv_field *inputs = &t->fields[AN_ENCODED_INPUTS];
    const an_column *columns = t->encoding->columns[AN_ENCODED_INPUTS];
    t->dates = 0;
    for (int64_t i = 0; i < inputs->columns; i++) t->dates += columns[i].kind == AN_COLUMN_DATE;
    if (t->dates == 0) return AN_OK;
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&t->date_ranks, (size_t)inputs->columns, sizeof *t->date_ranks));
    int64_t rank = 0;
    for (int64_t i = 0; i < inputs->columns; i++) t->date_ranks[i] = columns[i].kind == AN_COLUMN_DATE ? rank++ : -1;
    return AN_OK;
}
