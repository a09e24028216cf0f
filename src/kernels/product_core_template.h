/* Lines and tasks of the product core, for REAL. Included by product_core.c through instantiate.h. */

#include "kernels/product_tile.h"

#include "kernels/product_core_pack.h"

/* ---- lines of a matrix ---- */

const REAL *NAME(an_matrix_line)(const void *source, int64_t item, int64_t line, int64_t begin, int64_t count,
                                 REAL *buffer) {
    const an_matrix *m = source;
    int64_t base = m->offset + grid_offset(&m->items, item) + grid_offset(&m->lines, line);
    int64_t n, stride = grid_inner_stride(&m->places);
    for (int64_t done = 0; done < count; done += n) {
        n = grid_run(&m->places, begin + done, count - done);
        int64_t offset = base + grid_offset(&m->places, begin + done);
        const REAL *run = NAME(an_row_load)(m->tensor, offset, stride, n, buffer + done);
        if (n == count) return run;
        if (run != buffer + done) memcpy(buffer + done, run, (size_t)n * sizeof *run);
    }
    return buffer;
}

static void NAME(store_line)(const an_matrix *m, int64_t item, int64_t line, range places, const REAL *row) {
    int64_t base = m->offset + grid_offset(&m->items, item) + grid_offset(&m->lines, line);
    int64_t n, stride = grid_inner_stride(&m->places);
    for (int64_t done = 0; done < places.count; done += n) {
        n = grid_run(&m->places, places.begin + done, places.count - done);
        NAME(an_row_store)(m->tensor, base + grid_offset(&m->places, places.begin + done), stride, n, row + done);
    }
}

/* ---- sums of a tile ---- */

typedef struct {
    REAL *first;
    int64_t stride;
    bool in_dst; /* else in scratch, with room for whole panels */
} NAME(tile_sums);

/* Whether dst is as dense there as scratch would be. */
static bool NAME(sums_in_dst)(const an_product_job *job, range rows, range columns) {
    const an_matrix *dst = &job->dst;
    return dst->tensor->dtype == NAME(dtype) && (columns.count == 1 || grid_inner_stride(&dst->places) == 1) &&
           grid_run(&dst->lines, rows.begin, rows.count) == rows.count &&
           grid_run(&dst->places, columns.begin, columns.count) == columns.count;
}

/* In dst where that is as dense as scratch would be. */
static NAME(tile_sums) NAME(sums_of)(const job_run *run, const dst_tile *t, int64_t index) {
    const an_matrix *dst = &run->job->dst;
    range rows = t->sides[AN_ROWS], columns = t->sides[AN_COLUMNS];
    if (NAME(sums_in_dst)(run->job, rows, columns)) {
        int64_t offset = dst->offset + grid_offset(&dst->items, t->item) + grid_offset(&dst->lines, rows.begin) +
                         grid_offset(&dst->places, columns.begin);
        return (NAME(tile_sums)){(REAL *)dst->tensor->data + offset, grid_inner_stride(&dst->lines), true};
    }
    return (NAME(tile_sums)){sum_at(run, index), run->plan.sum_stride, false};
}

/* Finishes rows of a tile and puts them in place. */
static void NAME(finish_rows)(const job_run *run, const dst_tile *t, range rows, NAME(tile_sums) sums) {
    const an_product_job *job = run->job;
    range columns = t->sides[AN_COLUMNS];
    for (int64_t i = rows.begin; i < rows.begin + rows.count; i++) {
        REAL *values = sums.first + i * sums.stride;
        int64_t row = t->sides[AN_ROWS].begin + i;
        if (job->NAME(finish)) job->NAME(finish)(job->finish_user, t->item, row, columns.begin, columns.count, values);
        if (!sums.in_dst) NAME(store_line)(&job->dst, t->item, row, columns, values);
    }
}

/* A panel of a times one of b at the right edge of dst, where a whole vector would write beyond it. */
static void NAME(run_edge)(int64_t rows, int64_t vectors, int64_t columns, int64_t k, const REAL *a, const REAL *b,
                           REAL *sum, int64_t stride, bool add) {
    _Alignas(AN_ALIGNMENT) REAL edge[PANEL_ROWS * PANEL_BYTES / sizeof(REAL)];
    NAME(run_tile)(rows, vectors, k, a, b, edge, PANEL_BYTES / sizeof(REAL), false, a);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            REAL part = edge[i * (int64_t)(PANEL_BYTES / sizeof(REAL)) + j];
            sum[i * stride + j] = add ? sum[i * stride + j] + part : part;
        }
}

/* sums (+)= the part of a tile's product that lies in one piece of k. */
static void NAME(add_piece)(const job_run *run, const dst_tile *t, int64_t k, const REAL *a, const REAL *b,
                            NAME(tile_sums) sums, bool add, bool last) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL), WIDTH = PANEL_BYTES / sizeof(REAL) };
    int64_t rows = t->sides[AN_ROWS].count, columns = t->sides[AN_COLUMNS].count;
    for (int64_t row = 0; row < rows; row += PANEL_ROWS, a += PANEL_ROW_STRIDE * k) {
        int64_t panel_rows = smaller(PANEL_ROWS, rows - row);
        for (int64_t column = 0; column < columns; column += WIDTH) {
            int64_t left = smaller(WIDTH, columns - column), vectors = (left + LANES - 1) / LANES;
            REAL *sum = sums.first + row * sums.stride + column;
            if (sums.in_dst && left < vectors * LANES)
                NAME(run_edge)(panel_rows, vectors, left, k, a, b + column * k, sum, sums.stride, add);
            else
                NAME(run_tile)
                (panel_rows, vectors, k, a, b + column * k, sum, sums.stride, add,
                 a + PANEL_ROW_STRIDE * k + column / WIDTH * (PANEL_ROW_STRIDE / 8 * k));
        }
        if (last) NAME(finish_rows)(run, t, (range){row, panel_rows}, sums);
    }
}

/* ---- tasks ---- */

/* Panels of a tile for one piece of k. */
static const REAL *NAME(panels_of)(const job_run *run, int s, const dst_tile *t, int64_t piece, int thread) {
    const an_product_side *side = &run->plan.sides[s];
    if (side->shared)
        return shared_panels(run, s, t->item - run->block.items.begin, piece - run->block.pieces.begin, t->panels[s]);
    char *scratch = thread_scratch(run, thread);
    REAL *panels = (REAL *)(scratch + side->begin);
    range depth = part_of(run->job->depth, piece, AN_PRODUCT_PIECE);
    NAME(pack)(run, s, t->item, t->sides[s], depth, panels, (REAL *)scratch);
    return panels;
}

/* One tile's piece of a shared operand. */
static void NAME(pack_task)(void *user, int64_t index, int thread) {
    const job_run *run = user;
    const job_block *block = &run->block;
    int64_t rows_tasks =
        run->pack[AN_ROWS] ? block->items.count * block->pieces.count * block->sides[AN_ROWS].count : 0;
    int s = index < rows_tasks ? AN_ROWS : AN_COLUMNS;
    const an_product_side *side = &run->plan.sides[s];
    if (s == AN_COLUMNS) index -= rows_tasks;
    int64_t tile = index % block->sides[s].count, piece = index / block->sides[s].count % block->pieces.count;
    int64_t item = index / block->sides[s].count / block->pieces.count;
    range lanes = part_of(lanes_of(run->job, s), block->sides[s].begin + tile, side->tile * side->width);
    range depth = part_of(run->job->depth, block->pieces.begin + piece, AN_PRODUCT_PIECE);
    NAME(pack)
    (run, s, block->items.begin + item, lanes, depth, shared_panels(run, s, item, piece, tile * side->tile),
     thread_scratch(run, thread));
}

static void NAME(tile_task)(void *user, int64_t index, int thread) {
    const job_run *run = user;
    const range *pieces = &run->block.held;
    dst_tile t = tile_at(run, index);
    NAME(tile_sums) sums = NAME(sums_of)(run, &t, run->plan.piece_block < run->plan.pieces ? index : thread);
    for (int64_t piece = pieces->begin; piece < pieces->begin + pieces->count; piece++) {
        const REAL *a = NAME(panels_of)(run, AN_ROWS, &t, piece, thread);
        const REAL *b = NAME(panels_of)(run, AN_COLUMNS, &t, piece, thread);
        NAME(add_piece)
        (run, &t, part_of(run->job->depth, piece, AN_PRODUCT_PIECE).count, a, b, sums,
         piece > 0 || run->job->accumulate, piece == run->plan.pieces - 1);
    }
}

/* Few tiles and much k: pieces of the same tile run at once, each into a sum of its own, and are then added in order.
 * Sum 0 of a tile is its total. */
static void NAME(pieces_task)(void *user, int64_t index, int thread) {
    const job_run *run = user;
    const an_product_plan *plan = &run->plan;
    int64_t tasks = (plan->together + plan->task_pieces - 1) / plan->task_pieces, tile = index / tasks;
    range pieces = part_of(run->block.pieces.count, index % tasks, plan->task_pieces);
    dst_tile t = tile_at(run, tile);
    for (int64_t i = pieces.begin; i < pieces.begin + pieces.count; i++) {
        int64_t piece = run->block.pieces.begin + i;
        const REAL *a = NAME(panels_of)(run, AN_ROWS, &t, piece, thread);
        const REAL *b = NAME(panels_of)(run, AN_COLUMNS, &t, piece, thread);
        NAME(tile_sums) sums = {sum_at(run, tile * (plan->together + 1) + 1 + i), plan->sum_stride, false};
        NAME(add_piece)(run, &t, part_of(run->job->depth, piece, AN_PRODUCT_PIECE).count, a, b, sums, false, false);
    }
}

static void NAME(total_task)(void *user, int64_t index, int thread) {
    const job_run *run = user;
    const an_product_plan *plan = &run->plan;
    const range *pieces = &run->block.pieces;
    dst_tile t = tile_at(run, index);
    NAME(tile_sums) total = NAME(sums_of)(run, &t, index * (plan->together + 1));
    (void)thread;
    for (int64_t i = 0; i < pieces->count; i++) {
        bool add = pieces->begin + i > 0 || run->job->accumulate;
        const REAL *sum = sum_at(run, index * (plan->together + 1) + 1 + i);
        for (int64_t row = 0; row < t.sides[AN_ROWS].count; row++) {
            const REAL *restrict from = sum + row * plan->sum_stride;
            REAL *restrict to = total.first + row * total.stride;
            for (int64_t j = 0; j < t.sides[AN_COLUMNS].count; j++) to[j] = add ? to[j] + from[j] : from[j];
        }
    }
    if (pieces->begin + pieces->count < plan->pieces) return;
    NAME(finish_rows)(run, &t, (range){0, t.sides[AN_ROWS].count}, total);
}

/* ---- blocks ---- */

static void NAME(run_block)(job_run *run) {
    const job_block *block = &run->block;
    int64_t tiles = block->items.count * block->sides[AN_ROWS].count * block->sides[AN_COLUMNS].count, packs = 0;
    for (int s = 0; s < AN_SIDES; s++)
        if (run->pack[s]) packs += block->items.count * block->pieces.count * block->sides[s].count;
    an_parallel(run->job->ctx, packs, NAME(pack_task), run);
    for (int64_t i = 0; i < block->pieces.count; i += run->plan.held) {
        run->block.held = (range){block->pieces.begin + i, smaller(run->plan.held, block->pieces.count - i)};
        an_parallel(run->job->ctx, tiles, NAME(tile_task), run);
    }
}

static void NAME(run_together)(job_run *run) {
    const an_product_plan *plan = &run->plan;
    int64_t tiles = plan->items * plan->sides[AN_ROWS].tiles * plan->sides[AN_COLUMNS].tiles;
    run->block.items.count = plan->items;
    for (int s = 0; s < AN_SIDES; s++) run->block.sides[s].count = plan->sides[s].tiles;
    for (int64_t piece = 0; piece < plan->pieces; piece += plan->together) {
        run->block.pieces = (range){piece, smaller(plan->together, plan->pieces - piece)};
        an_parallel(run->job->ctx, tiles * ((plan->together + plan->task_pieces - 1) / plan->task_pieces),
                    NAME(pieces_task), run);
        an_parallel(run->job->ctx, tiles, NAME(total_task), run);
    }
}

void NAME(an_product_run)(const an_product_job *job) {
    job_run run = {.job = job};
    run.plan = an_product_plan_make(job->ctx, sizeof(REAL),
                                    NAME(sums_in_dst)(job, (range){0, job->rows}, (range){0, job->columns}), job->items,
                                    job->rows, job->columns, job->depth);
    if (run.plan.together)
        NAME(run_together)(&run);
    else
        run_blocks(&run, NAME(run_block));
}
