/* What the recompute pass leaves behind for the plan, and what its parts share: what is dropped (recompute_units.c, and
 * recompute_budget.c for a budget) and how it is made again (recompute.c). */
#ifndef AN_PASS_RECOMPUTE_H
#define AN_PASS_RECOMPUTE_H

#include "pass/pass.h"

typedef struct an_recompute_plan {
    int64_t copies; /* instructions that run a second time */
    int64_t levels; /* of a budget: how many values can be dropped */
    int blocks;     /* the outermost blocks of the model */
} an_recompute_plan;

/* A unit is a part of the model that is made again at once; node->mark is a node's unit. */
typedef struct an_recomputation {
    an_graph *g;
    size_t results; /* of the graph before the pass: what arrays are as long as */
    int blocks;
    int halved;    /* AN_RECOMPUTE_FULL: how many units there are, from 0 on in the order of the model; else 0 */
    int runs;      /* of units, that each keep what enters them and are halved on their own */
    bool *dropped; /* by number of a root: backward does not find the value and reads a copy */
} an_recomputation;

/* Gives nodes their units and drops all that the mode allows; for a budget, all that could go. */
an_status an_recompute_find_units(an_recomputation *c, const an_pass_options *options);

/* For a budget: of what could go, keeps all but the `level` values that free most for the time of making them again. */
an_status an_recompute_choose(an_recomputation *c, int64_t budget, int64_t level, int64_t *levels);

#endif
