/* Tables of numbers in text form. A table is read once, checked cell by cell, and kept in memory as numbers. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/reader.h"
#include "base/guard.h"
#include "base/structs.h"
#include "base/text/nearest.h"
#include "base/text/number.h"
#include "data/csv_scan.h"
#include "data/dataset.h"

typedef struct {
    int64_t columns; /* of the field */
    an_dtype dtype;
    char *numbers;   /* rows × columns */
    int64_t *origin; /* the table's column of each of them, from 0 */
} field_data;

enum { INPUTS, TARGETS, KINDS, UNUSED = -1 };

typedef struct {
    int kind;     /* INPUTS, TARGETS or UNUSED */
    int64_t rank; /* column of the field */
} column_use;

typedef struct {
    an_context *ctx;
    const char *path;
    field_data fields[KINDS];
    int kinds;              /* 1: no targets */
    int64_t rows, capacity; /* of the file; memory is for `capacity` */
    int64_t *lines;         /* of each row */
    int64_t first;          /* row of the part */
    int64_t columns;
    column_use *uses; /* of every column, in the arena */
    int64_t classes;  /* the largest target + 1 */
    an_arena arena;
} table;

/* ---- reading ---- */

static size_t row_bytes(const field_data *field) {
    return (size_t)field->columns * an_dtype_size(field->dtype);
}

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    const table *t = user;
    (void)message, (void)message_capacity;
    for (int f = 0; f < t->kinds; f++) {
        const size_t bytes = row_bytes(&t->fields[f]);
        for (int64_t i = 0; i < n; i++)
            memcpy((char *)fields[f] + (size_t)i * bytes,
                   t->fields[f].numbers + (size_t)(t->first + indices[i]) * bytes, bytes);
    }
    return AN_OK;
}

static void locate(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity) {
    const table *t = user;
    an_note_write((an_note){place, place_capacity}, "%s: line %" PRId64 ", column %" PRId64, t->path,
                  t->lines[t->first + index], t->fields[field].origin[element] + 1);
}

static void close_table(void *user) {
    table *t = user;
    an_context *ctx = t->ctx;
    for (int f = 0; f < KINDS; f++)
        an_release(ctx, (void **)&t->fields[f].numbers, (size_t)t->capacity, row_bytes(&t->fields[f]));
    an_release(ctx, (void **)&t->lines, (size_t)t->capacity, sizeof *t->lines);
    an_arena_destroy(&t->arena);
    an_release(ctx, (void **)&t, 1, sizeof *t);
}

/* ---- which columns ---- */

/* The first line: how many columns there are, and whether it is a header. A wrong guess would drop a row without a word, so what
 * could be both is refused. */
static an_status read_first_line(table *t, an_csv_scan scan, an_csv_header asked, bool *header, an_note note) {
    an_csv_cell cell = {.last = false};
    double number;
    bool numbers = false, words = false;
    while (!cell.last) {
        const an_status status = an_csv_next(&scan, &cell, note);
        if (status != AN_OK) return status;
        const bool word = an_number_read(cell.start, cell.length, &number) == AN_NUMBER_TEXT;
        numbers = numbers || !word;
        words = words || (word && cell.length > 0);
        t->columns++;
    }
    *header = asked == AN_CSV_HEADER_AUTO ? words : asked == AN_CSV_HEADER_YES;
    if (asked == AN_CSV_HEADER_AUTO && words && numbers)
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: line %" PRId64 ": this line has both numbers and words; set data.train.header to on or off",
                       t->path, cell.line);
    return AN_OK;
}

/* A number from 1 to the number of columns, or 0. */
static int64_t column_number(const table *t, const char *name) {
    int64_t number = 0;
    for (; *name >= '0' && *name <= '9' && number <= t->columns; name++) number = number * 10 + (*name - '0');
    return *name || number > t->columns ? 0 : number;
}

/* The column that is called so, or else has this number. The scan stands at the first line. */
static an_status find_column(const table *t, an_csv_scan scan, bool header, const char *name, int64_t *column) {
    an_context *ctx = t->ctx;
    an_csv_cell cell = {.last = !header};
    an_nearest nearest;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    an_nearest_init(&nearest, name, strlen(name));
    int64_t found = -1, at = 0;
    for (; !cell.last; at++) {
        AN_TRY_RETURN(an_note_raise(ctx, an_csv_next(&scan, &cell, note), note));
        an_nearest_consider(&nearest, cell.start, cell.length);
        if (!an_csv_equal(&cell, name)) continue;
        if (found >= 0)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "%s: line 1: columns %" PRId64 " and %" PRId64
                            " are both called '%s'; rename one of them, or choose columns by number",
                            t->path, found + 1, at + 1, name);
        found = at;
    }
    *column = found >= 0 ? found : column_number(t, name) - 1;
    if (*column >= 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: line 1: there is no column '%s'%s%s", t->path, name,
                    header ? "" : "; the file has no header, so choose columns by number, starting at 1",
                    header ? AN_NEAREST(&nearest) : "");
}

static an_status use_column(table *t, int64_t column, int kind) {
    an_context *ctx = t->ctx;
    if (t->uses[column].kind != UNUSED)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: column %" PRId64 " is listed twice", t->path, column + 1);
    t->uses[column] = (column_use){kind, t->fields[kind].columns++};
    return AN_OK;
}

static int compare_names(const void *a, const void *b) {
    const an_csv_cell *x = a, *y = b;
    const size_t shorter = x->length < y->length ? x->length : y->length;
    const int order = shorter ? memcmp(x->start, y->start, shorter) : 0;
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* Where all columns are taken, two of one name are one too many: the same numbers twice, or one that overwrote another. */
static an_status check_names(table *t, an_csv_scan scan) {
    an_context *ctx = t->ctx;
    an_csv_cell *names = NULL;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&names, (size_t)t->columns, sizeof *names));
    for (int64_t c = 0; c < t->columns; c++)
        AN_TRY_RETURN(an_note_raise(ctx, an_csv_next(&scan, &names[c], note), note));
    qsort(names, (size_t)t->columns, sizeof *names, compare_names);
    for (int64_t c = 1; c < t->columns; c++)
        if (names[c].length > 0 && compare_names(&names[c - 1], &names[c]) == 0)
            return AN_ERROR(
                ctx, AN_ERR_ARGUMENT,
                "%s: line 1: two columns are called '%.*s'; rename one of them, or choose columns by number", t->path,
                (int)(names[c].length < 64 ? names[c].length : 64), names[c].start);
    return AN_OK;
}

static an_status choose_columns(table *t, const an_csv_source *source, an_csv_scan scan, bool header) {
    an_context *ctx = t->ctx;
    const char *const *const names[KINDS] = {source->inputs, source->targets};
    const int counts[KINDS] = {source->input_count, source->target_count};
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&t->uses, (size_t)t->columns, sizeof *t->uses));
    for (int64_t c = 0; c < t->columns; c++) t->uses[c].kind = UNUSED;
    if (header && counts[INPUTS] == 0) AN_TRY_RETURN(check_names(t, scan));
    for (int kind = TARGETS; kind >= INPUTS; kind--)
        for (int i = 0; i < counts[kind]; i++) {
            int64_t column;
            AN_TRY_RETURN(find_column(t, scan, header, names[kind][i], &column));
            AN_TRY_RETURN(use_column(t, column, kind));
        }
    if (t->kinds == KINDS && counts[TARGETS] == 0 && t->uses[t->columns - 1].kind == UNUSED)
        AN_TRY_RETURN(use_column(t, t->columns - 1, TARGETS));
    for (int64_t c = 0; c < t->columns && counts[INPUTS] == 0; c++)
        if (t->uses[c].kind == UNUSED) AN_TRY_RETURN(use_column(t, c, INPUTS));
    for (int kind = 0; kind < t->kinds; kind++) {
        field_data *field = &t->fields[kind];
        if (field->columns == 0)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: line 1: %" PRId64 " column%s in total, and none left for %s%s",
                            t->path, t->columns, t->columns == 1 ? "" : "s", kind == INPUTS ? "inputs" : "targets",
                            t->columns == 1 ? "; check the delimiter" : "");
        AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&field->origin, (size_t)field->columns, sizeof(int64_t)));
    }
    for (int64_t c = 0; c < t->columns; c++)
        if (t->uses[c].kind != UNUSED) t->fields[t->uses[c].kind].origin[t->uses[c].rank] = c;
    return AN_OK;
}

/* ---- numbers ---- */

static an_status store_class(table *t, const an_csv_scan *scan, const an_csv_cell *cell, double number, int32_t *to,
                             an_note note) {
    if (number != AN_TARGET_IGNORED && !(number >= 0 && number < INT32_MAX))
        return an_csv_refuse(scan, cell, "is not a class: classes are 0, 1, 2, …", note);
    *to = (int32_t)number;
    if (*to != number) return an_csv_refuse(scan, cell, "is not a class: classes are 0, 1, 2, …", note);
    if (*to >= t->classes) t->classes = *to + 1;
    return AN_OK;
}

static an_status store(table *t, const an_csv_scan *scan, const an_csv_cell *cell, column_use use, an_note note) {
    field_data *field = &t->fields[use.kind];
    void *to = field->numbers + (size_t)(t->rows * field->columns + use.rank) * an_dtype_size(field->dtype);
    double number;
    const an_number_result result = an_number_read(cell->start, cell->length, &number);
    if (cell->length == 0) return an_csv_refuse(scan, cell, "is an empty cell, not a number", note);
    if (result == AN_NUMBER_TEXT) return an_csv_refuse(scan, cell, "is not a number", note);
    if (result == AN_NUMBER_RANGE) return an_csv_refuse(scan, cell, "does not fit in a number of 64 bits", note);
    if (field->dtype == AN_DTYPE_I32) return store_class(t, scan, cell, number, to, note);
    if (field->dtype == AN_DTYPE_F64) {
        *(double *)to = number;
        return AN_OK;
    }
    if (!(number > -0x1.ffffffp127 && number < 0x1.ffffffp127)) /* from there on it rounds to infinity */
        return an_csv_refuse(scan, cell, "does not fit in f32", note);
    *(float *)to = (float)number;
    return AN_OK;
}

static an_status read_row(table *t, an_csv_scan *scan, an_note note) {
    an_csv_cell cell = {.last = false};
    int64_t column = 0;
    const int64_t line = scan->line;
    while (!cell.last) {
        an_status status = an_csv_next(scan, &cell, note);
        if (status == AN_OK && column < t->columns && t->uses[column].kind != UNUSED)
            status = store(t, scan, &cell, t->uses[column], note);
        if (status != AN_OK) return status;
        column++;
    }
    if (column != t->columns)
        return AN_NOTE(note, AN_ERR_PARSE,
                       "%s: line %" PRId64 ": this line has %" PRId64 " columns, but the first line has %" PRId64,
                       t->path, line, column, t->columns);
    t->lines[t->rows++] = line;
    return AN_OK;
}

/* How many rows there can be: as many as lines, and each has a byte for every column. */
static int64_t most_rows(const table *t, const an_csv_scan *scan) {
    int64_t lines = 1;
    for (const char *at = scan->at; at < scan->end; at++) lines += *at == '\n' || *at == '\r';
    const int64_t by_bytes = (scan->end - scan->at) / t->columns + 1;
    return lines < by_bytes ? lines : by_bytes;
}

static an_status read_rows(table *t, an_csv_scan *scan) {
    an_context *ctx = t->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    t->capacity = most_rows(t, scan);
    for (int f = 0; f < KINDS; f++)
        AN_TRY_RETURN(an_alloc(ctx, (void **)&t->fields[f].numbers, (size_t)t->capacity, row_bytes(&t->fields[f])));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&t->lines, (size_t)t->capacity, sizeof *t->lines));
    while (an_csv_more(scan)) AN_TRY_RETURN(an_note_raise(ctx, read_row(t, scan, note), note));
    if (t->rows == 0)
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: line %" PRId64 ": there are no rows of numbers", t->path, scan->line);
    return AN_OK;
}

static an_status read_table(table *t, const an_csv_source *source, const char *bytes, size_t size) {
    an_context *ctx = t->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    an_csv_scan scan;
    bool header = false;
    an_csv_begin(&scan, t->path, source->delimiter, bytes, size);
    if (!an_csv_more(&scan)) return AN_ERROR(ctx, AN_ERR_PARSE, "%s: line 1: the table is empty", t->path);
    AN_TRY_RETURN(an_note_raise(ctx, read_first_line(t, scan, source->header, &header, note), note));
    AN_TRY_RETURN(choose_columns(t, source, scan, header));
    for (an_csv_cell cell = {.last = !header}; !cell.last;)
        AN_TRY_RETURN(an_note_raise(ctx, an_csv_next(&scan, &cell, note), note));
    return read_rows(t, &scan);
}

/* ---- making one ---- */

static an_status check_source(an_context *ctx, const an_csv_source *source) {
    an_status status;
    AN_CHECK(ctx, source->path && *source->path, AN_ERR_ARGUMENT, "a file of the data has no name");
    AN_CHECK(ctx, source->delimiter && !strchr("\"\r\n.+-0123456789eE", source->delimiter), AN_ERR_ARGUMENT,
             "%s: '%c' cannot be a delimiter", source->path, source->delimiter);
    AN_CHECK(ctx, (unsigned)source->header <= AN_CSV_HEADER_NO, AN_ERR_ARGUMENT,
             "header is %d, which is not a value of an_csv_header", (int)source->header);
    AN_CHECK(ctx, source->dtype == AN_DTYPE_NONE || source->dtype == AN_DTYPE_F32 || source->dtype == AN_DTYPE_F64,
             AN_ERR_DTYPE, "%s: the numbers of a table are f32 or f64, not %s", source->path,
             an_dtype_name(source->dtype));
    AN_CHECK(ctx,
             source->input_count >= 0 && source->target_count >= 0 && (source->input_count == 0 || source->inputs) &&
                 (source->target_count == 0 || source->targets),
             AN_ERR_ARGUMENT, "%s: input_count or target_count does not match the lists of columns", source->path);
    AN_CHECK(ctx, source->has_targets || source->target_count == 0, AN_ERR_ARGUMENT,
             "%s: has_targets is false, but there are %d targets", source->path, source->target_count);
    return AN_OK;
fail:
    return status;
}

static an_status make_dataset(an_dataset **dataset, table *t, const an_csv_source *source) {
    an_context *ctx = t->ctx;
    const field_data *out = &t->fields[TARGETS];
    an_field fields[KINDS];
    for (int i = 0; i < KINDS; i++) {
        an_field_init(&fields[i], sizeof fields[i]);
        fields[i].name = i == INPUTS ? "inputs" : "targets";
        fields[i].dtype = t->fields[i].dtype;
        fields[i].ndims = 1;
        fields[i].dims[0] = t->fields[i].columns;
    }
    fields[TARGETS].limit = t->classes;
    fields[TARGETS].target = true;
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    int64_t last;
    AN_TRY_RETURN(an_data_part(ctx, source->begin, source->end, t->rows, &t->first, &last));
    if (source->classes && out->columns == 1) fields[TARGETS].ndims = 0;
    record.count = last - t->first;
    record.field_count = t->kinds;
    record.fields = fields;
    record.read = read_samples;
    record.locate = locate;
    record.close = close_table;
    record.user = t;
    return an_dataset_create(dataset, ctx, &record);
}

an_status an_dataset_create_csv(an_dataset **dataset, an_context *ctx, const an_csv_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_csv_source own;
    const an_csv_source *const source = &own;
    an_status status;
    table *t = NULL;
    char *bytes = NULL, text[AN_MESSAGE_BYTES];
    size_t size = 0, capacity = 0;
    const an_note note = {text, sizeof text};
    *dataset = NULL;
    AN_TRY(an_csv_source_read(ctx, &own, given));
    AN_TRY(check_source(ctx, source));
    AN_TRY(an_alloc(ctx, (void **)&t, 1, sizeof *t));
    t->ctx = ctx;
    t->kinds = source->has_targets ? KINDS : 1;
    t->fields[INPUTS].dtype = source->dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
    t->fields[TARGETS].dtype = source->classes ? AN_DTYPE_I32 : t->fields[INPUTS].dtype;
    an_arena_init(&t->arena, ctx);
    AN_TRY(an_arena_string(&t->arena, &t->path, source->path, strlen(source->path)));
    AN_TRY(an_note_raise(ctx, an_reader_load(ctx, t->path, &bytes, &size, &capacity, note), note));
    AN_TRY(read_table(t, source, bytes, size));
    AN_TRY(make_dataset(dataset, t, source));
    an_release(ctx, (void **)&bytes, capacity, 1);
    return AN_OK;
fail:
    an_release(ctx, (void **)&bytes, capacity, 1);
    if (t) close_table(t);
    return status;
}
