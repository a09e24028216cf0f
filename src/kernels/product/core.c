#include "kernels/product/core.h"

#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/tree.h"
#include "kernels/common/row.h"
#include "kernels/product/core_leaves.h"
#include "kernels/product/core_level.h"
#include "kernels/product/core_plan.h"

/* How far ahead memory is fetched, as a third-level cache takes some 100 ns: steps of k of b, and lines to be
 * packed. */
enum { FETCH_STEPS = 24, PACK_AHEAD = 16 };

/* Operands that are read where they are need no packing. Up to FEW_ROWS, reading b several times costs less than
 * packing it; up to MORE_ROWS, where its lines are NEAR_BYTES apart at most: caches and address tables hold as many as
 * a panel has. Addresses that are WAY_BYTES apart share a set of the first-level cache. */
enum { FEW_ROWS = 2 * PANEL_ROWS, MORE_ROWS = 512, NEAR_BYTES = 2048, WAY_BYTES = 4096 };

/* Panels that a task packs. */
enum { PACK_TASK_PANELS = 4 };

/* What is added to a piece's sums at most: those of its leaf, of nodes that wait, and the job's add_to. */
enum { MOST_ENDS = 1 + AN_TREE_DEPTH + AN_PRODUCT_MOST_ADDED };

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
    return an_smaller(count, dim - index % dim);
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

/* Whether an operand is a matrix of `dtype` whose lines are dense and lie evenly. */
static bool is_even(const an_product_operand *operand, an_dtype dtype) {
    const an_matrix *m = operand->source;
    return operand->line_f32 == an_matrix_line_f32 && m->tensor->dtype == dtype && m->lines.ndims <= 1 &&
           m->places.ndims <= 1 && grid_inner_stride(&m->places) == 1;
}

/* ---- a run ---- */

typedef struct {
    int64_t begin, count;
} range;

/* What is packed and computed at once: items, tiles of each side, and pieces. */
typedef struct {
    range items, sides[AN_SIDES], pieces;
    bool pack[AN_SIDES]; /* shared panels that the block before did not have */
} job_block;

typedef struct {
    const an_product_job *job;
    an_product_cut cut; /* pieces NULL: there are no leaves */
    char *scratch;      /* the plan's, after the pieces */
    bool keeps_dst;     /* until the sums are finished, as it is added to them */
    an_product_plan plan;
    job_block block;
    bool even[AN_SIDES];   /* operands whose lines are known to lie evenly */
    bool direct[AN_SIDES]; /* … and that are read where they are */
} job_run;

typedef struct {
    int64_t item;
    range sides[AN_SIDES];    /* rows and columns */
    int64_t panels[AN_SIDES]; /* first of each side, counted from the block's */
} dst_tile;

/* Memory that will soon be read, and bytes of it: fetched with each step of k, there and `gap` after it; and in all
 * with one panel of b. */
typedef struct {
    const char *from;
    int64_t step, gap, part;
} fetch;

static range part_of(int64_t whole, int64_t index, int64_t part) {
    return (range){index * part, an_smaller(part, whole - index * part)};
}

static const an_product_operand *operand_of(const job_run *run, int s) {
    return s == AN_ROWS ? &run->job->a : &run->job->b;
}

static an_product_piece piece_at(const job_run *run, int64_t piece) {
    if (run->cut.pieces) return run->cut.pieces[piece];
    const range depth = part_of(run->job->depth, piece, AN_PRODUCT_PIECE);
    return (an_product_piece){
        .begin = depth.begin, .count = depth.count, .leaf_count = 1, .continues = piece > 0 || run->job->accumulate};
}

static range piece_depth(const job_run *run, int64_t piece) {
    const an_product_piece p = piece_at(run, piece);
    return (range){p.begin, p.count};
}

/* The lanes of some panels of a side. */
static range panel_lanes(const job_run *run, int s, range panels) {
    const int64_t lanes = s == AN_ROWS ? run->job->rows : run->job->columns, width = run->plan.sides[s].width;
    return (range){panels.begin * width, an_smaller(panels.count * width, lanes - panels.begin * width)};
}

static int64_t block_tiles(const job_run *run) {
    const job_block *block = &run->block;
    return block->items.count * block->sides[AN_ROWS].count * block->sides[AN_COLUMNS].count;
}

/* Panels of a side in the block. */
static range block_panels(const job_run *run, int s) {
    const an_product_side *side = &run->plan.sides[s];
    const int64_t begin = run->block.sides[s].begin * side->tile;
    return (range){begin, an_smaller(run->block.sides[s].count * side->tile, side->panels - begin)};
}

static int64_t pack_tasks(const job_run *run, int s) {
    const job_block *block = &run->block;
    if (!block->pack[s]) return 0;
    return block->items.count * block->pieces.count * an_divide_up(block_panels(run, s).count, PACK_TASK_PANELS);
}

/* Tile `index` of the block. Neighbours share their columns, whose panels stay in a core's cache. */
static dst_tile tile_at(const job_run *run, int64_t index) {
    const range *sides = run->block.sides;
    dst_tile t = {.item = run->block.items.begin + index / sides[AN_ROWS].count / sides[AN_COLUMNS].count};
    int64_t place[] = {index % sides[AN_ROWS].count, index / sides[AN_ROWS].count % sides[AN_COLUMNS].count};
    for (int s = 0; s < AN_SIDES; s++) {
        const int64_t tile = run->plan.sides[s].tile;
        t.sides[s] = panel_lanes(run, s, (range){(sides[s].begin + place[s]) * tile, tile});
        t.panels[s] = place[s] * tile;
    }
    return t;
}

/* Shared panels of a piece of an item, both counted from the block's. */
static void *shared_panels(const job_run *run, int s, int64_t item, int64_t piece) {
    const an_product_side *side = &run->plan.sides[s];
    const int64_t panels = an_smaller(side->panels, side->block * side->tile), first = run->block.pieces.begin;
    const int64_t before = piece_depth(run, first + piece).begin - piece_depth(run, first).begin;
    return run->scratch + side->begin + (size_t)((item * run->plan.block_depth + before) * panels) * side->step_bytes;
}

static void *thread_scratch(const job_run *run, int thread) {
    return run->scratch + (size_t)thread * run->plan.thread_bytes;
}

static void *sums_at(const job_run *run, int64_t index) {
    return run->scratch + run->plan.sums_begin + (size_t)index * run->plan.sum_bytes;
}

/* Slot 1 of a tile, behind which its others are. */
static void *slots_at(const job_run *run, int64_t tile) {
    return run->scratch + run->plan.slots_begin + (size_t)(tile * (run->plan.slots - 1)) * run->plan.sum_bytes;
}

/* Where pieces of a tile run at once, each has sums of its own, after those of the tile's total. */
static int64_t total_index(const job_run *run, int64_t tile) {
    return tile * (run->plan.together + 1);
}

/* Bytes from one line of an even operand to the next. */
static int64_t line_distance(const an_product_operand *operand, size_t element) {
    const an_matrix *m = operand->source;
    return grid_inner_stride(&m->lines) * (int64_t)element;
}

/* Finds operands that need no packing: a whose rows do not all meet in the same sets of a cache, or with
 * lines close to each other; b that few rows read. Whole vectors of b are read, so where its panels are
 * shared, columns must fill them. */
static void find_direct(job_run *run, an_dtype dtype, size_t element) {
    const an_product_operand *a = &run->job->a, *b = &run->job->b;
    const int64_t rows = run->job->rows;
    for (int s = 0; s < AN_SIDES; s++) run->even[s] = is_even(operand_of(run, s), dtype);
    if (run->even[AN_ROWS]) {
        const int64_t distance = line_distance(a, element);
        run->direct[AN_ROWS] = a->along_k ? distance % WAY_BYTES != 0 : distance <= NEAR_BYTES;
    }
    if (run->even[AN_COLUMNS] && !b->along_k) {
        const bool whole = run->job->columns * (int64_t)element % VECTOR_BYTES == 0;
        run->direct[AN_COLUMNS] =
            rows <= FEW_ROWS || (whole && rows <= MORE_ROWS && line_distance(b, element) <= NEAR_BYTES);
    }
}

/* Whether dst is one of the matrices that are added to the sums. */
static bool adds_dst(const an_product_job *job) {
    for (int i = 0; i < job->add_count; i++)
        if (job->add_to[i] == job->dst.tensor->data) return true;
    return false;
}

static job_run run_begin(const an_product_job *job, size_t element) {
    job_run run = {.job = job, .scratch = job->scratch, .keeps_dst = adds_dst(job)};
    int64_t pieces = an_product_pieces(job->depth);
    if (job->leaves && job->depth > 0) {
        run.cut = an_product_cut_make(job->depth, job->leaves, job->scratch);
        run.scratch += an_product_cut_bytes(job->depth, job->leaves);
        pieces = run.cut.count;
    }
    run.plan = an_product_plan_make(job->ctx, element, job->items, job->rows, job->columns, job->depth, pieces,
                                    run.cut.pieces ? run.cut.slots : 1);
    return run;
}

/* All blocks, in an order that packs little: the side with more of them runs inside, so that the other's panels stay.
 * Blocks of k are innermost, as their sums wait in scratch. */
static void run_blocks(job_run *run, void run_block(job_run *run)) {
    const an_product_plan *plan = &run->plan;
    int64_t blocks[AN_SIDES], packed[AN_SIDES] = {-1, -1};
    for (int s = 0; s < AN_SIDES; s++) blocks[s] = an_divide_up(plan->sides[s].tiles, plan->sides[s].block);
    int64_t item_blocks = an_divide_up(plan->items, plan->item_block);
    int64_t piece_blocks = an_divide_up(plan->pieces, plan->piece_block);
    int inner = blocks[AN_ROWS] > blocks[AN_COLUMNS] ? AN_ROWS : AN_COLUMNS, outer = 1 - inner;
    for (int64_t i = 0; i < item_blocks * blocks[AN_ROWS] * blocks[AN_COLUMNS] * piece_blocks; i++) {
        int64_t piece = i % piece_blocks, item = i / piece_blocks / blocks[inner] / blocks[outer], place[AN_SIDES];
        place[inner] = i / piece_blocks % blocks[inner];
        place[outer] = i / piece_blocks / blocks[inner] % blocks[outer];
        run->block.items = part_of(plan->items, item, plan->item_block);
        run->block.pieces = part_of(plan->pieces, piece, plan->piece_block);
        for (int s = 0; s < AN_SIDES; s++) {
            int64_t panels = (item * blocks[s] + place[s]) * piece_blocks + piece;
            run->block.sides[s] = part_of(plan->sides[s].tiles, place[s], plan->sides[s].block);
            run->block.pack[s] = plan->sides[s].shared && !run->direct[s] && panels != packed[s];
            packed[s] = panels;
        }
        run_block(run);
    }
}

#define AN_TEMPLATE "kernels/product/core_template.h"
#include "kernels/common/instantiate.h"
