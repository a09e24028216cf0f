/* The core of products and convolutions: dst = a·b for operands that hand out lines of themselves.
 *
 * dst is cut into tiles, which are the tasks. Blocks of a and b are copied into panels (of f32 or f64, as wide as the
 * register tile), so that strides, transposes, dtypes and windows over images cost nothing where the work is. A block
 * that several tiles need is packed once, into scratch that all threads share; one that a single tile needs is packed
 * by that tile's task, and stays in its core's cache.
 *
 * What fixes the bits of an element of dst is k alone: products are added one after the other, from zero, inside pieces
 * of AN_PRODUCT_PIECE, and the sums of the pieces are added in order, to that of the first. So they do not depend on
 * threads, on how many rows or columns there are or on where in a tile the element lies. Levels with a fused
 * multiply-add (avx2, avx512) round once for a product and its addition, and so agree with each other for any width of
 * vector; the base level rounds twice. Where k is cut into leaves, each leaf is added as if it were all of k, and the
 * sums of leaves are added in the tree of base/tree.h (core_leaves.h).
 */
#ifndef AN_KERNELS_PRODUCT_CORE_H
#define AN_KERNELS_PRODUCT_CORE_H

#include "anneal/experimental.h"
#include "base/level.h"
#include "kernels/product/product.h"

/* Compiled once a level. */
#define an_grid_add AN_LEVELED(an_grid_add)
#define an_grid_count AN_LEVELED(an_grid_count)
#define an_matrix_line_f32 AN_LEVELED(an_matrix_line_f32)
#define an_matrix_line_f64 AN_LEVELED(an_matrix_line_f64)
#define an_matrix_operand AN_LEVELED(an_matrix_operand)
#define an_product_scratch AN_LEVELED(an_product_scratch)
#define an_product_leaf_scratch AN_LEVELED(an_product_leaf_scratch)
#define an_product_run_f32 AN_LEVELED(an_product_run_f32)
#define an_product_run_f64 AN_LEVELED(an_product_run_f64)

enum { AN_PRODUCT_PIECE = 256 }; /* a panel of a (at most 32 KiB) stays in a first-level cache */

/* Places in a tensor, counted over several dimensions in C order. */
typedef struct an_grid {
    int ndims;
    int64_t dims[AN_MAX_DIMS], strides[AN_MAX_DIMS];
} an_grid;

/* Adds a dimension inside those that are there; merges it with its neighbour where strides allow. */
void an_grid_add(an_grid *grid, int64_t dim, int64_t stride);
int64_t an_grid_count(const an_grid *grid);

/* A matrix in a tensor, once for each item: lines, and places along a line. */
typedef struct an_matrix {
    const an_tensor *tensor;
    int64_t offset;
    an_grid items, lines, places;
} an_matrix;

/* `count` elements of a line from `begin` on: the source's own memory where that is dense, else `buffer`. */
typedef const float *an_line_f32(const void *source, int64_t item, int64_t line, int64_t begin, int64_t count,
                                 float *buffer);
typedef const double *an_line_f64(const void *source, int64_t item, int64_t line, int64_t begin, int64_t count,
                                  double *buffer);
an_line_f32 an_matrix_line_f32; /* with an an_matrix as source */
an_line_f64 an_matrix_line_f64;

/* One side of a product. Its lanes are the rows of a, or the columns of b. */
typedef struct an_product_operand {
    const void *source;
    an_line_f32 *line_f32;
    an_line_f64 *line_f64;
    bool along_k; /* a line is all k of one lane; else all lanes of one k */
} an_product_operand;

/* A matrix whose lines are its lanes, as an operand. It is turned around where lanes lie closer together than k. */
an_product_operand an_matrix_operand(an_matrix *matrix);

/* Finishes `count` elements of a row from `column` on, in place, while they are in the first-level cache and before
 * they are rounded to dst's dtype. Each element is seen once, by any thread. dst may lie under `values` and holds
 * unfinished sums until then, so nothing that a hook reads may share its memory. */
typedef void an_finish_f32(const void *user, int64_t item, int64_t row, int64_t column, int64_t count, float *values);
typedef void an_finish_f64(const void *user, int64_t item, int64_t row, int64_t column, int64_t count, double *values);

typedef struct an_product_job {
    an_context *ctx;
    void *scratch;
    int64_t items, rows, columns, depth; /* products, and the sizes of each; depth 0 gives zeros */
    an_product_operand a, b;
    an_matrix dst;   /* a line is a row */
    bool accumulate; /* dst (f32 or f64, as computed) holds sums that this job continues: a product whose k is cut at
                        multiples of AN_PRODUCT_PIECE, first part first, has the bits of the whole */
    const an_leaf_cut *leaves; /* NULL, or the leaves of k, whose rows are those of samples; not with `accumulate` */
    /* Matrices that are added to the sums before these are finished: add_to[add_count - 1] first, add_to[0] last. They
     * are of the type computed in, dense, with the rows of all items one after the other; add_to[0] may be dst. */
    int add_count;
    const void *const *add_to;
    an_finish_f32 *finish_f32; /* NULL: nothing to finish */
    an_finish_f64 *finish_f64;
    const void *finish_user;
} an_product_job;

/* Bytes that are enough for a job of these sizes and for all smaller ones. */
size_t an_product_scratch(an_context *ctx, bool f64, int64_t items, int64_t rows, int64_t columns, int64_t depth);

/* … and for all cuts of k into as many leaves or fewer. The ends of the leaves are not read. */
size_t an_product_leaf_scratch(an_context *ctx, bool f64, int64_t items, int64_t rows, int64_t columns, int64_t depth,
                               const an_leaf_cut *leaves);

void an_product_run_f32(const an_product_job *job);
void an_product_run_f64(const an_product_job *job);

#endif
