/* The op record: everything that the library knows about an op, in one place. Passes ask the record and never switch
 * on a kind. docs/howto/add-an-op.md walks through one. */
#ifndef AN_IR_OP_H
#define AN_IR_OP_H

#include "anneal/experimental.h"
#include "base/level.h"

typedef struct an_node an_node;
typedef struct an_result an_result;
typedef struct an_op an_op;

/* Where a root lies. One base pointer each. */
typedef enum an_storage {
    AN_STORAGE_ARENA, /* activations and scratch */
    AN_STORAGE_MASTER,
    AN_STORAGE_FROZEN,
    AN_STORAGE_LOW,
    AN_STORAGE_PACKED,
    AN_STORAGE_GRADIENT,
    AN_STORAGE_STATE,
    AN_STORAGE_PROGRAM_STATE,
    AN_STORAGE_INPUT,
    AN_STORAGE_SCALAR,
    AN_STORAGE_CONSTANT,
    AN_STORAGE_COUNT
} an_storage;

enum {
    /* outputs have no storage: `view` gives their strides over input 0's root. With kernels, it also runs */
    AN_OP_VIEW = 1,
    AN_OP_SOURCE = 2,           /* no inputs, no kernel; `storage` says where the value lies */
    AN_OP_SINK = 4,             /* never pruned */
    AN_OP_COMMUNICATION = 8,    /* runs even after another node failed, with the failure in its call */
    AN_OP_RANDOM = 16,          /* bits depend on seed, step, sample and site */
    AN_OP_NO_COPY = 32,         /* recompute must not run it twice */
    AN_OP_KEEPS_INPUTS = 64,    /* inputs stay alive to the end of the run: the host reads them */
    AN_OP_ACCUMULATES = 128,    /* its output's old content is read when attribute `add` is set */
    AN_OP_BINDS_GRADIENT = 256, /* `grad`: the output is a parameter's gradient */
    AN_OP_LOSS = 512,           /* output 0 is a sum over targets */
    AN_OP_MEAN = 1024,          /* output 0 is a mean over attribute `axes` of input 0 */
    AN_OP_CONVERTS = 2048,      /* output 0 is input 0 in another type */
    AN_OP_OWN = 4096,           /* of the program: its record has the kernels for the device of its context */
    /* its inputs are parameters, which it reads as they are stored: outputs change with them only */
    AN_OP_OF_WEIGHTS = 8192,
    AN_OP_FOLLOWS = 16384, /* the end of another op: autocast gives input 0 the type that it would have without it */
    AN_OP_MOVES = 32768 /* every element of an output is one of an input, or zero: it may come before or after a sum */
};

/* What an op does with the elements of an input along one of its axes. */
typedef enum an_along {
    AN_ALONG_APART, /* each stays at its place along an axis of the output */
    AN_ALONG_ADDED, /* they are added, in such a way that kernels can add by leaves, and the output has no such axis */
    AN_ALONG_MIXED  /* anything else */
} an_along;

/* A question about one input, one of its axes, one output, and the axis of that output which should
 * correspond; -1: it has none. */
typedef struct an_along_question {
    const an_node *node;
    int input, axis, output, to;
} an_along_question;

/* What an input means to its op; parameter groups ask. */
typedef enum an_role {
    AN_ROLE_NONE,
    AN_ROLE_WEIGHT,
    AN_ROLE_BIAS,
    AN_ROLE_NORM_WEIGHT,
    AN_ROLE_NORM_BIAS,
    AN_ROLE_EMBEDDING,
    AN_ROLE_TARGETS
} an_role;

typedef struct an_cost {
    double flops, bytes; /* arithmetic; memory traffic if nothing stays in a cache */
    double functions;    /* exp and the like, where they are few among many products and yet take time */
} an_cost;

struct an_op {
    const char *name;
    const char *former; /* the name that .ang files had for it before; NULL: none */
    int inputs_min, inputs_max;
    int outputs; /* AN_OUTPUTS_ANY: as many as the node was made with */
    unsigned flags;
    an_storage storage;             /* sources and sinks: where output 0 lies */
    size_t attribute_bytes;         /* sizeof the attribute struct */
    const an_attribute *attributes; /* NULL: none */
    const an_role *roles;           /* by input; NULL: none; ends with the last input that has one */
    int role_count;
    /* Sets dtype, dims and, if it is not row-major, the physical order of every output. */
    an_status (*infer)(an_graph *g, an_node *node);
    /* Called once the node is in the graph: sources register themselves. NULL: nothing to do. */
    an_status (*added)(an_graph *g, an_node *node);
    /* Adds gradient nodes with builders. diff_dst[i] is 0 where output i has no gradient; want is a mask over inputs;
     * diff_src[i] comes in as 0 and stays 0 for none. Mistakes stick to the graph. */
    void (*grad)(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src);
    /* What stands for output 0 in evaluation and prediction; NULL: the op itself. */
    an_value (*evaluate)(an_graph *g, const an_node *node);
    /* What may stand for output 0 because the node does nothing to it: an input, or fewer views of one; 0: the node
     * itself. The simplify pass takes it only where it has output 0's type, shape and layout. NULL: never. */
    an_value (*simplify)(an_graph *g, const an_node *node);
    /* Views: strides and offset of an output from those of input 0, symbolically and once. */
    an_status (*view)(an_graph *g, an_node *node, int output);
    /* The leaves pass asks this of the axis of samples. NULL: MIXED. */
    an_along (*along)(const an_along_question *q);
    /* At the symbols' current values; NULL: one flop an output element, all operands read or written once. */
    an_cost (*cost)(const an_graph *g, const an_node *node);
    /* Losses: how many targets of this array count. */
    int64_t (*count_targets)(const an_node *node, const an_array *targets);
    an_autocast autocast;
    uint32_t low_in, low_out; /* masks over inputs, outputs */
    uint32_t blocks_in;       /* inputs that may be of q8_0, whole parameters; no op writes it */
    uint32_t dense;           /* inputs that must be row-major and dense */
    uint32_t in_place;        /* inputs that output 0 may overwrite */
    /* Puts a fused node in the place of this one and its neighbours where that gives the same bits, and leaves what is
     * then not read any more in the graph. A value that the backward part reads may become an output of the fused node
     * only if `may_keep`: recompute cannot make it alone any more. NULL: never. */
    void (*fuse)(an_graph *g, an_node *node, bool may_keep);
    /* Its expression in PyTorch: {0} is the first input, {axis} an attribute, {shape} and {type} are those of output 0,
     * {*} all inputs, {parts} the number of outputs; {flag?text} is a text that stands there if the flag is set,
     * {,name=key} an argument that is left out if the input or attribute is absent or 0. NULL:
     * interchange/torch_nodes.c writes it, or models with the op cannot be exported. */
    const char *torch;
    /* What it is in ONNX: "Relu" is the op of ONNX with the same inputs, "Mul(Sigmoid({0}), {0})" several, where {0} is
     * the first input and {factor} an attribute of type double. NULL: interchange/onnx/nodes.c writes it, or nothing
     * does. */
    const char *onnx;
    /* The host's, by level of instructions: best first, portable last, ends with name NULL. All NULL for sources and
     * most views; a level without a list takes that of the level below. Other devices are asked by the op's name
     * (an_op_choices in registry.h). */
    const an_kernel *kernels[AN_LEVELS];
};

enum { AN_OUTPUTS_ANY = -1 };

/* The list of a level, or that of the nearest below. */
static inline const an_kernel *an_level_kernels(const an_kernel *const kernels[AN_LEVELS], an_isa isa) {
    int level = an_level_of(isa);
    while (level > 0 && !kernels[level]) level--;
    return kernels[level];
}

/* The kernels of the record: the host's, or of an op of the program's own; NULL: the op has none. */
static inline const an_kernel *an_op_kernels(const an_op *op, an_isa isa) {
    return an_level_kernels(op->kernels, isa);
}

#endif
