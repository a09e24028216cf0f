#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void an_memory_count(an_context *ctx, size_t bytes) {
    ctx->bytes += bytes;
    if (ctx->bytes > ctx->peak_bytes) ctx->peak_bytes = ctx->bytes;
}

void an_memory_discount(an_context *ctx, size_t bytes) {
    ctx->bytes -= bytes;
}

static an_status allocate(an_context *ctx, void **memory, size_t bytes, size_t alignment) {
    void *p = ctx->allocator.allocate(ctx->allocator.user, bytes, alignment);
    if (!p)
        return AN_ERROR(ctx, AN_ERR_MEMORY, "out of memory: %zu bytes were requested while %zu are in use", bytes,
                        ctx->bytes);
    an_memory_count(ctx, bytes);
    ctx->allocations++;
    *memory = p;
    return AN_OK;
}

an_status an_alloc_raw(an_context *ctx, void **memory, size_t bytes) {
    return allocate(ctx, memory, bytes, AN_ALIGNMENT);
}

an_status an_alloc(an_context *ctx, void **memory, size_t count, size_t element) {
    size_t bytes;
    if (!an_multiply_sizes(count, element, &bytes))
        return AN_ERROR(ctx, AN_ERR_OVERFLOW, "%zu elements of %zu bytes do not fit in memory", count, element);
    if (bytes == 0) {
        *memory = NULL;
        return AN_OK;
    }
    AN_TRY_RETURN(allocate(ctx, memory, bytes, _Alignof(max_align_t)));
    memset(*memory, 0, bytes);
    return AN_OK;
}

an_status an_grow(an_context *ctx, void **memory, size_t *capacity, size_t needed, size_t element) {
    enum { FIRST = 16 };
    void *grown = NULL;
    size_t count = *capacity ? *capacity : FIRST;
    if (needed <= *capacity) return AN_OK;
    while (count < needed) {
        if (!an_multiply_sizes(count, 2, &count))
            return AN_ERROR(ctx, AN_ERR_OVERFLOW, "%zu elements are too many", needed);
    }
    AN_TRY_RETURN(an_alloc(ctx, &grown, count, element));
    if (*memory && grown) memcpy(grown, *memory, *capacity * element);
    an_release(ctx, memory, *capacity, element);
    *memory = grown;
    *capacity = count;
    return AN_OK;
}

void an_release(an_context *ctx, void **memory, size_t count, size_t element) {
    if (!*memory) return;
    ctx->allocator.release(ctx->allocator.user, *memory, count * element);
    an_memory_discount(ctx, count * element);
    *memory = NULL;
}

/* ---- arenas ---- */

struct an_arena_chunk {
    an_arena_chunk *older;
    size_t bytes; /* with this header */
};

enum { ARENA_ALIGNMENT = 16, ARENA_FIRST = 4096, ARENA_MOST = 1 << 24 };

void an_arena_init(an_arena *arena, an_context *ctx) {
    *arena = (an_arena){.ctx = ctx};
}

void an_arena_destroy(an_arena *arena) {
    while (arena->chunks) {
        void *chunk = arena->chunks;
        size_t bytes = arena->chunks->bytes;
        arena->chunks = arena->chunks->older;
        an_release(arena->ctx, &chunk, bytes, 1);
    }
    arena->used = arena->capacity = 0;
}

an_status an_arena_alloc(an_arena *arena, void **memory, size_t count, size_t element) {
    an_context *ctx = arena->ctx;
    size_t bytes, header = an_round_up(sizeof(an_arena_chunk), ARENA_ALIGNMENT);
    if (!an_multiply_sizes(count, element, &bytes) || bytes > SIZE_MAX / 2)
        return AN_ERROR(ctx, AN_ERR_OVERFLOW, "%zu elements of %zu bytes do not fit in memory", count, element);
    bytes = an_round_up(bytes, ARENA_ALIGNMENT);
    if (arena->capacity - arena->used < bytes) {
        /* Chunks double up to a limit: few allocations for big graphs, little waste for small ones. */
        size_t chunk_bytes = arena->capacity ? arena->capacity * 2 : ARENA_FIRST;
        void *chunk = NULL;
        if (chunk_bytes > ARENA_MOST) chunk_bytes = ARENA_MOST;
        if (chunk_bytes < bytes + header) chunk_bytes = bytes + header;
        AN_TRY_RETURN(allocate(ctx, &chunk, chunk_bytes, _Alignof(max_align_t)));
        ((an_arena_chunk *)chunk)->older = arena->chunks;
        ((an_arena_chunk *)chunk)->bytes = chunk_bytes;
        arena->chunks = chunk;
        arena->capacity = chunk_bytes;
        arena->used = header;
    }
    *memory = memset((char *)arena->chunks + arena->used, 0, bytes); /* zeroed when it is used, and then in the cache */
    arena->used += bytes;
    return AN_OK;
}

an_status an_arena_string(an_arena *arena, const char **copy, const char *text, size_t length) {
    void *bytes = NULL;
    AN_TRY_RETURN(an_arena_alloc(arena, &bytes, length + 1, 1));
    memcpy(bytes, text, length);
    *copy = bytes;
    return AN_OK;
}
