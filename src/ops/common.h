/* What op records share: checks, broadcasting, axes. */
#ifndef AN_OPS_COMMON_H
#define AN_OPS_COMMON_H

#include <stddef.h>

#ifndef AN_NO_PLACES
#define AN_NO_PLACES /* builders called by builders report their caller's place */
#endif
#include "ops/ops.h"

#define AN_ATTRIBUTE(struct_type, member, kind) \
    { .name = #member, .type = AN_ATTRIBUTE_##kind, .offset = offsetof(struct_type, member) }
#define AN_ATTRIBUTE_NOTED(struct_type, member, kind) \
    { .name = #member, .type = AN_ATTRIBUTE_##kind, .offset = offsetof(struct_type, member), .noted = true }
#define AN_COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* Infer hooks: output 0 is like input 0; all inputs are floating, and (like_inputs) have input 0's shape. */
an_status an_infer_float_like_src(an_graph *g, an_node *node);
an_status an_infer_like_inputs(an_graph *g, an_node *node);
/* Inputs broadcast; dtype is that of the wider floating input (f64 > f32 > bf16/f16). */
an_status an_infer_broadcast(an_graph *g, an_node *node);

/* The NumPy rule; false if the shapes do not fit. */
bool an_broadcast_dims(an_graph *g, const an_result *a, const an_result *b, int *ndims, an_dim *dims);

/* Sums `diff` over what broadcasting repeated, so that it has the shape of `like`. In view.c, as the gradient of
 * expand. */
an_value an_sum_to_shape(an_graph *g, an_value diff, an_value like);

/* A list with elements must not be NULL: false after a mistake that says so. */
bool an_expect_list(an_graph *g, const char *what, int count, const void *list);

/* Negative counts from the end. Returns -1 after a mistake that names what it was for. */
int an_normalize_axis(an_graph *g, const char *what, int axis, int ndims);

/* The wider of two floating dtypes, in which an op of both computes; bf16 with f16 gives f32. */
an_dtype an_wider(an_dtype a, an_dtype b);

/* The compute type of a stored type: f64 for f64, f32 for all others. Statistics and losses are of this type. */
an_dtype an_compute_dtype(an_dtype dtype);

/* Checks of infer hooks; the message says which input of which op. */
an_status an_expect_float(an_graph *g, const an_node *node, int input);
an_status an_expect_weights(an_graph *g, const an_node *node, int input); /* floating, or q8_0 */
an_status an_expect_index(an_graph *g, const an_node *node, int input);
an_status an_expect_ndims(an_graph *g, const an_node *node, int input, int minimum, int maximum);
an_status an_expect_same_shape(an_graph *g, const an_node *node, int a, int b);

/* The scalar source of this name, made on first use (seed, step, loss_gradient). In source.c. */
an_value an_scalar_shared(an_graph *g, const char *name, an_dtype dtype);

/* For `along`: each element by itself, inputs broadcast; and each place along the first axis by itself. */
an_along an_along_elements(const an_along_question *q);
an_along an_along_first(const an_along_question *q);
/* All axes but the one in attribute `axis`; and all but the last. */
an_along an_along_off_axis(const an_along_question *q);
an_along an_along_rows(const an_along_question *q);
/* All elements of the inputs whose first axis this is are added. */
an_along an_along_added(const an_along_question *q);

an_cost an_cost_of(const an_graph *g, const an_node *node, double flops); /* with the bytes of all operands */
an_cost an_cost_elementwise(const an_graph *g, const an_node *node, double flops_an_element);

#endif
