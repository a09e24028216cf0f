#define _GNU_SOURCE /* MAP_ANONYMOUS; NOLINT(bugprone-reserved-identifier) */
#include "base/system/sparse.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/integer.h"

static int64_t system_page(void) {
    return (int64_t)sysconf(_SC_PAGESIZE);
}

/* The grid in bytes, in whole pages of the system; false: so many cannot be addressed. */
static bool reserved_bytes(const an_sparse *s, int64_t *bytes) {
    const int64_t page = system_page();
    if (!an_multiply_i64(s->pages, s->page_bytes, bytes) || *bytes > PTRDIFF_MAX - page) return false;
    *bytes = an_next_multiple(*bytes, page);
    return true;
}

/* Bytes begin … end - 1 of the grid, in whole pages of the system. */
typedef struct {
    int64_t begin, end;
} extent;

/* The next bytes that are there, from run *run on, as far as they reach without a gap; *run is then the first run
 * behind them. False: there are no more. */
static bool next_extent(const an_sparse *s, int *run, extent *e) {
    const int64_t page = system_page();
    bool found = false;
    for (; *run < s->run_count; ++*run) {
        const an_page_range *r = &s->runs[*run];
        if (r->begin == r->end) continue;
        const int64_t begin = r->begin * s->page_bytes / page * page,
                      end = an_next_multiple(r->end * s->page_bytes, page);
        if (found && begin > e->end) break;
        *e = (extent){.begin = found ? e->begin : begin, .end = end};
        found = true;
    }
    return found;
}

int64_t an_sparse_bytes(const an_sparse *sparse) {
    int64_t bytes = 0;
    extent e;
    for (int run = 0; next_extent(sparse, &run, &e);) bytes += e.end - e.begin;
    return bytes;
}

an_status an_sparse_alloc(an_context *ctx, void **memory, const an_sparse *sparse) {
    int64_t reserved;
    if (!reserved_bytes(sparse, &reserved))
        return AN_ERROR(ctx, AN_ERR_OVERFLOW, "%lld pages of %lld bytes do not fit in memory", (long long)sparse->pages,
                        (long long)sparse->page_bytes);
    if (reserved == 0) {
        *memory = NULL;
        return AN_OK;
    }
    const int64_t bytes = an_sparse_bytes(sparse);
    char *base = mmap(NULL, (size_t)reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return AN_ERROR(ctx, AN_ERR_MEMORY,
                        "out of memory: addresses for %lld bytes were requested, %lld of them to be used, while %zu "
                        "bytes are in use",
                        (long long)reserved, (long long)bytes, ctx->bytes);
    extent e;
    for (int run = 0; next_extent(sparse, &run, &e);) {
        if (mprotect(base + e.begin, (size_t)(e.end - e.begin), PROT_READ | PROT_WRITE) == 0) continue;
        munmap(base, (size_t)reserved);
        return AN_ERROR(ctx, AN_ERR_MEMORY, "out of memory: %lld bytes in pieces were requested while %zu are in use",
                        (long long)bytes, ctx->bytes);
    }
    an_memory_count(ctx, (size_t)bytes);
    *memory = base;
    return AN_OK;
}

void an_sparse_release(an_context *ctx, void **memory, const an_sparse *sparse) {
    int64_t reserved;
    if (!*memory || !reserved_bytes(sparse, &reserved)) return;
    munmap(*memory, (size_t)reserved);
    an_memory_discount(ctx, (size_t)an_sparse_bytes(sparse));
    *memory = NULL;
}
