/* What the columns of a table contain: the cells are counted, and none is stored.
 *
 * Memory is bounded by the columns and their different cells, beside the bytes of one file. Time is O(cells). */
#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "base/text/number.h"
#include "base/text/utf8.h"
#include "data/structs.h"
#include "data/tables/csv_table.h"

typedef struct {
    an_csv_column info;
    an_notation_seen seen;
    char notation[AN_NOTATION_BYTES];
    an_name_set values; /* different cells */
    int64_t *counts;    /* of each of them, by the number that the set gave it */
    size_t capacity;    /* of counts */
    bool too_many;      /* different cells, so they are no longer told apart */
} column;

struct an_csv_facts {
    an_context *ctx;
    an_arena arena;
    an_csv_info info;
    column *columns;
    an_csv_source source;
    an_csv_table table; /* the files; nothing else of it is used */
};

/* ---- the first lines ---- */

/* How many columns there are, and whether all cells of the line are words. */
static an_status look_at_first_line(an_csv_facts *f, an_csv_scan scan, bool *words) {
    an_context *ctx = f->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    an_csv_cell cell = {.last = false};
    bool any = false;
    *words = true;
    for (; !cell.last; f->info.columns++) {
        AN_TRY_RETURN(an_note_raise(ctx, an_csv_next(&scan, &cell, note), note));
        any = any || cell.length > 0;
        const bool unknown = cell.length == 1 && *cell.start == '?'; /* which no column is called */
        *words = *words && !unknown && !an_notation_reads(cell.start, cell.length);
    }
    *words = *words && any;
    return AN_OK;
}

/* ---- cells ---- */

static an_status count_value(an_csv_facts *f, column *c, const an_csv_cell *cell) {
    an_context *ctx = f->ctx;
    char value[AN_NAME_BYTES + 1];
    int32_t number = 0;
    if (c->too_many) return AN_OK;
    if (cell->length > AN_NAME_BYTES) {
        c->too_many = true;
        return AN_OK;
    }
    const size_t length = an_csv_copy(cell, value);
    AN_TRY_RETURN(an_name_set_add(&c->values, &f->arena, value, length, &number));
    if (c->values.count > AN_CSV_MOST_VALUES) {
        c->too_many = true;
        return AN_OK;
    }
    AN_TRY_RETURN(an_grow(ctx, (void **)&c->counts, &c->capacity, c->values.count, sizeof *c->counts));
    c->counts[number]++;
    return AN_OK;
}

static bool is_whole(double number) {
    return number > -0x1p53 && number < 0x1p53 && number == (double)(int64_t)number;
}

static an_status count_cell(an_csv_facts *f, column *c, const an_csv_cell *cell) {
    an_csv_column *info = &c->info;
    double number = 0;
    if (an_csv_is_missing(cell)) {
        info->missing++;
        return AN_OK;
    }
    an_notation_see(&c->seen, cell->start, cell->length);
    const an_number_result result = an_number_read(cell->start, cell->length, &number);
    if (result == AN_NUMBER_TEXT) {
        info->texts++;
        return count_value(f, c, cell);
    }
    info->whole = (info->whole || info->numbers == 0) && result == AN_NUMBER_OK && is_whole(number);
    if (result == AN_NUMBER_OK && (info->numbers == 0 || number < info->minimum)) info->minimum = number;
    if (result == AN_NUMBER_OK && (info->numbers == 0 || number > info->maximum)) info->maximum = number;
    info->numbers++;
    return count_value(f, c, cell);
}

static an_status count_row(an_csv_facts *f, an_csv_scan *scan) {
    an_context *ctx = f->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    an_csv_cell cell = {.last = false};
    const int64_t line = scan->line;
    int64_t cells = 0;
    for (; !cell.last; cells++) {
        AN_TRY_RETURN(an_note_raise(ctx, an_csv_next(scan, &cell, note), note));
        if (cells < f->info.columns) AN_TRY_RETURN(count_cell(f, &f->columns[cells], &cell));
    }
    if (cells != f->info.columns)
        return AN_ERROR(ctx, AN_ERR_PARSE,
                        "%s: line %" PRId64 ": this line has %" PRId64 " columns, but the first line has %" PRId64,
                        scan->path, line, cells, f->info.columns);
    f->info.rows++;
    return AN_OK;
}

/* ---- notations ---- */

static void decide(column *c, bool commas) {
    static const an_csv_kind kinds[] = {[AN_VERDICT_TEXT] = AN_CSV_KIND_PLAIN,
                                        [AN_VERDICT_NUMBERS] = AN_CSV_KIND_NUMBER,
                                        [AN_VERDICT_DATES] = AN_CSV_KIND_DATE,
                                        [AN_VERDICT_UNCLEAR_NUMBERS] = AN_CSV_KIND_UNCLEAR_NUMBER,
                                        [AN_VERDICT_UNCLEAR_DATES] = AN_CSV_KIND_UNCLEAR_DATE,
                                        [AN_VERDICT_MIXED] = AN_CSV_KIND_MIXED};
    an_notation notation;
    const an_notation_verdict verdict =
        an_notation_decide(&c->seen, commas, AN_CSV_NUMBERS_AUTO, AN_CSV_DATES_AUTO, &notation);
    const bool plain = verdict == AN_VERDICT_NUMBERS && notation.kind == AN_NOTATION_PLAIN;
    c->info.kind = plain ? AN_CSV_KIND_PLAIN : kinds[verdict];
    if (c->info.kind == AN_CSV_KIND_PLAIN) return;
    c->info.example = c->seen.example;
    if (notation.kind == AN_NOTATION_PLAIN) return;
    an_notation_describe(&notation, c->notation, sizeof c->notation);
    c->info.notation = c->notation;
}

static void decide_all(an_csv_facts *f) {
    bool commas = false;
    for (int64_t i = 0; i < f->info.columns; i++) commas = commas || an_notation_has_commas(&f->columns[i].seen);
    for (int64_t i = 0; i < f->info.columns; i++) decide(&f->columns[i], commas);
}

/* ---- the header ---- */

/* Names that JSON and a config cannot have are none. */
static an_status take_names(an_csv_facts *f, an_csv_scan scan) {
    char *name;
    for (int64_t i = 0; i < f->info.columns; i++) {
        an_csv_cell cell;
        if (an_csv_next(&scan, &cell, (an_note){0}) != AN_OK) break;
        AN_TRY_RETURN(an_arena_alloc(&f->arena, (void **)&name, cell.length + 1, 1));
        const size_t length = an_csv_copy(&cell, name);
        if (length > 0 && !memchr(name, 0, length) && an_utf8_is_valid(name)) f->columns[i].info.name = name;
    }
    return AN_OK;
}

/* A first line of words is a row if all columns are text, and most of its cells appear below them again. */
static bool is_row(const an_csv_facts *f, an_csv_scan scan) {
    int64_t again = 0;
    for (int64_t i = 0; i < f->info.columns; i++) {
        const an_name_set *values = &f->columns[i].values;
        char value[AN_NAME_BYTES + 1];
        an_csv_cell cell;
        if (f->columns[i].info.numbers > 0 || an_csv_next(&scan, &cell, (an_note){0}) != AN_OK) return false;
        if (cell.length > AN_NAME_BYTES) continue;
        an_csv_copy(&cell, value);
        size_t at = 0;
        while (at < values->count && strcmp(values->entries[at].text, value) != 0) at++;
        again += at < values->count;
    }
    return 2 * again > f->info.columns;
}

/* ---- all rows ---- */

static an_status step_over_line(an_context *ctx, an_csv_scan *scan) {
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    an_csv_cell cell = {.last = false};
    while (!cell.last) AN_TRY_RETURN(an_note_raise(ctx, an_csv_next(scan, &cell, note), note));
    return AN_OK;
}

static an_status count_file(an_csv_facts *f, size_t file, bool words) {
    an_context *ctx = f->ctx;
    an_csv_scan scan;
    AN_TRY_RETURN(an_csv_load(&f->table, file, &scan));
    if (words) AN_TRY_RETURN(step_over_line(ctx, &scan));
    while (an_csv_more(&scan)) AN_TRY_RETURN(count_row(f, &scan));
    return AN_OK;
}

static an_status count_all(an_csv_facts *f) {
    an_context *ctx = f->ctx;
    an_csv_scan first;
    bool words;
    AN_TRY_RETURN(an_csv_find_files(&f->table));
    AN_TRY_RETURN(an_csv_load(&f->table, 0, &first));
    if (!f->source.delimiter) first.delimiter = f->source.delimiter = an_csv_find_delimiter(&first);
    f->info.delimiter = f->source.delimiter;
    AN_TRY_RETURN(look_at_first_line(f, first, &words));
    AN_TRY_RETURN(an_arena_alloc(&f->arena, (void **)&f->columns, (size_t)f->info.columns, sizeof *f->columns));
    for (int64_t i = 0; i < f->info.columns; i++)
        f->columns[i].seen.reads_numbers = f->columns[i].seen.reads_dates = true;
    for (size_t file = 0; file < f->table.file_count; file++) AN_TRY_RETURN(count_file(f, file, words));
    AN_TRY_RETURN(an_csv_load(&f->table, 0, &first));
    f->info.header = words && !is_row(f, first);
    if (f->info.header) {
        AN_TRY_RETURN(take_names(f, first));
    } else if (words) { /* the first lines were taken for headers */
        for (size_t file = 0; file < f->table.file_count; file++) {
            AN_TRY_RETURN(an_csv_load(&f->table, file, &first));
            AN_TRY_RETURN(count_row(f, &first));
        }
    }
    an_csv_unload(&f->table);
    if (f->info.rows > 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_PARSE, "%s: line %" PRId64 ": the table has a header and no rows", f->table.path,
                    first.line);
}

an_status an_csv_facts_create(an_csv_facts **facts, an_context *ctx, const char *path, char delimiter) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, facts, path);
    an_status status;
    an_csv_facts *f = NULL;
    *facts = NULL;
    AN_CHECK(ctx, *path, AN_ERR_ARGUMENT, "a file of the data has no name");
    AN_CHECK(ctx, !delimiter || !strchr("\"\r\n.+-0123456789eE", delimiter), AN_ERR_ARGUMENT,
             "%s: '%c' cannot be a delimiter", path, delimiter);
    AN_TRY(an_alloc(ctx, (void **)&f, 1, sizeof *f));
    f->ctx = f->table.ctx = ctx;
    an_arena_init(&f->arena, ctx);
    an_arena_init(&f->table.arena, ctx);
    f->source.path = path;
    f->source.delimiter = delimiter;
    f->table.source = &f->source;
    AN_TRY(count_all(f));
    decide_all(f);
    for (int64_t i = 0; i < f->info.columns; i++)
        f->columns[i].info.values =
            f->columns[i].too_many ? AN_CSV_MOST_VALUES + 1 : (int64_t)f->columns[i].values.count;
    *facts = f;
    return AN_OK;
fail:
    an_csv_facts_destroy(&f);
    return status;
}

void an_csv_facts_destroy(an_csv_facts **facts) {
    an_csv_facts *f = facts ? *facts : NULL;
    if (!f) return;
    an_context *ctx = f->ctx;
    for (int64_t i = 0; f->columns && i < f->info.columns; i++) {
        an_name_set_destroy(&f->columns[i].values, ctx);
        an_release(ctx, (void **)&f->columns[i].counts, f->columns[i].capacity, sizeof *f->columns[i].counts);
    }
    an_csv_unload(&f->table);
    an_arena_destroy(&f->table.arena);
    an_arena_destroy(&f->arena);
    an_release(ctx, (void **)facts, 1, sizeof *f);
}

/* ---- asking it ---- */

an_status an_csv_facts_info(const an_csv_facts *facts, an_csv_info *info) {
    AN_NEED(facts, info);
    return an_csv_info_write(facts->ctx, info, &facts->info);
}

an_status an_csv_facts_column(const an_csv_facts *facts, int64_t index, an_csv_column *info) {
    AN_GUARD;
    AN_NEED(facts, info);
    an_context *ctx = facts->ctx;
    AN_TRY_RETURN(an_csv_column_check(ctx, info));
    if (index < 0 || index >= facts->info.columns)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the table has no column %" PRId64 "; it has %" PRId64 " columns", index,
                        facts->info.columns);
    return an_csv_column_write(ctx, info, &facts->columns[index].info);
}

const char *an_csv_facts_value(const an_csv_facts *facts, int64_t index, int64_t value, int64_t *count) {
    AN_NEED_OR(NULL, facts);
    if (index < 0 || index >= facts->info.columns) return NULL;
    const column *c = &facts->columns[index];
    if (c->too_many || value < 0 || value >= (int64_t)c->values.count) return NULL;
    const an_name_entry *entry = &c->values.entries[value];
    if (count) *count = c->counts[entry->number];
    return entry->text;
}
