/* Units of exchange: runs of parameters that ranks exchange together, their gradients and their weights.
 *
 * A unit is a run of trainable parameters, in canonical order, of one outermost block, or of none. In the flat buffers it is a range of whole pages. A unit of fewer elements than the graph's
 * min_elements is joined with the next, or, if it is the last, with the one before. Units follow from the model and that number alone, so that every rank has the same, whatever it divides. */
#ifndef AN_PASS_UNITS_H
#define AN_PASS_UNITS_H

#include "anneal/plan.h"
#include "ir/graph.h"

typedef struct an_unit {
    int64_t begin, end; /* elements of the flat buffer: whole pages */
    /* Of its first block and its last; "" if it has none. In the graph's memory. */
    const char *name, *last_name;
} an_unit;

/* The units of a graph that is laid out. `units` has room for as many as there are parameters; `unit_of` (NULL: not asked) gets the unit of each parameter, -1 if it is frozen. */
int an_units_find(const an_graph *g, an_unit *units, int *unit_of);

/* Writes "h.0", "h.0 to h.2", or nothing for a unit without a block, if `text` is not NULL; returns its bytes with the final 0. */
size_t an_unit_describe(const an_unit *unit, char *text);

#endif
