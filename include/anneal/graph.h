/* Building models. A builder call returns a value. A mistake is stored in the graph with the place of the call, later
 * calls pass it on, and an_graph_verify reports the first one. So a model reads like math and is checked once, at its
 * end.
 *
 * Every builder is a function and, for C and C++, a macro of the same name that adds the place of the call. Define
 * AN_NO_PLACES before including this header to get only the functions.
 */
#ifndef ANNEAL_GRAPH_H
#define ANNEAL_GRAPH_H

#include "anneal/core.h"

#ifdef __cplusplus
#include <initializer_list>
/* AN_DIMS(batch, 64) expands to two arguments: the number of dimensions and a pointer to them. */
#define AN_DIMS(...)                                                     \
    static_cast<int>(std::initializer_list<an_dim>{__VA_ARGS__}.size()), \
        std::initializer_list<an_dim>{__VA_ARGS__}.begin()
extern "C" {
#else
#define AN_DIMS(...)                                                                  \
    (int)(sizeof((const an_dim[]){__VA_ARGS__}) / sizeof(an_dim)), (const an_dim[]) { \
        __VA_ARGS__                                                                   \
    }
#endif

/* ==== simple ==== what most programs need */

typedef struct an_graph an_graph;

/* A value of a graph. 0 is the value of a failed call. */
typedef uint64_t an_value;
#define AN_NONE UINT64_MAX /* an optional input that is absent */

/* A dimension: a positive constant, or the result of an_symbol_dim and the an_dim_ functions. 0 is the dimension of a
 * failed call. */
typedef int64_t an_dim;

/* The initial value of a parameter. `scale` is the standard deviation, the bound of the uniform
 * distribution, or the constant. */
typedef enum an_initializer {
    AN_INITIALIZER_CONSTANT = 0,
    AN_INITIALIZER_NORMAL = 1,
    AN_INITIALIZER_UNIFORM = 2, /* in (-scale, scale) */
    AN_INITIALIZER_LIMIT = 0x7fffffff
} an_initializer;

/* Creates an empty graph. */
AN_API an_status an_graph_create(an_graph **graph, an_context *ctx, const char *name);
AN_API void an_graph_destroy(an_graph **graph);

/* A dimension with a name, such as "batch", whose size is set later. */
AN_API an_dim an_symbol_dim(an_graph *graph, const char *name);

/* An input of the model: a field of the data, or an array that the program sets. */
AN_API an_value an_input(an_graph *graph, const char *name, an_dtype dtype, int ndims, const an_dim *dims);
/* A parameter that is trained. */
AN_API an_value an_param(an_graph *graph, const char *name, an_dtype dtype, an_initializer initializer, double scale,
                         int ndims, const an_dim *dims);

/* Sets the loss, a scalar that is a sum over targets, and the input whose targets are counted (AN_NONE: the caller
 * provides the divisor). The backward pass starts from the scalar loss_gradient, which is set before a run: scale ÷
 * targets. */
AN_API void an_graph_set_loss(an_graph *graph, an_value loss, an_value targets);

/* Names a value that evaluation and prediction compute. */
AN_API void an_graph_set_output(an_graph *graph, an_value value, const char *name);

/* Reports the first mistake of a builder call, then checks the whole graph. A plan needs a verified graph. */
AN_API an_status an_graph_verify(an_graph *graph);

/* ==== details ==== the rest of the interface */

/* ---- the loss and outputs ---- */

/* Sets the label smoothing of every cross entropy in the graph, 0 or more and below 1, before the graph is planned.
 * AN_ERR_ARGUMENT if there is no cross entropy. */
AN_API an_status an_graph_set_label_smoothing(an_graph *graph, double smoothing);
/* Makes every cross entropy of the graph a focal loss, before the graph is planned: the loss of a target with
 * probability p is multiplied by (1 - p)^gamma, so that well-predicted targets count less. gamma is 0 (no change) to
 * 100. AN_ERR_ARGUMENT if there is no cross entropy, or one with label smoothing. */
AN_API an_status an_graph_set_focal(an_graph *graph, double gamma);
/* Names a value that only prediction computes, such as the large logits of a language model, which is evaluated by its
 * loss. */
AN_API void an_graph_set_prediction(an_graph *graph, an_value value, const char *name);

/* ---- dimensions ---- */

AN_API an_dim an_dim_add(an_graph *graph, an_dim a, an_dim b);
AN_API an_dim an_dim_subtract(an_graph *graph, an_dim a, an_dim b);
AN_API an_dim an_dim_multiply(an_graph *graph, an_dim a, an_dim b);
AN_API an_dim an_dim_window(an_graph *graph, an_dim a, int64_t size, int64_t stride); /* (a - size) / stride + 1 */

/* ---- names and blocks ---- A block is the unit of recompute, gathering and layer decay. Its name is a prefix of the
 * names in it. */

AN_API void an_block_begin(an_graph *graph, const char *name, int depth);
AN_API void an_block_end(an_graph *graph);
AN_API void an_scope_begin(an_graph *graph, const char *name); /* only a prefix of names */
AN_API void an_scope_end(an_graph *graph);

/* ---- other sources ---- */

/* A parameter without gradient and moments. It may be stored in bf16 or f16. */
AN_API an_value an_frozen_param(an_graph *graph, const char *name, an_dtype dtype, an_initializer initializer,
                                double scale, int ndims, const an_dim *dims);
/* A value that is kept across steps and saved in checkpoints, such as running statistics. */
AN_API an_value an_run_state(an_graph *graph, const char *name, an_dtype dtype, double initial, int ndims,
                             const an_dim *dims);
/* A value that is kept across runs of one program, such as a cache of keys and values. */
AN_API an_value an_program_state(an_graph *graph, const char *name, an_dtype dtype, int ndims, const an_dim *dims);
/* One number that is set before each run. */
AN_API an_value an_scalar(an_graph *graph, const char *name, an_dtype dtype);
AN_API an_value an_constant(an_graph *graph, an_dtype dtype, double value, int ndims, const an_dim *dims);
/* Freezes a parameter. Call it before an_params_create. */
AN_API void an_param_freeze(an_graph *graph, an_value param);

/* ---- looking at a graph ---- */

/* The context that the graph was created in. */
AN_API an_context *an_graph_context(const an_graph *graph);

/* The shape of a value, for functions that build models: its number of dimensions, one dimension (negative: from the
 * end), its type. */
AN_API int an_value_ndims(an_graph *graph, an_value value);
AN_API an_dim an_value_dim(an_graph *graph, an_value value, int dimension);
AN_API an_dtype an_value_dtype(an_graph *graph, an_value value);
AN_API an_value an_value_output(an_value value, int output); /* another output of the same node */

/* The name of a symbol; NULL after the last. */
AN_API const char *an_graph_symbol_name(const an_graph *graph, int index);
/* The number of elements of all parameters. */
AN_API int64_t an_graph_parameter_elements(const an_graph *graph);

typedef struct an_graph_info {
    size_t size;
    int64_t nodes, parameters, elements; /* elements of all parameters; INT64_MAX: too many to count */
    int64_t batch_norms;                 /* batch norms, of images and rows */
    int64_t row_batch_norms;             /* those of rows, where a sample has one number for each feature */
    an_dtype dtype;                      /* of the first parameter that is trained; NONE: there is none */
    bool has_loss, has_targets;          /* there is a loss; its targets are a known input */
    uint8_t reserved[2];
} an_graph_info;
AN_API void an_graph_info_init(an_graph_info *info, size_t size);
AN_API an_status an_graph_info_get(const an_graph *graph, an_graph_info *info);

/* Prints and reads the text form (.ang, docs/ang-format.md). Release the text of an_graph_print with
 * an_string_release. */
AN_API an_status an_graph_print(const an_graph *graph, char **text);
AN_API an_status an_graph_parse(an_graph **graph, an_context *ctx, const char *text, size_t length);

/* Prints the model for Graphviz. Release the text with an_string_release. */
AN_API an_status an_graph_dot(const an_graph *graph, char **text);

/* Sets the place of the next builder call; the macros below do it. Returns the graph. */
AN_API an_graph *an_graph_at(an_graph *graph, const char *file, int line);

#include "anneal/builders.h"

#ifdef __cplusplus
}
#endif

#ifndef AN_NO_PLACES
#include "anneal/places.h"
#endif
#endif
