/* From a graph to a program: parameters, plan, program.
 *
 * an_params holds the parameters of a model; all programs of the model share it. A plan compiles the graph once, for
 * the largest sizes, and knows every byte before anything is allocated. A program is a plan with memory: it runs the
 * training, evaluation and prediction forms of the graph in one arena. A run allocates nothing.
 *
 * None of these functions is collective, except an_params_get and an_params_set if ranks divide the parameters.
 */
#ifndef ANNEAL_PLAN_H
#define ANNEAL_PLAN_H

#include "anneal/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

/* ---- parameters ---- */

typedef struct an_params an_params;

typedef struct an_params_options {
    size_t size;
    int moments;    /* number of moments of the optimizer; 2 by default, for AdamW */
    bool gradients; /* true by default; false: for prediction only, without gradients and moments */
    /* room for a moving average of the weights, for an_stepper_options.ema_decay; needs gradients */
    bool average;
    uint8_t reserved[2];
} an_params_options;
AN_API void an_params_options_init(an_params_options *options, size_t size);

/* Allocates the parameters of a verified graph. They are zeros; run states have their initial values. `options` may be
 * NULL. */
AN_API an_status an_params_create(an_params **params, an_context *ctx, const an_graph *graph,
                                  const an_params_options *options);
AN_API void an_params_destroy(an_params **params);

/* Sets every parameter to its initial value. The same seed gives the same bits everywhere. */
AN_API an_status an_params_reset(an_params *params, uint64_t seed);

typedef enum an_param_part {
    AN_PART_WEIGHT = 0,
    AN_PART_GRADIENT = 1,
    AN_PART_MOMENT_1 = 2,
    AN_PART_MOMENT_2 = 3,
    AN_PART_AVERAGE = 4, /* the moving average of the weight; before the first update it is the weight itself */
    AN_PART_LIMIT = 0x7fffffff
} an_param_part;

/* Copies a parameter to the caller's array, or from it. Shape and type must be those of the parameter. Run states can
 * be copied too, as weights. If ranks divide the parameters (an_shard), an_params_get is collective, and all ranks must
 * call an_params_set with the same values. */
AN_API an_status an_params_get(const an_params *params, const char *name, an_param_part part, an_array *array);
AN_API an_status an_params_set(an_params *params, const char *name, an_param_part part, const an_array *array);

/* ---- plan ---- */

typedef struct an_plan an_plan;

/* Forms of the graph that a plan contains. */
enum { AN_PROGRAM_TRAINING = 1, AN_PROGRAM_EVALUATION = 2, AN_PROGRAM_PREDICTION = 4 };

/* What the backward pass computes again instead of storing it. The bits are the same. Only outermost blocks count.
 * docs/recompute.md gives the cost of each mode. */
typedef enum an_recompute {
    AN_RECOMPUTE_NONE = 0,
    AN_RECOMPUTE_BLOCK = 1, /* stores the inputs of blocks and recomputes each block in the backward pass */
    /* minimum memory: stores the inputs of about log2(blocks) blocks at a time and recomputes the others from these, by
     * halves; costs one to three more forward passes */
    AN_RECOMPUTE_FULL = 2,
    AN_RECOMPUTE_SEGMENTS = 3, /* stores the inputs of `segments` groups of blocks and recomputes whole groups */
    AN_RECOMPUTE_BUDGET = 4,   /* the fastest choice whose arena has at most `budget` bytes */
    AN_RECOMPUTE_AUTO = 5,     /* for trainers: NONE if it fits in memory, else BLOCK or FULL */
    AN_RECOMPUTE_LIMIT = 0x7fffffff
} an_recompute;

/* What ranks divide among themselves, instead of each rank having all of it. Each value divides what the one before it
 * does, and more. The bits are the same (docs/bits.md). */
typedef enum an_shard {
    AN_SHARD_NONE = 0,
    AN_SHARD_OPTIMIZER = 1, /* moments, the average of the weights, and master weights that no op reads */
    AN_SHARD_GRADIENTS = 2, /* … and gradients */
    AN_SHARD_FULL = 3,      /* … and weights: a unit of weights is gathered when it is needed */
    AN_SHARD_HYBRID = 4,    /* as FULL, among the ranks of one host; all hosts have the same pieces */
    /* for trainers: the cheaper of NONE and OPTIMIZER that fits in memory, else the first of the others that fits */
    AN_SHARD_AUTO = 5,
    AN_SHARD_LIMIT = 0x7fffffff
} an_shard;

typedef struct an_plan_options {
    size_t size;
    const char *const *symbols; /* every symbol of the graph */
    const int64_t *maxima;      /* and its maximum */
    int64_t budget;             /* for AN_RECOMPUTE_BUDGET: bytes of activations and scratch, without parameters */
    /* kernels to use, by name: "attention=portable,matmul=portable". They also apply to the op's gradient ops
     * (attention_diff), unless the list names these too. NULL: the fastest */
    const char *kernels;
    int64_t checkpoint;   /* to count: bytes of the copy that checkpoints are written from; 0: nothing is saved */
    int64_t leaves;       /* to count: leaves of a step, as in an_stepper_options; 0: 1 */
    int64_t min_elements; /* a unit with fewer parameters is exchanged together with the next; 0: each unit by itself */
    /* maximum of each symbol for AN_FORM_EVALUATE, whose memory and bits then do not depend on `maxima`; NULL: the
     * same */
    const int64_t *evaluation_maxima;
    /* maximum number of leaves in one run of a training form; 0: 1. A run always has one leaf if the model computes
     * samples from each other, or computes with a sum over samples (an_plan_one_leaf) */
    int64_t run_leaves;
    const char *samples; /* the symbol of samples; needed if run_leaves is above 1, and for an_plan_one_leaf */
    unsigned programs;   /* a mask of forms; 0: training and evaluation if the graph has a loss, or else prediction */
    int symbol_count;
    int moments;        /* to count: moments of the optimizer; 2 by default */
    an_dtype precision; /* BF16, F16: of products, convolutions and attention; NONE: as the graph is written */
    an_recompute recompute;
    int segments;    /* of AN_RECOMPUTE_SEGMENTS */
    int rank, ranks; /* plan what this one of `ranks` ranks allocates and sends; ranks 0: one process */
    /* what ranks divide. With GRADIENTS and more, there is no AN_FORM_TRAIN_NEXT, unless the plan accumulates */
    an_shard shard;
    /* true by default; false: every op of the graph runs by itself, for tests and profiles. The bits are the same */
    bool fused;
    /* with BF16: only the inputs of products and convolutions are rounded; all values and gradients are stored in
     * f32 */
    bool f32_storage;
    /* training has one more input "loss_weights", with the loss's type and one number for each sample, the factor on
     * the sample's part of the loss. It is 0 until it is set. Evaluation does not use it */
    bool weighs_samples;
    /* with GRADIENTS and more: the gradients of several runs are added in whole buffers, and only their sum is
     * divided */
    bool accumulates;
    /* with weighs_samples: training has two more inputs, "mixed_targets", like the targets, and "mixed_weights",
     * like "loss_weights". The loss is computed for these too, and added. Evaluation does not use them */
    bool mixes_targets;
    bool average; /* to count: a moving average of the weights, as in an_params_options */
    uint8_t reserved[6];
} an_plan_options;
AN_API void an_plan_options_init(an_plan_options *options, size_t size);

/* Compiles a verified graph; the plan keeps its own copy of it. `options` may be NULL if the graph has no symbols. */
AN_API an_status an_plan_create(an_plan **plan, an_context *ctx, const an_graph *graph, const an_plan_options *options);
AN_API void an_plan_destroy(an_plan **plan);

/* Bytes that a program of this plan and its parameters will allocate. peak is the sum of all others. */
typedef struct an_plan_memory {
    size_t size;
    int64_t weights;     /* master weights, their low-precision copies, frozen parameters, run states */
    int64_t gradients;   /* if ranks divide them, including gradients of other ranks that wait to be added */
    int64_t optimizer;   /* moments, and the moving average of the weights */
    int64_t activations; /* the arena without scratch */
    int64_t scratch;     /* scratch memory of kernels in the arena */
    int64_t inputs;      /* inputs, scalars, constants, program states */
    int64_t tables;      /* bookkeeping of parameters and program: instructions, names, shapes */
    /* copy of the state that is written while training continues, or what a save without this copy needs */
    int64_t checkpoint;
    int64_t peak;
    int64_t leaves; /* more gradient buffers, for leaves that wait to be added; 0: a step is one leaf */
    /* in a trainer's plan, everything else: the plan itself, the model, samples that are loaded or evaluated, and the
     * data that the trainer owns. Samples that a program passes to it are not counted */
    int64_t trainer;
    int64_t messages; /* in a trainer's plan for several ranks: buffers of messages */
} an_plan_memory;
AN_API void an_plan_memory_init(an_plan_memory *memory, size_t size);
AN_API an_status an_plan_memory_get(const an_plan *plan, an_plan_memory *memory);

/* ---- program ---- */

typedef struct an_program an_program;

/* Allocates the arena and the inputs of a plan. The plan and the parameters must outlive the program. `params` must be
 * made from the same graph. */
AN_API an_status an_program_create(an_program **program, an_plan *plan, an_params *params);
AN_API void an_program_destroy(an_program **program);

/* Sets the size of a symbol for the next runs, at most the plan's maximum. */
AN_API an_status an_program_bind(an_program *program, const char *symbol, int64_t value);

/* Copies an array into an input. It must have the input's shape at the present sizes. */
AN_API an_status an_program_set_input(an_program *program, const char *name, const an_array *array);

/* A form of the graph. */
typedef enum an_form {
    AN_FORM_TRAIN_FIRST = 0, /* forward and backward; overwrites the gradients */
    AN_FORM_TRAIN_NEXT = 1,  /* the same; adds to the gradients */
    AN_FORM_EVALUATE = 2,
    AN_FORM_PREDICT = 3,
    AN_FORM_LIMIT = 0x7fffffff
} an_form;

/* Runs a form. Allocates nothing, takes no locks, and does not change the caller's floating-point environment. */
AN_API an_status an_program_run(an_program *program, an_form form);

/* Gives the loss of the last run, a sum over its targets. */
AN_API an_status an_program_loss(const an_program *program, double *loss);
/* Copies an output of the last run to array->data, which must be large enough. If its type is NONE, type and dimensions
 * are set; otherwise they are checked. */
AN_API an_status an_program_get_output(const an_program *program, const char *name, an_array *array);

/* ==== details ==== the rest of the interface */

/* ---- what parameters and inputs there are ---- */

typedef struct an_param_info {
    size_t size;
    const char *name; /* its path in the model */
    int64_t dims[AN_MAX_DIMS];
    int64_t elements;
    int64_t offset; /* in its flat buffer, in elements: a multiple of AN_PAGE */
    an_dtype dtype;
    int ndims;
    int depth; /* of its block, for layer-wise decay */
    bool trainable;
    uint8_t reserved[3];
} an_param_info;
AN_API void an_param_info_init(an_param_info *info, size_t size);

enum { AN_PAGE = 1024 }; /* elements; every parameter begins at a page of the flat buffer */

AN_API int64_t an_params_count(const an_params *params);
AN_API an_status an_params_info(const an_params *params, int64_t index, an_param_info *info);

/* An input of the model, at the present sizes. */
typedef struct an_input_info {
    size_t size;
    const char *name;
    int64_t dims[AN_MAX_DIMS];
    int64_t limit; /* for integers that are rows or classes: they are at least 0 and below it; 0: unknown */
    an_dtype dtype;
    int ndims;
} an_input_info;
AN_API void an_input_info_init(an_input_info *info, size_t size);
AN_API int64_t an_program_input_count(const an_program *program);
AN_API an_status an_program_input(const an_program *program, int64_t index, an_input_info *info);

/* Sets a scalar: loss_gradient (scale ÷ targets of the step; 1 at first), seed, step, and those of the model. */
AN_API an_status an_program_set_scalar(an_program *program, const char *name, double value);
AN_API an_status an_program_set_scalar_i64(an_program *program, const char *name, int64_t value);

/* Counts the targets in an array that the graph's loss does not ignore. */
AN_API an_status an_program_count_targets(const an_program *program, const an_array *targets, int64_t *count);

/* ---- what a plan costs ---- */

/* The reason why a run of a training form cannot have several leaves: "batch_norm at 'b1' may compute a sample from
 * others". It lives as long as the plan. NULL: a run can have several, or the options name no symbol of samples. */
AN_API const char *an_plan_one_leaf(const an_plan *plan);

/* What the planned rank exchanges with other ranks in a step, in a trainer's plan: gradients and two small records. All
 * zeros for one process. */
typedef struct an_plan_traffic {
    size_t size;
    int64_t sent, received; /* bytes of messages */
    int64_t messages;       /* sent */
    int64_t leaves;         /* of the rank */
    /* two ways to give leaves to ranks: along subtrees of the tree in which leaves are added, or evenly. For each, the
     * maximum number of leaves of a rank, and an estimate of the bytes that the busiest rank sends and receives. The
     * cheaper way is taken */
    int64_t subtree_leaves, subtree_bytes, even_leaves, even_bytes;
    int64_t read, written; /* bytes of other ranks' gradients in shared memory */
    int rank, ranks;
    int host_ranks; /* ranks of a host that add gradients in shared memory; 1: by messages */
    bool subtrees;  /* leaves are given along subtrees */
    uint8_t reserved[3];
} an_plan_traffic;
AN_API void an_plan_traffic_init(an_plan_traffic *traffic, size_t size);
AN_API an_status an_plan_traffic_get(const an_plan *plan, an_plan_traffic *traffic);

/* The cost of one run of a form. */
typedef struct an_plan_cost {
    size_t size;
    int64_t nodes, instructions;
    double flops, bytes;
    double seconds;         /* estimate for the machine that the library was tuned on, to compare plans of a model */
    double recompute_ratio; /* seconds ÷ seconds without recompute */
} an_plan_cost;
AN_API void an_plan_cost_init(an_plan_cost *cost, size_t size);
AN_API an_status an_plan_cost_get(const an_plan *plan, an_form form, an_plan_cost *cost);

typedef struct an_profile_entry {
    size_t size;
    const char *op, *kernel, *path;
    int64_t runs;
    double seconds;      /* of all runs */
    double begin, last;  /* of the last run: seconds from the first instruction to its begin, and its duration */
    double flops, bytes; /* of one run, at the present sizes */
    double began;        /* of the last run: begin of this instruction, on the clock of an_span */
    an_dtype dtype;      /* of its first operand */
    bool backward;
    uint8_t reserved[3];
} an_profile_entry;
AN_API void an_profile_entry_init(an_profile_entry *entry, size_t size);
/* Measures the time of every instruction from now on. */
AN_API void an_program_profile(an_program *program, bool on);
AN_API int64_t an_program_profile_count(const an_program *program, an_form form);
AN_API an_status an_program_profile_entry(const an_program *program, an_form form, int64_t index,
                                          an_profile_entry *entry);

/* ==== experimental ==== may change at any release before 1.0: how the library compiles and runs a graph */

/* An op of the library: its treatment in mixed precision, and its share of one run of a form. */
typedef struct an_plan_op {
    size_t size;
    const char *name;
    const char *policy;               /* "low", "keep" or "f32" */
    uint32_t low_inputs, low_outputs; /* masks of low-precision operands if the policy is "low" */
    int64_t instructions;             /* 0: the form does not use it */
    double flops, bytes;
} an_plan_op;
AN_API void an_plan_op_init(an_plan_op *op, size_t size);
AN_API int an_plan_op_count(void);
AN_API an_status an_plan_op_get(const an_plan *plan, an_form form, int index, an_plan_op *op);

/* A node of a form, after all passes: a parameter or another source, or an op. */
typedef struct an_plan_node {
    size_t size;
    const char *op;
    const char *path;          /* the part of the model that it belongs to, as "h.0.attn"; "": none */
    const char *block;         /* the outermost block that contains it, as "h.0"; "": none */
    int64_t dims[AN_MAX_DIMS]; /* of its first output, at the largest values of the symbols */
    /* number of the parameter; -1: not a parameter. A parameter may have several nodes, such as a copy in low
     * precision */
    int64_t parameter;
    int64_t elements;    /* of the parameter; 0: not a parameter */
    double flops, bytes; /* of one run */
    an_dtype dtype;      /* of its first output; NONE: it has none */
    int ndims;
    bool runs; /* an instruction, rather than a source or a view */
    bool backward;
    bool trainable; /* a parameter that is not frozen */
    uint8_t reserved[5];
} an_plan_node;
AN_API void an_plan_node_init(an_plan_node *node, size_t size);
AN_API int64_t an_plan_node_count(const an_plan *plan, an_form form);
/* Gives a node by its index, in the order in which nodes run. */
AN_API an_status an_plan_node_get(const an_plan *plan, an_form form, int64_t index, an_plan_node *node);

/* The lifetime and place of a value, for drawing: from instruction `begin` to `end`, inclusive, at this offset of the
 * arena. */
typedef struct an_plan_life {
    size_t size;
    const char *op, *path; /* of the node that makes it */
    int64_t begin, end, offset, bytes;
    bool backward, scratch;
    uint8_t reserved[6];
} an_plan_life;
AN_API void an_plan_life_init(an_plan_life *life, size_t size);
AN_API int64_t an_plan_life_count(const an_plan *plan, an_form form);
AN_API an_status an_plan_life_get(const an_plan *plan, an_form form, int64_t index, an_plan_life *life);

/* Prints the graph of a form after a pass ("program", "autodiff", …; NULL: the last), as .ang with annotations. Release
 * the text with an_string_release. */
AN_API an_status an_plan_dump(const an_plan *plan, an_form form, const char *pass, char **text);

/* Prints the graph of a form for Graphviz. Release the text with an_string_release. */
AN_API an_status an_plan_dot(const an_plan *plan, an_form form, char **text);

/* Sets a function that is called between instructions, on the thread that runs. A status other than AN_OK ends the run
 * with AN_ERR_HOOK. */
AN_API void an_program_set_hook(an_program *program, an_status (*hook)(void *user, int64_t instruction), void *user);

#ifdef __cplusplus
}
#endif
#endif
