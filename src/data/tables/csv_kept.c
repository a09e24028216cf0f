/* Cells of a table as they are written. The table has become numbers, so its files are read again. */
#include <string.h>

#include "data/tables/cells.h"
#include "data/tables/csv_table.h"

typedef struct {
    an_csv_table table; /* a copy, which loads the files */
    an_csv_source source;
    an_cells *cells;
    int64_t *columns; /* of the file, for each column of the cells */
    int64_t row;      /* that comes next */
} reading;

/* Rows without a sample, because a cell is missing, are known by their lines. */
static an_status read_row(reading *r, an_csv_scan *scan, int64_t end, an_note note) {
    const an_csv_table *t = &r->table;
    an_csv_cell cell = {.last = false};
    const bool is_sample = r->row < end && scan->line == t->lines[r->row];
    const int64_t sample = r->row - t->first;
    const bool is_kept = is_sample && sample >= 0 && sample < r->cells->samples;
    r->row += is_sample;
    for (int64_t column = 0; !cell.last; column++) {
        an_status status = an_csv_next(scan, &cell, note);
        for (int i = 0; status == AN_OK && is_kept && i < r->cells->columns; i++) {
            if (r->columns[i] != column) continue;
            char *text;
            status = an_arena_alloc(&r->cells->arena, (void **)&text, cell.length + 1, 1);
            if (status != AN_OK) return AN_NOTE(note, status, "%s: not enough memory for its cells", scan->path);
            an_csv_copy(&cell, text);
            an_cells_row(r->cells, sample)[i] = text;
        }
        if (status != AN_OK) return status;
    }
    return AN_OK;
}

static an_status read_file(reading *r, size_t file) {
    an_csv_table *t = &r->table;
    an_context *ctx = t->ctx;
    const int64_t end = file + 1 < t->file_count ? t->files[file + 1].first : t->rows;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    an_csv_scan scan;
    AN_TRY_RETURN(an_csv_load(t, file, &scan));
    AN_TRY_RETURN(an_csv_check_columns(t, &scan));
    while (an_csv_more(&scan)) AN_TRY_RETURN(an_note_raise(ctx, read_row(r, &scan, end, note), note));
    if (r->row == end) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_FILE, "%s: the file was changed while it was read", scan.path);
}

static an_status find_columns(reading *r) {
    an_cells *cells = r->cells;
    for (int i = 0; i < cells->columns; i++) {
        AN_TRY_RETURN(an_csv_find_column(&r->table, cells->names[i], &r->columns[i]));
        if (!r->table.header) continue;
        const char *name = r->table.names[r->columns[i]];
        AN_TRY_RETURN(an_arena_string(&cells->arena, &cells->names[i], name, strlen(name)));
    }
    return AN_OK;
}

an_status an_csv_read_cells(void *user, an_cells *cells) {
    an_status status;
    reading r = {.table = *(const an_csv_table *)user, .cells = cells};
    an_context *ctx = r.table.ctx;
    r.source.delimiter = r.table.delimiter;
    r.table.source = &r.source;
    AN_TRY(an_alloc(ctx, (void **)&r.columns, (size_t)cells->columns, sizeof *r.columns));
    AN_TRY(find_columns(&r));
    for (size_t file = 0; file < r.table.file_count; file++) AN_TRY(read_file(&r, file));
    status = AN_OK;
fail:
    an_csv_unload(&r.table);
    an_release(ctx, (void **)&r.columns, (size_t)cells->columns, sizeof *r.columns);
    return status;
}
