/* Tables in text form. A table is read once, checked cell by cell, and kept in memory as numbers. */
#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "data/structs.h"
#include "data/tables/csv_table.h"

typedef an_csv_table table;

/* ---- reading ---- */

/* A row with categories, each of which becomes as many numbers as it has names, and with dates, whose days are
 * stored. */
static void expand_f32(const an_csv_field *field, const an_column *columns, const float *from, const int64_t *instants,
                       float *to) {
    double numbers[AN_DATE_MOST_NUMBERS];
    for (int64_t c = 0; c < field->columns; c++) {
        const int64_t width = an_column_width(&columns[c]);
        if (columns[c].kind == AN_COLUMN_NUMBER) {
            *to = from[c];
        } else if (columns[c].kind == AN_COLUMN_DATE) {
            an_date_numbers(&columns[c].notation, *instants++, numbers);
            *to = from[c];
            for (int64_t i = 1; i < width; i++) to[i] = (float)numbers[i];
        } else {
            memset(to, 0, (size_t)width * sizeof *to);
            if (from[c] >= 0) to[(int64_t)from[c]] = 1;
        }
        to += width;
    }
}

static void expand_f64(const an_csv_field *field, const an_column *columns, const double *from, const int64_t *instants,
                       double *to) {
    double numbers[AN_DATE_MOST_NUMBERS];
    for (int64_t c = 0; c < field->columns; c++) {
        const int64_t width = an_column_width(&columns[c]);
        if (columns[c].kind == AN_COLUMN_NUMBER) {
            *to = from[c];
        } else if (columns[c].kind == AN_COLUMN_DATE) {
            an_date_numbers(&columns[c].notation, *instants++, numbers);
            *to = from[c];
            for (int64_t i = 1; i < width; i++) to[i] = (double)numbers[i];
        } else {
            memset(to, 0, (size_t)width * sizeof *to);
            if (from[c] >= 0) to[(int64_t)from[c]] = 1;
        }
        to += width;
    }
}

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    const table *t = user;
    (void)message, (void)message_capacity;
    for (int f = 0; f < t->kinds; f++) {
        const an_csv_field *field = &t->fields[f];
        const an_column *columns = t->encoding->columns[f];
        const size_t bytes = an_csv_row_bytes(field), sample = (size_t)field->elements * an_dtype_size(field->dtype);
        const bool expands = t->expands && f == AN_ENCODED_INPUTS;
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = t->first + indices[i], *instants = t->instants ? t->instants + row * t->dates : NULL;
            const void *from = field->numbers + (size_t)row * bytes;
            void *to = (char *)fields[f] + (size_t)i * sample;
            if (!expands)
                memcpy(to, from, bytes);
            else if (field->dtype == AN_DTYPE_F64)
                expand_f64(field, columns, from, instants, to);
            else
                expand_f32(field, columns, from, instants, to);
        }
    }
    for (int64_t i = 0; t->weights && i < n; i++) ((double *)fields[t->kinds])[i] = t->weights[t->first + indices[i]];
    return AN_OK;
}

static void locate(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity) {
    const table *t = user;
    const int64_t row = t->first + index;
    size_t file = t->file_count - 1;
    int64_t c = 0;
    while (file > 0 && t->files[file].first > row) file--;
    for (int64_t end = 0; field < t->kinds && c < t->fields[field].columns - 1; c++) {
        end += an_column_width(&t->encoding->columns[field][c]);
        if (element < end) break;
    }
    an_note_write((an_note){place, place_capacity}, "%s: line %" PRId64 ", column %" PRId64, t->files[file].path,
                  t->lines[row], 1 + (field < t->kinds ? t->fields[field].origin[c] : t->weight));
}

static void close_table(void *user) {
    table *t = user;
    an_context *ctx = t->ctx;
    for (int f = 0; f < AN_ENCODED_KINDS; f++)
        an_release(ctx, (void **)&t->fields[f].numbers, (size_t)t->capacity, an_csv_row_bytes(&t->fields[f]));
    an_release(ctx, (void **)&t->groups, (size_t)t->capacity, sizeof *t->groups);
    an_release(ctx, (void **)&t->weights, (size_t)t->capacity, sizeof *t->weights);
    an_release(ctx, (void **)&t->instants, (size_t)t->capacity, (size_t)t->dates * sizeof *t->instants);
    an_release(ctx, (void **)&t->lines, (size_t)t->capacity, sizeof *t->lines);
    an_csv_unload(t);
    an_encoding_destroy(&t->own);
    an_arena_destroy(&t->arena);
    an_release(ctx, (void **)&t, 1, sizeof *t);
}

static an_status read_files(table *t) {
    an_csv_scan scan;
    AN_TRY_RETURN(an_csv_find_files(t));
    AN_TRY_RETURN(an_csv_load(t, 0, &scan));
    AN_TRY_RETURN(an_csv_choose_columns(t, &scan));
    return an_csv_read_rows(t);
}

static an_status read_table(table *t) {
    const an_status status = read_files(t);
    if (status != AN_OK) return an_csv_blame_delimiter(t, status);
    an_csv_unload(t);
    return AN_OK;
}

/* ---- making one ---- */

static an_status check_source(an_context *ctx, const an_csv_source *source) {
    an_status status;
    AN_CHECK(ctx, source->path && *source->path, AN_ERR_ARGUMENT, "a file of the data has no name");
    for (int i = 0; i < source->path_count; i++)
        AN_CHECK(ctx, source->paths[i] && *source->paths[i], AN_ERR_ARGUMENT, "a file of the data has no name");
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
    AN_CHECK(ctx, (unsigned)source->missing <= AN_CSV_MISSING_CONSTANT, AN_ERR_ARGUMENT,
             "missing is %d, which is not a value of an_csv_missing", (int)source->missing);
    AN_CHECK(ctx, (unsigned)source->numbers <= AN_CSV_NUMBERS_COMMA, AN_ERR_ARGUMENT,
             "numbers is %d, which is not a value of an_csv_numbers", (int)source->numbers);
    AN_CHECK(ctx, (unsigned)source->dates <= AN_CSV_DATES_MONTH_FIRST, AN_ERR_ARGUMENT,
             "dates is %d, which is not a value of an_csv_dates", (int)source->dates);
    AN_CHECK(ctx, (unsigned)source->categories <= AN_CSV_CATEGORIES_ONE_HOT, AN_ERR_ARGUMENT,
             "categories is %d, which is not a value of an_csv_categories", (int)source->categories);
    AN_CHECK(ctx, source->constant > -0x1.ffffffp127 && source->constant < 0x1.ffffffp127, AN_ERR_ARGUMENT,
             "%s: the constant for missing cells is %g, which is not finite, or does not fit in f32", source->path,
             source->constant);
    return AN_OK;
fail:
    return status;
}

static an_status make_dataset(an_dataset **dataset, table *t) {
    an_context *ctx = t->ctx;
    an_field fields[AN_ENCODED_KINDS + 1];
    for (int i = 0; i < AN_ENCODED_KINDS; i++) {
        an_field_init(&fields[i], sizeof fields[i]);
        fields[i].name = i == AN_ENCODED_INPUTS ? "inputs" : "targets";
        fields[i].dtype = t->fields[i].dtype;
        fields[i].ndims = 1;
        fields[i].dims[0] = t->fields[i].elements;
    }
    fields[AN_ENCODED_TARGETS].limit = t->classes;
    fields[AN_ENCODED_TARGETS].target = true;
    if (t->fields[AN_ENCODED_TARGETS].dtype == AN_DTYPE_I32 && t->fields[AN_ENCODED_TARGETS].columns == 1)
        fields[AN_ENCODED_TARGETS].ndims = 0;
    an_field *const weights = &fields[t->kinds];
    if (t->weights) {
        an_field_init(weights, sizeof *weights);
        weights->name = "weights";
        weights->dtype = AN_DTYPE_F64;
    }
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    record.count = t->last - t->first;
    record.field_count = t->kinds + (t->weights != NULL);
    record.fields = fields;
    record.read = read_samples;
    record.locate = locate;
    record.close = close_table;
    record.user = t;
    AN_TRY_RETURN(an_dataset_create(dataset, ctx, &record));
    (*dataset)->encoding = t->encoding;
    (*dataset)->notice = t->notice;
    (*dataset)->read_cells = an_csv_read_cells;
    (*dataset)->groups = t->groups ? t->groups + t->first : NULL;
    return AN_OK;
}

/* Targets that have names are classes, whatever the source says. */
static bool has_classes(const an_csv_source *source) {
    const an_encoding *e = source->encoding;
    return source->classes ||
           (e && e->counts[AN_ENCODED_TARGETS] == 1 && e->columns[AN_ENCODED_TARGETS]->kind == AN_COLUMN_CLASS);
}

an_status an_dataset_create_csv(an_dataset **dataset, an_context *ctx, const an_csv_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_csv_source own;
    const an_csv_source *const source = &own;
    an_status status;
    table *t = NULL;
    *dataset = NULL;
    AN_TRY(an_csv_source_read(ctx, &own, given));
    AN_CHECK(ctx, own.path_count >= 0 && (own.path_count == 0 || (own.paths && !own.path)), AN_ERR_ARGUMENT,
             "path_count is %d, but the list of paths is missing, or there is a single path too", own.path_count);
    if (own.path_count > 0) own.path = own.paths[0]; /* for messages about all of them */
    AN_TRY(check_source(ctx, source));
    AN_TRY(an_alloc(ctx, (void **)&t, 1, sizeof *t));
    t->ctx = ctx;
    t->source = source;
    t->delimiter = source->delimiter;
    t->kinds = source->has_targets ? AN_ENCODED_KINDS : 1;
    t->fields[AN_ENCODED_INPUTS].dtype = source->dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
    t->fields[AN_ENCODED_TARGETS].dtype = has_classes(source) ? AN_DTYPE_I32 : t->fields[AN_ENCODED_INPUTS].dtype;
    an_arena_init(&t->arena, ctx);
    AN_TRY(read_table(t));
    AN_TRY(make_dataset(dataset, t));
    t->source = NULL;
    return AN_OK;
fail:
    if (t) close_table(t);
    return status;
}
