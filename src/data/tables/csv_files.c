/* The files of a table, of which one is in memory at a time. */
#include <string.h>

#include "base/files/match.h"
#include "base/files/reader.h"
#include "data/tables/csv_table.h"

void an_csv_unload(an_csv_table *t) {
    an_release(t->ctx, (void **)&t->bytes, t->bytes_capacity, 1);
    t->loaded = 0;
}

an_status an_csv_load(an_csv_table *t, size_t file, an_csv_scan *scan) {
    an_context *ctx = t->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    const char *path = t->files[file].path;
    if (t->loaded != file + 1) {
        an_csv_unload(t);
        AN_TRY_RETURN(
            an_note_raise(ctx, an_reader_load(ctx, path, &t->bytes, &t->size, &t->bytes_capacity, note), note));
        t->loaded = file + 1;
    }
    an_csv_begin(scan, path, t->source->delimiter, t->bytes, t->size);
    if (!an_csv_more(scan)) return AN_ERROR(ctx, AN_ERR_PARSE, "%s: line 1: the table is empty", path);
    return AN_OK;
}

/* The files of one path, behind those that are there. */
static an_status add_files(an_csv_table *t, const char *path, size_t *capacity) {
    const char **paths = NULL;
    size_t count = 0;
    AN_TRY_RETURN(an_files_match(&t->arena, path, &paths, &count));
    if (t->file_count + count > *capacity) {
        an_csv_file *files = NULL;
        *capacity = 2 * (t->file_count + count);
        AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&files, *capacity, sizeof *files));
        if (t->file_count > 0) memcpy(files, t->files, t->file_count * sizeof *files);
        t->files = files;
    }
    for (size_t i = 0; i < count; i++) t->files[t->file_count++] = (an_csv_file){.path = paths[i]};
    return AN_OK;
}

an_status an_csv_find_files(an_csv_table *t) {
    const an_csv_source *s = t->source;
    size_t capacity = 0;
    AN_TRY_RETURN(an_arena_string(&t->arena, &t->path, s->path, strlen(s->path)));
    if (s->path_count == 0) return add_files(t, t->path, &capacity);
    for (int i = 0; i < s->path_count; i++) AN_TRY_RETURN(add_files(t, s->paths[i], &capacity));
    return AN_OK;
}
