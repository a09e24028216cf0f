/* Which members of the records are columns. */
#include <stdlib.h>
#include <string.h>

#include "data/tables/jsonl_table.h"

static an_status add_column(an_jsonl_table *t, const char *name, size_t length, int kind) {
    an_context *ctx = t->ctx;
    for (int i = 0; i < t->column_count; i++)
        if (strlen(t->columns[i].name) == length && memcmp(t->columns[i].name, name, length) == 0)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: column '%s' is listed twice", t->path, t->columns[i].name);
    if (t->column_count == AN_JSONL_COLUMNS || length >= AN_JSONL_NAME || length == 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: at most %d columns are possible, with names of 1 to %d bytes",
                        t->path, (int)AN_JSONL_COLUMNS, (int)AN_JSONL_NAME - 1);
    t->uses[t->column_count] = (an_jsonl_use){.kind = kind};
    t->columns[t->column_count] = (an_jsonl_column){.count = -1};
    return an_arena_string(&t->arena, &t->columns[t->column_count++].name, name, length);
}

static bool is_listed(const an_jsonl_table *t, int count, const an_json_string *key) {
    for (int i = 0; i < count; i++)
        if (strlen(t->columns[i].name) == key->length && memcmp(t->columns[i].name, key->bytes, key->length) == 0)
            return true;
    return false;
}

/* Columns that nobody named are members of the first record: the last of them is the target. */
static an_status add_members(an_jsonl_table *t, const an_jsonl_source *source, an_jsonl_workspace *w) {
    an_context *ctx = t->ctx;
    an_json json;
    an_json_string key, last = {NULL, 0};
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    const int given = t->column_count;
    const bool wants_target = t->kinds == AN_JSONL_KINDS && source->target_count == 0;
    AN_TRY_RETURN(an_note_raise(ctx, an_jsonl_load(t, 0, w, &json, note), note));
    bool good = an_json_object(&json);
    while (good && an_json_member(&json, &key)) {
        const bool free = !is_listed(t, given, &key);
        if (free && last.bytes && source->input_count == 0)
            AN_TRY_RETURN(add_column(t, last.bytes, last.length, AN_JSONL_INPUTS));
        if (free) last = key;
        good = an_json_skip(&json);
    }
    if (!good || json.problem) return an_note_raise(ctx, an_jsonl_refuse(t, 0, json.at, json.problem, "", note), note);
    if (!last.bytes || (source->input_count > 0 && !wants_target)) return AN_OK;
    return add_column(t, last.bytes, last.length, wants_target ? AN_JSONL_TARGETS : AN_JSONL_INPUTS);
}

static bool measure(void *user, an_json *json, int column, int64_t index, double number, const an_json_string *text) {
    an_jsonl_table *t = user;
    (void)json, (void)number;
    t->columns[column].text = text != NULL;
    t->uses[column].offset = index + 1; /* how many there are, until it is known where they go */
    return true;
}

/* The first record says how long columns are. */
static an_status measure_columns(an_jsonl_table *t, an_jsonl_workspace *w) {
    an_context *ctx = t->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    an_jsonl_reader reader = {
        .columns = t->columns, .count = t->column_count, .seen = w->seen, .take = measure, .user = t};
    AN_TRY_RETURN(an_note_raise(ctx, an_jsonl_read_at(t, 0, w, &reader, note), note));
    for (int i = 0; i < t->column_count; i++) {
        t->columns[i].count = t->uses[i].offset;
        t->uses[i].offset = t->widths[t->uses[i].kind];
        t->widths[t->uses[i].kind] += t->columns[i].count;
        if (t->columns[i].text && t->uses[i].kind == AN_JSONL_WEIGHTS)
            return AN_ERROR(ctx, AN_ERR_PARSE, "%s: byte 0, in record 1: '%s' is a string, not a weight", t->path,
                            t->columns[i].name);
        if (t->columns[i].text && t->uses[i].kind == AN_JSONL_INPUTS)
            return AN_ERROR(
                ctx, AN_ERR_PARSE,
                "%s: byte 0, in record 1: '%s' is a string, not a number; choose columns with data.train.inputs",
                t->path, t->columns[i].name);
    }
    if (t->has_weights && t->widths[AN_JSONL_WEIGHTS] != 1)
        return AN_ERROR(ctx, AN_ERR_PARSE, "%s: byte 0, in record 1: a weight is one number", t->path);
    for (int kind = 0; kind < t->kinds; kind++)
        if (t->widths[kind] == 0)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: there are no columns left for %s", t->path,
                            kind == AN_JSONL_INPUTS ? "inputs" : "targets");
    return AN_OK;
}

static bool ignore_value(void *user, an_json *json, int column, int64_t index, double number,
                         const an_json_string *text) {
    (void)user, (void)json, (void)column, (void)index, (void)number, (void)text;
    return true;
}

/* Weights that may be absent are those that the first record has. */
static an_status add_weights(an_jsonl_table *t, const an_jsonl_source *source, an_jsonl_workspace *w) {
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    if (!source->weights) return AN_OK;
    AN_TRY_RETURN(add_column(t, source->weights, strlen(source->weights), AN_JSONL_WEIGHTS));
    an_jsonl_reader reader = {.columns = &t->columns[t->column_count - 1],
                              .count = 1,
                              .seen = w->seen,
                              .take = ignore_value,
                              .user = t,
                              .missing = -1};
    const an_status status = an_jsonl_read_at(t, 0, w, &reader, note);
    t->has_weights = !(source->weights_optional && status != AN_OK && reader.missing >= 0);
    if (!t->has_weights) t->column_count--;
    return AN_OK; /* what else is wrong is said when all columns are read */
}

an_status an_jsonl_columns(an_jsonl_table *t, const an_jsonl_source *source) {
    an_status status;
    an_context *ctx = t->ctx;
    an_jsonl_workspace w = {.text = NULL};
    AN_TRY(an_arena_alloc(&t->arena, (void **)&t->columns, AN_JSONL_COLUMNS, sizeof *t->columns));
    AN_TRY(an_arena_alloc(&t->arena, (void **)&t->uses, AN_JSONL_COLUMNS, sizeof *t->uses));
    for (int i = 0; i < source->target_count; i++)
        AN_TRY(add_column(t, source->targets[i], strlen(source->targets[i]), AN_JSONL_TARGETS));
    for (int i = 0; i < source->input_count; i++)
        AN_TRY(add_column(t, source->inputs[i], strlen(source->inputs[i]), AN_JSONL_INPUTS));
    w = (an_jsonl_workspace){.table = t, .text = malloc(t->longest + 1), .seen = malloc(AN_JSONL_COLUMNS)};
    AN_CHECK(ctx, w.text && w.seen, AN_ERR_MEMORY, "%s: not enough memory for a record", t->path);
    AN_TRY(add_weights(t, source, &w));
    if (source->input_count == 0 || (t->kinds == AN_JSONL_KINDS && source->target_count == 0))
        AN_TRY(add_members(t, source, &w));
    status = measure_columns(t, &w);
fail:
    an_jsonl_workspace_release(&w);
    return status;
}
