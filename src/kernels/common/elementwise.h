/* The driver of portable elementwise kernels: broadcasting, strides, dtypes, threads. A kernel gives one function over
 * rows. Inputs must broadcast to output 0's shape. */
#ifndef AN_KERNELS_COMMON_ELEMENTWISE_H
#define AN_KERNELS_COMMON_ELEMENTWISE_H

#include "kernels/common/list.h"
#include "kernels/common/row.h"

/* Compiled once a level. */
#define an_elementwise AN_LEVELED(an_elementwise)

enum { AN_ELEMENTWISE_INPUTS = 4, AN_ELEMENTWISE_ROW = 512 }; /* most inputs; longest row handed to a function */

typedef void an_row_function_f32(int64_t n, const float *const *src, float *dst, const void *attributes);
typedef void an_row_function_f64(int64_t n, const double *const *src, double *dst, const void *attributes);

/* The loop of such a function. Ops may run in place, and then a row of dst is one of src, element for element; so
 * nothing is restrict, and simd says that the elements do not depend on each other. */
#define AN_EACH_ELEMENT(i, n) _Pragma("omp simd") for (int64_t i = 0; i < (n); i++)

/* dst 0 = function(src 0, src 1, …), computed in f64 if an operand is f64, else in f32. An absent input's row is
 * NULL. */
an_status an_elementwise(const an_call *call, an_row_function_f32 *f32, an_row_function_f64 *f64);

/* In a template (instantiate.h), behind the function NAME(op): the list of the op, with the kernel that runs both of
 * its forms. */
#define AN_KERNEL_OF_ROWS(op) NAME(AN_KERNEL_OF_ROWS)(op)
#define AN_KERNEL_OF_ROWS_f32(op) /* the other form is still to come */
#define AN_KERNEL_OF_ROWS_f64(op)                        \
    static an_status run_##op(const an_call *call) {     \
        return an_elementwise(call, op##_f32, op##_f64); \
    }                                                    \
    AN_KERNEL_LIST(op) = {{.name = "portable", .run = run_##op, .row_f32 = op##_f32, .row_f64 = op##_f64}, {0}};

#endif
