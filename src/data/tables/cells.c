#include "data/tables/cells.h"

#include <string.h>

#include "base/guard.h"

an_status an_cells_put(an_cells *cells, int64_t sample, int column, const char *text, size_t length) {
    return an_arena_string(&cells->arena, &an_cells_row(cells, sample)[column], text, length);
}

static an_status take_names(an_cells *c, const char *const *columns) {
    an_context *ctx = c->ctx;
    AN_TRY_RETURN(an_arena_alloc(&c->arena, (void **)&c->names, (size_t)c->columns, sizeof *c->names));
    for (int i = 0; i < c->columns; i++) {
        if (!columns[i] || !*columns[i]) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "column %d has no name", i);
        AN_TRY_RETURN(an_arena_string(&c->arena, &c->names[i], columns[i], strlen(columns[i])));
    }
    return AN_OK;
}

an_status an_cells_create(an_cells **cells, const an_dataset *dataset, int count, const char *const *columns) {
    AN_GUARD;
    AN_NEED(dataset, cells, columns);
    enum { MOST = 4096 };
    an_context *ctx = dataset->ctx;
    an_status status;
    an_cells *c = NULL;
    *cells = NULL;
    AN_CHECK(ctx, count > 0 && count <= MOST, AN_ERR_ARGUMENT, "count is %d; it must be from 1 to %d", count, MOST);
    AN_CHECK(ctx, dataset->read_cells, AN_ERR_UNSUPPORTED, "the samples of this data have no columns of text");
    AN_TRY(an_alloc(ctx, (void **)&c, 1, sizeof *c));
    c->ctx = ctx;
    c->columns = count;
    c->samples = dataset->record.count;
    an_arena_init(&c->arena, ctx);
    AN_TRY(take_names(c, columns));
    AN_TRY(an_alloc(ctx, (void **)&c->texts, (size_t)c->samples * (size_t)count, sizeof *c->texts));
    AN_TRY(dataset->read_cells(dataset->record.user, c));
    *cells = c;
    return AN_OK;
fail:
    an_cells_destroy(&c);
    return status;
}

const char *an_cells_name(const an_cells *cells, int column) {
    return cells && column >= 0 && column < cells->columns ? cells->names[column] : NULL;
}

const char *an_cells_get(const an_cells *cells, int64_t sample, int column) {
    if (!cells || sample < 0 || sample >= cells->samples || column < 0 || column >= cells->columns) return NULL;
    const char *text = an_cells_row(cells, sample)[column];
    return text ? text : "";
}

void an_cells_destroy(an_cells **cells) {
    an_cells *c = cells ? *cells : NULL;
    if (!c) return;
    an_context *ctx = c->ctx;
    an_release(ctx, (void **)&c->texts, (size_t)c->samples * (size_t)c->columns, sizeof *c->texts);
    an_arena_destroy(&c->arena);
    an_release(ctx, (void **)cells, 1, sizeof *c);
}
