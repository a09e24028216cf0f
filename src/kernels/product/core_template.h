/* Lines and tasks of the product core, for REAL. Included by core.c through instantiate.h. */

#include "kernels/product/tile.h" /* first: its vectors are the packing's too */

#include "kernels/product/core_pack.h"
#include "kernels/product/tile_leaves.h"

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

/* Rows of whole panels, or dst's. */
typedef struct {
    REAL *first;
    int64_t stride;
} NAME(sums);

typedef struct {
    NAME(sums) end;  /* finished */
    bool in_dst;     /* else in scratch, where there is room for whole panels */
    NAME(sums) slot; /* slot 0, between pieces: the same memory, unless what is added at the end lies there */
    REAL *slots;     /* the others, in scratch */
} NAME(tile_sums);

/* In dst where that is as dense as scratch, else in scratch, where they are those of `tile`: its number in the block,
 * or the thread's if sums do not wait between blocks. */
static NAME(tile_sums) NAME(sums_of)(const job_run *run, const dst_tile *t, int64_t tile) {
    const an_matrix *dst = &run->job->dst;
    range rows = t->sides[AN_ROWS], columns = t->sides[AN_COLUMNS];
    const NAME(sums) scratch = {sums_at(run, total_index(run, tile)), run->plan.sum_stride};
    NAME(tile_sums) sums = {scratch, false, scratch, slots_at(run, tile)};
    if (dst->tensor->dtype == NAME(dtype) && (columns.count == 1 || grid_inner_stride(&dst->places) == 1) &&
        grid_run(&dst->lines, rows.begin, rows.count) == rows.count &&
        grid_run(&dst->places, columns.begin, columns.count) == columns.count) {
        int64_t offset = dst->offset + grid_offset(&dst->items, t->item) + grid_offset(&dst->lines, rows.begin) +
                         grid_offset(&dst->places, columns.begin);
        sums.end = (NAME(sums)){(REAL *)dst->tensor->data + offset, grid_inner_stride(&dst->lines)};
        sums.in_dst = true;
        if (!run->keeps_dst) sums.slot = sums.end;
    }
    return sums;
}

static NAME(sums) NAME(slot_of)(const job_run *run, NAME(tile_sums) sums, int slot) {
    const int64_t elements = (int64_t)(run->plan.sum_bytes / sizeof(REAL));
    return slot == 0 ? sums.slot : (NAME(sums)){sums.slots + (slot - 1) * elements, run->plan.sum_stride};
}

/* What a piece's sums of a tile end with. The last piece has add_to at its end. */
static NAME(ends) NAME(ends_of)(const job_run *run, const dst_tile *t, NAME(tile_sums) sums,
                                const an_product_piece *piece, bool last) {
    const an_product_job *job = run->job;
    const NAME(sums) to = last ? sums.end : NAME(slot_of)(run, sums, piece->slot - piece->joins);
    NAME(ends) ends;
    ends.count = 0;
    ends.to = to.first;
    ends.stride = to.stride;
    for (int i = piece->continues ? 0 : 1; i <= piece->joins; i++) {
        const NAME(sums) from = NAME(slot_of)(run, sums, piece->slot - i);
        NAME(ends_add)(&ends, from.first, from.stride);
    }
    for (int i = job->add_count - 1; last && i >= 0; i--) {
        const int64_t row = t->item * job->rows + t->sides[AN_ROWS].begin;
        const REAL *from = job->add_to[i];
        NAME(ends_add)(&ends, from + row * job->columns + t->sides[AN_COLUMNS].begin, job->columns);
    }
    return ends;
}

/* What dst holds is the beginning of the sums. */
static void NAME(load_sums)(const job_run *run, const dst_tile *t, NAME(tile_sums) sums) {
    range rows = t->sides[AN_ROWS], columns = t->sides[AN_COLUMNS];
    if (sums.in_dst && !run->keeps_dst) return;
    for (int64_t i = 0; i < rows.count; i++) {
        REAL *to = sums.slot.first + i * sums.slot.stride;
        const REAL *from =
            NAME(an_matrix_line)(&run->job->dst, t->item, rows.begin + i, columns.begin, columns.count, to);
        if (from != to) memcpy(to, from, (size_t)columns.count * sizeof *to);
    }
}

/* Finishes rows of a tile and puts them in place. */
static void NAME(finish_rows)(const job_run *run, const dst_tile *t, range rows, NAME(tile_sums) sums) {
    const an_product_job *job = run->job;
    range columns = t->sides[AN_COLUMNS];
    for (int64_t i = rows.begin; i < rows.begin + rows.count; i++) {
        REAL *values = sums.end.first + i * sums.end.stride;
        int64_t row = t->sides[AN_ROWS].begin + i;
        if (job->NAME(finish)) job->NAME(finish)(job->finish_user, t->item, row, columns.begin, columns.count, values);
        if (!sums.in_dst) NAME(store_line)(&job->dst, t->item, row, columns, values);
    }
}

/* ---- one piece of k ---- */

/* A panel of a times one of b at the right edge of dst, beyond which whole vectors would write. */
static void NAME(run_edge)(int64_t rows, int64_t vectors, int64_t columns, int64_t k, NAME(panels) a, NAME(panels) b,
                           REAL *sum, int64_t stride, bool add, fetch ahead) {
    enum { WIDTH = PANEL_BYTES / sizeof(REAL) };
    _Alignas(AN_ALIGNMENT) REAL edge[PANEL_ROWS][WIDTH];
    NAME(run_tile)(rows, vectors, k, a, b, edge[0], WIDTH, false, ahead);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) sum[i * stride + j] = add ? sum[i * stride + j] + edge[i][j] : edge[i][j];
}

/* What to fetch while a is multiplied by `panels` panels of b: the panel of a that comes next, a part with each; or
 * where lines of lanes are read as they are, the steps to come, as the next panel lies beside this one. */
static fetch NAME(fetch_ahead)(NAME(panels) a, int64_t k, int64_t panels) {
    const char *next = (const char *)(a.first + a.panel);
    int64_t part = an_divide_up(PANEL_ROW_STRIDE * sizeof(REAL), panels), row = a.lane * (int64_t)sizeof(REAL);
    int64_t step = a.step * (int64_t)sizeof(REAL);
    if (a.step == 1) return (fetch){next, sizeof(REAL), row, 2 * row};
    if (a.panel == a.step * k) return (fetch){next, part, 0, part * k};
    return (fetch){next - sizeof(REAL) + FETCH_STEPS * step, step, 0, 0};
}

/* Whether nothing else is done with a piece's sums than to add them to its slot. */
static bool NAME(is_plain)(const job_run *run, const an_product_piece *piece, bool last) {
    return piece->leaf_count == 1 && piece->joins == 0 && !(last && run->job->add_count > 0);
}

/* The part of a tile's product that lies in a piece of k. Each panel of a stays in the first-level cache while all of
 * b, in the second, goes by; the `last` piece finishes its rows before they leave it. */
static void NAME(add_piece)(const job_run *run, const dst_tile *t, const an_product_piece *piece, NAME(panels) a,
                            NAME(panels) b, NAME(tile_sums) sums, bool last) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL), WIDTH = PANEL_BYTES / sizeof(REAL) };
    int64_t rows = t->sides[AN_ROWS].count, columns = t->sides[AN_COLUMNS].count, panels = an_divide_up(columns, WIDTH);
    const bool plain = NAME(is_plain)(run, piece, last), adds = last && run->job->add_count > 0;
    const NAME(sums) slot = NAME(slot_of)(run, sums, piece->slot);
    NAME(ends) ends;
    if (!plain) ends = NAME(ends_of)(run, t, sums, piece, last);
    for (int64_t row = 0; row < rows; row += PANEL_ROWS, a.first += a.panel) {
        int64_t panel_rows = an_smaller(PANEL_ROWS, rows - row), k = piece->count;
        NAME(panels) right = b;
        fetch ahead = NAME(fetch_ahead)(a, k, panels);
        for (int64_t column = 0; column < columns; column += WIDTH, right.first += b.panel, ahead.from += ahead.part) {
            int64_t left = an_smaller(WIDTH, columns - column), vectors = left > LANES ? 2 : 1;
            const bool edge = (sums.in_dst || adds) && left < vectors * LANES;
            REAL *sum = slot.first + row * slot.stride + column;
            if (plain && edge)
                NAME(run_edge)(panel_rows, vectors, left, k, a, right, sum, slot.stride, piece->continues, ahead);
            else if (plain)
                NAME(run_tile)(panel_rows, vectors, k, a, right, sum, slot.stride, piece->continues, ahead);
            else if (edge || panel_rows < PANEL_ROWS)
                NAME(run_leaf_edge)(panel_rows, vectors, left, piece, a, right, &ends, row, column, ahead);
            else
                NAME(run_leaf_tile)(vectors, piece, a, right, &ends, row, column, ahead);
        }
        if (last) NAME(finish_rows)(run, t, (range){row, panel_rows}, sums);
    }
}

/* An operand's own memory. */
static NAME(panels) NAME(direct_panels)(const job_run *run, int s, const dst_tile *t, int64_t piece) {
    NAME(lines) lines = NAME(lines_of)(run, s, t->item);
    bool along_k = operand_of(run, s)->along_k;
    int64_t lane = along_k ? lines.stride : 1, step = along_k ? 1 : lines.stride;
    const REAL *first = lines.first + t->sides[s].begin * lane + piece_depth(run, piece).begin * step;
    return (NAME(panels)){first, lane, step, run->plan.sides[s].width * lane};
}

/* A tile's panels of one side. */
static NAME(panels) NAME(panels_of)(const job_run *run, int s, const dst_tile *t, int64_t piece, int thread) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL) };
    const an_product_side *side = &run->plan.sides[s];
    range depth = piece_depth(run, piece);
    NAME(panels) panels = {NULL, 1, side->stride, side->stride * depth.count};
    if (run->direct[s] && (s == AN_ROWS || t->sides[s].count % LANES == 0))
        return NAME(direct_panels)(run, s, t, piece);
    if (side->shared) {
        const REAL *shared = shared_panels(run, s, t->item - run->block.items.begin, piece - run->block.pieces.begin);
        panels.first = shared + t->panels[s] * panels.panel;
    } else {
        char *scratch = thread_scratch(run, thread);
        REAL *packed = (REAL *)(scratch + side->begin);
        NAME(pack)(run, s, t->item, t->sides[s], depth, packed, (REAL *)scratch);
        panels.first = packed;
    }
    return panels;
}

static void NAME(run_piece)(const job_run *run, const dst_tile *t, int64_t index, const an_product_piece *piece,
                            int thread, NAME(tile_sums) sums, bool last) {
    NAME(panels) a = NAME(panels_of)(run, AN_ROWS, t, index, thread);
    NAME(panels) b = NAME(panels_of)(run, AN_COLUMNS, t, index, thread);
    NAME(add_piece)(run, t, piece, a, b, sums, last);
}

/* ---- blocks ---- */

/* Packs panels of one piece of what is shared: tasks of the rows first, then of the columns. */
static void NAME(pack_task)(void *user, int64_t index, int thread) {
    const job_run *run = user;
    const job_block *block = &run->block;
    const int64_t row_tasks = pack_tasks(run, AN_ROWS);
    const int s = index < row_tasks ? AN_ROWS : AN_COLUMNS;
    if (s == AN_COLUMNS) index -= row_tasks;
    const range panels = block_panels(run, s);
    const int64_t tasks = an_divide_up(panels.count, PACK_TASK_PANELS);
    const int64_t piece = index / tasks % block->pieces.count, item = index / tasks / block->pieces.count;
    const range part = part_of(panels.count, index % tasks, PACK_TASK_PANELS);
    const range depth = piece_depth(run, block->pieces.begin + piece);
    const range lanes = panel_lanes(run, s, (range){panels.begin + part.begin, part.count});
    REAL *to = (REAL *)shared_panels(run, s, item, piece) + part.begin * run->plan.sides[s].stride * depth.count;
    NAME(pack)(run, s, block->items.begin + item, lanes, depth, to, thread_scratch(run, thread));
}

static void NAME(tile_task)(void *user, int64_t index, int thread) {
    const job_run *run = user;
    range pieces = run->block.pieces;
    dst_tile t = tile_at(run, index);
    NAME(tile_sums) sums = NAME(sums_of)(run, &t, run->plan.piece_block < run->plan.pieces ? index : thread);
    if (run->job->accumulate && pieces.begin == 0) NAME(load_sums)(run, &t, sums);
    for (int64_t i = pieces.begin; i < pieces.begin + pieces.count; i++) {
        const an_product_piece piece = piece_at(run, i);
        NAME(run_piece)(run, &t, i, &piece, thread, sums, i == run->plan.pieces - 1);
    }
}

static void NAME(run_block)(job_run *run) {
    an_parallel(run->job->ctx, pack_tasks(run, AN_ROWS) + pack_tasks(run, AN_COLUMNS), NAME(pack_task), run);
    an_parallel(run->job->ctx, block_tiles(run), NAME(tile_task), run);
}

/* ---- few tiles and much k ---- */

static void NAME(pieces_task)(void *user, int64_t index, int thread) {
    const job_run *run = user;
    int64_t tasks = an_divide_up(run->plan.together, run->plan.task_pieces), tile = index / tasks;
    range pieces = part_of(run->block.pieces.count, index % tasks, run->plan.task_pieces);
    dst_tile t = tile_at(run, tile);
    for (int64_t i = pieces.begin; i < pieces.begin + pieces.count; i++) {
        const NAME(sums) own = {sums_at(run, total_index(run, tile) + 1 + i), run->plan.sum_stride};
        const NAME(tile_sums) sums = {own, false, own, NULL};
        an_product_piece piece = piece_at(run, run->block.pieces.begin + i);
        piece.slot = piece.joins = 0;
        piece.continues = false;
        NAME(run_piece)(run, &t, run->block.pieces.begin + i, &piece, thread, sums, false);
    }
}

/* Adds the pieces' sums, in order, to the total. */
static void NAME(total_task)(void *user, int64_t index, int thread) {
    const job_run *run = user;
    range pieces = run->block.pieces;
    dst_tile t = tile_at(run, index);
    NAME(tile_sums) total = NAME(sums_of)(run, &t, index);
    (void)thread;
    if (run->job->accumulate && pieces.begin == 0) NAME(load_sums)(run, &t, total);
    for (int64_t i = 0; i < pieces.count; i++) {
        const an_product_piece piece = piece_at(run, pieces.begin + i);
        const NAME(ends) ends = NAME(ends_of)(run, &t, total, &piece, pieces.begin + i == run->plan.pieces - 1);
        REAL *sums = sums_at(run, total_index(run, index) + 1 + i);
        for (int64_t row = 0; row < t.sides[AN_ROWS].count; row++)
            NAME(ends_row)(&ends, row, 0, t.sides[AN_COLUMNS].count, sums + row * run->plan.sum_stride);
    }
    if (pieces.begin + pieces.count == run->plan.pieces)
        NAME(finish_rows)(run, &t, (range){0, t.sides[AN_ROWS].count}, total);
}

static void NAME(run_together)(job_run *run) {
    const an_product_plan *plan = &run->plan;
    int64_t tasks = an_divide_up(plan->together, plan->task_pieces);
    run->block.items = (range){0, plan->items};
    for (int s = 0; s < AN_SIDES; s++) run->block.sides[s] = (range){0, plan->sides[s].tiles};
    for (int64_t i = 0; i < an_divide_up(plan->pieces, plan->together); i++) {
        run->block.pieces = part_of(plan->pieces, i, plan->together);
        an_parallel(run->job->ctx, block_tiles(run) * tasks, NAME(pieces_task), run);
        an_parallel(run->job->ctx, block_tiles(run), NAME(total_task), run);
    }
}

void NAME(an_product_run)(const an_product_job *job) {
    job_run run = run_begin(job, sizeof(REAL));
    find_direct(&run, NAME(dtype), sizeof(REAL));
    if (run.plan.together)
        NAME(run_together)(&run);
    else
        run_blocks(&run, NAME(run_block));
}
