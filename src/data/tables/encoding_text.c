/* Encodings as JSON: the file encoding.json of a checkpoint (docs/checkpoint-format.md). What is read is hostile. */
#include <string.h>

#include "base/guard.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "data/tables/encoding.h"

/* Version 2 has notations and dates. It is only written where there are some, so that earlier readers can read all
 * others. */
enum { FIRST_VERSION = 1, VERSION = 2 };
static const char format[] = "anneal encoding";
static const char *const lists[AN_ENCODED_KINDS] = {"inputs", "targets"};
static const char *const kinds[] = {[AN_COLUMN_NUMBER] = "number",
                                    [AN_COLUMN_CATEGORY] = "category",
                                    [AN_COLUMN_CLASS] = "class",
                                    [AN_COLUMN_DATE] = "date"};

/* ---- writing ---- */

static void write_column(an_json_writer *json, const an_column *column) {
    an_json_write_object(json, NULL);
    an_json_write_string(json, "name", column->name);
    an_json_write_string(json, "kind", kinds[column->kind]);
    if (column->notation.kind != AN_NOTATION_PLAIN) {
        char notation[AN_NOTATION_BYTES];
        an_notation_describe(&column->notation, notation, sizeof notation);
        an_json_write_string(json, "notation", notation);
    }
    if (column->has_fill) an_json_write_exact(json, "fill", column->fill);
    if (an_column_has_names(column)) {
        an_json_write_array(json, "names");
        for (int64_t i = 0; i < column->names.count; i++) an_json_write_string(json, NULL, column->names.texts[i]);
        an_json_write_end(json);
    }
    an_json_write_end(json);
}

static int version_of(const an_encoding *encoding) {
    for (int kind = 0; kind < AN_ENCODED_KINDS; kind++)
        for (int64_t i = 0; i < encoding->counts[kind]; i++)
            if (encoding->columns[kind][i].notation.kind != AN_NOTATION_PLAIN) return VERSION;
    return FIRST_VERSION;
}

an_status an_encoding_write(const an_encoding *encoding, char **text) {
    AN_GUARD;
    AN_NEED(encoding, text);
    an_status status;
    an_context *ctx = encoding->ctx;
    an_text made;
    *text = NULL;
    an_text_init(&made, ctx);
    an_json_writer json = an_text_json(&made, AN_JSON_LINES);
    an_json_write_object(&json, NULL);
    an_json_write_string(&json, "format", format);
    an_json_write_integer(&json, "version", version_of(encoding));
    for (int kind = 0; kind < AN_ENCODED_KINDS; kind++) {
        an_json_write_array(&json, lists[kind]);
        for (int64_t i = 0; i < encoding->counts[kind]; i++) write_column(&json, &encoding->columns[kind][i]);
        an_json_write_end(&json);
    }
    an_json_write_finish(&json);
    AN_TRY(an_text_take(&made, text));
    return AN_OK;
fail:
    an_text_destroy(&made);
    return status;
}

/* ---- reading ---- */

typedef struct {
    an_json json;
    an_encoding *encoding;
    an_status status; /* AN_OK: what is wrong is in the text */
} reading;

static bool refuse(reading *r, const char *problem) {
    return an_json_refuse(&r->json, r->json.at, problem);
}

static bool keep(reading *r, an_status status) {
    if (status != AN_OK) r->status = status;
    return status == AN_OK || refuse(r, "there is not enough memory");
}

static bool keep_text(reading *r, const an_json_string *string, const char **copy) {
    return keep(r, an_arena_string(&r->encoding->arena, copy, string->bytes, string->length));
}

static bool read_name(reading *r, an_column *column) {
    an_json_string name;
    double null;
    if (an_json_peek(&r->json) == 'n') return an_json_real(&r->json, &null);
    return an_json_string_value(&r->json, &name) && keep_text(r, &name, &column->name);
}

static bool read_kind(reading *r, an_column *column) {
    an_json_string name;
    if (!an_json_string_value(&r->json, &name)) return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(name.bytes, kinds[i])) {
            column->kind = (an_column_kind)i;
            return true;
        }
    return refuse(r, "the kind of a column is number, category, class or date");
}

static bool read_notation(reading *r, an_column *column) {
    an_json_string text;
    return an_json_string_value(&r->json, &text) && (an_notation_parse(text.bytes, &column->notation) ||
                                                     refuse(r, "this version of anneal does not know the notation"));
}

static bool read_fill(reading *r, an_column *column) {
    column->has_fill = true;
    return an_json_real(&r->json, &column->fill) &&
           (column->fill - column->fill == 0 || refuse(r, "the fill of a column is a finite number"));
}

static bool read_names(reading *r, an_column *column) {
    an_context *ctx = r->encoding->ctx;
    an_name_list *names = &column->names;
    const char **texts = NULL;
    size_t capacity = 0;
    an_json_string name;
    bool good = an_json_array(&r->json);
    while (good && an_json_element(&r->json)) {
        const size_t count = (size_t)names->count;
        if (count == AN_MOST_CLASSES) {
            good = refuse(r, "a column has too many names");
            break;
        }
        good = an_json_string_value(&r->json, &name) &&
               keep(r, an_grow(ctx, (void **)&texts, &capacity, count + 1, sizeof *texts)) &&
               keep_text(r, &name, &texts[count]);
        if (!good) break;
        if (name.length > AN_NAME_BYTES) good = refuse(r, "a name is too long");
        if (good && count > 0 && strcmp(texts[count - 1], texts[count]) >= 0)
            good = refuse(r, "the names of a column are not sorted, or one is there twice");
        names->count++;
    }
    good = good && !r->json.problem;
    if (good && texts) {
        const size_t count = (size_t)names->count;
        good = keep(r, an_arena_alloc(&r->encoding->arena, (void **)&names->texts, count, sizeof *texts));
        if (good) memcpy(names->texts, texts, count * sizeof *texts);
    }
    an_release(ctx, (void **)&texts, capacity, sizeof *texts);
    return good;
}

static bool notation_fits(const an_column *column) {
    const unsigned kind = column->notation.kind;
    return column->kind == AN_COLUMN_DATE     ? kind == AN_NOTATION_DATE
           : column->kind == AN_COLUMN_NUMBER ? kind != AN_NOTATION_DATE
                                              : kind == AN_NOTATION_PLAIN;
}

static bool read_column(reading *r, int list, an_column *column) {
    static const struct {
        const char *key;
        bool (*read)(reading *r, an_column *column);
    } members[] = {{"name", read_name},
                   {"kind", read_kind},
                   {"fill", read_fill},
                   {"names", read_names},
                   {"notation", read_notation}};
    enum { MEMBERS = sizeof members / sizeof *members, KIND = 1 };
    an_json_string key;
    unsigned seen = 0;
    if (!an_json_object(&r->json)) return false;
    while (an_json_member(&r->json, &key)) {
        size_t i = 0;
        while (i < MEMBERS && strcmp(key.bytes, members[i].key) != 0) i++;
        if (i < MEMBERS && seen >> i & 1) return refuse(r, "a member of a column is there twice");
        if (i < MEMBERS) seen |= 1U << i;
        if (!(i < MEMBERS ? members[i].read(r, column) : an_json_skip(&r->json))) return false;
    }
    if (r->json.problem) return false;
    if (!(seen >> KIND & 1)) return refuse(r, "a column has no kind");
    if (an_column_has_names(column) != (column->names.count > 0))
        return refuse(r, "a column of numbers has names, or another has none");
    if (list == AN_ENCODED_INPUTS ? column->kind == AN_COLUMN_CLASS
                                  : column->kind == AN_COLUMN_CATEGORY || column->kind == AN_COLUMN_DATE)
        return refuse(r, "inputs are numbers, categories and dates, and targets are numbers and classes");
    if (!notation_fits(column)) return refuse(r, "a column has a notation of another kind than its own");
    if (column->kind == AN_COLUMN_CATEGORY && column->names.count > AN_MOST_CATEGORIES)
        return refuse(r, "a column has too many names");
    return true;
}

static bool read_columns(reading *r, int list) {
    an_encoding *e = r->encoding;
    an_context *ctx = e->ctx;
    an_column *columns = NULL;
    size_t capacity = 0, count = 0;
    bool good = an_json_array(&r->json);
    while (good && an_json_element(&r->json)) {
        good = keep(r, an_grow(ctx, (void **)&columns, &capacity, count + 1, sizeof *columns)) &&
               read_column(r, list, &columns[count]);
        count++;
    }
    good = good && !r->json.problem;
    if (good && count > 0)
        good = keep(r, an_arena_alloc(&e->arena, (void **)&e->columns[list], count, sizeof *columns));
    if (good && count > 0) memcpy(e->columns[list], columns, count * sizeof *columns);
    if (good) e->counts[list] = (int64_t)count;
    an_release(ctx, (void **)&columns, capacity, sizeof *columns);
    return good;
}

static bool read_all(reading *r) {
    an_json_string key, name;
    int64_t version;
    unsigned seen = 0;
    if (!an_json_object(&r->json)) return false;
    while (an_json_member(&r->json, &key)) {
        unsigned bit = 0;
        bool good;
        if (!strcmp(key.bytes, "format")) {
            bit = 1;
            good = an_json_string_value(&r->json, &name) &&
                   (!strcmp(name.bytes, format) || refuse(r, "this is no encoding of anneal"));
        } else if (!strcmp(key.bytes, "version")) {
            bit = 2;
            good = an_json_count(&r->json, &version) && ((version >= FIRST_VERSION && version <= VERSION) ||
                                                         refuse(r, "a later version of anneal wrote this encoding"));
        } else if (!strcmp(key.bytes, lists[AN_ENCODED_INPUTS]) && !(seen & 4)) {
            bit = 4;
            good = read_columns(r, AN_ENCODED_INPUTS);
        } else if (!strcmp(key.bytes, lists[AN_ENCODED_TARGETS]) && !(seen & 8)) {
            bit = 8;
            good = read_columns(r, AN_ENCODED_TARGETS);
        } else {
            good = an_json_skip(&r->json);
        }
        if (!good || seen & bit) return refuse(r, "a member of the encoding is there twice");
        seen |= bit;
    }
    if (r->json.problem) return false;
    return seen == 15 || refuse(r, "an encoding needs format, version, inputs and targets");
}

an_status an_encoding_parse(an_encoding **encoding, an_context *ctx, const char *text, size_t length) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, encoding, text);
    an_status status;
    char *copy = NULL;
    reading r = {.status = AN_OK};
    *encoding = NULL;
    AN_TRY(an_alloc(ctx, (void **)&copy, length + 1, 1)); /* reading changes it */
    memcpy(copy, text, length);
    AN_TRY(an_encoding_create(&r.encoding, ctx, 0, 0));
    an_json_init(&r.json, copy, length);
    if (!read_all(&r) || !an_json_end(&r.json)) {
        AN_TRY(r.status);
        AN_FAIL(ctx, AN_ERR_PARSE, "the encoding of the data: byte %zu: %s", r.json.at, r.json.problem);
    }
    an_encoding_place(r.encoding);
    *encoding = r.encoding;
    an_release(ctx, (void **)&copy, length + 1, 1);
    return AN_OK;
fail:
    an_release(ctx, (void **)&copy, length + 1, 1);
    an_encoding_destroy(&r.encoding);
    return status;
}
