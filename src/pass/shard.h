/* What the shard pass leaves behind for the plan, and what its parts share: the exchange of gradients that ranks all
 * have (shard.c), gathered weights (shard_regions.c) and gradients in pieces (shard_gradients.c).
 *
 * A region is a part of a form, from the first instruction that reads a unit's weights to the last one before they are
 * let go. Its weights are gathered once. They lie in one root of the arena for each type that is read: the pages of
 * the parameters that the region reads, one after another. */
#ifndef AN_PASS_SHARD_H
#define AN_PASS_SHARD_H

#include "base/exchange.h"
#include "base/page_range.h"
#include "pass/pass.h"
#include "pass/units.h"

typedef struct an_region_run {
    an_page_range pages; /* of the grid */
    int64_t at;          /* page of the root that the first one comes to */
} an_region_run;

typedef struct an_region_root {
    const an_region_run *runs; /* ascending, with a page between them at least */
    int run_count;
    int64_t pages; /* of all runs; 0: there is no such root */
} an_region_root;

typedef struct an_region {
    int unit; /* pass/units.h */
    an_region_root roots[AN_WEIGHT_KINDS];
    const char *name; /* of the unit, "the rest of the model" where it has none */
} an_region;

typedef struct an_shard_plan {
    const an_region *regions; /* in the order in which they are gathered; in the graph's arena */
    int region_count;
    an_dtype low; /* of the second kind; NONE: nothing is read in it */
} an_shard_plan;

/* ---- between the files of the pass ---- */

typedef struct an_sharder {
    an_graph *g;
    an_form form;
    an_unit *units;
    int unit_count;
    int *unit_of;       /* by parameter; -1: it is frozen */
    const char **names; /* by unit, for messages; in the graph's arena */
} an_sharder;

static inline an_page_range an_parameter_pages(const an_parameter *p) {
    return (an_page_range){p->offset / AN_PAGE, (p->offset + p->elements + AN_PAGE - 1) / AN_PAGE};
}

/* Lets everything that reads trainable weights read gathered ones. */
an_status an_shard_weights(const an_sharder *s);
/* Lets the gradients of every unit leave from memory of their own. */
an_status an_shard_gradients(const an_sharder *s);

static inline int64_t an_gradient_parameter(const an_node *grad) {
    return *(const int64_t *)an_node_attribute(grad, "parameter", AN_ATTRIBUTE_INT);
}

/* Where it goes in the flat gradients, in elements. */
static inline int64_t an_gradient_offset(const an_graph *g, const an_node *grad) {
    const an_parameter *p = &g->parameters[an_gradient_parameter(grad)];
    const int64_t extra = *(const int64_t *)an_node_attribute(grad, "extra", AN_ATTRIBUTE_INT);
    return extra > 0 ? p->extra + (extra - 1) * an_parameter_padded(p) : p->offset;
}

/* Whether a gradient comes from a constant: the zeros of a parameter that no gradient reaches. */
static inline bool an_gradient_is_zeros(const an_node *grad) {
    const an_node *from = an_node_input(grad, 0)->root->node;
    if (!(from->op->flags & AN_OP_SOURCE) || from->outputs[0].storage != AN_STORAGE_CONSTANT) return false;
    return *(const double *)an_node_attribute(from, "value", AN_ATTRIBUTE_FLOAT) == 0;
}

#endif
