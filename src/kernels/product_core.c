#include "kernels/product_core.h"

#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/row.h"

/* A register tile is 8 rows × 64 bytes: 8 of the widest vectors, or halves and quarters of it with narrower ones. A tile
 * of dst is large enough that packing, one element for 170 flops, is a small part of the work, and small enough that its
 * panels (384 KiB in f32) stay in a second-level cache. */
enum { PANEL_ROWS = 8, PANEL_BYTES = 64, TILE_ROWS = 128, TILE_COLUMNS = 256 };

/* With fewer tiles than this, k is cut too: enough to keep the cores of a large machine busy with a small dst. */
enum { ENOUGH_TASKS = 32 };

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

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

/* ---- how a job is cut, and where its parts lie in scratch ---- */

typedef struct {
    int64_t begin, count;
} range;

typedef struct {
    int64_t row_tiles, column_tiles, tiles, pieces;
    int64_t together;                      /* pieces of one tile that run at once */
    int64_t sum_stride;                    /* of a tile's rows */
    size_t a_bytes, b_bytes, thread_bytes; /* packed panels, and all that a thread has */
    size_t sum_bytes, sums_begin;
    size_t bytes;
} job_plan;

typedef struct {
    int64_t item;
    range rows, columns;
} dst_tile;

static int64_t parts_of(int64_t whole, int64_t part) {
    return (whole + part - 1) / part;
}

static range part_of(int64_t whole, int64_t index, int64_t part) {
    return (range){index * part, smaller(part, whole - index * part)};
}

static job_plan make_plan(an_context *ctx, size_t element, int64_t items, int64_t rows, int64_t columns,
                          int64_t depth) {
    job_plan p = {.row_tiles = parts_of(rows, TILE_ROWS), .column_tiles = parts_of(columns, TILE_COLUMNS)};
    size_t threads = (size_t)an_context_threads(ctx);
    size_t tile_rows = an_round_up((size_t)smaller(rows, TILE_ROWS), PANEL_ROWS);
    size_t tile_columns = an_round_up((size_t)smaller(columns, TILE_COLUMNS), PANEL_BYTES / element);
    size_t piece = (size_t)smaller(depth, AN_PRODUCT_PIECE);
    size_t line = larger(piece, larger(tile_rows, tile_columns));
    p.tiles = items * p.row_tiles * p.column_tiles;
    p.pieces = parts_of(depth, AN_PRODUCT_PIECE);
    p.together = smaller(p.pieces, ENOUGH_TASKS / p.tiles);
    if (p.together < 1) p.together = 1;
    p.sum_stride = (int64_t)tile_columns;
    p.sum_bytes = an_round_up(tile_rows * tile_columns * element, AN_ALIGNMENT);
    p.a_bytes = an_round_up(tile_rows * piece * element, AN_ALIGNMENT);
    p.b_bytes = an_round_up(tile_columns * piece * element, AN_ALIGNMENT);
    p.thread_bytes = p.a_bytes + p.b_bytes + an_round_up(line * element, AN_ALIGNMENT);
    p.sums_begin = threads * p.thread_bytes;
    p.bytes = p.sums_begin + threads * p.sum_bytes;
    return p;
}

size_t an_product_scratch(an_context *ctx, bool f64, int64_t items, int64_t rows, int64_t columns, int64_t depth) {
    job_plan p = make_plan(ctx, f64 ? sizeof(double) : sizeof(float), items, rows, columns, depth);
    /* A smaller job may have fewer tiles and so cut k where this one does not: into ENOUGH_TASKS pieces at most, with a
     * total for every two of them or more. */
    int64_t most = p.pieces < 2 ? 0 : smaller(ENOUGH_TASKS + ENOUGH_TASKS / 2, p.tiles * (p.pieces + 1));
    return larger(p.bytes, p.sums_begin + (size_t)most * p.sum_bytes);
}

static dst_tile tile_at(const an_product_job *job, const job_plan *plan, int64_t index) {
    int64_t column = index % plan->column_tiles, row = index / plan->column_tiles % plan->row_tiles;
    return (dst_tile){index / plan->column_tiles / plan->row_tiles, part_of(job->rows, row, TILE_ROWS),
                      part_of(job->columns, column, TILE_COLUMNS)};
}

/* One register tile: product_tile.h. */
typedef void tile_function_f32(int64_t k, const float *a, const float *b, float *sum, int64_t stride);
typedef void tile_function_f64(int64_t k, const double *a, const double *b, double *sum, int64_t stride);

typedef struct {
    const an_product_job *job;
    job_plan plan;
    tile_function_f32 *tile_f32;
    tile_function_f64 *tile_f64;
    int64_t first_piece; /* of those that run at once */
} job_run;

#define AN_TEMPLATE "kernels/product_core_template.h"
#include "kernels/instantiate.h"
