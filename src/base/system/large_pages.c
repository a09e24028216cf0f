#define _GNU_SOURCE /* madvise; NOLINT(bugprone-reserved-identifier) */
#include "base/system/large_pages.h"

#include <stdint.h>
#include <sys/mman.h>

void an_prefer_large_pages(void *memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
    enum { LARGE_PAGE = 2 << 20, LEAST = 4 * LARGE_PAGE }; /* as x86-64 and most others have them */
    if (bytes < LEAST) return;
    const size_t before = (LARGE_PAGE - (size_t)((uintptr_t)memory % LARGE_PAGE)) % LARGE_PAGE;
    (void)madvise((char *)memory + before, (bytes - before) / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}
