#include "kernels/product_core_plan.h"

#include "base/memory.h"
#include "kernels/product_core_level.h"

/* A tile's piece of b (256 KiB in f32), of a (128) and its sums (112) stay in a second-level cache. */
enum { TILE_ROWS = 140, TILE_COLUMN_BYTES = 1024, LEAST_ROWS = 28, LEAST_COLUMN_BYTES = 256 };

/* Tiles are cut smaller, and then k is cut, to have ENOUGH_TASKS, but never for less than LEAST_WORK multiplications in a
 * task (about 10 µs). Panels count whole: reading one row of a costs what multiplying a panel does. */
enum { ENOUGH_TASKS = 12, LEAST_WORK = 1 << 20 };

/* Blocks: as much as SHARED_BYTES of one operand, with all k if that leaves BLOCK_LANES. Between blocks of k, sums wait. */
enum { SHARED_BYTES = 10 << 20, BLOCK_LANES = 1024, BLOCK_SUMS = 1 << 20, HELD_BYTES = 1 << 20, CUT_BYTES = 1 << 20 };

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}
static int64_t parts_of(int64_t whole, int64_t part) {
    return (whole + part - 1) / part;
}

/* The largest part that gives as many of them: the last is not much smaller than the others. */
static int64_t even_part(int64_t whole, int64_t part) {
    return parts_of(whole, parts_of(whole, part));
}

static an_product_side make_side(size_t element, int64_t lanes, int64_t width, int64_t stride, int64_t tile_lanes,
                                 int64_t piece) {
    an_product_side s = {.panels = parts_of(lanes, width), .width = width, .stride = stride};
    s.tile = smaller(s.panels, tile_lanes / width);
    s.panel_bytes = an_round_up((size_t)(stride * piece) * element, AN_ALIGNMENT);
    return s;
}

static void make_sides(an_product_plan *p, size_t element, int64_t rows, int64_t columns, int64_t depth) {
    int64_t panel_columns = PANEL_BYTES / (int64_t)element, piece = smaller(depth, AN_PRODUCT_PIECE);
    p->sides[AN_ROWS] = make_side(element, rows, PANEL_ROWS, PANEL_ROW_STRIDE, TILE_ROWS, piece);
    p->sides[AN_COLUMNS] =
        make_side(element, columns, panel_columns, panel_columns, TILE_COLUMN_BYTES / (int64_t)element, piece);
}

static int64_t tiles_of(const an_product_side *side) {
    return parts_of(side->panels, side->tile);
}

/* The side that is better cut further. One that is in one piece stays so: what lies along the other is then packed by
 * one task only. */
static an_product_side *side_to_cut(an_product_plan *p) {
    an_product_side *rows = &p->sides[AN_ROWS], *columns = &p->sides[AN_COLUMNS];
    int64_t row_tiles = tiles_of(rows), column_tiles = tiles_of(columns);
    if ((row_tiles == 1) != (column_tiles == 1)) return row_tiles == 1 ? columns : rows;
    return rows->tile * rows->width > columns->tile * columns->width ? rows : columns;
}

static void cut_tiles(an_product_plan *p, int64_t depth) {
    an_product_side *rows = &p->sides[AN_ROWS], *columns = &p->sides[AN_COLUMNS];
    int64_t work;
    for (;;) {
        an_product_side *side = side_to_cut(p);
        int64_t least = (side == rows ? LEAST_ROWS / PANEL_ROWS : LEAST_COLUMN_BYTES / PANEL_BYTES);
        work = rows->tile * rows->width * columns->tile * columns->width * depth;
        if (p->items * tiles_of(rows) * tiles_of(columns) >= ENOUGH_TASKS || work < 2 * LEAST_WORK) break;
        if (side->tile <= least) break;
        side->tile = larger(least, parts_of(side->tile, 2));
    }
    for (int s = 0; s < AN_SIDES; s++) {
        p->sides[s].tile = even_part(p->sides[s].panels, p->sides[s].tile);
        p->sides[s].tiles = tiles_of(&p->sides[s]);
    }
    for (int s = 0; s < AN_SIDES; s++) p->sides[s].shared = p->sides[1 - s].tiles > 1;
}

/* Cuts k of the few tiles there are. */
static void cut_depth(an_product_plan *p) {
    const an_product_side *rows = &p->sides[AN_ROWS], *columns = &p->sides[AN_COLUMNS];
    int64_t tiles = p->items * rows->tiles * columns->tiles;
    int64_t work = rows->tile * rows->width * columns->tile * columns->width * AN_PRODUCT_PIECE;
    int64_t most = CUT_BYTES / ((int64_t)p->sum_bytes * tiles) - 1; /* one is the total */
    int64_t at_once = smaller(p->pieces, most);
    if (tiles >= ENOUGH_TASKS || at_once < 2 || at_once * work < 2 * LEAST_WORK) return;
    int64_t tasks = smaller(parts_of(ENOUGH_TASKS, tiles), at_once * work / LEAST_WORK);
    p->task_pieces = parts_of(at_once, tasks);
    p->together = at_once;
}

/* Tiles of a side whose panels, with `pieces` of k, fit into its share. */
static int64_t shared_block(const an_product_side *side, int64_t pieces) {
    if (!side->shared) return side->tiles;
    return smaller(side->tiles, SHARED_BYTES / ((int64_t)side->panel_bytes * side->tile * pieces));
}

static void make_blocks(an_product_plan *p) {
    an_product_side *rows = &p->sides[AN_ROWS], *columns = &p->sides[AN_COLUMNS];
    p->piece_block = p->pieces;
    for (int s = 0; s < AN_SIDES; s++) {
        const an_product_side *side = &p->sides[s];
        int64_t panels = smaller(side->panels, larger(side->tile, BLOCK_LANES / side->width));
        if (side->shared)
            p->piece_block = smaller(p->piece_block, SHARED_BYTES / ((int64_t)side->panel_bytes * panels));
    }
    p->piece_block = even_part(p->pieces, p->piece_block);
    for (int s = 0; s < AN_SIDES; s++) p->sides[s].block = shared_block(&p->sides[s], p->piece_block);
    if (p->piece_block < p->pieces) {
        int64_t tile = rows->tile * rows->width * columns->tile * columns->width;
        columns->block = smaller(columns->block, BLOCK_SUMS / tile);
        rows->block = smaller(rows->block, BLOCK_SUMS / tile / columns->block);
    }
    p->item_block = p->items;
    for (int s = 0; s < AN_SIDES; s++) {
        an_product_side *side = &p->sides[s];
        side->block = even_part(side->tiles, side->block);
        if (side->block < side->tiles || p->piece_block < p->pieces) p->item_block = 1;
        if (side->shared)
            p->item_block = smaller(p->item_block,
                                    larger(1, SHARED_BYTES / ((int64_t)side->panel_bytes * side->panels * p->pieces)));
    }
}

static size_t line_bytes(size_t element, int64_t depth) {
    int64_t along_k = VECTOR_BYTES / (int64_t)element * smaller(depth, AN_PRODUCT_PIECE);
    return an_round_up((size_t)along_k * element + TILE_COLUMN_BYTES, AN_ALIGNMENT);
}

an_product_plan an_product_plan_make(an_context *ctx, size_t element, bool in_dst, int64_t items, int64_t rows,
                                     int64_t columns, int64_t depth) {
    an_product_plan p = {.items = items, .pieces = larger(1, parts_of(depth, AN_PRODUCT_PIECE))};
    size_t threads = (size_t)an_context_threads(ctx), sums = threads;
    make_sides(&p, element, rows, columns, depth);
    cut_tiles(&p, depth);
    p.sum_stride = p.sides[AN_COLUMNS].tile * p.sides[AN_COLUMNS].width;
    p.sum_bytes = (size_t)(p.sides[AN_ROWS].tile * p.sides[AN_ROWS].width * p.sum_stride) * element;
    cut_depth(&p);
    if (p.together)
        for (int s = 0; s < AN_SIDES; s++) p.sides[s].shared = false;
    make_blocks(&p);
    p.held = p.piece_block;
    if (in_dst)
        p.held = even_part(
            p.piece_block,
            larger(1, smaller(p.piece_block, HELD_BYTES / ((int64_t)p.sides[0].panel_bytes * p.sides[0].tile +
                                                           (int64_t)p.sides[1].panel_bytes * p.sides[1].tile))));
    p.thread_bytes = line_bytes(element, depth);
    for (int s = 0; s < AN_SIDES; s++) {
        if (p.sides[s].shared) continue;
        p.sides[s].begin = p.thread_bytes;
        p.thread_bytes += (size_t)p.sides[s].tile * p.sides[s].panel_bytes;
    }
    p.sums_begin = threads * p.thread_bytes;
    for (int s = 0; s < AN_SIDES; s++) {
        an_product_side *side = &p.sides[s];
        if (!side->shared) continue;
        int64_t panels = smaller(side->panels, side->block * side->tile);
        side->begin = p.sums_begin;
        p.sums_begin += (size_t)(p.item_block * p.piece_block * panels) * side->panel_bytes;
    }
    if (p.together)
        sums = (size_t)(items * p.sides[AN_ROWS].tiles * p.sides[AN_COLUMNS].tiles * (p.together + 1));
    else if (p.piece_block < p.pieces)
        sums = (size_t)(p.sides[AN_ROWS].block * p.sides[AN_COLUMNS].block);
    p.bytes = p.sums_begin + sums * p.sum_bytes;
    return p;
}

/* A smaller job may be cut in another way; so this is a bound for all of them, each term of which grows with the sizes. */
size_t an_product_scratch(an_context *ctx, bool f64, int64_t items, int64_t rows, int64_t columns, int64_t depth) {
    size_t element = f64 ? sizeof(double) : sizeof(float), threads = (size_t)an_context_threads(ctx);
    an_product_plan p = {.pieces = larger(1, parts_of(depth, AN_PRODUCT_PIECE))};
    size_t thread = line_bytes(element, depth), shared = 0, sums = threads * element, least_sums = 0;
    make_sides(&p, element, rows, columns, depth);
    if (p.pieces > 1) least_sums = CUT_BYTES;
    for (int s = 0; s < AN_SIDES; s++) {
        const an_product_side *side = &p.sides[s];
        size_t packed = (size_t)(side->panels * p.pieces) * side->panel_bytes;
        if (packed > SHARED_BYTES) least_sums = BLOCK_SUMS * element; /* k may be in blocks */
        thread += (size_t)side->tile * side->panel_bytes;
        shared += (size_t)smaller(SHARED_BYTES, items * (int64_t)packed);
        sums *= (size_t)(side->tile * side->width);
    }
    return threads * thread + shared + (sums > least_sums ? sums : least_sums);
}
