/* Adds the same pages of several tree nodes, in the order that a schedule gives. */
#ifndef AN_COMM_ADD_H
#define AN_COMM_ADD_H

#include "base/context.h"

/* How the numbers of a source are stored. */
typedef enum an_addend {
    AN_ADDEND_PLAIN,   /* as those of the sum */
    AN_ADDEND_BF16,    /* of f32 sums: bf16 */
    AN_ADDEND_ROUNDED, /* of f32 sums: f32, and each is rounded to bf16 before it is added */
    AN_ADDENDS
} an_addend;

typedef struct an_addition {
    an_dtype dtype; /* AN_DTYPE_F32 or AN_DTYPE_F64 */
    int64_t count;  /* nodes to add, from left to right */
    const void *const *src;
    const an_addend *addends; /* [count]; NULL: all are plain */
    const int *joins;         /* [count + 1], as an_rounds_joins has it */
    int outputs;              /* nodes that are left */
    int copies;               /* of each of them */
    void *const *dst;         /* [outputs][copies]; each may be one of src, but overlaps no other */
    size_t bytes;             /* of each sum: a multiple of AN_ADD_STRIP */
} an_addition;

enum {
    AN_ADD_STRIP = 2048
}; /* bytes that are added at a time: all nodes that wait stay in the first cache. Pages are multiples of it */

/* Every source is read once and every destination written once, however many nodes there are. */
void an_add_nodes(an_context *ctx, const an_addition *addition);

/* Each number to the nearest that bf16 has, in place. */
void an_round_to_bf16(an_context *ctx, float *numbers, int64_t count);

#endif
