/* What the memory pass leaves behind for the plan. */
#ifndef AN_PASS_MEMORY_H
#define AN_PASS_MEMORY_H

#include "ir/graph.h"

/* One value, or the scratch of one instruction, in the arena: alive from `begin` to `end`, both included. */
typedef struct an_life {
    const an_node *node;
    int64_t begin, end, offset, bytes;
    bool scratch;
} an_life;

typedef struct an_memory_plan {
    an_life *lives; /* in the graph's arena */
    size_t life_count;
    int64_t instructions;
    int64_t arena_bytes, arena_without_scratch;
    int64_t most_alive; /* no plan can need less */
    int64_t fullest;    /* the instruction when that is so */
    bool in_place;      /* whether writing in place made it smaller */
} an_memory_plan;

/* Whether a contribution can be made where it belongs: an overwriting gradient is its only reader, and
 * it lies as the parameter. */
bool an_gradient_fits(an_graph *g, const an_node *grad);

#endif
