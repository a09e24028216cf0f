/* The graph as data: nodes in order, results with their uses, blocks, places, annotations of the passes.
 *
 * Nodes and results live in the graph's arena and never move. A handle (an_value) is the graph's serial and the
 * result's number; clones keep both, so handles stay valid in them.
 */
#ifndef AN_IR_GRAPH_H
#define AN_IR_GRAPH_H

#include "anneal/experimental.h"
#include "anneal/plan.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "ir/dimension.h"
#include "ir/op.h"

typedef enum an_phase { AN_PHASE_FORWARD, AN_PHASE_BACKWARD } an_phase;

/* One input of a node, and a link in its result's list of uses (in the order they were made). */
typedef struct an_use {
    an_result *result; /* NULL: absent */
    an_node *node;
    int slot;
    struct an_use *previous, *next;
} an_use;

struct an_result {
    an_node *node;
    int output;
    uint32_t number;
    an_dtype dtype;
    int ndims;
    uint8_t order[AN_MAX_DIMS]; /* physical order, outermost first; identity unless infer says otherwise */
    an_dim dims[AN_MAX_DIMS];
    an_dim strides[AN_MAX_DIMS]; /* in elements */
    an_dim offset;               /* of a view, in elements of the root */
    an_result *root;             /* itself unless it is a view */
    an_use *first_use, *last_use;
    /* annotations: */
    an_storage storage; /* of a root */
    int64_t place;      /* byte offset in its storage; -1 before the memory pass */
    int64_t bytes;      /* of a root, at the symbols' maxima */
};

typedef struct an_place {
    const char *file; /* NULL: not known */
    int line;
    int call; /* number of the builder call */
} an_place;

/* A sum over samples that kernels add by leaves: the axis of samples of every input and output, -1 where there is none.
 * Outputs that have none are the sums. */
typedef struct an_leaf_sum {
    int8_t src[AN_MAX_INPUTS], dst[AN_MAX_OUTPUTS];
} an_leaf_sum;

struct an_node {
    const an_op *op;
    uint32_t number;
    int input_count, output_count;
    an_use *inputs;
    an_result *outputs;
    void *attributes;
    an_node *previous, *next;
    const char *path; /* in the model, "" at the top */
    an_place place;
    int block; /* index in blocks; 0 is the graph itself */
    an_phase phase;
    const an_node *origin; /* the forward node a gradient node or copy comes from; NULL: itself */
    bool is_copy;          /* of its origin: recompute runs that a second time */
    /* annotations: */
    const an_kernel *kernel;
    bool is_forced; /* the kernel was asked for by name or added by the program, and another would have been chosen */
    int64_t scratch_bytes, scratch_place;
    an_leaf_sum *leaf_sum; /* NULL: it adds nothing by leaves */
    bool elided;           /* the memory pass made it needless */
    int64_t mark;          /* for the pass that runs; meaningless between passes */
};

/* A block, or a scope: the same but for its meaning. Block 0 is the graph. */
typedef struct an_block {
    const char *name, *path;
    int depth, parent;
    bool is_scope;
} an_block;

typedef struct an_parameter {
    const char *name;
    an_node *node; /* the source */
    int depth;     /* of its block, for layer-wise decay */
    bool trained;  /* beside an adapter: the files of the model do not have it, or the caller wants it */
    /* given by an_graph_lay_out, after freezing: */
    int64_t elements, offset; /* in elements of its flat buffer (MASTER, or FROZEN in bytes) */
    bool is_shared;           /* trainable, and several nodes read it */
    /* given by the autodiff pass: */
    int extras;    /* contributions to its gradient that have regions of their own behind the grid: all but the first */
    int64_t extra; /* where these begin, one after another, in elements of the flat gradients */
} an_parameter;

/* Whole pages. */
static inline int64_t an_parameter_padded(const an_parameter *p) {
    return (p->elements + AN_PAGE - 1) / AN_PAGE * AN_PAGE;
}

/* Sizes of the flat buffers. */
typedef struct an_flat_sizes {
    int64_t trainable_elements; /* whole pages: masters and each moment */
    int64_t gradient_elements;  /* the same, and behind them extra contributions (an_parameter.extras) */
    an_dtype trainable_dtype;   /* NONE: nothing is trainable */
    int64_t frozen_bytes, state_bytes, input_bytes, program_state_bytes;
} an_flat_sizes;

enum { AN_ADAPTER_MOST_RANK = 1 << 20 };

/* The adapter that was added to a model (pass/lora.c). */
typedef struct an_adapter {
    int64_t rank; /* 0: there is none */
    double alpha, dropout;
    bool rslora;
    bool dora;
} an_adapter;

enum { AN_PLACE_STACK = 32, AN_PATH_BYTES = 512, AN_MAX_SCALARS = 64 };

/* What nodes get that are added now. */
typedef struct an_added_nodes {
    an_node *before; /* they go in front of it; NULL: at the end */
    an_phase phase;
    const an_node *origin; /* also gives block, path and place */
} an_added_nodes;

/* The builder call that runs, and where calls stand in the program. */
typedef struct an_builder_calls {
    an_place waiting[AN_PLACE_STACK]; /* set by an_graph_at, not yet taken */
    int waiting_count;
    an_place place; /* of the call that runs */
    int depth;      /* of calls within it */
    int count;      /* of all calls so far */
} an_builder_calls;

struct an_graph {
    an_context *ctx;
    an_arena arena;
    const char *name;
    uint32_t serial;
    an_status status; /* the first mistake */
    char message[AN_MESSAGE_BYTES];
    bool is_verified;

    an_node *first, *last;
    size_t node_count;
    uint32_t next_node;
    an_result **results; /* by number; NULL: removed */
    size_t result_count, result_capacity;

    an_dimensions dimensions;

    an_block *blocks;
    size_t block_count, block_capacity;
    int block; /* the open one */
    char path[AN_PATH_BYTES];
    size_t path_length;

    an_parameter *parameters;
    size_t parameter_count, parameter_capacity;
    int64_t min_elements; /* of what ranks exchange at once (pass/units.h) */

    an_node **sources; /* inputs and states */
    size_t source_count, source_capacity;
    an_value scalars[AN_MAX_SCALARS]; /* the scalar sources, by first use */
    int scalar_count;

    an_value loss, targets;
    const char
        *one_leaf; /* why a run cannot have several leaves, from the leaves pass; NULL: it can, or nobody has asked */
    an_adapter adapter;
    struct an_memory_plan *memory;       /* of the memory pass, which owns its layout; NULL before */
    struct an_recompute_plan *recompute; /* the same of the recompute pass */
    struct an_shard_plan *shard;         /* the same of the shard pass; NULL: weights are not gathered */

    an_added_nodes added;
    an_builder_calls calls;
};

/* ---- for ops and passes ---- */

/* Registers a source, for the hosts that find them by name; verify refuses names that occur twice. */
an_status an_graph_register_source(an_graph *g, an_node *node);
an_status an_graph_register_parameter(an_graph *g, an_node *node, const char *name);

/* Adds a node: checks inputs, copies attributes, infers, gives strides. Returns output 0 (for sinks without output:
 * 0 with no error), 0 after a mistake. Every builder ends here. */
an_value an_graph_add(an_graph *g, const an_op *op, int input_count, const an_value *inputs, const void *attributes);
an_value an_graph_add_outputs(an_graph *g, const an_op *op, int input_count, const an_value *inputs,
                              const void *attributes, int output_count);

/* Around the body of a builder that calls others: they report its caller's place. */
void an_builder_begin(an_graph *g);
an_value an_builder_end(an_graph *g, an_value value);
/* Whether a part of a builder call succeeded; if not, its error is the mistake of the call. */
bool an_builder_took(an_graph *g, an_status status);

/* Sets the first mistake; later ones are dropped. Returns `status`. */
an_status an_graph_mistake(an_graph *g, an_status status, const char *format, ...) AN_PRINTF(3, 4);
/* The same from an infer hook: the message begins with the node's place, path and op. */
an_status an_node_mistake(an_graph *g, const an_node *node, an_status status, const char *format, ...) AN_PRINTF(4, 5);

/* "model.c:12: h.0 (product): ", or the number of the call where no place is known. */
void an_place_describe(const an_place *place, const char *path, const char *op, char *text, size_t capacity);

an_result *an_graph_result(const an_graph *g, an_value value);       /* NULL: not of this graph, or absent */
an_value an_graph_value(const an_graph *g, const an_result *result); /* NULL gives AN_NONE */

static inline an_result *an_node_input(const an_node *node, int i) {
    return i < node->input_count ? node->inputs[i].result : NULL;
}
static inline an_result *an_node_output(const an_node *node, int i) {
    return &node->outputs[i];
}
static inline an_value an_node_input_value(const an_graph *g, const an_node *node, int i) {
    return an_graph_value(g, an_node_input(node, i));
}
static inline an_value an_node_output_value(const an_graph *g, const an_node *node, int i) {
    return an_graph_value(g, &node->outputs[i]);
}

/* For infer hooks. */
void an_result_set(an_result *result, an_dtype dtype, int ndims, const an_dim *dims);
void an_result_like(an_result *result, const an_result *other); /* same dtype and dims, row-major */

/* A handle must be one of this graph's; anything may come from a caller or a text. */
an_status an_graph_expect_dimension(an_graph *g, an_dim dim);

/* Dimension arithmetic on a graph's table; a mistake sticks to the graph. */
an_dim an_graph_add_dims(an_graph *g, an_dim a, an_dim b);
an_dim an_graph_subtract_dims(an_graph *g, an_dim a, an_dim b);
an_dim an_graph_multiply_dims(an_graph *g, an_dim a, an_dim b);

/* Gives parameters their place on the grid, and inputs and states theirs, in order of registration. The same model
 * gives the same places in every clone. Inputs are sized at the symbols' maxima (left out if `inputs` is false). */
an_status an_graph_lay_out(an_graph *g, bool inputs, an_flat_sizes *sizes);

/* The block proper that a node's block or scope lies in. */
int an_graph_block_of(const an_graph *g, int block);

/* Gives outputs their types, shapes and strides from the inputs, when the node is made or its inputs have changed. */
an_status an_node_infer(an_graph *g, an_node *node);
/* Changes what input `slot` of a node reads. */
void an_node_set_input(an_node *node, int slot, an_result *result);
/* Every use of `from` reads `to` instead (uses keep their order, after those that `to` has). */
void an_result_replace(an_result *from, an_result *to);
/* Gives every view its root, strides and offset anew, after the values that views read were replaced. */
an_status an_graph_refresh_views(an_graph *g);
/* Takes a node out; its outputs must have no uses. */
void an_graph_remove(an_graph *g, an_node *node);
/* Moves a node to the end of the order. */
void an_graph_move_last(an_graph *g, an_node *node);

an_status an_graph_clone(an_graph **copy, const an_graph *g);
/* Gives a symbol its maximum (and the same value). AN_ERR_UNKNOWN if the graph has no such symbol. */
an_status an_graph_bind(an_graph *g, const char *symbol, int64_t maximum);

bool an_result_is_dense(an_graph *g, const an_result *result); /* row-major without gaps, offset 0 not asked */

/* Numbers at the symbols' maxima (bytes: of the dense tensor). False on overflow or a symbol without a maximum. */
bool an_result_maximum_bytes(const an_graph *g, const an_result *result, int64_t *bytes);
/* A tensor at the symbols' current values, data NULL. False on overflow. */
bool an_result_tensor(const an_graph *g, const an_result *result, an_tensor *tensor);
/* Whether a result has elements at the current values and, if it is a view, lies inside what it views; a message names
 * the node that makes or reads it. */
an_status an_result_check_bounds(const an_graph *g, const an_node *node, const an_result *result);
double an_result_elements(const an_graph *g, const an_result *result); /* at current values, for costs */

/* Bytes of all operands of a node, and its arithmetic with them, at the symbols' current values. */
double an_node_traffic(const an_graph *g, const an_node *node);
an_cost an_node_cost(const an_graph *g, const an_node *node);

/* "f32[batch,64]" for messages; lives as long as the expression it is in. */
typedef struct an_shape_text {
    char text[160];
} an_shape_text;
an_shape_text an_describe(const an_graph *g, const an_result *result);
#define AN_DESCRIBE(g, result) (an_describe((g), (result)).text)

/* Reads a named attribute of any op without knowing it; NULL if the op has none of that name and type. */
void *an_node_attribute(const an_node *node, const char *name, an_attribute_type type);

#endif
