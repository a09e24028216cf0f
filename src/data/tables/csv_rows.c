/* Rows into numbers.
 *
 * Most tables are numbers alone: they are read in one pass. Where there is text, which may be only in the last
 * row, cells are looked at first, so that every column is known to be numbers or names, and then the rows are
 * read again. O(bytes) in all. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "data/tables/csv_table.h"

typedef an_csv_table table;

/* ---- rows ---- */

/* Whether a row has a missing cell; the scan then stands behind the row. A row that is left out gives no names
 * either. */
static bool is_left_out(const table *t, an_csv_scan *scan) {
    an_csv_scan ahead = *scan;
    an_csv_cell cell = {.last = false};
    bool missing = false;
    int64_t column = 0;
    for (; !cell.last; column++) {
        if (an_csv_next(&ahead, &cell, (an_note){0}) != AN_OK) return false; /* which reading it will say */
        const bool is_read = column < t->columns && (t->uses[column].kind != AN_CSV_UNUSED || column == t->weight);
        missing = missing || (is_read && an_csv_is_missing(&cell));
    }
    if (!missing || column != t->columns) return false;
    *scan = ahead;
    return true;
}

static an_status read_row(table *t, an_csv_scan *scan, an_note note) {
    an_csv_cell cell = {.last = false};
    an_csv_place p = {.t = t, .scan = scan, .cell = &cell, .note = note};
    int64_t column = 0;
    const int64_t line = scan->line;
    if (t->source->missing == AN_CSV_MISSING_DROP && is_left_out(t, scan)) {
        t->left_out.rows++;
        return AN_OK;
    }
    while (!cell.last) {
        an_status status = an_csv_next(scan, &cell, note);
        if (status == AN_OK && column == t->group && t->groups && !t->looks[AN_ENCODED_INPUTS])
            t->groups[t->rows] = an_hash(cell.start, cell.length, 0);
        if (status == AN_OK && column == t->weight && t->weights && !t->looks[AN_ENCODED_INPUTS])
            status = an_csv_take_weight(t, scan, &cell, note);
        if (status == AN_OK && column < t->columns && t->uses[column].kind != AN_CSV_UNUSED) {
            p.use = t->uses[column];
            status = an_csv_take(&p);
        }
        if (status != AN_OK) return status;
        column++;
    }
    if (column != t->columns)
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: line %" PRId64 ": this line has %" PRId64 " columns, but the first line has %" PRId64,
                       scan->path, line, column, t->columns);
    if (!t->looks[AN_ENCODED_INPUTS]) t->lines[t->rows] = line;
    t->rows++;
    return AN_OK;
}

/* How many rows there can be: as many as lines that are neither empty nor in quotes, and each has a byte for every
 * column. A quote in the middle of a cell makes this a guess. */
static int64_t most_rows(const table *t, const an_csv_scan *scan) {
    const int64_t by_bytes = (scan->end - scan->at) / t->columns + 1;
    int64_t rows = 1;
    bool quoted = false, empty = true;
    for (const char *at = scan->at; at < scan->end; at++) {
        if (*at == '"') quoted = !quoted;
        const bool ends = !quoted && (*at == '\n' || *at == '\r');
        rows += ends && !empty;
        empty = ends;
    }
    return rows < by_bytes ? rows : by_bytes;
}

/* Room for so many rows more. The first file gets what it needs; with several, or where that was guessed too low,
 * memory doubles at most. */
static an_status reserve(table *t, int64_t more) {
    an_status status;
    an_context *ctx = t->ctx;
    char *numbers[AN_ENCODED_KINDS] = {NULL};
    int64_t *lines = NULL;
    uint64_t *groups = NULL;
    double *weights = NULL;
    int64_t *instants = NULL, capacity = t->rows + more;
    const size_t dates = (size_t)t->dates;
    if (capacity <= t->capacity && (dates == 0 || t->instants)) return AN_OK;
    if (capacity < t->capacity) capacity = t->capacity;
    if (t->rows > 0 && capacity < 2 * t->capacity) capacity = 2 * t->capacity;
    const size_t count = (size_t)capacity, old = (size_t)t->capacity, rows = (size_t)t->rows;
    for (int f = 0; f < AN_ENCODED_KINDS; f++)
        AN_TRY(an_alloc(ctx, (void **)&numbers[f], count, an_csv_row_bytes(&t->fields[f])));
    AN_TRY(an_alloc(ctx, (void **)&lines, count, sizeof *lines));
    if (t->group >= 0) AN_TRY(an_alloc(ctx, (void **)&groups, count, sizeof *groups));
    if (t->weight >= 0) AN_TRY(an_alloc(ctx, (void **)&weights, count, sizeof *weights));
    if (dates > 0) AN_TRY(an_alloc(ctx, (void **)&instants, count, dates * sizeof *instants));
    for (int f = 0; f < AN_ENCODED_KINDS; f++) {
        if (rows > 0 && numbers[f]) memcpy(numbers[f], t->fields[f].numbers, rows * an_csv_row_bytes(&t->fields[f]));
        an_release(ctx, (void **)&t->fields[f].numbers, old, an_csv_row_bytes(&t->fields[f]));
        t->fields[f].numbers = numbers[f];
    }
    if (rows > 0) memcpy(lines, t->lines, rows * sizeof *lines);
    an_release(ctx, (void **)&t->lines, old, sizeof *lines);
    t->lines = lines;
    if (rows > 0 && groups) memcpy(groups, t->groups, rows * sizeof *groups);
    an_release(ctx, (void **)&t->groups, old, sizeof *groups);
    t->groups = groups;
    if (rows > 0 && weights) memcpy(weights, t->weights, rows * sizeof *weights);
    an_release(ctx, (void **)&t->weights, old, sizeof *weights);
    t->weights = weights;
    if (rows > 0 && instants) memcpy(instants, t->instants, rows * dates * sizeof *instants);
    an_release(ctx, (void **)&t->instants, old, dates * sizeof *instants);
    t->instants = instants;
    t->capacity = capacity;
    return AN_OK;
fail:
    for (int f = 0; f < AN_ENCODED_KINDS; f++)
        an_release(ctx, (void **)&numbers[f], count, an_csv_row_bytes(&t->fields[f]));
    an_release(ctx, (void **)&lines, count, sizeof *lines);
    an_release(ctx, (void **)&groups, count, sizeof *groups);
    an_release(ctx, (void **)&weights, count, sizeof *weights);
    return status;
}

/* Goes through the rows from the first on, until text is found where it changes what the columns are. */
static an_status pass(table *t) {
    an_context *ctx = t->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    an_csv_scan scan = {0};
    t->rows = t->left_out.rows = t->left_out.cells = t->classes = 0;
    for (size_t file = 0; file < t->file_count && !t->found_text; file++) {
        AN_TRY_RETURN(an_csv_load(t, file, &scan));
        AN_TRY_RETURN(an_csv_check_columns(t, &scan));
        t->files[file].first = t->rows;
        if (!t->looks[AN_ENCODED_INPUTS]) AN_TRY_RETURN(reserve(t, most_rows(t, &scan)));
        while (!t->found_text && an_csv_more(&scan)) {
            if (!t->looks[AN_ENCODED_INPUTS]) AN_TRY_RETURN(reserve(t, 1));
            AN_TRY_RETURN(an_note_raise(ctx, read_row(t, &scan, note), note));
        }
    }
    if (t->found_text || t->rows > 0) return AN_OK;
    if (t->left_out.rows > 0)
        return AN_ERROR(ctx, AN_ERR_PARSE,
                        "%s: line %" PRId64 ": every row has a missing cell, so data.missing: drop leaves none",
                        t->path, scan.line);
    return AN_ERROR(ctx, AN_ERR_PARSE, "%s: line %" PRId64 ": there are no rows of numbers", t->path, scan.line);
}

/* ---- which columns are names ---- */

static an_status look(table *t) {
    an_status status;
    t->found_text = false;
    AN_TRY(an_csv_look_begin(t));
    AN_TRY(pass(t));
    AN_TRY(an_csv_decide(t));
    status = AN_OK;
fail:
    an_csv_look_end(t);
    return status;
}

/* Names get their final numbers. */
static an_status number_names(table *t, int kind, int64_t rank) {
    an_status status;
    an_context *ctx = t->ctx;
    const an_csv_field *field = &t->fields[kind];
    const an_name_set *set = &t->sets[kind][rank];
    int32_t *numbers = NULL;
    if (!an_column_has_names(&t->own->columns[kind][rank])) return AN_OK;
    AN_TRY(an_alloc(ctx, (void **)&numbers, set->count, sizeof *numbers));
    AN_TRY(an_name_set_finish(set, &t->own->arena, &t->own->columns[kind][rank].names, numbers));
    for (int64_t row = 0; row < t->rows; row++) {
        const double seen = an_csv_get(field, row, rank);
        if (seen >= 0) an_csv_put(field, row, rank, numbers[(int32_t)seen]);
    }
    if (kind == AN_ENCODED_TARGETS) t->classes = (int64_t)set->count;
    status = AN_OK;
fail:
    an_release(ctx, (void **)&numbers, set->count, sizeof *numbers);
    return status;
}

static an_status read_names(table *t) {
    an_status status;
    an_context *ctx = t->ctx;
    AN_TRY(look(t));
    AN_TRY(an_csv_count_dates(t));
    for (int kind = 0; kind < t->kinds; kind++)
        AN_TRY(an_alloc(ctx, (void **)&t->sets[kind], (size_t)t->fields[kind].columns, sizeof(an_name_set)));
    AN_TRY(pass(t));
    for (int kind = 0; kind < t->kinds; kind++)
        for (int64_t i = 0; i < t->fields[kind].columns; i++) AN_TRY(number_names(t, kind, i));
    status = AN_OK;
fail:
    for (int kind = 0; kind < t->kinds; kind++) {
        for (int64_t i = 0; t->sets[kind] && i < t->fields[kind].columns; i++)
            an_name_set_destroy(&t->sets[kind][i], ctx);
        an_release(ctx, (void **)&t->sets[kind], (size_t)t->fields[kind].columns, sizeof(an_name_set));
    }
    return status;
}

/* ---- what missing numbers become ---- */

/* A sum in pairs, in the order of the rows: of 2, of 4, of 8, … so that its error grows with the logarithm of the
 * count, and its bits depend on the order alone. */
typedef struct {
    double sums[64];
    uint64_t count;
} pair_sum;

static void add(pair_sum *s, double number) {
    int level = 0;
    for (uint64_t bits = s->count++; bits & 1; bits >>= 1) number = s->sums[level++] + number;
    s->sums[level] = number;
}

static double total(const pair_sum *s) {
    double sum = 0;
    for (int level = 0; level < 64 && s->count >> level; level++)
        if (s->count >> level & 1) sum = s->sums[level] + sum;
    return sum;
}

static an_status find_fill(const table *t, int64_t rank, double *fill) {
    const an_csv_field *field = &t->fields[AN_ENCODED_INPUTS];
    pair_sum sum = {.count = 0};
    *fill = t->source->constant;
    if (t->source->missing == AN_CSV_MISSING_CONSTANT) return AN_OK;
    for (int64_t row = t->first; row < t->last; row++) {
        const double number = an_csv_get(field, row, rank);
        if (!isnan(number)) add(&sum, number);
    }
    if (sum.count == 0)
        return AN_ERROR(t->ctx, AN_ERR_PARSE,
                        "%s: line 1: column %" PRId64 " has no number in this part of the data, and so no mean",
                        t->path, field->origin[rank] + 1);
    *fill = total(&sum) / (double)sum.count;
    return AN_OK;
}

static an_status fill_missing(table *t) {
    const an_csv_field *field = &t->fields[AN_ENCODED_INPUTS];
    if (!t->own || (t->source->missing != AN_CSV_MISSING_MEAN && t->source->missing != AN_CSV_MISSING_CONSTANT))
        return AN_OK;
    for (int64_t i = 0; i < field->columns; i++) {
        an_column *column = &t->own->columns[AN_ENCODED_INPUTS][i];
        column->has_fill = true;
        if (an_column_has_names(column)) continue; /* none of its names, which needs no number */
        AN_TRY_RETURN(find_fill(t, i, &column->fill));
        for (int64_t row = 0; row < t->rows; row++)
            if (isnan(an_csv_get(field, row, i))) an_csv_put(field, row, i, column->fill);
    }
    return AN_OK;
}

/* ---- all of it ---- */

static an_status write_notice(table *t) {
    char text[768] = "";
    size_t used = 0;
    if (t->left_out.rows > 0)
        used = (size_t)snprintf(text, sizeof text,
                                "%s: %" PRId64 " of %" PRId64 " rows have a missing cell and are left out", t->path,
                                t->left_out.rows, t->left_out.rows + t->rows);
    if (t->left_out.cells > 0 && used < sizeof text)
        used += (size_t)snprintf(
            text + used, sizeof text - used,
            "%s%s: %" PRId64 " cell%s a category that the training data does not have, and count%s as no category; "
            "the first is %s",
            used ? "; " : "", t->path, t->left_out.cells, t->left_out.cells == 1 ? " has" : "s have",
            t->left_out.cells == 1 ? "s" : "", t->left_out.first_cell);
    if (t->unread && used < sizeof text)
        snprintf(text + used, sizeof text - used, "%s%s: %s", used ? "; " : "", t->path, t->unread);
    return *text ? an_arena_string(&t->arena, &t->notice, text, strlen(text)) : AN_OK;
}

/* Plain numbers such as 1.234 are 1234 if the decimal mark is a comma. */
static bool must_look(const table *t) {
    return t->own && t->source->numbers == AN_CSV_NUMBERS_COMMA;
}

an_status an_csv_read_rows(an_csv_table *t) {
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(an_csv_count_dates(t));
    if (must_look(t))
        t->found_text = true;
    else
        AN_TRY_RETURN(pass(t));
    if (t->found_text) AN_TRY_RETURN(read_names(t));
    const an_name_list *names = t->encoding->counts[AN_ENCODED_TARGETS] == 1 && t->kinds == AN_ENCODED_KINDS
                                    ? &t->encoding->columns[AN_ENCODED_TARGETS]->names
                                    : NULL;
    if (names && names->count > 0) t->classes = names->count;
    AN_TRY_RETURN(an_data_part(ctx, t->source->begin, t->source->end, t->rows, &t->first, &t->last));
    AN_TRY_RETURN(fill_missing(t));
    if (t->own) an_encoding_place(t->own);
    for (int kind = 0; kind < t->kinds; kind++)
        for (int64_t i = 0; i < t->fields[kind].columns; i++)
            t->fields[kind].elements += an_column_width(&t->encoding->columns[kind][i]);
    for (int64_t i = 0; i < t->fields[AN_ENCODED_INPUTS].columns; i++)
        t->expands = t->expands || t->encoding->columns[AN_ENCODED_INPUTS][i].kind != AN_COLUMN_NUMBER;
    return write_notice(t);
}
