/* Products of bf16 on the tiles of AMX, dst = a·b, for kernels of any op.
 *
 * What fixes the bits of an element of dst is k alone: tiles take 32 products at a time, in order, and their sums go on
 * from one 32 to the next, also where a sum is put aside in f32 and taken up again. So bits depend neither on threads,
 * rows, columns and items nor on where k is cut, as long as that is at multiples of AN_AMX_DEPTH. Tiles take denormals
 * for zero and make none.
 */
#ifndef AN_KERNELS_PRODUCT_AMX_H
#define AN_KERNELS_PRODUCT_AMX_H

#include "kernels/product/core.h"
#include "kernels/product/product.h"

/* Compiled once a level, but there only beside avx512, and for contexts whose level is AN_ISA_AMX. */
#define an_amx_scratch AN_LEVELED(an_amx_scratch)
#define an_amx_scratch_of_leaves AN_LEVELED(an_amx_scratch_of_leaves)
#define an_amx_run AN_LEVELED(an_amx_run)
#define an_product_amx_applies AN_LEVELED(an_product_amx_applies)
#define an_product_amx_scratch AN_LEVELED(an_product_amx_scratch)
#define an_product_amx_run AN_LEVELED(an_product_amx_run)
#define an_product_sum_amx_applies AN_LEVELED(an_product_sum_amx_applies)

enum { AN_AMX_DEPTH = 32 };

/* A matrix of bf16, once for each item. Its lanes are the rows of a, or the columns of b. It is fast where one of the
 * strides is 1. */
typedef struct an_amx_operand {
    const uint16_t *data;
    int64_t lane_stride, depth_stride;
    an_grid items; /* without dimensions: the same for all */
    /* `data` is blocks of q8_0, and there is one matrix. They are rounded to bf16 when they are packed */
    bool has_blocks;
} an_amx_operand;

/* A product that is added to the first, with the same rows and columns: its k go on where those of
 * the product before it end. */
typedef struct an_amx_more {
    an_amx_operand a, b;
    int64_t depth;
} an_amx_more;

enum { AN_AMX_MORE = AN_PRODUCT_SUM_PAIRS - 1 };

typedef struct an_amx_leaves an_amx_leaves;

typedef struct an_amx_job {
    an_context *ctx;
    void *scratch;
    int64_t items, rows, columns, depth; /* products, and the sizes of each; depth 0 gives zeros */
    an_amx_operand a, b;
    int more_count;
    an_amx_more more[AN_AMX_MORE];
    void *dst;      /* its columns lie side by side */
    an_dtype dtype; /* of dst, f32 or bf16 */
    int64_t row_stride;
    an_grid dst_items;
    bool accumulate;                 /* sums go on from what is in dst, which is f32 */
    const an_product_finish *finish; /* or NULL */
    int add_count;                   /* as in an_product_attributes; dst is f32 */
    const void *const *add_to;
    /* NULL, or how k is cut into leaves (amx_leaves.h): each begins with a new step, and they are added in the tree of
     * base/tree.h. Such a job has one product, and its sums do not go on from what is in dst. */
    const an_amx_leaves *leaves;
} an_amx_job;

/* Steps of 32 k that the products of a job without leaves take: each begins with a new one. */
static inline int64_t an_amx_steps(const an_amx_job *job) {
    int64_t steps = (job->depth + AN_AMX_DEPTH - 1) / AN_AMX_DEPTH;
    if (steps < 1) steps = 1;
    for (int i = 0; i < job->more_count; i++) steps += (job->more[i].depth + AN_AMX_DEPTH - 1) / AN_AMX_DEPTH;
    return steps;
}

/* Bytes that are enough for a job of these sizes, for smaller ones, and for those with rows instead of items. */
size_t an_amx_scratch(const an_context *ctx, int64_t items, int64_t rows, int64_t columns, int64_t depth);
/* The same for jobs with leaves: `depth` is that of the steps of all leaves, `slots` the most nodes that wait at
 * once. */
size_t an_amx_scratch_of_leaves(const an_context *ctx, int64_t items, int64_t rows, int64_t columns, int64_t depth,
                                int slots);
void an_amx_run(const an_amx_job *job);

/* The kernel of the ops product and product_sum. */
bool an_product_amx_applies(const an_call *call);
bool an_product_sum_amx_applies(const an_call *call);
size_t an_product_amx_scratch(const an_call *call);
an_status an_product_amx_run(const an_call *call);

#endif
