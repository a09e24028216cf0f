#include "kernels/product/amx_pack.h"

#ifdef __AVX512F__
#include <immintrin.h>
#include <string.h>

#include "kernels/product/amx_leaves.h"
#include "kernels/product/amx_widen.h"

enum {
    SIDE = AN_AMX_SIDE,
    HALF = SIDE / 2,
    ROW = 64,   /* bytes of a tile's row, and of a vector */
    QUARTER = 8 /* elements of a quarter of a vector */
};

/* A block is packed from 32 rows of 32 elements: rows along k, one for each lane, or across, one for each k. */
typedef void pack_block(const uint16_t *rows, int64_t stride, char *to);

/* Eight elements of each of four rows, side by side: the first half of a transposition, done by loads. */
static inline __m512i four_rows(const uint16_t *row, int64_t apart) {
    __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const void *)row));
    x = _mm512_mask_broadcast_i32x4(x, 0x00f0, _mm_loadu_si128((const void *)(row + apart)));
    x = _mm512_mask_broadcast_i32x4(x, 0x0f00, _mm_loadu_si128((const void *)(row + 2 * apart)));
    return _mm512_mask_broadcast_i32x4(x, 0xf000, _mm_loadu_si128((const void *)(row + 3 * apart)));
}

static void a_along(const uint16_t *rows, int64_t stride, char *to) {
    for (int i = 0; i < SIDE; i++) _mm512_store_si512(to + i * ROW, _mm512_loadu_si512(rows + i * stride));
}

/* Rows are k: 8 × 8 elements are transposed in each quarter of eight vectors, and quarters are eight k apart. */
static void a_across(const uint16_t *rows, int64_t stride, char *to) {
    for (int lane = 0; lane < SIDE; lane += QUARTER, to += QUARTER * ROW) {
        __m512i x[QUARTER], y[QUARTER];
        for (int k = 0; k < QUARTER; k++) x[k] = four_rows(rows + k * stride + lane, QUARTER * stride);
        for (int k = 0; k < QUARTER; k += 2) {
            y[k] = _mm512_unpacklo_epi16(x[k], x[k + 1]); /* lanes 0 to 3 */
            y[k + 1] = _mm512_unpackhi_epi16(x[k], x[k + 1]);
        }
        for (int k = 0; k < QUARTER; k += 4) {
            x[k] = _mm512_unpacklo_epi32(y[k], y[k + 2]); /* lanes 0 and 1 */
            x[k + 1] = _mm512_unpackhi_epi32(y[k], y[k + 2]);
            x[k + 2] = _mm512_unpacklo_epi32(y[k + 1], y[k + 3]);
            x[k + 3] = _mm512_unpackhi_epi32(y[k + 1], y[k + 3]);
        }
        for (int pair = 0; pair < QUARTER / 2; pair++) {
            _mm512_store_si512(to + 2 * pair * ROW, _mm512_unpacklo_epi64(x[pair], x[pair + 4]));
            _mm512_store_si512(to + (2 * pair + 1) * ROW, _mm512_unpackhi_epi64(x[pair], x[pair + 4]));
        }
    }
}

/* Rows are lanes: 4 × 4 pairs are transposed in each quarter of four vectors, and quarters are four lanes apart. */
static void b_along(const uint16_t *rows, int64_t stride, char *to) {
    for (int tile = 0; tile < 2; tile++, rows += HALF * stride) {
        for (int k = 0; k < SIDE; k += QUARTER, to += QUARTER / 2 * ROW) {
            __m512i x[4], y[4];
            for (int lane = 0; lane < 4; lane++) x[lane] = four_rows(rows + lane * stride + k, 4 * stride);
            y[0] = _mm512_unpacklo_epi32(x[0], x[1]);
            y[1] = _mm512_unpackhi_epi32(x[0], x[1]);
            y[2] = _mm512_unpacklo_epi32(x[2], x[3]);
            y[3] = _mm512_unpackhi_epi32(x[2], x[3]);
            _mm512_store_si512(to, _mm512_unpacklo_epi64(y[0], y[2]));
            _mm512_store_si512(to + ROW, _mm512_unpackhi_epi64(y[0], y[2]));
            _mm512_store_si512(to + 2 * ROW, _mm512_unpacklo_epi64(y[1], y[3]));
            _mm512_store_si512(to + 3 * ROW, _mm512_unpackhi_epi64(y[1], y[3]));
        }
    }
}

/* Rows are k: two of them are woven together. */
static void b_across(const uint16_t *rows, int64_t stride, char *to) {
    /* Weaving is done in each quarter, from its lower and its upper half: lanes 0 to 15 are put into the lower ones. */
    const __m512i halves = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    for (int pair = 0; pair < HALF; pair++, rows += 2 * stride, to += ROW) {
        const __m512i even = _mm512_permutexvar_epi64(halves, _mm512_loadu_si512(rows));
        const __m512i odd = _mm512_permutexvar_epi64(halves, _mm512_loadu_si512(rows + stride));
        _mm512_store_si512(to, _mm512_unpacklo_epi16(even, odd));
        _mm512_store_si512(to + AN_AMX_TILE_BYTES, _mm512_unpackhi_epi16(even, odd));
    }
}

/* A block that is not whole, or whose rows are not dense, is copied first. */
static void copy_rows(const uint16_t *from, int64_t row_stride, int64_t stride, int64_t rows, int64_t count,
                      uint16_t *to) {
    memset(to, 0, SIDE * SIDE * sizeof *to);
    for (int64_t row = 0; row < rows; row++, from += row_stride, to += SIDE) {
        if (stride == 1)
            memcpy(to, from, (size_t)count * sizeof *to);
        else
            for (int64_t i = 0; i < count; i++) to[i] = from[i * stride];
    }
}

/* 32 rows of 32 elements from the blocks of as many rows, `row_stride` elements apart. */
AN_TILES static void widen_rows(const uint16_t *blocks, int64_t row_stride, int64_t row, int64_t column, int64_t rows,
                                uint16_t *to) {
    memset(to, 0, SIDE * SIDE * sizeof *to);
    for (int64_t i = 0; i < rows; i++)
        an_amx_widen(an_q8_0_block(blocks, (row + i) * row_stride + column), to + i * SIDE);
}

static int64_t within_side(int64_t left) {
    return left < 0 ? 0 : left < SIDE ? left : SIDE;
}

void an_amx_pack(const an_amx_matrix *m, an_amx_range panels, an_amx_range steps, char *to, int64_t panel_bytes) {
    const bool along = an_amx_along(m);
    pack_block *pack = m->is_b ? along ? b_along : b_across : along ? a_along : a_across;
    const int64_t row_stride = along ? m->lane_stride : m->depth_stride;
    const int64_t stride = along ? m->depth_stride : m->lane_stride;
    const int64_t blocks = panels.count * steps.count, in_line = along ? steps.count : panels.count;
    for (int64_t i = 0; i < blocks; i++) { /* along rows first: memory is read in its own order */
        const int64_t panel = along ? i / in_line : i % in_line, step = along ? i % in_line : i / in_line;
        const int64_t lane = (panels.begin + panel) * SIDE, k = (steps.begin + step) * SIDE;
        const int64_t lanes = within_side(m->lanes - lane), depth = within_side(m->depth - k);
        char *block = to + panel * panel_bytes + step * AN_AMX_BLOCK_BYTES;
        if (m->has_blocks) {
            uint16_t rows[SIDE * SIDE];
            widen_rows(m->data, row_stride, along ? lane : k, along ? k : lane, along ? lanes : depth, rows);
            pack(rows, SIDE, block);
        } else if (lanes == SIDE && depth == SIDE && stride == 1) {
            pack(m->data + lane * m->lane_stride + k * m->depth_stride, row_stride, block);
        } else {
            uint16_t rows[SIDE * SIDE];
            copy_rows(m->data + lane * m->lane_stride + k * m->depth_stride, row_stride, stride, along ? lanes : depth,
                      along ? depth : lanes, rows);
            pack(rows, SIDE, block);
        }
    }
}

int64_t an_amx_item_offset(const an_grid *items, int64_t item) {
    int64_t offset = 0;
    for (int i = items->ndims - 1; i >= 0; i--) {
        offset += item % items->dims[i] * items->strides[i];
        item /= items->dims[i];
    }
    return offset;
}

/* The rows of each leaf alone. Leaves without padding lie as if there were none. */
static void pack_leaves(const an_amx_leaves *leaves, an_amx_matrix m, an_amx_range panels, an_amx_range steps, char *to,
                        int64_t panel_bytes) {
    const uint16_t *data = m.data;
    for (int64_t i = an_amx_leaf_at(leaves, steps.begin); steps.count > 0; i++) {
        const an_amx_leaf *leaf = &leaves->parts[i];
        const int64_t first = steps.begin - leaf->step, left = leaf->steps - first;
        const an_amx_range here = {first, steps.count < left ? steps.count : left};
        m.data = data + leaf->begin * m.depth_stride;
        m.depth = leaf->rows;
        an_amx_pack(&m, panels, here, to, panel_bytes);
        to += here.count * AN_AMX_BLOCK_BYTES;
        steps = (an_amx_range){steps.begin + here.count, steps.count - here.count};
    }
}

void an_amx_pack_operand(const an_amx_job *job, int64_t item, bool is_b, bool as_b, an_amx_range panels,
                         an_amx_range steps, char *to, int64_t panel_bytes) {
    for (int i = 0; i <= job->more_count && steps.count > 0; i++) {
        const an_amx_more *more = i > 0 ? &job->more[i - 1] : NULL;
        const an_amx_operand *o = more ? is_b ? &more->b : &more->a : is_b ? &job->b : &job->a;
        const an_amx_matrix m = {.data = o->data + an_amx_item_offset(&o->items, item),
                                 .lane_stride = o->lane_stride,
                                 .depth_stride = o->depth_stride,
                                 .lanes = is_b ? job->columns : job->rows,
                                 .depth = more ? more->depth : job->depth,
                                 .is_b = as_b,
                                 .has_blocks = o->has_blocks};
        if (job->leaves && !job->leaves->dense) {
            pack_leaves(job->leaves, m, panels, steps, to, panel_bytes);
            return;
        }
        int64_t own = (m.depth + SIDE - 1) / SIDE;
        if (i == 0 && own < 1) own = 1;
        if (steps.begin >= own) {
            steps.begin -= own;
            continue;
        }
        const an_amx_range here = {steps.begin, steps.count < own - steps.begin ? steps.count : own - steps.begin};
        an_amx_pack(&m, panels, here, to, panel_bytes);
        to += here.count * AN_AMX_BLOCK_BYTES;
        steps = (an_amx_range){0, steps.count - here.count};
    }
}
#endif
