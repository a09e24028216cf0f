#include "data/tables/jsonl_record.h"

#include <string.h>

typedef struct {
    const an_jsonl_reader *reader;
    an_json *json;
    char path[AN_JSONL_NAME]; /* of the object that is being read, with a dot at its end; "" for the outermost */
    int next; /* the column after the last one that was found: records have their members in one order */
} walk;

/* ---- values ---- */

static bool take_number(const walk *w, int column, int64_t *index) {
    an_json *j = w->json;
    const an_jsonl_column *c = &w->reader->columns[column];
    const size_t at = j->at;
    double number = 0;
    bool truth = false;
    const int first = an_json_peek(j);
    if (first == 'n') return an_json_refuse(j, j->at, "null is not a number");
    if (first == 't' || first == 'f') {
        if (!an_json_bool(j, &truth)) return false;
        number = truth;
    } else if (!an_json_real(j, &number))
        return false;
    if (c->text || (c->count >= 0 && *index >= c->count))
        return an_json_refuse(j, at,
                              c->text ? "a string is expected here, as in the first record"
                                      : "there are more numbers than in the first record");
    return w->reader->take(w->reader->user, j, column, (*index)++, number, NULL);
}

static bool take_value(const walk *w, int column, int64_t *index) {
    an_json *j = w->json;
    if (an_json_peek(j) != '[') return take_number(w, column, index);
    if (!an_json_array(j)) return false;
    while (an_json_element(j))
        if (!take_value(w, column, index)) return false;
    return !j->problem;
}

static bool take_column(const walk *w, int column) {
    an_json *j = w->json;
    const an_jsonl_column *c = &w->reader->columns[column];
    const size_t at = j->at;
    int64_t index = 0;
    if (w->reader->seen[column]) return an_json_refuse(j, at, "this member is there twice");
    w->reader->seen[column] = true;
    if (an_json_peek(j) == '"') {
        an_json_string text;
        if (!an_json_string_value(j, &text)) return false;
        if (c->count >= 0 && !c->text)
            return an_json_refuse(j, at, "a number is expected here, as in the first record");
        return w->reader->take(w->reader->user, j, column, 0, 0, &text);
    }
    if (!take_value(w, column, &index)) return false;
    if (c->count >= 0 && index != c->count)
        return an_json_refuse(j, at, "there are fewer numbers than in the first record");
    return index > 0 || an_json_refuse(j, at, "there is no number here");
}

/* ---- members ---- */

/* The column of this name; -1: nobody wants it. */
static int find_column(walk *w, const char *name) {
    const an_jsonl_reader *r = w->reader;
    for (int i = 0; i < r->count; i++) {
        const int column = (w->next + i) % r->count;
        if (strcmp(r->columns[column].name, name) != 0) continue;
        w->next = (column + 1) % r->count;
        return column;
    }
    return -1;
}

/* Whether a column lies in the object of this name, which ends in a dot. */
static bool has_columns(const walk *w, const char *name, size_t length) {
    for (int i = 0; i < w->reader->count; i++)
        if (strncmp(w->reader->columns[i].name, name, length) == 0) return true;
    return false;
}

static bool read_object(walk *w, size_t prefix) {
    an_json *j = w->json;
    an_json_string key;
    if (!an_json_object(j)) return false;
    while (an_json_member(j, &key)) {
        const bool fits = key.length + 2 <= sizeof w->path - prefix;
        if (fits) memcpy(w->path + prefix, key.bytes, key.length + 1);
        const int column = fits ? find_column(w, w->path) : -1;
        if (column >= 0) {
            if (!take_column(w, column)) return false;
            continue;
        }
        if (fits && an_json_peek(j) == '{') {
            const size_t length = prefix + key.length + 1;
            memcpy(w->path + length - 1, ".", 2);
            if (has_columns(w, w->path, length)) {
                if (!read_object(w, length)) return false;
                continue;
            }
        }
        if (!an_json_skip(j)) return false;
    }
    return !j->problem;
}

bool an_jsonl_read(an_jsonl_reader *reader, an_json *json) {
    walk w = {.reader = reader, .json = json};
    reader->missing = -1;
    memset(reader->seen, 0, (size_t)reader->count * sizeof *reader->seen);
    if (!read_object(&w, 0) || !an_json_end(json)) return false;
    for (int i = 0; i < reader->count; i++)
        if (!reader->seen[i]) {
            reader->missing = i;
            return an_json_refuse(json, json->length, "a member is missing");
        }
    return true;
}
