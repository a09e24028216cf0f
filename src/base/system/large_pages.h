/* Large pages of the system, where it has them. */
#ifndef AN_BASE_SYSTEM_LARGE_PAGES_H
#define AN_BASE_SYSTEM_LARGE_PAGES_H

#include <stddef.h>

/* Asks for them where `memory` is large and will be used as a whole: what streams through it then waits less for the
 * translation of addresses. Only a hint, and only for the system's own memory (an_context_uses_system_memory): an
 * allocator that was given decides for itself. */
void an_prefer_large_pages(void *memory, size_t bytes);

#endif
