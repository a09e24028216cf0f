#include "kernels/product_core.h"

#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/product_core_level.h"
#include "kernels/product_core_plan.h"
#include "kernels/row.h"

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Steps of k by which b is fetched ahead, and panels that are packed at once. */
enum { PREFETCH_STEPS = 24, PACK_PANELS = 8 };

static const an_dtype dtype_f32 = AN_DTYPE_F32, dtype_f64 = AN_DTYPE_F64;

/* ---- grids ---- */

void an_grid_add(an_grid *grid, int64_t dim, int64_t stride) {
    int last = grid->ndims - 1;
    if (dim == 1) return;
    if (last >= 0 && grid->strides[last] == stride * dim) {
        grid->dims[last] *= dim;
        grid->strides[last] = stride;
        return;
    }
    grid->dims[grid->ndims] = dim;
    grid->strides[grid->ndims++] = stride;
}

int64_t an_grid_count(const an_grid *grid) {
    int64_t count = 1;
    for (int i = 0; i < grid->ndims; i++) count *= grid->dims[i];
    return count;
}

static int64_t grid_offset(const an_grid *grid, int64_t index) {
    int64_t offset = 0;
    for (int i = grid->ndims - 1; i > 0; i--) {
        offset += index % grid->dims[i] * grid->strides[i];
        index /= grid->dims[i];
    }
    return grid->ndims ? offset + index * grid->strides[0] : 0;
}

static int64_t grid_inner_stride(const an_grid *grid) {
    return grid->ndims ? grid->strides[grid->ndims - 1] : 1;
}

/* How many of `count` places from `index` on lie at the inner stride. */
static int64_t grid_run(const an_grid *grid, int64_t index, int64_t count) {
    if (grid->ndims <= 1) return count;
    int64_t dim = grid->dims[grid->ndims - 1];
    return smaller(count, dim - index % dim);
}

an_product_operand an_matrix_operand(an_matrix *matrix) {
    an_grid lanes = matrix->lines, depth = matrix->places;
    bool along_k = depth.ndims && (!lanes.ndims || grid_inner_stride(&depth) <= grid_inner_stride(&lanes));
    if (!along_k) {
        matrix->lines = depth;
        matrix->places = lanes;
    }
    return (an_product_operand){matrix, an_matrix_line_f32, an_matrix_line_f64, along_k};
}

/* ---- a run ---- */

typedef struct {
    int64_t begin, count;
} range;

/* What is packed and computed at once: indices of items, tiles of each side, and pieces. */
typedef struct {
    range items, sides[AN_SIDES], pieces, held;
} job_block;

typedef struct {
    const an_product_job *job;
    an_product_plan plan;
    job_block block;
    bool pack[AN_SIDES]; /* of the block: what is shared and not packed yet */
} job_run;

typedef struct {
    int64_t item;
    range sides[AN_SIDES];    /* rows and columns */
    int64_t panels[AN_SIDES]; /* of the first row and column, in the block */
} dst_tile;

static int64_t parts_of(int64_t whole, int64_t part) {
    return (whole + part - 1) / part;
}

static range part_of(int64_t whole, int64_t index, int64_t part) {
    return (range){index * part, smaller(part, whole - index * part)};
}

static int64_t lanes_of(const an_product_job *job, int s) {
    return s == AN_ROWS ? job->rows : job->columns;
}

/* Tile `index` of the block; neighbours share their columns, whose panels then stay in the cache. */
static dst_tile tile_at(const job_run *run, int64_t index) {
    const range *sides = run->block.sides;
    int64_t place[] = {index % sides[AN_ROWS].count, index / sides[AN_ROWS].count % sides[AN_COLUMNS].count};
    dst_tile t = {.item = index / sides[AN_ROWS].count / sides[AN_COLUMNS].count};
    for (int s = 0; s < AN_SIDES; s++) {
        const an_product_side *side = &run->plan.sides[s];
        t.sides[s] = part_of(lanes_of(run->job, s), sides[s].begin + place[s], side->tile * side->width);
        t.panels[s] = place[s] * side->tile;
    }
    return t;
}
/* Where a piece of shared panels lies; all of it counted from the block's begin. */
static void *shared_panels(const job_run *run, int s, int64_t item, int64_t piece, int64_t panel) {
    const an_product_side *side = &run->plan.sides[s];
    int64_t panels = smaller(side->panels, side->block * side->tile);
    int64_t index = (item * run->plan.piece_block + piece) * panels + panel;
    return (char *)run->job->scratch + side->begin + (size_t)index * side->panel_bytes;
}

static void *thread_scratch(const job_run *run, int thread) {
    return (char *)run->job->scratch + (size_t)thread * run->plan.thread_bytes;
}

static void *sum_at(const job_run *run, int64_t index) {
    return (char *)run->job->scratch + run->plan.sums_begin + (size_t)index * run->plan.sum_bytes;
}

/* Blocks in an order that packs little: along the side with more of them inside, so that the other's panels stay. Blocks
 * of k are innermost, as their sums wait in scratch. */
static void run_blocks(job_run *run, void run_block(job_run *run)) {
    const an_product_plan *plan = &run->plan;
    int64_t blocks[AN_SIDES], packed[AN_SIDES] = {-1, -1};
    for (int s = 0; s < AN_SIDES; s++) blocks[s] = parts_of(plan->sides[s].tiles, plan->sides[s].block);
    int64_t item_blocks = parts_of(plan->items, plan->item_block);
    int64_t piece_blocks = parts_of(plan->pieces, plan->piece_block);
    int outer = blocks[AN_ROWS] <= blocks[AN_COLUMNS] ? AN_ROWS : AN_COLUMNS, inner = 1 - outer;
    int64_t count = item_blocks * blocks[outer] * blocks[inner] * piece_blocks;
    for (int64_t i = 0; i < count; i++) {
        int64_t piece = i % piece_blocks, item = i / piece_blocks / blocks[inner] / blocks[outer], place[AN_SIDES];
        place[inner] = i / piece_blocks % blocks[inner];
        place[outer] = i / piece_blocks / blocks[inner] % blocks[outer];
        run->block.items = part_of(plan->items, item, plan->item_block);
        run->block.pieces = part_of(plan->pieces, piece, plan->piece_block);
        for (int s = 0; s < AN_SIDES; s++) {
            int64_t panels = (item * blocks[s] + place[s]) * piece_blocks + piece;
            run->block.sides[s] = part_of(plan->sides[s].tiles, place[s], plan->sides[s].block);
            run->pack[s] = plan->sides[s].shared && panels != packed[s];
            packed[s] = panels;
        }
        run_block(run);
    }
}

#define AN_TEMPLATE "kernels/product_core_template.h"
#include "kernels/instantiate.h"
