/* Units of exchange: runs of parameters whose gradients ranks exchange together.
 *
 * A unit is a run of trainable parameters, in canonical order, of one outermost block, or of none. In the flat buffer of gradients it is a range of whole pages. Units
 * follow from the model alone, so that every rank has the same. */
#ifndef AN_PASS_UNITS_H
#define AN_PASS_UNITS_H

#include "anneal/plan.h"
#include "ir/graph.h"

typedef struct an_unit {
    int64_t begin, end; /* elements of the flat buffer: whole pages */
    const char *name;   /* of the block; "" where there is none. In the graph's memory */
} an_unit;

/* The units of a graph that is laid out. `units` has room for as many as there are parameters; `unit_of` (NULL: not asked) gets the unit of each parameter, -1 if it is frozen. */
int an_units_find(const an_graph *g, an_unit *units, int *unit_of);

#endif
