#include "kernels/product/core_plan.h"

#include "base/integer.h"
#include "base/memory.h"
#include "kernels/product/core_leaves.h"
#include "kernels/product/core_level.h"

/* A tile's piece of b (512 KiB), that of a (at most 320) and its sums (280) stay in a second-level cache. */
enum { TILE_ROWS = 140, TILE_COLUMN_BYTES = 2048 };

/* Tiles are made smaller, and then k is cut, to have TASKS_PER_THREAD, but not below LEAST_TILE panels, nor
 * for less than LEAST_WORK multiplications in a task: about 10 µs. Panels count whole, as reading one row of a
 * costs what multiplying a panel does. That this depends on the number of threads is no matter for bits,
 * which follow from k alone. */
enum { TASKS_PER_THREAD = 3, LEAST_TILE = 2, LEAST_WORK = 1 << 20 };

/* The most that is packed of one operand for a block, where k is cut rather than lanes below BLOCK_LANES; and the most
 * sums of a block, between blocks of k, and bytes of sums of pieces that run at once. */
enum { SHARED_BYTES = 10 << 20, BLOCK_LANES = 1024, BLOCK_SUMS = 1 << 20, TOGETHER_BYTES = 4 << 20 };

/* ---- tiles ---- */

static an_product_side make_side(size_t element, int64_t lanes, int64_t width, int64_t stride, int64_t tile,
                                 int64_t piece) {
    int64_t panels = an_divide_up(lanes, width);
    return (an_product_side){
        .panels = panels,
        .width = width,
        .stride = stride,
        .tile = an_smaller(panels, tile),
        .step_bytes = (size_t)stride * element,
        .panel_bytes = an_round_up((size_t)(stride * piece) * element, AN_ALIGNMENT),
    };
}

static an_product_plan begin_plan(size_t element, int64_t items, int64_t rows, int64_t columns, int64_t depth,
                                  int64_t pieces, int slots) {
    an_product_plan p = {.items = items, .pieces = pieces, .slots = slots};
    int64_t panel_columns = PANEL_BYTES / (int64_t)element, piece = an_larger(1, an_smaller(depth, AN_PRODUCT_PIECE));
    p.sides[AN_ROWS] = make_side(element, rows, PANEL_ROWS, PANEL_ROW_STRIDE, TILE_ROWS / PANEL_ROWS, piece);
    p.sides[AN_COLUMNS] =
        make_side(element, columns, panel_columns, panel_columns, TILE_COLUMN_BYTES / PANEL_BYTES, piece);
    return p;
}

static int64_t tiles_of(const an_product_side *side) {
    return an_divide_up(side->panels, side->tile);
}

static int64_t tile_lanes(const an_product_side *side) {
    return side->tile * side->width;
}

static int64_t task_work(const an_product_plan *p, int64_t depth) {
    return tile_lanes(&p->sides[AN_ROWS]) * tile_lanes(&p->sides[AN_COLUMNS]) * depth;
}

/* The side whose tiles are better made smaller. One that is a single tile stays so: the other's panels are then needed
 * by one task only. */
static int side_to_cut(const an_product_plan *p) {
    const an_product_side *rows = &p->sides[AN_ROWS], *columns = &p->sides[AN_COLUMNS];
    bool row_tiles = tiles_of(rows) > 1, column_tiles = tiles_of(columns) > 1;
    if (row_tiles != column_tiles) return row_tiles ? AN_ROWS : AN_COLUMNS;
    return tile_lanes(rows) > tile_lanes(columns) ? AN_ROWS : AN_COLUMNS;
}

static int64_t tasks_of(const an_product_plan *p) {
    return p->items * tiles_of(&p->sides[AN_ROWS]) * tiles_of(&p->sides[AN_COLUMNS]);
}

/* The work of the thread that has most of it, if all tasks take the same time. */
static int64_t longest_work(const an_product_plan *p, int64_t depth, int64_t threads) {
    return an_divide_up(tasks_of(p), threads) * task_work(p, depth);
}

/* Makes the tiles of a side equal, and up to twice as many if threads have more equal shares then. */
static void even_tiles(an_product_plan *p, int s, int64_t depth, int64_t threads) {
    an_product_side *side = &p->sides[s];
    const int64_t tiles = tiles_of(side);
    side->tile = an_divide_up(side->panels, tiles);
    for (int64_t more = tiles + 1; more <= 2 * tiles; more++) {
        an_product_plan other = *p;
        other.sides[s].tile = an_divide_up(side->panels, more);
        if (other.sides[s].tile < LEAST_TILE || task_work(&other, depth) < LEAST_WORK) return;
        if (longest_work(&other, depth, threads) < longest_work(p, depth, threads)) side->tile = other.sides[s].tile;
    }
}

/* A dst of one tile stays one if k has enough pieces: each element of a and b is then packed once. */
static void cut_tiles(an_product_plan *p, int64_t depth, int64_t threads, int64_t enough) {
    const bool whole = tasks_of(p) == 1 && p->pieces >= enough;
    while (!whole && tasks_of(p) < enough && task_work(p, depth) >= 2 * LEAST_WORK) {
        const int s = side_to_cut(p);
        if (p->sides[s].tile <= LEAST_TILE) break;
        p->sides[s].tile = an_larger(LEAST_TILE, an_divide_up(p->sides[s].tile, 2));
    }
    for (int s = 0; s < AN_SIDES; s++) {
        even_tiles(p, s, depth, threads);
        p->sides[s].tiles = tiles_of(&p->sides[s]);
    }
}

/* Where even the smallest tiles are few, pieces of k run at once, each into sums of its own. */
static void cut_depth(an_product_plan *p, int64_t enough) {
    const int64_t tiles = tasks_of(p), work = task_work(p, AN_PRODUCT_PIECE);
    const int64_t room = TOGETHER_BYTES / ((int64_t)p->sum_bytes * tiles) - p->slots; /* one of them is the total */
    const int64_t together = an_smaller(p->pieces, room);
    if (tiles >= enough || together < 2 || together * work < 2 * LEAST_WORK) return;
    p->together = together;
    p->task_pieces = an_larger(an_divide_up(together * tiles, enough), an_divide_up(LEAST_WORK, work));
}

/* ---- blocks ---- */

/* How many pieces of all lanes, or of BLOCK_LANES, may be packed at once. */
static int64_t most_block_pieces(const an_product_side *side) {
    const int64_t panels = an_smaller(side->panels, an_larger(side->tile, BLOCK_LANES / side->width));
    return SHARED_BYTES / ((int64_t)side->panel_bytes * panels);
}

/* Panels of a block lie one after another as k does, so short pieces take no more room than long ones. */
static int64_t most_block_depth(const an_product_plan *p, int64_t depth) {
    return an_larger(1, an_smaller(depth, p->piece_block * AN_PRODUCT_PIECE));
}

static void make_blocks(an_product_plan *p, int64_t depth) {
    an_product_side *rows = &p->sides[AN_ROWS], *columns = &p->sides[AN_COLUMNS];
    rows->shared = !p->together && columns->tiles > 1;
    columns->shared = !p->together && rows->tiles > 1;
    p->piece_block = p->pieces;
    for (int s = 0; s < AN_SIDES; s++) {
        const an_product_side *side = &p->sides[s];
        if (side->shared) p->piece_block = an_smaller(p->piece_block, most_block_pieces(side));
    }
    p->piece_block = an_even_part(p->pieces, p->piece_block);
    p->block_depth = most_block_depth(p, depth);
    for (int s = 0; s < AN_SIDES; s++) {
        an_product_side *side = &p->sides[s];
        int64_t bytes = (int64_t)side->step_bytes * side->tile * p->block_depth;
        side->block = side->shared ? an_smaller(side->tiles, SHARED_BYTES / bytes) : side->tiles;
    }
    if (p->piece_block < p->pieces) { /* sums wait in scratch */
        int64_t tiles = BLOCK_SUMS / (tile_lanes(rows) * tile_lanes(columns));
        columns->block = an_smaller(columns->block, tiles);
        rows->block = an_smaller(rows->block, tiles / columns->block);
    }
    p->item_block = p->piece_block < p->pieces ? 1 : p->items;
    for (int s = 0; s < AN_SIDES; s++) {
        an_product_side *side = &p->sides[s];
        int64_t item_bytes = (int64_t)side->step_bytes * side->panels * an_larger(1, depth);
        side->block = an_even_part(side->tiles, side->block);
        if (side->block < side->tiles) p->item_block = 1;
        if (side->shared) p->item_block = an_larger(1, an_smaller(p->item_block, SHARED_BYTES / item_bytes));
    }
}

/* ---- scratch ---- */

/* Lines along k are asked for as many at a time as a vector has lanes. */
static size_t line_bytes(int64_t depth) {
    size_t along_k = VECTOR_BYTES * (size_t)an_smaller(depth, AN_PRODUCT_PIECE);
    size_t lanes = AN_PACK_PANELS * (size_t)an_larger(PANEL_BYTES, PANEL_ROWS * (int64_t)sizeof(double));
    return an_round_up(along_k > lanes ? along_k : lanes, AN_ALIGNMENT);
}

static void place_panels(an_product_plan *p, size_t threads, int64_t depth) {
    p->thread_bytes = line_bytes(depth);
    for (int s = 0; s < AN_SIDES; s++) {
        an_product_side *side = &p->sides[s];
        if (side->shared) continue;
        side->begin = p->thread_bytes;
        p->thread_bytes += (size_t)side->tile * side->panel_bytes;
    }
    p->sums_begin = threads * p->thread_bytes;
    for (int s = 0; s < AN_SIDES; s++) {
        an_product_side *side = &p->sides[s];
        if (!side->shared) continue;
        int64_t panels = p->item_block * an_smaller(side->panels, side->block * side->tile);
        side->begin = p->sums_begin;
        p->sums_begin += an_round_up((size_t)(panels * p->block_depth) * side->step_bytes, AN_ALIGNMENT);
    }
}

an_product_plan an_product_plan_make(an_context *ctx, size_t element, int64_t items, int64_t rows, int64_t columns,
                                     int64_t depth, int64_t pieces, int slots) {
    size_t threads = (size_t)an_context_threads(ctx);
    const int64_t enough = threads == 1 ? 1 : TASKS_PER_THREAD * (int64_t)threads;
    an_product_plan p = begin_plan(element, items, rows, columns, depth, pieces, slots);
    cut_tiles(&p, depth, (int64_t)threads, enough);
    p.sum_stride = tile_lanes(&p.sides[AN_COLUMNS]);
    p.sum_bytes = (size_t)(tile_lanes(&p.sides[AN_ROWS]) * p.sum_stride) * element;
    cut_depth(&p, enough);
    make_blocks(&p, depth);
    place_panels(&p, threads, depth);
    int64_t tiles = (int64_t)threads, sums_of_tile = 1;
    if (p.together) {
        tiles = items * p.sides[AN_ROWS].tiles * p.sides[AN_COLUMNS].tiles;
        sums_of_tile = p.together + 1;
    } else if (p.piece_block < p.pieces) {
        tiles = p.sides[AN_ROWS].block * p.sides[AN_COLUMNS].block;
    }
    p.slots_begin = p.sums_begin + (size_t)(tiles * sums_of_tile) * p.sum_bytes;
    p.bytes = p.slots_begin + (size_t)(tiles * (p.slots - 1)) * p.sum_bytes;
    return p;
}

/* A smaller job may be cut in another way, so this is a bound for all of them: each term of it grows with the sizes. */
static size_t scratch_bound(an_context *ctx, bool f64, int64_t items, int64_t rows, int64_t columns, int64_t depth,
                            int64_t pieces, int slots) {
    size_t element = f64 ? sizeof(double) : sizeof(float), threads = (size_t)an_context_threads(ctx);
    an_product_plan p = begin_plan(element, items, rows, columns, depth, pieces, slots);
    size_t thread = line_bytes(depth), shared = 0, sums = threads * element, all = (size_t)items * element;
    bool has_blocks = false; /* of k */
    for (int s = 0; s < AN_SIDES; s++) {
        const an_product_side *side = &p.sides[s];
        int64_t packed = side->panels * an_larger(1, depth) * (int64_t)side->step_bytes;
        if (p.pieces > most_block_pieces(side)) has_blocks = true;
        thread += (size_t)side->tile * side->panel_bytes;
        if (p.sides[1 - s].panels > LEAST_TILE)
            shared += (size_t)an_smaller(SHARED_BYTES, items * packed) + AN_ALIGNMENT;
        sums *= (size_t)tile_lanes(side);
        all *= (size_t)(2 * side->panels * side->width);
    }
    sums *= (size_t)slots;
    size_t blocks = has_blocks ? (size_t)(slots * an_smaller(BLOCK_SUMS * (int64_t)element, (int64_t)all)) : 0;
    size_t together = p.pieces > 1 ? (size_t)an_smaller(TOGETHER_BYTES, (int64_t)all * (p.pieces + slots)) : 0;
    if (sums < blocks) sums = blocks;
    if (sums < together) sums = together;
    return threads * thread + shared + sums;
}

size_t an_product_scratch(an_context *ctx, bool f64, int64_t items, int64_t rows, int64_t columns, int64_t depth) {
    return scratch_bound(ctx, f64, items, rows, columns, depth, an_product_pieces(depth), 1);
}

size_t an_product_leaf_scratch(an_context *ctx, bool f64, int64_t items, int64_t rows, int64_t columns, int64_t depth,
                               const an_leaf_cut *leaves) {
    const int64_t pieces = an_product_most_pieces(depth, leaves);
    return an_product_cut_bytes(depth, leaves) +
           scratch_bound(ctx, f64, items, rows, columns, depth, pieces, an_product_most_slots(depth, leaves));
}
