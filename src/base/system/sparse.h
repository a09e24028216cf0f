/* Memory on a grid of pages of which only some runs are there.
 *
 * Addresses are reserved for the whole grid, so a page has the same place whatever else is there, and nobody translates
 * addresses. Touching a page that is not there is a fault, never a wrong number. As with an_alloc, whoever releases it
 * says again what was asked for, and nothing is stored.
 *
 * The memory is the system's own and not of the context's allocator, which cannot give addresses without memory. */
#ifndef AN_BASE_SYSTEM_SPARSE_H
#define AN_BASE_SYSTEM_SPARSE_H

#include "base/memory.h"
#include "base/page_range.h"

typedef struct an_sparse {
    int64_t pages;      /* of the grid */
    int64_t page_bytes; /* of a page of the grid */
    const an_page_range
        *runs; /* that are there: ascending, inside the grid, without a page in common. They may touch, or be empty */
    int run_count;
} an_sparse;

/* What an_sparse_alloc will count, to the byte: the system's pages that have a byte of a run. A pure
 * function on one machine. */
int64_t an_sparse_bytes(const an_sparse *sparse);

/* *memory is where page 0 of the grid is, or would be; NULL for a grid without pages. What is there is zeros.
 * *memory is untouched on error. */
an_status an_sparse_alloc(an_context *ctx, void **memory, const an_sparse *sparse);

/* Releases what an_sparse_alloc gave for the same grid and runs, and sets the pointer to NULL. */
void an_sparse_release(an_context *ctx, void **memory, const an_sparse *sparse);

#endif
