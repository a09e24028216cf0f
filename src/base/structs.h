/* Public structs in both directions: a newer library serves an older program, and a newer program runs on an older
 * library.
 *
 * A call takes an option struct with an_x_read, which copies the caller's bytes over the library's defaults, and fills
 * a struct of the caller's with an_x_write. Nothing else looks at the caller's struct. */
#ifndef AN_BASE_STRUCTS_H
#define AN_BASE_STRUCTS_H

#include "anneal/core.h"

typedef struct an_struct {
    const char *name;
    size_t size;          /* in this library */
    size_t first;         /* in the first release */
    const void *defaults; /* of `size` bytes */
} an_struct;

/* Fills a struct of the caller's that has `size` bytes. */
void an_struct_init(const an_struct *record, void *given, size_t size);
/* own = what the caller gave, with the defaults of members that the caller does not know; NULL: all defaults. Refuses a
 * struct that was not initialized, and one that sets a member that this library does not have. */
an_status an_struct_read(an_context *ctx, const an_struct *record, void *own, const void *given);
/* Element `index` of an array of structs, as above. All elements have the size of the first. */
an_status an_struct_read_at(an_context *ctx, const an_struct *record, void *own, const void *array, int64_t index);
/* Writes own to the caller's struct, as much of it as the caller knows. Its size stays. */
an_status an_struct_write(an_context *ctx, const an_struct *record, void *given, const void *own);
/* Refuses a struct of the caller's that an_struct_write could not write to, before the work whose result it is to
 * get. */
an_status an_struct_check(an_context *ctx, const an_struct *record, const void *given);

/* What a layer's structs.h declares for a row of its structs.def, and what its structs.c defines for it. */
#define AN_STRUCT_DECLARE(type, ...)                                                                       \
    extern const an_struct type##_struct;                                                                  \
    static inline an_status type##_read(an_context *ctx, type *own, const type *given) {                   \
        return an_struct_read(ctx, &type##_struct, own, given);                                            \
    }                                                                                                      \
    static inline an_status type##_read_at(an_context *ctx, type *own, const type *array, int64_t index) { \
        return an_struct_read_at(ctx, &type##_struct, own, array, index);                                  \
    }                                                                                                      \
    static inline an_status type##_write(an_context *ctx, type *given, const type *own) {                  \
        return an_struct_write(ctx, &type##_struct, given, own);                                           \
    }                                                                                                      \
    static inline an_status type##_check(an_context *ctx, const type *given) {                             \
        return an_struct_check(ctx, &type##_struct, given);                                                \
    }
#define AN_STRUCT_DEFINE(type, first, ...)                                            \
    static const type type##_defaults = {.size = sizeof(type), __VA_ARGS__};          \
    _Static_assert(sizeof(type) >= (first), #type " has lost a member");              \
    const an_struct type##_struct = {#type, sizeof(type), (first), &type##_defaults}; \
    void type##_init(type *given, size_t size) {                                      \
        an_struct_init(&type##_struct, given, size);                                  \
    }

#define AN_STRUCT AN_STRUCT_DECLARE
#include "base/structs.def"
#undef AN_STRUCT

#endif
