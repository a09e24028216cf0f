/* From a graph to something that runs: parameters, plan, program.
 *
 * an_params holds what a model learns; one store serves all programs of its model. A plan compiles the graph once for
 * the largest sizes and knows every byte before anything is allocated. A program is a plan with memory: it runs the
 * training, evaluation and prediction forms of the graph on one arena. Nothing is allocated in a run.
 */
#ifndef ANNEAL_PLAN_H
#define ANNEAL_PLAN_H

#include "anneal/anneal.h"
#include "anneal/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- parameters ---- None of these is collective. */

typedef struct an_params an_params;

typedef struct an_params_options {
    size_t size;
    bool without_gradients; /* prediction only: no gradients, no moments */
    int moments;            /* 0: two, for AdamW; negative: none */
} an_params_options;

/* Lays out the parameters of a verified graph and allocates them (zeros, and run states at their initial value).
 * `options` may be NULL. */
AN_API an_status an_params_create(an_params **params, an_context *ctx, const an_graph *graph,
                                  const an_params_options *options);
AN_API void an_params_destroy(an_params **params);

/* Starts every parameter from its initializer. The same seed gives the same bits anywhere, in any order. */
AN_API an_status an_params_init(an_params *params, uint64_t seed);

typedef struct an_param_info {
    size_t size;
    const char *name; /* its path in the model */
    an_dtype dtype;
    int ndims;
    int64_t dims[AN_MAX_DIMS];
    int64_t elements;
    bool trainable;
    int64_t offset; /* in elements of its flat buffer: a multiple of AN_PAGE */
    int depth;      /* of its block, for layer-wise decay */
} an_param_info;

enum { AN_PAGE = 1024 }; /* elements: every parameter begins on a page of the flat grid */

AN_API int64_t an_params_count(const an_params *params);
AN_API an_status an_params_info(const an_params *params, int64_t index, an_param_info *info);

typedef enum an_param_part {
    AN_PART_WEIGHT = 0,
    AN_PART_GRADIENT = 1,
    AN_PART_MOMENT_1 = 2,
    AN_PART_MOMENT_2 = 3
} an_param_part;

/* Copies a parameter out of or into the store; shape and type must be the parameter's. Run states are found by name
 * too, as weights. */
AN_API an_status an_params_get(const an_params *params, const char *name, an_param_part part, an_array *array);
AN_API an_status an_params_set(an_params *params, const char *name, an_param_part part, const an_array *array);

/* ---- plan ---- */

typedef struct an_plan an_plan;

/* Which forms of the graph a plan makes. */
enum { AN_PROGRAM_TRAINING = 1, AN_PROGRAM_EVALUATION = 2, AN_PROGRAM_PREDICTION = 4 };

/* What a training program computes a second time in its backward part instead of keeping it. The bits are the same. A block
 * is one that lies in no other; docs/recompute.md tells what each mode costs. */
typedef enum an_recompute {
    AN_RECOMPUTE_NONE = 0,
    AN_RECOMPUTE_BLOCK = 1, /* keeps what enters a block and recomputes each block when its gradient is due */
    AN_RECOMPUTE_FULL = 2,  /* the least memory: holds the inputs of about log2(blocks) blocks at a time and makes the
                                  others again from them, by halves: one to three forward runs more */
    AN_RECOMPUTE_SEGMENTS = 3, /* keeps what enters each of `segments` runs of blocks and recomputes whole runs */
    AN_RECOMPUTE_BUDGET = 4    /* the cheapest choice whose arena is at most `budget` bytes */
} an_recompute;

typedef struct an_plan_options {
    size_t size;
    unsigned programs; /* a mask; 0: training and evaluation if the graph has a loss, else prediction */
    int symbol_count;  /* the largest value of every symbol of the graph */
    const char *const *symbols;
    const int64_t *maxima;
    int moments;        /* of the optimizer, for the count of bytes; as in an_params_options */
    an_dtype precision; /* BF16, F16: products, convolutions and attention in it; NONE: as the graph is written */
    an_recompute recompute;
    int segments;        /* of AN_RECOMPUTE_SEGMENTS */
    int64_t budget;      /* of AN_RECOMPUTE_BUDGET: bytes of activations and scratch, without parameters */
    bool unfused;        /* no fused kernels: every op of the graph for itself, for tests and profiles; the same bits */
    const char *kernels; /* forces kernels by name: "attention=reference,product=reference", and with an op its gradient
                            ops (attention_diff), unless they are in the list themselves; NULL: best first */
    bool
        f32_storage; /* with BF16: only what products and convolutions read is rounded to it; every value and gradient is
                            stored in f32 */
    int64_t checkpoint; /* bytes of the copy that saves are written from, which are counted; 0: nothing is saved */
    int64_t leaves;     /* of a step, as in an_stepper_options, for the count of bytes; 0: one */
    bool
        weighs_samples; /* training has a further input "loss_weights", of the loss's type, with one number for each sample: its
                            part of the loss is multiplied by it. Zeros until it is set. Evaluation weighs nothing */
} an_plan_options;

/* `options` may be NULL if the graph has no symbols. */
AN_API an_status an_plan_create(an_plan **plan, an_context *ctx, const an_graph *graph, const an_plan_options *options);
AN_API void an_plan_destroy(an_plan **plan);

/* What a program of this plan and its parameters will allocate. peak = the sum of all others, held at once. */
typedef struct an_plan_memory {
    size_t size;
    int64_t weights; /* masters, their copies of low precision, frozen parameters, run states */
    int64_t gradients;
    int64_t optimizer;   /* moments */
    int64_t activations; /* the arena without scratch */
    int64_t scratch;     /* what kernels' scratch adds to the arena */
    int64_t inputs;      /* inputs, scalars, constants, program states */
    int64_t tables;      /* instructions, names, shapes: the bookkeeping of parameters and program */
    int64_t checkpoint;  /* the copy of the state that is written while training goes on */
    int64_t peak;
    int64_t leaves;  /* further buffers of gradients, for leaves that wait to be added; 0: a step is one leaf */
    int64_t trainer; /* of a trainer's plan: all else that it holds, as the plan itself, the model, the samples that are
                        loaded and evaluated, and the data if it opened it. Samples that a program hands to it are not
                        counted */
} an_plan_memory;
AN_API an_status an_plan_memory_get(const an_plan *plan, an_plan_memory *memory);

/* Counts for one run of a form: instructions, arithmetic, traffic. */
typedef enum an_form {
    AN_FORM_TRAIN_FIRST = 0, /* forward and backward; gradients are overwritten */
    AN_FORM_TRAIN_NEXT = 1,  /* the same; gradients are added to */
    AN_FORM_EVALUATE = 2,
    AN_FORM_PREDICT = 3
} an_form;

typedef struct an_plan_cost {
    size_t size;
    int64_t nodes, instructions;
    double flops, bytes;
    double seconds; /* predicted for the machine that the library was tuned on: for comparing plans of a model */
    double recompute_ratio; /* seconds ÷ those without recompute; 1: nothing is recomputed */
} an_plan_cost;
AN_API an_status an_plan_cost_get(const an_plan *plan, an_form form, an_plan_cost *cost);

/* Op `index` of the library (an_plan_op_count of them): how mixed precision treats it, and its part in one run of a form. */
typedef struct an_plan_op {
    size_t size;
    const char *name;
    const char *policy;               /* "low", "keep" or "f32" */
    uint32_t low_inputs, low_outputs; /* masks: what is of low precision where the policy is "low" */
    int64_t instructions;             /* 0: the form does without it */
    double flops, bytes;
} an_plan_op;
AN_API int an_plan_op_count(void);
AN_API an_status an_plan_op_get(const an_plan *plan, an_form form, int index, an_plan_op *op);

/* What lives when, for drawing: value i is alive from instruction begin to end (included), at these bytes of the arena. */
typedef struct an_plan_life {
    size_t size;
    const char *op, *path; /* of the node that makes it */
    int64_t begin, end, offset, bytes;
    bool backward, scratch;
} an_plan_life;
AN_API int64_t an_plan_life_count(const an_plan *plan, an_form form);
AN_API an_status an_plan_life_get(const an_plan *plan, an_form form, int64_t index, an_plan_life *life);

/* The graph of a form after a pass ("program", "autodiff", …; NULL: the last), as .ang with annotations. Release the text with
 * an_string_release. */
AN_API an_status an_plan_dump(an_plan *plan, an_form form, const char *pass, char **text);

/* The graph of a form for Graphviz. */
AN_API an_status an_plan_dot(const an_plan *plan, an_form form, char **text);

/* ---- program ---- */

typedef struct an_program an_program;

/* Allocates the arena and inputs of a plan. The plan and the parameters must outlive it; `params` must be of the same
 * graph. */
AN_API an_status an_program_create(an_program **program, an_plan *plan, an_params *params);
AN_API void an_program_destroy(an_program **program);

/* The sizes of the next runs: at most the plan's maxima. Shapes follow the values. */
AN_API an_status an_program_bind(an_program *program, const char *symbol, int64_t value);

/* An input of the model, at the bound sizes. */
typedef struct an_input_info {
    size_t size;
    const char *name;
    an_dtype dtype;
    int ndims;
    int64_t dims[AN_MAX_DIMS];
    int64_t limit; /* of integers that name rows or classes: they are from 0 to below it; 0: not known, 0 always fits */
} an_input_info;
AN_API int64_t an_program_input_count(const an_program *program);
AN_API an_status an_program_input_info(const an_program *program, int64_t index, an_input_info *info);

/* Copies an array into an input; its shape must be the input's at the bound sizes. */
AN_API an_status an_program_set_input(an_program *program, const char *name, const an_array *array);
/* loss_gradient (the step's scale ÷ targets; 1 at first), seed, step, and the model's own. */
AN_API an_status an_program_set_scalar(an_program *program, const char *name, double value);
AN_API an_status an_program_set_scalar_i64(an_program *program, const char *name, int64_t value);

/* How many targets of this array count, by the rule of the graph's loss. */
AN_API an_status an_program_count_targets(const an_program *program, const an_array *targets, int64_t *count);

/* Runs a form. Allocates nothing, takes no locks, leaves the caller's floating-point environment as it was. */
AN_API an_status an_program_run(an_program *program, an_form form);

/* The loss of the last run: a sum over its targets. */
AN_API an_status an_program_loss(const an_program *program, double *loss);
/* Copies an output of the last run: array->data must hold it; dtype and dims are set if ndims is -1, else checked. */
AN_API an_status an_program_get_output(const an_program *program, const char *name, an_array *array);

/* Called between instructions, on the thread that runs; anything but AN_OK stops the run with AN_ERR_HOOK. */
AN_API void an_program_set_hook(an_program *program, an_status (*hook)(void *user, int64_t instruction), void *user);

typedef struct an_profile_entry {
    size_t size;
    const char *op, *kernel, *path;
    an_dtype dtype; /* of its first operand */
    bool backward;
    int64_t runs;
    double seconds;      /* of all runs */
    double begin, last;  /* of the last run: when it began, from the first instruction on, and its seconds */
    double flops, bytes; /* of one run, at the bound sizes */
} an_profile_entry;
/* Times every instruction from now on. The memory for it is part of the program from its creation. */
AN_API void an_program_profile(an_program *program, bool on);
AN_API int64_t an_program_profile_count(const an_program *program, an_form form);
AN_API an_status an_program_profile_get(const an_program *program, an_form form, int64_t index,
                                        an_profile_entry *entry);

#ifdef __cplusplus
}
#endif
#endif
