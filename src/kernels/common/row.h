/* Rows: how portable kernels read and write tensors of any dtype and stride in their compute type, f32 or f64.
 *
 * A portable kernel is written once over rows of REAL and instantiated twice (instantiate.h): f64 computes in f64, all
 * other types compute in f32. Rows that are already dense REAL are used in place.
 */
#ifndef AN_KERNELS_COMMON_ROW_H
#define AN_KERNELS_COMMON_ROW_H

#include "anneal/experimental.h"
#include "base/level.h"

/* Compiled once a level. */
#define an_row_load_f32 AN_LEVELED(an_row_load_f32)
#define an_row_load_f64 AN_LEVELED(an_row_load_f64)
#define an_row_target_f32 AN_LEVELED(an_row_target_f32)
#define an_row_target_f64 AN_LEVELED(an_row_target_f64)
#define an_row_store_f32 AN_LEVELED(an_row_store_f32)
#define an_row_store_f64 AN_LEVELED(an_row_store_f64)
#define an_load_index AN_LEVELED(an_load_index)
#define an_call_is_f64 AN_LEVELED(an_call_is_f64)
#define an_tensor_elements AN_LEVELED(an_tensor_elements)
#define an_row_offset AN_LEVELED(an_row_offset)
#define an_tensor_is_dense AN_LEVELED(an_tensor_is_dense)

/* n elements from element `offset` on, `stride` apart: the tensor's own memory where it is dense REAL, else
 * `buffer`. */
const float *an_row_load_f32(const an_tensor *tensor, int64_t offset, int64_t stride, int64_t n, float *buffer);
const double *an_row_load_f64(const an_tensor *tensor, int64_t offset, int64_t stride, int64_t n, double *buffer);

/* Where a row can be computed: in the tensor if it is dense REAL, else in `buffer`; an_row_store then puts it in place
 * (and does nothing if it is there). */
float *an_row_target_f32(const an_tensor *tensor, int64_t offset, int64_t stride, float *buffer);
double *an_row_target_f64(const an_tensor *tensor, int64_t offset, int64_t stride, double *buffer);
void an_row_store_f32(const an_tensor *tensor, int64_t offset, int64_t stride, int64_t n, const float *row);
void an_row_store_f64(const an_tensor *tensor, int64_t offset, int64_t stride, int64_t n, const double *row);

/* One element of an index tensor (i32, i64, u8). */
int64_t an_load_index(const an_tensor *tensor, int64_t offset);

/* Whether a call computes in f64: one of its floating operands is f64. */
bool an_call_is_f64(const an_call *call);

int64_t an_tensor_elements(const an_tensor *tensor);
bool an_tensor_is_dense(const an_tensor *tensor); /* row-major, without gaps */

/* The offset of row `row` of a tensor, rows counted over all dimensions but `axis` in C order. */
int64_t an_row_offset(const an_tensor *tensor, int axis, int64_t row);

#endif
