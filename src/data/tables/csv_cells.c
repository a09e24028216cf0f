/* Cells into numbers: numbers, names of categories and classes, and cells that are missing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "base/text/utf8.h"
#include "data/tables/csv_table.h"

typedef an_csv_table table;
typedef an_csv_place place;

static an_status refuse(const place *p, const char *what) {
    return an_csv_refuse(p->scan, p->cell, what, p->note);
}

static const an_column *column_of(const place *p) {
    return &p->t->encoding->columns[p->use.kind][p->use.rank];
}

static void put_here(const place *p, double number) {
    an_csv_put(&p->t->fields[p->use.kind], p->t->rows, p->use.rank, number);
}

/* Of a date, whose days put_here stores. */
static void put_instant(const place *p, int64_t seconds) {
    const table *t = p->t;
    t->instants[t->rows * t->dates + t->date_ranks[p->use.rank]] = seconds;
}

/* ---- missing cells ---- */

static an_status store_missing(const place *p) {
    table *t = p->t;
    const an_column *column = column_of(p);
    const an_csv_missing missing = t->source->missing;
    const bool fills =
        column->has_fill || (t->own && (missing == AN_CSV_MISSING_MEAN || missing == AN_CSV_MISSING_CONSTANT));
    if (fills && p->use.kind == AN_ENCODED_TARGETS)
        return refuse(p, "is a missing target; only inputs can be filled in; set data.missing to drop");
    if (!fills)
        return refuse(p, p->cell->length == 0 ? "is an empty cell, not a number; to accept such cells, set "
                                                "data.missing to drop, mean or constant"
                                              : "is not a number; if it stands for a missing cell, set "
                                                "data.missing to drop, mean or constant");
    if (column->kind == AN_COLUMN_DATE) put_instant(p, an_date_missing);
    put_here(p, column->kind == AN_COLUMN_CATEGORY ? -1 : column->has_fill ? column->fill : (double)NAN);
    return AN_OK;
}

/* ---- numbers ---- */

static an_status store_class(const place *p, double number) {
    table *t = p->t;
    if (number != AN_TARGET_IGNORED && !(number >= 0 && number < INT32_MAX && number == (double)(int32_t)number))
        return refuse(
            p,
            "is not a class: classes are 0, 1, 2, …, or words; write labels such as -1 and 1 as 0 and 1, or as names");
    if ((int64_t)number >= t->classes) t->classes = (int64_t)number + 1;
    put_here(p, number);
    return AN_OK;
}

/* Whether text here may be a name, or a number or date in another notation. If so, the rows are looked at before any of
 * them is stored. */
static bool may_be_more(const place *p) {
    const table *t = p->t;
    if (!t->own || t->sets[p->use.kind]) return false;
    return an_csv_takes_names(t, p->use.kind) || an_csv_reads_notations(t, p->use.kind);
}

static an_status refuse_notation(const place *p) {
    char notation[AN_NOTATION_BYTES], what[AN_MESSAGE_BYTES / 4];
    an_notation_describe(&column_of(p)->notation, notation, sizeof notation);
    snprintf(what, sizeof what, "is not written as in the training data, where the cells of this column are like %s",
             notation);
    return refuse(p, what);
}

static an_status store_number(const place *p) {
    table *t = p->t;
    const an_csv_field *field = &t->fields[p->use.kind];
    double number;
    const an_notation *notation = &column_of(p)->notation;
    const an_number_result result = an_notation_number(notation, p->cell->start, p->cell->length, &number);
    if (result == AN_NUMBER_TEXT && may_be_more(p)) {
        t->found_text = true;
        return AN_OK;
    }
    if (result == AN_NUMBER_TEXT && notation->kind != AN_NOTATION_PLAIN) return refuse_notation(p);
    if (result == AN_NUMBER_TEXT && p->use.kind == AN_ENCODED_TARGETS && field->dtype != AN_DTYPE_I32)
        return refuse(p, "is not a number; if the targets are classes, set data.train.classes to on");
    if (result == AN_NUMBER_TEXT) return refuse(p, "is not a number");
    if (result == AN_NUMBER_RANGE) return refuse(p, "does not fit in a number of 64 bits");
    if (field->dtype == AN_DTYPE_I32) return store_class(p, number);
    if (field->dtype == AN_DTYPE_F32 &&
        !(number > -0x1.ffffffp127 && number < 0x1.ffffffp127)) /* from there on it rounds to infinity */
        return refuse(p, "does not fit in f32");
    put_here(p, number);
    return AN_OK;
}

/* ---- dates ---- */

static an_status store_date(const place *p) {
    int64_t seconds;
    if (!an_notation_date(&column_of(p)->notation, p->cell->start, p->cell->length, &seconds))
        return refuse_notation(p);
    put_here(p, an_date_days(seconds));
    put_instant(p, seconds);
    return AN_OK;
}

/* ---- names ---- */

/* "'setosa', 'versicolor', …" */
static void list_names(const an_name_list *names, char *text, size_t capacity) {
    size_t used = 0;
    for (int64_t i = 0; i < names->count; i++) {
        const an_quote_text name = an_quote_describe(names->texts[i]);
        if (used + strlen(name.text) + sizeof ", '', …" > capacity) {
            snprintf(text + used, capacity - used, ", …");
            return;
        }
        used += (size_t)snprintf(text + used, capacity - used, "%s'%s'", i ? ", " : "", name.text);
    }
}

static an_status refuse_class(const place *p, const char *name, size_t length) {
    const an_name_list *names = &column_of(p)->names;
    char known[AN_MESSAGE_BYTES / 4] = "", what[AN_MESSAGE_BYTES / 2];
    an_nearest nearest;
    an_nearest_init(&nearest, name, length);
    for (int64_t i = 0; i < names->count; i++) an_nearest_consider(&nearest, names->texts[i], strlen(names->texts[i]));
    list_names(names, known, sizeof known);
    snprintf(what, sizeof what, "is a class that the training data does not have%s%s the classes are %s",
             AN_NEAREST(&nearest), nearest.best ? "" : ";", known);
    return refuse(p, what);
}

/* A category that training never saw is none of those that it saw: all of its numbers are 0. */
static void count_unknown(const place *p, const char *name) {
    table *t = p->t;
    if (t->left_out.cells++ == 0)
        snprintf(t->left_out.first_cell, sizeof t->left_out.first_cell,
                 "'%s' in line %" PRId64 ", column %" PRId64 "%s%.100s", an_quote_describe(name).text, p->cell->line,
                 p->cell->column, t->file_count > 1 ? " of " : "", t->file_count > 1 ? p->scan->path : "");
    put_here(p, -1);
}

static an_status collect_name(const place *p, const char *name, size_t length) {
    table *t = p->t;
    an_name_set *set = &t->sets[p->use.kind][p->use.rank];
    const bool is_class = p->use.kind == AN_ENCODED_TARGETS;
    const size_t maximum = is_class ? AN_MOST_CLASSES : AN_MOST_CATEGORIES;
    const size_t before = set->count;
    int32_t number = 0;
    const an_status status = an_name_set_add(set, &t->own->arena, name, length, &number);
    if (status != AN_OK) return AN_NOTE(p->note, status, "%s", an_last_error(t->ctx));
    if (set->count > before && set->count > maximum)
        return refuse(p, is_class ? "is one class too many: targets can have at most 10,000 different names"
                                  : "is one category too many: a column of text can have at most 1,000 different "
                                    "cells; leave the column out of data.train.inputs, or group its values");
    put_here(p, number);
    return AN_OK;
}

static an_status store_name(const place *p) {
    table *t = p->t;
    char name[AN_NAME_BYTES + 1];
    if (p->cell->length > AN_NAME_BYTES) return refuse(p, "is too long for a name, which has at most 1,000 bytes");
    const size_t length = an_csv_copy(p->cell, name);
    if (memchr(name, 0, length) || !an_utf8_is_valid(name))
        return refuse(p, "is a name that is not UTF-8; convert the file to UTF-8");
    if (t->sets[p->use.kind]) return collect_name(p, name, length);
    const int64_t number = an_name_list_find(&column_of(p)->names, name, length);
    if (number < 0 && p->use.kind == AN_ENCODED_TARGETS) return refuse_class(p, name, length);
    if (number < 0)
        count_unknown(p, name);
    else
        put_here(p, (double)number);
    return AN_OK;
}

/* ---- cells ---- */

an_status an_csv_take_weight(an_csv_table *t, const an_csv_scan *scan, const an_csv_cell *cell, an_note note) {
    double number = 0;
    const bool is_number = an_number_read(cell->start, cell->length, &number) == AN_NUMBER_OK;
    if (!is_number || !(number >= 0 && number < (double)INFINITY))
        return an_csv_refuse(scan, cell, "is not a weight: weights are finite numbers that are 0 or more", note);
    t->weights[t->rows] = number;
    return AN_OK;
}

an_status an_csv_take(const an_csv_place *p) {
    const table *t = p->t;
    if (t->looks[p->use.kind]) {
        an_csv_look_at(p);
        return AN_OK;
    }
    if (an_csv_is_missing(p->cell)) return store_missing(p);
    const an_column_kind kind = column_of(p)->kind;
    return kind == AN_COLUMN_NUMBER ? store_number(p) : kind == AN_COLUMN_DATE ? store_date(p) : store_name(p);
}
