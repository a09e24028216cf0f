/* Memory from the context's allocator, counted to the byte, and arenas on top of it.
 *
 * The caller passes the size again on release, so no header is needed and allocations are exactly as large as
 * requested. With the size in front of each block, calls would be shorter, but a host's allocator would give 16 to 64
 * bytes a block more than plans say, which are exact to the byte (tests/exec/test_memory.c and six others).
 */
#ifndef AN_BASE_MEMORY_H
#define AN_BASE_MEMORY_H

#include "base/context.h"
#include "base/status.h"

enum { AN_ALIGNMENT = 64 }; /* a cache line, and the widest vector */

/* Zeroed memory for `count` elements; `count` 0 gives NULL and AN_OK. *memory is untouched on error. */
an_status an_alloc(an_context *ctx, void **memory, size_t count, size_t element);

/* Grows (never shrinks) an array from `*capacity` to at least `needed` elements, doubling; new ones are zeroed. */
an_status an_grow(an_context *ctx, void **memory, size_t *capacity, size_t needed, size_t element);

/* Releases what an_alloc or an_grow gave and sets the pointer to NULL. */
void an_release(an_context *ctx, void **memory, size_t count, size_t element);

/* Uninitialised memory, for tensors. */
an_status an_alloc_raw(an_context *ctx, void **memory, size_t bytes);

/* Memory that the context has not allocated but holds: it is part of an_context_bytes. */
void an_memory_count(an_context *ctx, size_t bytes);
void an_memory_discount(an_context *ctx, size_t bytes);

/* An arena gives small zeroed pieces that are released together. They never move. */
typedef struct an_arena_chunk an_arena_chunk;
typedef struct an_arena {
    an_context *ctx;
    an_arena_chunk *chunks;
    size_t used, capacity; /* of the newest chunk */
} an_arena;

void an_arena_init(an_arena *arena, an_context *ctx);
void an_arena_destroy(an_arena *arena);
an_status an_arena_alloc(an_arena *arena, void **memory, size_t count, size_t element);
an_status an_arena_string(an_arena *arena, const char **copy, const char *text, size_t length);

/* a * b and a + b; false if it does not fit. */
static inline bool an_multiply_sizes(size_t a, size_t b, size_t *product) {
    return !__builtin_mul_overflow(a, b, product);
}
/* Adds `count` elements to a number of bytes; false if memory has no room for so many. */
static inline bool an_add_elements(size_t *bytes, size_t count, size_t element) {
    size_t more;
    return an_multiply_sizes(count, element, &more) && !__builtin_add_overflow(*bytes, more, bytes) &&
           *bytes <= PTRDIFF_MAX;
}
static inline bool an_multiply_i64(int64_t a, int64_t b, int64_t *product) {
    return !__builtin_mul_overflow(a, b, product);
}
static inline bool an_add_i64(int64_t a, int64_t b, int64_t *sum) {
    return !__builtin_add_overflow(a, b, sum);
}
static inline size_t an_round_up(size_t value, size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

#endif
