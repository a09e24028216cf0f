/* Which columns of a table are inputs and which are targets. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/nearest.h"
#include "base/text/number.h"
#include "base/text/utf8.h"
#include "base/text/wildcard.h"
#include "data/tables/csv_table.h"

typedef an_csv_table table;

/* ---- the first line ---- */

/* Whether numbers and dates may be written in other notations than the plain one. */
static bool has_notations(const an_csv_source *source) {
    const an_encoding *e = source->encoding;
    for (int64_t i = 0; e && i < e->counts[AN_ENCODED_INPUTS]; i++)
        if (e->columns[AN_ENCODED_INPUTS][i].notation.kind != AN_NOTATION_PLAIN) return true;
    return source->numbers != AN_CSV_NUMBERS_PLAIN || source->dates != AN_CSV_DATES_TEXT;
}

/* How many columns there are, and whether it is a header. A wrong guess would drop a row without a word, so what could
 * be both is refused. */
static an_status look_at_first_line(table *t, an_csv_scan scan, an_note note) {
    const an_csv_header asked = t->source->header;
    const bool notations = has_notations(t->source);
    an_csv_cell cell = {.last = false};
    double number;
    bool numbers = false, words = false;
    while (!cell.last) {
        const an_status status = an_csv_next(&scan, &cell, note);
        if (status != AN_OK) return status;
        const bool word = an_number_read(cell.start, cell.length, &number) == AN_NUMBER_TEXT &&
                          !(notations && an_notation_reads(cell.start, cell.length));
        numbers = numbers || !word;
        words = words || (word && cell.length > 0);
        t->columns++;
    }
    t->header = asked == AN_CSV_HEADER_AUTO ? words : asked == AN_CSV_HEADER_YES;
    if (asked == AN_CSV_HEADER_AUTO && words && numbers)
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: line %" PRId64 ": this line has both numbers and words; set data.train.header to on or off",
                       t->path, cell.line);
    return AN_OK;
}

typedef struct {
    const char *name;
    int64_t column;
} named;

static int compare_names(const void *a, const void *b) {
    const named *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->column > y->column) - (x->column < y->column);
}

/* The names of the header, in the order of the file and sorted. */
static an_status read_names(table *t, an_csv_scan *scan) {
    an_status status;
    an_context *ctx = t->ctx;
    named *names = NULL;
    char *text, message[AN_MESSAGE_BYTES];
    const an_note note = {message, sizeof message};
    const size_t count = (size_t)t->columns;
    AN_TRY(an_alloc(ctx, (void **)&names, count, sizeof *names));
    AN_TRY(an_arena_alloc(&t->arena, (void **)&t->names, count, sizeof *t->names));
    AN_TRY(an_arena_alloc(&t->arena, (void **)&t->sorted, count, sizeof *t->sorted));
    for (size_t c = 0; c < count; c++) {
        an_csv_cell cell;
        AN_TRY(an_note_raise(ctx, an_csv_next(scan, &cell, note), note));
        AN_TRY(an_arena_alloc(&t->arena, (void **)&text, cell.length + 1, 1));
        an_csv_copy(&cell, text);
        t->names[c] = text;
        names[c] = (named){text, (int64_t)c};
    }
    qsort(names, count, sizeof *names, compare_names);
    for (size_t c = 0; c < count; c++) t->sorted[c] = names[c].column;
    status = AN_OK;
fail:
    an_release(ctx, (void **)&names, count, sizeof *names);
    return status;
}

/* Where all columns are taken, two of one name are one too many: the same numbers twice, or one that overwrote
 * another. */
static an_status check_names(const table *t) {
    enum { SHOWN = 64 };
    for (int64_t c = 1; c < t->columns; c++) {
        const char *name = t->names[t->sorted[c]];
        if (*name && !strcmp(t->names[t->sorted[c - 1]], name))
            return AN_ERROR(
                t->ctx, AN_ERR_ARGUMENT,
                "%s: line 1: two columns are called '%.*s'; rename one of them, or choose columns by number", t->path,
                SHOWN, name);
    }
    return AN_OK;
}

/* ---- by name ---- */

/* A number from 1 to the number of columns, or 0. */
static int64_t column_number(const table *t, const char *name) {
    int64_t number = 0;
    for (; *name >= '0' && *name <= '9' && number <= t->columns; name++) number = number * 10 + (*name - '0');
    return *name || number > t->columns ? 0 : number;
}

/* Place among the sorted names, the first of several; -1: no column is called so. */
static int64_t find_name(const table *t, const char *name) {
    int64_t low = 0, high = t->header ? t->columns : 0;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strcmp(t->names[t->sorted[middle]], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return t->header && low < t->columns && !strcmp(t->names[t->sorted[low]], name) ? low : -1;
}

static bool is_double(const table *t, int64_t at) {
    return at + 1 < t->columns && !strcmp(t->names[t->sorted[at]], t->names[t->sorted[at + 1]]);
}

static an_status no_column(const table *t, const char *name, const char *why) {
    an_nearest nearest;
    an_nearest_init(&nearest, name, strlen(name));
    for (int64_t c = 0; t->header && c < t->columns; c++)
        an_nearest_consider(&nearest, t->names[c], strlen(t->names[c]));
    return AN_ERROR(t->ctx, AN_ERR_UNKNOWN, "%s: line 1: there is no column '%s'%s%s%s", t->path, name, why,
                    t->header ? "" : "; the file has no header, so choose columns by number, starting at 1",
                    t->header ? AN_NEAREST(&nearest) : "");
}

an_status an_csv_find_column(const an_csv_table *t, const char *name, int64_t *column) {
    const int64_t at = find_name(t, name);
    if (at >= 0 && is_double(t, at))
        return AN_ERROR(t->ctx, AN_ERR_ARGUMENT,
                        "%s: line 1: columns %" PRId64 " and %" PRId64
                        " are both called '%s'; rename one of them, or choose columns by number",
                        t->path, t->sorted[at] + 1, t->sorted[at + 1] + 1, name);
    *column = at >= 0 ? t->sorted[at] : column_number(t, name) - 1;
    return *column >= 0 ? AN_OK : no_column(t, name, "");
}

static an_status use_column(table *t, int64_t column, int kind) {
    if (t->uses[column].kind != AN_CSV_UNUSED)
        return AN_ERROR(t->ctx, AN_ERR_ARGUMENT, "%s: column %" PRId64 " is listed twice", t->path, column + 1);
    t->uses[column] = (an_csv_use){kind, t->fields[kind].columns++};
    return AN_OK;
}

/* ---- by the encoding of another table ---- */

/* How many of its columns this table has, by name; *absent is the first that it does not have. */
static int64_t count_known(const table *t, const an_encoding *e, const char **absent) {
    int64_t known = 0;
    *absent = NULL;
    for (int64_t i = e->counts[AN_ENCODED_INPUTS]; i-- > 0;) {
        const char *name = e->columns[AN_ENCODED_INPUTS][i].name;
        if (!name) return 0; /* it had no header */
        if (find_name(t, name) >= 0)
            known++;
        else
            *absent = name;
    }
    return known;
}

/* The order of columns in a file need not be that of the training data. Where no name is the same, columns are taken as
 * they come, as from a file without a header. */
static an_status use_known(table *t, const an_encoding *e, bool *used) {
    const char *absent;
    int64_t column;
    const int64_t known = t->header ? count_known(t, e, &absent) : 0;
    *used = known > 0;
    if (known == 0) return AN_OK;
    if (known < e->counts[AN_ENCODED_INPUTS]) return no_column(t, absent, ", which the model was trained with");
    for (int64_t i = 0; i < e->counts[AN_ENCODED_INPUTS]; i++) {
        AN_TRY_RETURN(an_csv_find_column(t, e->columns[AN_ENCODED_INPUTS][i].name, &column));
        AN_TRY_RETURN(use_column(t, column, AN_ENCODED_INPUTS));
    }
    return AN_OK;
}

/* ---- all of them ---- */

/* A list of columns: names, numbers, patterns such as x*, and patterns to leave out, such as !x1*. A column that
 * is called so goes first. */
typedef struct {
    int count;
    const char *const *names;
} column_list;

static bool is_pattern(const table *t, const char *name) {
    return (name[0] == '!' || an_wildcard_has(name)) && find_name(t, name) < 0;
}

static bool has_patterns(const table *t, column_list list) {
    int i = 0;
    while (i < list.count && !is_pattern(t, list.names[i])) i++;
    return i < list.count;
}

/* The column is no input or target unless it is listed. */
static bool has_other_use(const table *t, int64_t column) {
    return column == t->group || column == t->weight;
}

static bool is_left_out(const table *t, column_list list, int64_t column) {
    bool left_out = has_other_use(t, column);
    for (int i = 0; i < list.count && !left_out; i++)
        left_out = list.names[i][0] == '!' && is_pattern(t, list.names[i]) &&
                   an_wildcard_matches(list.names[i] + 1, t->names[column]);
    return left_out;
}

/* The columns that fit a pattern and have no use yet. */
static an_status use_pattern(table *t, int kind, column_list list, const char *pattern) {
    bool fits = false;
    for (int64_t c = 0; t->header && c < t->columns; c++) {
        if (!an_wildcard_matches(pattern, t->names[c])) continue;
        fits = true;
        if (kind != AN_CSV_UNUSED && t->uses[c].kind == AN_CSV_UNUSED && !is_left_out(t, list, c))
            AN_TRY_RETURN(use_column(t, c, kind));
    }
    return fits ? AN_OK : no_column(t, pattern, "");
}

static an_status use_listed(table *t, int kind, column_list list) {
    int64_t column;
    bool only_left_out = list.count > 0;
    for (int i = 0; i < list.count; i++) {
        const char *name = list.names[i];
        const bool pattern = is_pattern(t, name), left_out = pattern && name[0] == '!';
        only_left_out = only_left_out && left_out;
        if (pattern) {
            AN_TRY_RETURN(use_pattern(t, left_out ? AN_CSV_UNUSED : kind, list, name + left_out));
        } else {
            AN_TRY_RETURN(an_csv_find_column(t, name, &column));
            AN_TRY_RETURN(use_column(t, column, kind));
        }
    }
    return only_left_out ? use_pattern(t, kind, list, "*") : AN_OK; /* all others */
}

/* Where none is named, they are called as those of the encoding, or else it is the last column. */
static an_status use_targets(table *t) {
    const an_encoding *e = t->source->encoding;
    int64_t found = 0;
    for (int64_t i = 0; e && i < e->counts[AN_ENCODED_TARGETS]; i++) {
        const char *name = e->columns[AN_ENCODED_TARGETS][i].name;
        const int64_t at = name ? find_name(t, name) : -1;
        if (at < 0 || is_double(t, at) || t->uses[t->sorted[at]].kind != AN_CSV_UNUSED) break;
        found++;
    }
    if (e && found > 0 && found == e->counts[AN_ENCODED_TARGETS]) {
        for (int64_t i = 0; i < found; i++)
            AN_TRY_RETURN(
                use_column(t, t->sorted[find_name(t, e->columns[AN_ENCODED_TARGETS][i].name)], AN_ENCODED_TARGETS));
        return AN_OK;
    }
    int64_t last = t->columns - 1;
    while (last > 0 && has_other_use(t, last)) last--;
    return t->uses[last].kind == AN_CSV_UNUSED ? use_column(t, last, AN_ENCODED_TARGETS) : AN_OK;
}

static an_status use_all(table *t) {
    const an_csv_source *source = t->source;
    const column_list targets = {source->target_count, source->targets}, inputs = {source->input_count, source->inputs};
    const bool open = inputs.count == 0 || has_patterns(t, inputs); /* the file decides which columns they are */
    bool used = false;
    AN_TRY_RETURN(use_listed(t, AN_ENCODED_TARGETS, targets));
    if (open && source->encoding) AN_TRY_RETURN(use_known(t, source->encoding, &used));
    if (!open) AN_TRY_RETURN(use_listed(t, AN_ENCODED_INPUTS, inputs));
    if (t->kinds == AN_ENCODED_KINDS && targets.count == 0) AN_TRY_RETURN(use_targets(t));
    if (open && !used && inputs.count > 0) AN_TRY_RETURN(use_listed(t, AN_ENCODED_INPUTS, inputs));
    used = used || inputs.count > 0;
    for (int64_t c = 0; c < t->columns && !used; c++)
        if (t->uses[c].kind == AN_CSV_UNUSED && !has_other_use(t, c))
            AN_TRY_RETURN(use_column(t, c, AN_ENCODED_INPUTS));
    return AN_OK;
}

static an_status make_fields(table *t) {
    an_context *ctx = t->ctx;
    for (int kind = 0; kind < t->kinds; kind++) {
        an_csv_field *field = &t->fields[kind];
        if (field->columns == 0)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: line 1: %" PRId64 " column%s in total, and none left for %s%s",
                            t->path, t->columns, t->columns == 1 ? "" : "s",
                            kind == AN_ENCODED_INPUTS ? "inputs" : "targets",
                            t->columns == 1 ? "; check the delimiter" : "");
        AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&field->origin, (size_t)field->columns, sizeof(int64_t)));
    }
    for (int64_t c = 0; c < t->columns; c++)
        if (t->uses[c].kind != AN_CSV_UNUSED) t->fields[t->uses[c].kind].origin[t->uses[c].rank] = c;
    return AN_OK;
}

/* An encoding of its own, with the names of the columns; a name that JSON cannot have is none. */
static an_status make_encoding(table *t) {
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(an_encoding_create(&t->own, ctx, t->fields[AN_ENCODED_INPUTS].columns,
                                     t->kinds == AN_ENCODED_KINDS ? t->fields[AN_ENCODED_TARGETS].columns : 0));
    t->encoding = t->own;
    for (int kind = 0; kind < t->kinds && t->header; kind++)
        for (int64_t i = 0; i < t->fields[kind].columns; i++) {
            const char *name = t->names[t->fields[kind].origin[i]];
            if (*name && an_utf8_is_valid(name))
                AN_TRY_RETURN(an_arena_string(&t->own->arena, &t->own->columns[kind][i].name, name, strlen(name)));
        }
    return AN_OK;
}

/* The columns must be as many as those of the encoding. One of plain numbers says nothing that the
 * model's own size does not. */
static an_status take_encoding(table *t) {
    const an_encoding *e = t->source->encoding;
    bool fits = true;
    if (e->counts[AN_ENCODED_INPUTS] == 0) /* of images, or of JSON lines */
        return AN_ERROR(t->ctx, AN_ERR_ARGUMENT,
                        "%s: the model was trained on data that is no table, so nothing says what the columns of this "
                        "one mean to it",
                        t->path);
    for (int kind = 0; kind < t->kinds; kind++) {
        if (t->fields[kind].columns == e->counts[kind]) continue;
        fits = false;
        if (!an_encoding_is_plain(e))
            return AN_ERROR(t->ctx, AN_ERR_SHAPE,
                            "%s: line 1: there are %" PRId64 " columns for %s, but the model was trained with %" PRId64,
                            t->path, t->fields[kind].columns, kind == AN_ENCODED_INPUTS ? "inputs" : "targets",
                            e->counts[kind]);
    }
    if (!fits) return make_encoding(t);
    t->encoding = e;
    return AN_OK;
}

an_status an_csv_check_columns(an_csv_table *t, an_csv_scan *scan) {
    an_status status;
    an_context *ctx = t->ctx;
    char *name = NULL, text[AN_MESSAGE_BYTES];
    size_t capacity = 0;
    const an_note note = {text, sizeof text};
    an_csv_cell cell = {.last = !t->header};
    bool same = true;
    const int64_t line = scan->line;
    int64_t column = 0;
    for (; !cell.last; column++) {
        AN_TRY(an_note_raise(ctx, an_csv_next(scan, &cell, note), note));
        AN_TRY(an_grow(ctx, (void **)&name, &capacity, cell.length + 1, 1));
        an_csv_copy(&cell, name);
        same = same && column < t->columns && !strcmp(name, t->names[column]);
    }
    if (t->header && (!same || column != t->columns))
        AN_FAIL(ctx, AN_ERR_PARSE,
                "%s: line %" PRId64
                ": the first line does not have the column names of %s; files that are read together "
                "must have the same columns",
                scan->path, line, t->files[0].path);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&name, capacity, 1);
    return status;
}

an_status an_csv_choose_columns(an_csv_table *t, an_csv_scan *scan) {
    an_context *ctx = t->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    AN_TRY_RETURN(an_note_raise(ctx, look_at_first_line(t, *scan, note), note));
    if (t->header) AN_TRY_RETURN(read_names(t, scan));
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&t->uses, (size_t)t->columns, sizeof *t->uses));
    for (int64_t c = 0; c < t->columns; c++) t->uses[c].kind = AN_CSV_UNUSED;
    if (t->header &&
        (t->source->input_count == 0 || has_patterns(t, (column_list){t->source->input_count, t->source->inputs})))
        AN_TRY_RETURN(check_names(t));
    t->group = t->weight = -1;
    if (t->source->group) AN_TRY_RETURN(an_csv_find_column(t, t->source->group, &t->group));
    const char *const weights = t->source->weights;
    const bool may_be_absent = t->source->encoding != NULL; /* a table that is only evaluated needs no weights */
    if (weights && !(may_be_absent && find_name(t, weights) < 0 && column_number(t, weights) == 0))
        AN_TRY_RETURN(an_csv_find_column(t, weights, &t->weight));
    AN_TRY_RETURN(use_all(t));
    AN_TRY_RETURN(make_fields(t));
    return t->source->encoding ? take_encoding(t) : make_encoding(t);
}
