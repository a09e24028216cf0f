/* Texts of samples that no model reads, while a source collects them. */
#ifndef AN_DATA_TABLES_CELLS_H
#define AN_DATA_TABLES_CELLS_H

#include "data/dataset.h"

struct an_cells {
    an_context *ctx;
    an_arena arena;
    int columns;
    const char **names; /* in the arena, like the texts */
    int64_t samples;
    const char **texts; /* of the columns of a sample, sample by sample; NULL: there is none */
};

/* The texts of one sample. */
static inline const char **an_cells_row(const an_cells *cells, int64_t sample) {
    return cells->texts + sample * cells->columns;
}

/* Copies a text of a sample. */
an_status an_cells_put(an_cells *cells, int64_t sample, int column, const char *text, size_t length);

/* Members of a file of JSON lines, whose record `first` is the first sample. */
an_status an_jsonl_read_cells(an_cells *cells, const char *path, int64_t first);

#endif
