#include "data/tables/jsonl_table.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- a record ---- */

bool an_jsonl_workspace_make(an_jsonl_workspace *w, const an_jsonl_table *t) {
    *w = (an_jsonl_workspace){.table = t, .text = malloc(t->longest + 1), .seen = malloc((size_t)t->column_count + 1)};
    return w->text && w->seen;
}

void an_jsonl_workspace_release(an_jsonl_workspace *w) {
    free(w->text);
    free(w->seen);
}

an_status an_jsonl_refuse(const an_jsonl_table *t, int64_t record, size_t at, const char *what, const char *name,
                          an_note note) {
    return AN_NOTE(note, AN_ERR_PARSE, "%s: byte %" PRId64 ", in record %" PRId64 ": %s%s%s%s", t->path,
                   t->begins[record] + (int64_t)at, record + 1, what, *name ? ": '" : "", name, *name ? "'" : "");
}

an_status an_jsonl_load(const an_jsonl_table *t, int64_t record, an_jsonl_workspace *w, an_json *json, an_note note) {
    const size_t bytes = (size_t)(t->begins[record + 1] - t->begins[record]);
    const an_status status = an_reader_read(&t->file, t->begins[record], w->text, bytes, note);
    an_json_init(json, w->text, bytes);
    return status;
}

an_status an_jsonl_read_at(const an_jsonl_table *t, int64_t record, an_jsonl_workspace *w, an_jsonl_reader *reader,
                           an_note note) {
    an_json json;
    const an_status status = an_jsonl_load(t, record, w, &json, note);
    if (status != AN_OK || an_jsonl_read(reader, &json)) return status;
    return an_jsonl_refuse(t, record, json.at, json.problem,
                           reader->missing >= 0 ? t->columns[reader->missing].name : "", note);
}

enum { MOST_BYTES = 1 << 26 }; /* of a record */

/* ---- where records begin ---- */

static an_status add_begin(an_jsonl_table *t, int64_t begin) {
    an_context *ctx = t->ctx;
    if (t->count > 0 && begin - t->begins[t->count - 1] > MOST_BYTES)
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: byte %" PRId64 ": the line has more than %d bytes", t->path,
                        t->begins[t->count - 1], (int)MOST_BYTES);
    if (t->count > 0 && (size_t)(begin - t->begins[t->count - 1]) > t->longest)
        t->longest = (size_t)(begin - t->begins[t->count - 1]);
    AN_TRY_RETURN(an_grow(ctx, (void **)&t->begins, &t->capacity, t->count + 1, sizeof *t->begins));
    t->begins[t->count++] = begin;
    return AN_OK;
}

/* A line of white space is none: it is passed with the record before it. */
static an_status index_bytes(an_jsonl_table *t, const char *bytes, size_t count, int64_t offset, bool *in_line) {
    for (size_t i = 0; i < count; i++) {
        const char c = bytes[i];
        if (c == '\n')
            *in_line = false;
        else if (!*in_line && c != ' ' && c != '\t' && c != '\r') {
            AN_TRY_RETURN(add_begin(t, offset + (int64_t)i));
            *in_line = true;
        }
    }
    return AN_OK;
}

an_status an_jsonl_index(an_jsonl_table *t) {
    enum { PIECE = 1 << 16 };
    an_status status;
    an_context *ctx = t->ctx;
    char *piece = NULL, text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    bool in_line = false;
    AN_TRY(an_alloc_raw(ctx, (void **)&piece, PIECE));
    for (int64_t at = 0; at < t->file.size; at += PIECE) {
        const size_t some = t->file.size - at < PIECE ? (size_t)(t->file.size - at) : PIECE;
        AN_TRY(an_note_raise(ctx, an_reader_read(&t->file, at, piece, some, note), note));
        AN_TRY(index_bytes(t, piece, some, at, &in_line));
    }
    AN_CHECK(ctx, t->count > 0, AN_ERR_PARSE, "%s: byte %" PRId64 ": the file has no records", t->path, t->file.size);
    AN_TRY(add_begin(t, t->file.size));
    t->count--;
    status = AN_OK;
fail:
    an_release(ctx, (void **)&piece, PIECE, 1);
    return status;
}
