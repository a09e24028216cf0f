/* The memory of a store's flat buffers, whole or in pieces. */
#include "base/integer.h"
#include "base/system/large_pages.h"
#include "exec/params.h"

static bool is_whole(const an_params_pieces *pieces, an_flat flat) {
    return !pieces || !pieces->shards || an_params_pieces_set(pieces, flat) == AN_PAGES_ALL;
}

static an_sparse sparse_of(const an_params_pieces *pieces, an_flat flat, an_dtype dtype) {
    const an_page_runs *runs = &pieces->shards->sets[an_params_pieces_set(pieces, flat)];
    return (an_sparse){.pages = flat == AN_FLAT_GRADIENTS ? pieces->shards->gradient_pages : pieces->shards->pages,
                       .page_bytes = AN_PAGE * (int64_t)an_dtype_size(dtype),
                       .runs = runs->runs,
                       .run_count = runs->count};
}

int64_t an_params_buffer_bytes(const an_flat_sizes *sizes, const an_params_pieces *pieces, an_flat flat,
                               an_dtype dtype) {
    const int64_t elements = flat == AN_FLAT_GRADIENTS ? sizes->gradient_elements : sizes->trainable_elements;
    if (is_whole(pieces, flat)) return elements * (int64_t)an_dtype_size(dtype);
    const an_sparse sparse = sparse_of(pieces, flat, dtype);
    return an_sparse_bytes(&sparse);
}

an_status an_params_allocate(an_params *p, void **memory, int64_t bytes) {
    an_context *ctx = p->ctx;
    if (bytes == 0) return AN_OK;
    AN_TRY_RETURN(p->device->allocate(p->device, ctx, memory, (size_t)bytes));
    if (an_context_uses_system_memory(ctx)) an_prefer_large_pages(*memory, (size_t)bytes);
    return p->device->fill(p->device, ctx, *memory, 0, (size_t)bytes);
}

an_status an_params_allocate_flat(an_params *p, void **memory, an_flat flat, an_dtype dtype) {
    if (is_whole(&p->pieces, flat))
        return an_params_allocate(p, memory, an_params_buffer_bytes(&p->sizes, NULL, flat, dtype));
    const an_sparse sparse = sparse_of(&p->pieces, flat, dtype);
    return an_sparse_alloc(p->ctx, memory, &sparse);
}

void an_params_release_flat(an_params *p, void **memory, an_flat flat, an_dtype dtype) {
    if (is_whole(&p->pieces, flat)) {
        p->device->release(p->device, p->ctx, memory, (size_t)an_params_buffer_bytes(&p->sizes, NULL, flat, dtype));
        return;
    }
    const an_sparse sparse = sparse_of(&p->pieces, flat, dtype);
    an_sparse_release(p->ctx, memory, &sparse);
}

an_tensor an_flat_tensor(void *base, an_dtype dtype, const an_page_range *pages) {
    char *data = base ? (char *)base + pages->begin * AN_PAGE * (int64_t)an_dtype_size(dtype) : NULL;
    return (an_tensor){
        .data = data, .dtype = dtype, .ndims = 1, .dims = {(pages->end - pages->begin) * AN_PAGE}, .strides = {1}};
}

/* ---- what is here ---- */

static an_page_runs all_pages(const an_params *p) {
    return (an_page_runs){.runs = &p->grid, .count = p->grid.end > 0};
}

static an_page_runs runs_of(const an_params *p, an_flat flat) {
    return is_whole(&p->pieces, flat) ? all_pages(p) : p->pieces.shards->sets[an_params_pieces_set(&p->pieces, flat)];
}

/* NULL: this rank updates everything. */
static const an_shards *shards_of_update(const an_params *p) {
    return is_whole(&p->pieces, AN_FLAT_MOMENTS) ? NULL : p->pieces.shards;
}

int an_params_piece_count(const an_params *p) {
    const an_shards *shards = shards_of_update(p);
    return shards ? shards->unit_count : 1;
}

an_page_range an_params_piece(const an_params *p, int index) {
    const an_shards *shards = shards_of_update(p);
    return shards ? an_shards_piece(shards, index, shards->rank) : p->grid;
}

int64_t an_params_own_pages(const an_params *p) {
    int64_t pages = 0;
    for (int i = 0; i < an_params_piece_count(p); i++) {
        const an_page_range piece = an_params_piece(p, i);
        pages += piece.end - piece.begin;
    }
    return pages;
}

an_page_range an_params_low_part(const an_params *p, const an_page_range *pages, bool *has_low) {
    const an_page_runs low = runs_of(p, AN_FLAT_LOW);
    const int found = an_page_runs_find(&low, pages->begin);
    const int64_t begin = found < low.count ? low.runs[found].begin : pages->end;
    *has_low = begin <= pages->begin;
    return (an_page_range){pages->begin, an_smaller(pages->end, *has_low ? low.runs[found].end : begin)};
}

/* An entry of the grid begins on a page. */
static int64_t first_page(const an_stored *e) {
    return e->offset / (int64_t)an_dtype_size(e->dtype) / AN_PAGE;
}

bool an_params_has(const an_params *p, const an_stored *e, an_flat flat) {
    if (e->storage != AN_STORAGE_MASTER) return true;
    const int64_t begin = first_page(e);
    const an_page_range pages = {begin, begin + an_divide_up(e->elements, AN_PAGE)};
    const an_page_runs runs = runs_of(p, flat);
    return an_page_runs_have(&runs, &pages);
}

bool an_params_next(const an_params *p, const an_stored *e, an_flat flat, int64_t from, int64_t *first, int64_t *end) {
    *first = from;
    *end = e->elements;
    if (e->storage == AN_STORAGE_MASTER && !is_whole(&p->pieces, flat)) {
        const int64_t begin = first_page(e);
        const an_page_runs runs = runs_of(p, flat);
        const int next = an_page_runs_find(&runs, begin + from / AN_PAGE);
        if (next == runs.count) return false;
        *first = an_larger(from, (runs.runs[next].begin - begin) * AN_PAGE);
        *end = an_smaller(e->elements, (runs.runs[next].end - begin) * AN_PAGE);
    }
    return *first < *end;
}
