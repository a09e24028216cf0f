/* Public structs in both directions: a newer library serves an older program, and a newer program runs on an older
 * library.
 *
 * A call takes an option struct with an_x_read, which copies the caller's bytes over the library's defaults, and fills
 * a struct of the caller's with an_x_write. Nothing else looks at the caller's struct. */
#ifndef AN_BASE_STRUCTS_H
#define AN_BASE_STRUCTS_H

#include "anneal/chat.h"
#include "anneal/checkpoint.h"
#include "anneal/details.h"
#include "anneal/generate.h"
#include "anneal/models.h"
#include "anneal/open.h"
#include "anneal/predict.h"
#include "anneal/pretrained.h"
#include "anneal/ranks.h"
#include "anneal/run.h"
#include "anneal/text.h"
#include "anneal/watch.h"

typedef struct an_struct {
    const char *name;
    size_t size;          /* in this library */
    size_t first;         /* in the first release */
    const void *defaults; /* of `size` bytes */
} an_struct;

typedef enum an_struct_number {
#define AN_STRUCT(type, ...) AN_STRUCT_##type,
#include "base/structs.def"
#undef AN_STRUCT
    AN_STRUCT_COUNT
} an_struct_number;

extern const an_struct an_structs[AN_STRUCT_COUNT];

/* Whether a member is AN_AUTO. */
static inline bool an_is_auto(double value) {
    return __builtin_isnan(value);
}

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

#define AN_STRUCT(type, ...)                                                                               \
    static inline an_status type##_read(an_context *ctx, type *own, const type *given) {                   \
        return an_struct_read(ctx, &an_structs[AN_STRUCT_##type], own, given);                             \
    }                                                                                                      \
    static inline an_status type##_read_at(an_context *ctx, type *own, const type *array, int64_t index) { \
        return an_struct_read_at(ctx, &an_structs[AN_STRUCT_##type], own, array, index);                   \
    }                                                                                                      \
    static inline an_status type##_write(an_context *ctx, type *given, const type *own) {                  \
        return an_struct_write(ctx, &an_structs[AN_STRUCT_##type], given, own);                            \
    }                                                                                                      \
    static inline an_status type##_check(an_context *ctx, const type *given) {                             \
        return an_struct_check(ctx, &an_structs[AN_STRUCT_##type], given);                                 \
    }
#include "base/structs.def"
#undef AN_STRUCT

#endif
