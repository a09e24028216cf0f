/* How a product on tiles is cut and run.
 *
 * Of the two operands, one is outer and one inner. The inner one is packed first, by all threads, into shared scratch.
 * A thread then takes a block of panels of the outer one, packs it into scratch of its own, which stays in its
 * second-level cache, and multiplies it with panel after panel of the inner one, which stays in the first-level cache
 * meanwhile: 32 × 32 sums in four tiles at a time. So every panel is packed once, but for blocks that threads share in
 * the end.
 *
 * All cuts are functions of sizes; which thread computes a part, and when, does not change it.
 */
#include "kernels/product/amx.h"

#ifdef __AVX512F__
#include <stdatomic.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/product/amx_block.h"
#include "kernels/product/amx_few.h"
#include "kernels/product/amx_few_blocks.h"
#include "kernels/product/amx_leaf_block.h"
#include "kernels/product/amx_leaves.h"

/* Sizes in panels of 32 lanes and in steps of 32 k. A thread's outer block, and with more than one piece the sums of a
 * part, take half of a second-level cache of 2 MiB or a little more. */
enum {
    PIECE_STEPS = AN_AMX_PIECE_STEPS,
    OUTER_ONE_PIECE = 16, /* panels of a block */
    OUTER_MORE_PIECES = 8,
    OUTER_LEAST = 4,
    INNER_ONE_PIECE = 4, /* panels of a part, which is what a thread takes at a time */
    INNER_MORE_PIECES = 24,
    ENOUGH_ONE_PIECE = 12, /* parts; with fewer, blocks are smaller */
    ENOUGH_MORE_PIECES = 4
};

/* A chunk is what is computed after the inner operand, or as much of it as there is room for, was packed. */
enum { CHUNK_STEPS = AN_AMX_CHUNK_PIECES * PIECE_STEPS, MOST_BLOCKS = 1024 };
static const int64_t inner_bytes_most = 6 << 20; /* 768 lanes of 4,096 k */
static const int64_t sums_bytes_most = 4 << 20;  /* of chunks that do not have all of k */

/* Less work than this, in steps of 32 × 32 sums, is not worth a second thread; 25 ns each. */
enum { WORTH_THREADS = 512 };

static an_amx_range range_of(int64_t whole, int64_t begin, int64_t part) {
    return (an_amx_range){begin, an_smaller(part, whole - begin)};
}

/* ---- cuts ---- */

typedef struct {
    int64_t steps, outer, inner; /* all of k, and panels of the operands */
    int64_t chunk_steps, chunk_items, chunk_outer, chunk_inner;
    int64_t piece_steps, block_panels, part_panels;
    bool one_piece;
} job_cut;

static job_cut make_cut(int64_t items, int64_t outer, int64_t inner, int64_t steps) {
    job_cut c = {.steps = steps, .outer = outer, .inner = inner};
    c.chunk_steps = an_even_part(c.steps, CHUNK_STEPS);
    c.piece_steps = an_even_part(c.chunk_steps, PIECE_STEPS);
    c.one_piece = c.piece_steps == c.steps;
    c.chunk_inner = an_smaller(inner, inner_bytes_most / (c.chunk_steps * BLOCK_BYTES));
    c.part_panels = an_even_part(c.chunk_inner, c.one_piece ? INNER_ONE_PIECE : INNER_MORE_PIECES);
    const int64_t enough = c.one_piece ? ENOUGH_ONE_PIECE : ENOUGH_MORE_PIECES;
    int64_t block = c.one_piece ? OUTER_ONE_PIECE : OUTER_MORE_PIECES;
    while (block > OUTER_LEAST && items * an_divide_up(outer, block) * an_divide_up(inner, c.part_panels) < enough)
        block /= 2;
    c.block_panels = an_even_part(outer, block);
    int64_t blocks = MOST_BLOCKS;
    if (c.chunk_steps < c.steps) blocks = sums_bytes_most / (c.block_panels * c.chunk_inner * SUMS_BYTES);
    c.chunk_outer = an_smaller(outer, blocks * c.block_panels);
    c.chunk_items = 1;
    if (c.chunk_inner == inner && c.chunk_outer == outer) {
        const int64_t fit = inner_bytes_most / (inner * c.chunk_steps * BLOCK_BYTES);
        c.chunk_items = an_smaller(items, an_smaller(fit, blocks / an_divide_up(outer, c.block_panels)));
    }
    return c;
}

/* The small stack of a thread for blocks with leaves. */
static int64_t stack_bytes(int slots) {
    return slots > 1 ? slots * SUMS_BYTES : 0;
}

/* The largest that any job can have that is not larger than this one, or has rows instead of items. */
size_t an_amx_scratch_of_leaves(const an_context *ctx, int64_t items, int64_t rows, int64_t columns, int64_t depth,
                                int slots) {
    const int64_t steps = an_larger(1, an_divide_up(depth, SIDE));
    const int64_t row_panels = an_divide_up(rows, SIDE), column_panels = an_divide_up(columns, SIDE);
    const int64_t outer = items * an_larger(row_panels, column_panels);
    const int64_t inner = items * an_smaller(row_panels, column_panels);
    int64_t thread = an_smaller(outer, OUTER_ONE_PIECE) * an_smaller(steps, PIECE_STEPS) * BLOCK_BYTES + SUMS_BYTES;
    if (steps > PIECE_STEPS) {
        const int64_t sums = an_smaller(inner, INNER_MORE_PIECES) * SUMS_BYTES;
        thread = an_larger(thread, an_smaller(outer, OUTER_MORE_PIECES) * (PIECE_STEPS * BLOCK_BYTES + slots * sums));
    }
    thread += stack_bytes(slots);
    int64_t shared = an_smaller(inner_bytes_most, inner * an_smaller(steps, CHUNK_STEPS) * BLOCK_BYTES);
    if (steps > CHUNK_STEPS) shared += slots * an_smaller(sums_bytes_most, outer * inner * SUMS_BYTES);
    return MOST_BLOCKS * sizeof(atomic_int) + (size_t)shared + (size_t)ctx->threads * (size_t)thread;
}

size_t an_amx_scratch(const an_context *ctx, int64_t items, int64_t rows, int64_t columns, int64_t depth) {
    return an_amx_scratch_of_leaves(ctx, items, rows, columns, depth, 1);
}

/* ---- a chunk ---- */

typedef struct {
    const an_amx_job *job;
    job_cut cut;
    bool outer_is_b, one_inner; /* one_inner: for all items */
    bool streams;               /* dst is stored past the caches */
    an_amx_range items, outer, inner, steps;
    int64_t workers;
    atomic_int *taken; /* parts of each outer block */
    char *inner_panels, *threads;
    float *sums; /* if there are more chunks in k */
    size_t thread_bytes, block_bytes, stack_bytes;
    int slots; /* of sums that wait; 1: there are no leaves */
    int64_t run_count;
} chunk;

static int64_t blocks_of(const chunk *c) {
    return c->items.count * an_divide_up(c->outer.count, c->cut.block_panels);
}

static char *inner_panel(const chunk *c, int64_t item, int64_t panel, int64_t step) {
    if (c->one_inner) item = 0;
    return c->inner_panels + ((item * c->inner.count + panel) * c->steps.count + step) * BLOCK_BYTES;
}

/* ---- packing the inner operand ---- */

/* What is packed in a task: long in the direction in which the matrix is dense. */
typedef struct {
    int64_t panels, steps, panel_strips, step_strips;
} inner_strips;

static inner_strips strips_of(const chunk *c) {
    inner_strips s = {.panels = 1, .steps = 32}; /* 64 KiB, read along k */
    if (!an_amx_operand_along(c->outer_is_b ? &c->job->a : &c->job->b)) s = (inner_strips){.panels = 16, .steps = 2};
    s.panel_strips = an_divide_up(c->inner.count, s.panels);
    s.step_strips = an_divide_up(c->steps.count, s.steps);
    return s;
}

static void pack_strip(void *user, int64_t index, int thread) {
    const chunk *c = user;
    const inner_strips s = strips_of(c);
    const int64_t in_item = s.panel_strips * s.step_strips, item = index / in_item;
    an_amx_range panels = range_of(c->inner.count, index % s.panel_strips * s.panels, s.panels);
    an_amx_range steps = range_of(c->steps.count, index % in_item / s.panel_strips * s.steps, s.steps);
    char *to = inner_panel(c, item, panels.begin, steps.begin);
    panels.begin += c->inner.begin;
    steps.begin += c->steps.begin;
    an_amx_pack_operand(c->job, c->items.begin + item, !c->outer_is_b, !c->outer_is_b, panels, steps, to,
                        c->steps.count * BLOCK_BYTES);
    (void)thread;
}

/* ---- work ---- */

/* A piece of k of a part: some panels of the outer operand times some of the inner one, both counted in the chunk. */
typedef struct {
    int64_t item;
    an_amx_range outer, inner, steps;
    const char *outer_panels;
    float *sums;                    /* of the first block */
    int64_t outer_sums, inner_sums; /* from a block to the next in either direction */
    int64_t slot_sums;              /* and from a slot to the next; only with leaves */
    float *stack;
    bool first, last; /* in k */
} piece;

static float *sums_at(const piece *p, int64_t outer, int64_t inner) {
    return p->sums + outer * p->outer_sums + inner * p->inner_sums;
}

static dst_block dst_at(const chunk *c, const piece *p, int64_t outer, int64_t inner) {
    const an_amx_job *job = c->job;
    dst_block d = {.item = c->items.begin + p->item};
    outer += c->outer.begin + p->outer.begin;
    inner += c->inner.begin + p->inner.begin;
    d.row = (c->outer_is_b ? inner : outer) * SIDE;
    d.column = (c->outer_is_b ? outer : inner) * SIDE;
    d.rows = an_smaller(SIDE, job->rows - d.row);
    d.columns = an_smaller(SIDE, job->columns - d.column);
    d.offset = an_amx_item_offset(&job->dst_items, d.item) + d.row * job->row_stride + d.column;
    return d;
}

/* What is ahead is the next block's place in dst, if sums go there now, else its sums, if those lie elsewhere. */
static block_ahead look_ahead(const chunk *c, const piece *p, int64_t outer, int64_t inner) {
    const an_amx_job *job = c->job;
    const int64_t panel = p->inner.begin + inner, part = p->steps.count * BLOCK_BYTES / p->outer.count;
    const char *next_inner = inner_panel(c, p->item, panel + (panel + 1 < c->inner.count), p->steps.begin);
    block_ahead ahead = {.inner = next_inner + outer * part};
    if (++outer == p->outer.count) {
        outer = 0;
        if (inner + 1 < p->inner.count) inner++;
    }
    ahead.lines = (const char *)sums_at(p, outer, inner);
    if (p->last && !c->streams) {
        const dst_block d = dst_at(c, p, outer, inner);
        const int64_t size = (int64_t)an_dtype_size(job->dtype);
        ahead.lines = (const char *)job->dst + d.offset * size;
        ahead.stride = job->row_stride * size;
    } else if (p->outer_sums) {
        ahead.stride = LINE;
    }
    return ahead;
}

AN_TILES static void multiply_piece(const chunk *c, const piece *p) {
    const int64_t panel_bytes = p->steps.count * BLOCK_BYTES;
    for (int64_t i = 0; i < p->inner.count; i++) {
        const char *inner = inner_panel(c, p->item, p->inner.begin + i, p->steps.begin);
        for (int64_t o = 0; o < p->outer.count; o++) {
            const char *outer = p->outer_panels + o * panel_bytes;
            const block_ahead ahead = look_ahead(c, p, o, i);
            float *sums = sums_at(p, o, i);
            const dst_block d = dst_at(c, p, o, i);
            const bool add = !p->first || c->job->accumulate;
            if (p->first && c->job->accumulate) load_sums(c->job, d, sums);
            if (c->outer_is_b)
                multiply_block(inner, outer, p->steps.count, true, add, sums, ahead);
            else
                multiply_block(outer, inner, p->steps.count, false, add, sums, ahead);
            if (p->last) store_block(c->job, d, c->streams, sums);
        }
    }
}

/* ---- leaves ---- */

AN_TILES static void multiply_leaves(const chunk *c, const piece *p) {
    const an_amx_leaves *leaves = c->job->leaves;
    const int64_t panel_bytes = p->steps.count * BLOCK_BYTES, step = c->steps.begin + p->steps.begin;
    const an_amx_leaf_run *runs = leaves->runs + an_amx_run_at(leaves, c->run_count, step);
    for (int64_t i = 0; i < p->inner.count; i++) {
        const char *inner = inner_panel(c, p->item, p->inner.begin + i, p->steps.begin);
        for (int64_t o = 0; o < p->outer.count; o++) {
            const char *outer = p->outer_panels + o * panel_bytes;
            const block_ahead ahead = look_ahead(c, p, o, i);
            const block_slots slots = {.kept = sums_at(p, o, i), .stack = p->stack, .kept_slot = p->slot_sums};
            const an_amx_leaf_run *last;
            if (c->outer_is_b)
                last = multiply_runs(runs, p->steps.count, inner, outer, true, &slots, ahead);
            else
                last = multiply_runs(runs, p->steps.count, outer, inner, false, &slots, ahead);
            if (p->last)
                store_joined(c->job, dst_at(c, p, o, i), c->streams, &slots, last);
            else
                join_nodes(&slots, last);
        }
    }
}

/* One part of a block. `packed` is the piece whose outer panels the thread has; -1: none. */
static void multiply_part(const chunk *c, int64_t block, int64_t part, int thread, int64_t *packed) {
    const job_cut *cut = &c->cut;
    const int64_t blocks = an_divide_up(c->outer.count, cut->block_panels);
    char *own = c->threads + (size_t)thread * c->thread_bytes;
    piece p = {.item = block / blocks,
               .outer = range_of(c->outer.count, block % blocks * cut->block_panels, cut->block_panels),
               .inner = range_of(c->inner.count, part * cut->part_panels, cut->part_panels),
               .outer_panels = own,
               .sums = (float *)(own + c->block_bytes + c->stack_bytes),
               .stack = (float *)(own + c->block_bytes)};
    if (c->sums) {
        p.slot_sums = cut->chunk_items * cut->chunk_outer * cut->chunk_inner * SUMS;
        p.outer_sums = c->inner.count * SUMS;
        p.inner_sums = SUMS;
        p.sums = c->sums + ((p.item * c->outer.count + p.outer.begin) * c->inner.count + p.inner.begin) * SUMS;
    } else if (!cut->one_piece) {
        p.outer_sums = SUMS;
        p.inner_sums = cut->block_panels * SUMS;
        p.slot_sums = cut->part_panels * p.inner_sums;
    }
    const an_amx_range panels = {c->outer.begin + p.outer.begin, p.outer.count};
    for (int64_t step = 0; step < c->steps.count; step += cut->piece_steps) {
        p.steps = range_of(c->steps.count, step, cut->piece_steps);
        const an_amx_range steps = {c->steps.begin + step, p.steps.count};
        if (*packed != step)
            an_amx_pack_operand(c->job, c->items.begin + p.item, c->outer_is_b, c->outer_is_b, panels, steps, own,
                                p.steps.count * BLOCK_BYTES);
        *packed = step;
        p.first = steps.begin == 0;
        p.last = steps.begin + steps.count == cut->steps;
        if (c->job->leaves)
            multiply_leaves(c, &p);
        else
            multiply_piece(c, &p);
    }
}

/* A worker begins where no other does and goes on to what others have left. */
AN_TILES static void work(void *user, int64_t worker, int thread) {
    const chunk *c = user;
    const int64_t parts = an_divide_up(c->inner.count, c->cut.part_panels);
    const int64_t blocks = blocks_of(c);
    an_tile_configure(&whole_tiles);
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t block = (worker * blocks / c->workers + i) % blocks;
        int64_t part, packed = -1;
        while ((part = atomic_fetch_add_explicit(&c->taken[block], 1, memory_order_relaxed)) < parts)
            multiply_part(c, block, part, thread, &packed);
    }
    an_tile_release();
    _mm_sfence(); /* what was stored past the caches is there before the threads meet */
}

/* ---- jobs ---- */

static void run_chunk(chunk *c, bool pack) {
    const inner_strips s = strips_of(c);
    const int64_t strips = s.panel_strips * s.step_strips * (c->one_inner ? 1 : c->items.count);
    if (pack && c->workers > 1)
        an_parallel(c->job->ctx, strips, pack_strip, c);
    else if (pack)
        for (int64_t i = 0; i < strips; i++) pack_strip(c, i, 0);
    for (int64_t i = 0; i < blocks_of(c); i++) atomic_init(&c->taken[i], 0);
    an_parallel(c->job->ctx, c->workers, work, c);
}

/* A large dst will not be in a cache when it is read. Lines must be whole. */
static bool should_stream(const an_amx_job *job) {
    enum { LARGE = 1 << 20, FLOATS = LINE / (int)sizeof(float) };
    if (job->dtype != AN_DTYPE_F32 || job->accumulate || job->add_count) return false;
    if (job->items * job->rows * job->columns < LARGE / (int64_t)sizeof(float)) return false;
    for (int i = 0; i < job->dst_items.ndims; i++)
        if (job->dst_items.strides[i] % FLOATS) return false;
    return job->row_stride % FLOATS == 0 && (uintptr_t)job->dst % LINE == 0;
}

static void lay_out(chunk *c) {
    const job_cut *cut = &c->cut;
    char *scratch = c->job->scratch;
    c->taken = (atomic_int *)scratch;
    c->inner_panels = scratch + MOST_BLOCKS * sizeof *c->taken;
    scratch = c->inner_panels + cut->chunk_items * cut->chunk_inner * cut->chunk_steps * BLOCK_BYTES;
    c->stack_bytes = (size_t)stack_bytes(c->slots);
    c->block_bytes = (size_t)(cut->block_panels * cut->piece_steps * BLOCK_BYTES);
    if (cut->chunk_steps < cut->steps) {
        c->sums = (float *)scratch;
        c->threads = scratch + cut->chunk_items * cut->chunk_outer * cut->chunk_inner * c->slots * SUMS_BYTES;
        c->thread_bytes = c->block_bytes + c->stack_bytes;
    } else {
        const int64_t blocks = cut->one_piece ? 1 : cut->block_panels * cut->part_panels * c->slots;
        c->threads = scratch;
        c->thread_bytes = c->block_bytes + c->stack_bytes + (size_t)(blocks * SUMS_BYTES);
    }
}

/* Whether an operand is the same for all items, in each of the products. */
static bool has_one(const an_amx_job *job, bool is_b) {
    bool one = (is_b ? &job->b : &job->a)->items.ndims == 0;
    for (int i = 0; i < job->more_count; i++) one = one && (is_b ? &job->more[i].b : &job->more[i].a)->items.ndims == 0;
    return one;
}

void an_amx_run(const an_amx_job *job) {
    if (job->items < 1 || job->rows < 1 || job->columns < 1) return;
    if (an_amx_few_blocks_applies(job)) {
        an_amx_few_blocks_run(job);
        return;
    }
    if (an_amx_few_applies(job)) {
        an_amx_few_run(job);
        return;
    }
    const int64_t rows = an_divide_up(job->rows, SIDE), columns = an_divide_up(job->columns, SIDE);
    chunk c = {.job = job, .outer_is_b = columns >= rows, .streams = should_stream(job)};
    c.cut = make_cut(job->items, an_larger(rows, columns), an_smaller(rows, columns),
                     job->leaves ? job->leaves->steps : an_amx_steps(job));
    c.one_inner = has_one(job, !c.outer_is_b);
    c.workers = job->items * rows * columns * c.cut.steps < WORTH_THREADS ? 1 : job->ctx->threads;
    c.slots = job->leaves ? job->leaves->slots : 1;
    if (job->leaves) c.run_count = an_amx_leaves_cut(job->leaves, c.cut.chunk_steps, c.cut.piece_steps);
    lay_out(&c);
    const job_cut *cut = &c.cut;
    for (int64_t item = 0; item < job->items; item += cut->chunk_items)
        for (int64_t inner = 0; inner < cut->inner; inner += cut->chunk_inner)
            for (int64_t outer = 0; outer < cut->outer; outer += cut->chunk_outer)
                for (int64_t step = 0; step < cut->steps; step += cut->chunk_steps) {
                    c.items = range_of(job->items, item, cut->chunk_items);
                    c.inner = range_of(cut->inner, inner, cut->chunk_inner);
                    c.outer = range_of(cut->outer, outer, cut->chunk_outer);
                    c.steps = range_of(cut->steps, step, cut->chunk_steps);
                    run_chunk(&c, outer == 0 || c.sums);
                }
}
#endif
