/* Passes: each replaces something that people write, and get wrong, by hand. A pass changes a graph; all that it
 * produces is on the graph. Between passes nodes are in topological order. docs/howto/add-a-pass.md. */
#ifndef AN_PASS_PASS_H
#define AN_PASS_PASS_H

#include "anneal/plan.h"
#include "ir/graph.h"

typedef struct an_pass_options {
    an_form form;
    an_dtype precision; /* NONE: as the graph is written */
    bool f32_storage;   /* only inputs of products and convolutions have that precision; all values are stored in f32 */
    bool unfused;       /* every op for itself */
    const char *kernels; /* "op=name,op=name"; NULL: best first */
    an_recompute recompute;
    int segments;   /* runs of blocks that keep what enters them: of AN_RECOMPUTE_SEGMENTS and FULL, there 0 is one */
    int64_t budget; /* of AN_RECOMPUTE_BUDGET */
    bool exchanges; /* there is more than one rank: gradients are exchanged in the flat buffer */
    bool scatters;  /* gradients are in pieces: those of a unit leave the program as soon as they are complete */
    bool gathers;   /* weights are in pieces: a region of them is gathered when it is needed */
    bool extras; /* a run has some of a step's leaves: contributions to one gradient are added when they are complete */
    int64_t leaves;       /* the most that a run of a training form has; 0 or 1: sums over samples are sums */
    const char *samples;  /* the symbol of samples; NULL: what a run could have is not asked */
    int64_t budget_level; /* how many values, the cheapest first, are computed twice for it: the plan tries some */
} an_pass_options;

typedef struct an_pass {
    const char *name;
    an_status (*run)(an_graph *g, const an_pass_options *options);
} an_pass;

/* Every pass of pass.def in its order, name NULL at the end. */
extern const an_pass an_pass_table[];

#define AN_PASS(pass) an_status an_pass_##pass(an_graph *g, const an_pass_options *options);
#include "pass/pass.def"
#undef AN_PASS

static inline bool an_form_trains(an_form form) {
    return form == AN_FORM_TRAIN_FIRST || form == AN_FORM_TRAIN_NEXT;
}

/* Whether a node is an instruction: neither source, view nor sink without a kernel, and not made needless. */
static inline bool an_node_runs(const an_node *node) {
    return node->op->kernels[0] && !node->elided;
}

#endif
