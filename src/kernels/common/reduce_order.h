/* The order in which portable kernels add: a function of how many elements there are, and of nothing else.
 *
 * The elements of a sum, counted in C order, are cut into chunks of AN_SUM_CHUNK. Inside a chunk, lane l adds the
 * elements whose index is l modulo AN_SUM_LANES, one after the other, and the lanes are added from 0 up. Chunks are
 * added in a binary tree over their numbers: neighbours first, and a node with one child is that child. So chunks can
 * be given to any threads, lanes to any vectors and neighbouring sums to the same vector; the bits stay the same. The
 * rounding error grows with the logarithm of the number of chunks.
 */
#ifndef AN_KERNELS_COMMON_REDUCE_ORDER_H
#define AN_KERNELS_COMMON_REDUCE_ORDER_H

#include "anneal/experimental.h"
#include "base/integer.h"
#include "base/level.h"

/* Compiled once a level. */
#define an_sum_tree_push_f32 AN_LEVELED(an_sum_tree_push_f32)
#define an_sum_tree_push_f64 AN_LEVELED(an_sum_tree_push_f64)
#define an_sum_tree_total_f32 AN_LEVELED(an_sum_tree_total_f32)
#define an_sum_tree_total_f64 AN_LEVELED(an_sum_tree_total_f64)
#define an_chunk_sum_f32 AN_LEVELED(an_chunk_sum_f32)
#define an_chunk_sum_f64 AN_LEVELED(an_chunk_sum_f64)
#define an_chunk_max_f32 AN_LEVELED(an_chunk_max_f32)
#define an_chunk_max_f64 AN_LEVELED(an_chunk_max_f64)
#define an_row_sum_f32 AN_LEVELED(an_row_sum_f32)
#define an_row_sum_f64 AN_LEVELED(an_row_sum_f64)
#define an_row_sums_f32 AN_LEVELED(an_row_sums_f32)
#define an_row_sums_f64 AN_LEVELED(an_row_sums_f64)
#define an_row_max_f32 AN_LEVELED(an_row_max_f32)
#define an_row_max_f64 AN_LEVELED(an_row_max_f64)
#define an_tensor_merged AN_LEVELED(an_tensor_merged)
#define an_range_load_f32 AN_LEVELED(an_range_load_f32)
#define an_range_load_f64 AN_LEVELED(an_range_load_f64)

enum {
    AN_SUM_LANES = 16,   /* a full AVX-512 register of f32 */
    AN_SUM_CHUNK = 1024, /* a multiple of the lanes: a chunk's index and the sum's index have the same lane */
    AN_SUM_LEVELS = 64,  /* of the tree: more than any count of chunks can fill */
    AN_SUM_ROWS = 16
};

/* The tree while it grows: level k holds a finished subtree of 2^k chunks where bit k of `chunks` is set. */
typedef struct an_sum_tree_f32 {
    uint64_t chunks;
    float levels[AN_SUM_LEVELS];
} an_sum_tree_f32;
typedef struct an_sum_tree_f64 {
    uint64_t chunks;
    double levels[AN_SUM_LEVELS];
} an_sum_tree_f64;

/* Adds the next chunk's sum; `chunks` starts at 0, the levels as they are. */
void an_sum_tree_push_f32(an_sum_tree_f32 *tree, float chunk);
void an_sum_tree_push_f64(an_sum_tree_f64 *tree, double chunk);
float an_sum_tree_total_f32(const an_sum_tree_f32 *tree);
double an_sum_tree_total_f64(const an_sum_tree_f64 *tree);

/* The sum and the maximum (NaN wins) of one chunk, n ≤ AN_SUM_CHUNK. */
float an_chunk_sum_f32(const float *src, int64_t n);
double an_chunk_sum_f64(const double *src, int64_t n);
float an_chunk_max_f32(const float *src, int64_t n);
double an_chunk_max_f64(const double *src, int64_t n);

/* The sum and the maximum of any number of elements. */
float an_row_sum_f32(const float *src, int64_t n);
double an_row_sum_f64(const double *src, int64_t n);

/* The sums of up to AN_SUM_ROWS rows of n elements, which takes less time: their lanes do not wait for each other. */
void an_row_sums_f32(int64_t rows, const float *const *src, int64_t n, float *sums);
void an_row_sums_f64(int64_t rows, const double *const *src, int64_t n, double *sums);

float an_row_max_f32(const float *src, int64_t n);
double an_row_max_f64(const double *src, int64_t n);

/* In a template: sum = Σ term for i from 0 to n - 1; `term` is an expression in i. */
#define AN_SUM_TERMS(sum, i, n, term)                                          \
    do {                                                                       \
        REAL terms_[AN_SUM_CHUNK];                                             \
        NAME(an_sum_tree) tree_;                                               \
        tree_.chunks = 0;                                                      \
        for (int64_t begin_ = 0; begin_ < (n); begin_ += AN_SUM_CHUNK) {       \
            int64_t part_ = an_smaller((n)-begin_, AN_SUM_CHUNK);              \
            for (int64_t k_ = 0; k_ < part_; k_++) {                           \
                int64_t i = begin_ + k_;                                       \
                terms_[k_] = (term);                                           \
            }                                                                  \
            NAME(an_sum_tree_push)(&tree_, NAME(an_chunk_sum)(terms_, part_)); \
        }                                                                      \
        (sum) = NAME(an_sum_tree_total)(&tree_);                               \
    } while (0)

/* The larger of two; NaN if one of them is. */
static inline float an_larger_f32(float a, float b) {
    return a > b || a != a ? a : b;
}
static inline double an_larger_f64(double a, double b) {
    return a > b || a != a ? a : b;
}

/* A tensor as few dimensions as its strides allow: ones dropped, neighbours that lie one after the other merged. The
 * elements keep their C order. */
an_tensor an_tensor_merged(const an_tensor *tensor);

/* Elements begin … begin + n - 1 of a merged tensor in C order, `base` elements further on: the tensor's own memory
 * where they are dense REAL, else `buffer`. */
const float *an_range_load_f32(const an_tensor *merged, int64_t base, int64_t begin, int64_t n, float *buffer);
const double *an_range_load_f64(const an_tensor *merged, int64_t base, int64_t begin, int64_t n, double *buffer);

#endif
