/* Units of exchange: runs of parameters that ranks exchange together, their gradients and their weights.
 *
 * A unit is a run of trainable parameters, in canonical order, of one outermost block, or of none. In the flat buffers
 * it is a range of whole pages. A unit of fewer elements than the graph's min_elements is joined with the next, or, if
 * it is the last, with the one before. A parameter that several nodes read is a unit of its own. Units follow from the
 * model and that number alone, so that every rank has the same, whatever it divides.
 *
 * Behind them come the extra regions of such parameters (an_parameter.extras): units of the gradients alone. Each is
 * cut as the unit of its parameter is, so the owner of a page owns what is added to it. */
#ifndef AN_PASS_UNITS_H
#define AN_PASS_UNITS_H

#include "anneal/plan.h"
#include "ir/graph.h"

typedef struct an_unit {
    int64_t begin, end; /* elements of the flat buffer: whole pages */
    /* Of its first block and its last; "" if it has none. In the graph's memory. */
    const char *name, *last_name;
    bool is_shared;
    int turn; /* comm/pieces.h: its number, or that of the unit of its parameter */
} an_unit;

/* Room for the units of a graph. */
size_t an_units_most(const an_graph *g);
/* The units of a graph that is laid out; how many there are. *extras (NULL: not asked): how many of them, the last
 * ones, are extra regions. `unit_of` (NULL: not asked) gets the unit of each parameter, -1 if it is frozen. */
int an_units_find(const an_graph *g, an_unit *units, int *extras, int *unit_of);
/* The unit that has an element of the flat gradients. */
int an_units_at(const an_unit *units, int count, int64_t element);

/* Writes "h.0", "h.0 to h.2", or nothing for a unit without a block, if `text` is not NULL; returns
 * its bytes with the final 0. */
size_t an_unit_describe(const an_unit *unit, char *text);

#endif
