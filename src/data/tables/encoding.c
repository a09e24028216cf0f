/* Encodings: names of columns, categories and classes, and what missing numbers become. */
#include "data/tables/encoding.h"

#include <string.h>

#include "base/guard.h"
#include "base/text/utf8.h"
#include "data/dataset.h"
#include "data/structs.h"

/* ---- names ---- */

/* A text with a length, and one that ends in NUL. */
static int compare(const char *text, size_t length, const char *name) {
    const size_t name_length = strlen(name), shorter = length < name_length ? length : name_length;
    const int order = shorter ? memcmp(text, name, shorter) : 0;
    return order ? order : (length > name_length) - (length < name_length);
}

int64_t an_name_list_find(const an_name_list *names, const char *text, size_t length) {
    int64_t low = 0, high = names->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = compare(text, length, names->texts[middle]);
        if (order == 0) return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

an_status an_name_set_add(an_name_set *set, an_arena *arena, const char *text, size_t length, int32_t *number) {
    an_context *ctx = arena->ctx;
    size_t low = 0, high = set->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare(text, length, set->entries[middle].text);
        if (order == 0) {
            *number = set->entries[middle].number;
            return AN_OK;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    const char *copy;
    AN_TRY_RETURN(an_grow(ctx, (void **)&set->entries, &set->capacity, set->count + 1, sizeof *set->entries));
    AN_TRY_RETURN(an_arena_string(arena, &copy, text, length));
    memmove(&set->entries[low + 1], &set->entries[low], (set->count - low) * sizeof *set->entries);
    *number = (int32_t)set->count++;
    set->entries[low] = (an_name_entry){copy, *number};
    return AN_OK;
}

an_status an_name_set_finish(const an_name_set *set, an_arena *arena, an_name_list *names, int32_t *numbers) {
    AN_TRY_RETURN(an_arena_alloc(arena, (void **)&names->texts, set->count, sizeof *names->texts));
    names->count = (int64_t)set->count;
    for (size_t i = 0; i < set->count; i++) {
        names->texts[i] = set->entries[i].text;
        numbers[set->entries[i].number] = (int32_t)i;
    }
    return AN_OK;
}

void an_name_set_destroy(an_name_set *set, an_context *ctx) {
    an_release(ctx, (void **)&set->entries, set->capacity, sizeof *set->entries);
    *set = (an_name_set){0};
}

/* ---- encodings ---- */

an_status an_encoding_create(an_encoding **encoding, an_context *ctx, int64_t inputs, int64_t targets) {
    an_status status;
    an_encoding *e = NULL;
    const int64_t counts[AN_ENCODED_KINDS] = {inputs, targets};
    *encoding = NULL;
    AN_TRY(an_alloc(ctx, (void **)&e, 1, sizeof *e));
    e->ctx = ctx;
    an_arena_init(&e->arena, ctx);
    for (int kind = 0; kind < AN_ENCODED_KINDS; kind++) {
        e->counts[kind] = counts[kind];
        if (counts[kind] > 0)
            AN_TRY(an_arena_alloc(&e->arena, (void **)&e->columns[kind], (size_t)counts[kind], sizeof(an_column)));
    }
    *encoding = e;
    return AN_OK;
fail:
    an_encoding_destroy(&e);
    return status;
}

/* Whether an_encoding_parse would read them. */
static bool can_be_written(const char *const *names, int64_t count) {
    if (count < 1 || count > AN_MOST_CLASSES) return false;
    for (int64_t i = 0; i < count; i++) {
        if (strlen(names[i]) > AN_NAME_BYTES || !an_utf8_is_valid(names[i])) return false;
        if (i > 0 && strcmp(names[i - 1], names[i]) >= 0) return false;
    }
    return true;
}

an_status an_encoding_of_classes(an_encoding **encoding, an_context *ctx, const char *target, const char *const *names,
                                 int64_t count) {
    an_status status;
    an_encoding *e = NULL;
    *encoding = NULL;
    if (!can_be_written(names, count)) return AN_OK;
    AN_TRY(an_encoding_create(&e, ctx, 0, 1));
    an_column *column = e->columns[AN_ENCODED_TARGETS];
    column->kind = AN_COLUMN_CLASS;
    if (target && an_utf8_is_valid(target)) AN_TRY(an_arena_string(&e->arena, &column->name, target, strlen(target)));
    AN_TRY(an_arena_alloc(&e->arena, (void **)&column->names.texts, (size_t)count, sizeof *names));
    for (int64_t i = 0; i < count; i++)
        AN_TRY(an_arena_string(&e->arena, &column->names.texts[i], names[i], strlen(names[i])));
    column->names.count = count;
    *encoding = e;
    return AN_OK;
fail:
    an_encoding_destroy(&e);
    return status;
}

void an_encoding_destroy(an_encoding **encoding) {
    an_encoding *e = encoding ? *encoding : NULL;
    if (!e) return;
    an_context *ctx = e->ctx;
    an_arena_destroy(&e->arena);
    an_release(ctx, (void **)encoding, 1, sizeof *e);
}

void an_encoding_place(an_encoding *encoding) {
    for (int kind = 0; kind < AN_ENCODED_KINDS; kind++)
        for (int64_t i = 0, begin = 0; i < encoding->counts[kind]; i++) {
            encoding->columns[kind][i].begin = begin;
            begin += an_column_width(&encoding->columns[kind][i]);
        }
}

bool an_encoding_is_plain(const an_encoding *encoding) {
    for (int kind = 0; kind < AN_ENCODED_KINDS; kind++)
        for (int64_t i = 0; i < encoding->counts[kind]; i++) {
            const an_column *column = &encoding->columns[kind][i];
            if (column->kind != AN_COLUMN_NUMBER || column->has_fill || column->notation.kind != AN_NOTATION_PLAIN)
                return false;
        }
    return true;
}

/* In any floating-point environment, also one in which small numbers are all 0. */
static bool same_bits(double a, double b) {
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

static bool columns_agree(const an_column *a, const an_column *b) {
    if (memcmp(&a->notation, &b->notation, sizeof a->notation) != 0) return false; /* it has no padding */
    if (a->kind != b->kind || a->has_fill != b->has_fill || a->names.count != b->names.count ||
        (a->has_fill && !same_bits(a->fill, b->fill)))
        return false;
    for (int64_t i = 0; i < a->names.count; i++)
        if (strcmp(a->names.texts[i], b->names.texts[i]) != 0) return false;
    return true;
}

bool an_encoding_agrees(const an_encoding *encoding, const an_encoding *other) {
    AN_NEED_OR(false, encoding, other);
    for (int kind = 0; kind < AN_ENCODED_KINDS; kind++) {
        if (encoding->counts[kind] != other->counts[kind]) return false;
        for (int64_t i = 0; i < encoding->counts[kind]; i++)
            if (!columns_agree(&encoding->columns[kind][i], &other->columns[kind][i])) return false;
    }
    return true;
}

const char *an_encoding_class(const an_encoding *encoding, int64_t number) {
    AN_NEED_OR(NULL, encoding);
    const an_column *target = encoding->columns[AN_ENCODED_TARGETS];
    if (encoding->counts[AN_ENCODED_TARGETS] != 1 || target->kind != AN_COLUMN_CLASS) return NULL;
    return number >= 0 && number < target->names.count ? target->names.texts[number] : NULL;
}

/* ---- categories ---- */

int64_t an_encoding_category_count(const an_encoding *encoding) {
    AN_NEED_OR(0, encoding);
    int64_t count = 0;
    for (int64_t i = 0; i < encoding->counts[AN_ENCODED_INPUTS]; i++)
        count += encoding->columns[AN_ENCODED_INPUTS][i].kind == AN_COLUMN_CATEGORY;
    return count;
}

/* O(columns). */
an_status an_encoding_category(const an_encoding *encoding, int64_t index, an_category_info *info) {
    AN_NEED(encoding, info);
    an_category_info own = {0};
    int64_t left = index;
    for (int64_t i = 0; i < encoding->counts[AN_ENCODED_INPUTS]; i++) {
        const an_column *c = &encoding->columns[AN_ENCODED_INPUTS][i];
        own.name = c->name;
        own.count = an_column_width(c);
        if (c->kind == AN_COLUMN_CATEGORY && left-- == 0) return an_category_info_write(encoding->ctx, info, &own);
        own.begin += own.count;
    }
    return AN_ERROR(encoding->ctx, AN_ERR_ARGUMENT, "column %lld of categories does not exist; there are %lld",
                    (long long)index, (long long)an_encoding_category_count(encoding));
}

/* ---- of datasets ---- */

const an_encoding *an_dataset_encoding(const an_dataset *dataset) {
    AN_NEED_OR(NULL, dataset);
    return dataset->encoding;
}

/* O(log columns): every column of a wide table is asked for its name. */
const char *an_dataset_column(const an_dataset *dataset, int field, int64_t element) {
    AN_NEED_OR(NULL, dataset);
    const an_encoding *e = dataset->encoding;
    if (!e || field < 0 || field >= AN_ENCODED_KINDS || element < 0) return NULL;
    const an_column *columns = e->columns[field];
    int64_t low = 0, high = e->counts[field]; /* the last column that begins at the element or before it */
    while (low + 1 < high) {
        const int64_t middle = low + (high - low) / 2;
        if (columns[middle].begin <= element)
            low = middle;
        else
            high = middle;
    }
    if (low >= high || element - columns[low].begin >= an_column_width(&columns[low])) return NULL;
    return columns[low].name;
}
