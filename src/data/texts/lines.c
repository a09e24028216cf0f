#include "data/texts/lines.h"

an_status an_lines_open(an_lines *lines, an_context *ctx, const char *path, double begin, double end) {
    an_status status;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    *lines = (an_lines){.table = {.ctx = ctx, .path = path}};
    AN_CHECK(ctx, path && *path, AN_ERR_ARGUMENT, "a file of the data has no name");
    AN_TRY(an_note_raise(ctx, an_reader_open(&lines->table.file, path, note), note));
    AN_TRY(an_jsonl_index(&lines->table));
    AN_TRY(an_data_part(ctx, begin, end, (int64_t)lines->table.count, &lines->first, &lines->last));
    AN_CHECK(ctx, an_jsonl_workspace_make(&lines->workspace, &lines->table), AN_ERR_MEMORY,
             "%s: not enough memory for a record", path);
    return AN_OK;
fail:
    an_lines_close(lines);
    return status;
}

void an_lines_close(an_lines *lines) {
    an_jsonl_table *t = &lines->table;
    an_jsonl_workspace_release(&lines->workspace);
    an_reader_close(&t->file);
    an_release(t->ctx, (void **)&t->begins, t->capacity, sizeof *t->begins);
    *lines = (an_lines){.first = 0};
}

an_status an_lines_read(an_lines *lines, int64_t record, an_json *json) {
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    return an_note_raise(lines->table.ctx, an_jsonl_load(&lines->table, record, &lines->workspace, json, note), note);
}

an_status an_lines_refuse(const an_lines *lines, int64_t record, size_t at, const char *what, const char *name) {
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    return an_note_raise(lines->table.ctx, an_jsonl_refuse(&lines->table, record, at, what, name, note), note);
}
