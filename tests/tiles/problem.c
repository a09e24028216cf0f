#include "tiles/problem.h"

#include <string.h>

#include "kernels/common/tiles.h"
#include "tiles/model.h"

/* ---- numbers ---- */

static uint64_t draw(uint64_t *random) {
    uint64_t x = *random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *random = x;
}

/* Which numbers a problem has. */
typedef enum {
    ANY,     /* of 16 or 32 random bits: every exponent is as likely as another */
    USUAL,   /* around 1 */
    WIDE,    /* what is added often lies far below what it is added to */
    CANCELS, /* few bits, so that sums are often zero */
    BORDER,  /* sums of products at the smallest normal number, with a little added or taken away */
    SPECIAL, /* zeros, denormals, infinities and NaNs among others */
    KINDS
} kind;

static uint16_t special(uint64_t bits) {
    static const uint16_t numbers[] = {0x0000, 0x8000, 0x0001, 0x807f, 0x0040, 0x0080, 0x8080, 0x7f7f,
                                       0xff7f, 0x7f80, 0xff80, 0x7f81, 0xffa5, 0x7fc0, 0xffd1, 0x3f80};
    return numbers[bits % (sizeof numbers / sizeof *numbers)];
}

/* A number for step `k` of a sum. */
static uint16_t draw_bf16(kind of, int k, uint64_t *random) {
    enum { BIAS = 127, FRACTION = 0x7f, HALF_OF_LEAST = BIAS - 63, LITTLE = BIAS - 75 };
    const uint64_t bits = draw(random);
    const int sign = (int)(bits & 1) << 15, fraction = (int)(bits >> 1 & FRACTION);
    const uint64_t more = bits >> 8;
    switch (of) {
    case USUAL: return (uint16_t)(sign | (BIAS - 6 + (int)(more % 12)) << 7 | fraction);
    case WIDE: return (uint16_t)(sign | (BIAS - 31 + (int)(more % 62)) << 7 | fraction);
    case CANCELS: return (uint16_t)(sign | (BIAS - 1 + (int)(more % 3)) << 7 | (fraction & (int)(more >> 8) & 0x60));
    case BORDER: return (uint16_t)(k == 0 ? HALF_OF_LEAST << 7 : sign | (LITTLE - (int)(more % 2)) << 7 | fraction);
    case SPECIAL: return more % 16 == 0 ? special(more >> 8) : (uint16_t)(sign | BIAS << 7 | fraction);
    default: return (uint16_t)more;
    }
}

/* With bits that bf16 does not have; of these, one alone is half a step of bf16. */
static uint32_t draw_f32(kind of, uint64_t *random) {
    enum { HALF_STEP = 0x8000, EXPONENT = 0x7f80 << 16, EXPONENTS = 3 };
    const uint32_t upper = (uint32_t)draw_bf16(of, 1, random) << 16, lower = (uint32_t)(draw(random) >> 8) & 0xffff;
    switch (of) {
    case CANCELS: return upper | (lower & HALF_STEP);
    case BORDER: return (upper & ~(uint32_t)EXPONENT) | (lower % EXPONENTS) << 23 | lower; /* a third are denormals */
    case SPECIAL: return upper;
    default: return upper | lower;
    }
}

/* ---- problems ---- */

static bool is_of_tiles(problem_head h) {
    return h.instruction == PROBLEM_TILES_BF16 || h.instruction == PROBLEM_TILES_INT8;
}

static void set_bytes(problem *p) {
    enum { WORD = 4, VECTOR = 64 };
    const problem_head h = p->head;
    const bool is_tiles = is_of_tiles(h), is_round = h.instruction == PROBLEM_ROUND;
    p->a_bytes = is_tiles ? h.rows * h.depth * WORD : is_round ? 0 : VECTOR;
    p->b_bytes = is_tiles ? h.depth * h.columns * WORD : is_round ? 0 : VECTOR;
    p->sums_bytes = is_tiles ? h.rows * h.columns * WORD : VECTOR;
}

static void fill_bf16(kind of, int bytes, int step_words, unsigned char *to, uint64_t *random) {
    for (int i = 0; i < bytes / 2; i++) {
        const uint16_t number = draw_bf16(of, step_words ? i / 2 / step_words : i / 2, random);
        memcpy(to + 2 * i, &number, sizeof number);
    }
}

/* The left side of tiles has steps of its sums side by side, the right side one below the other. */
static void fill_left(kind of, const problem_head *h, unsigned char *to, uint64_t *random) {
    for (int row = 0; row < h->rows; row++, to += 4 * h->depth) fill_bf16(of, 4 * h->depth, 1, to, random);
}

static uint8_t draw_size(uint64_t *random) {
    const uint64_t bits = draw(random) >> 8;
    return (uint8_t)(bits % 2 ? 16 : 1 + bits / 2 % 16);
}

void problem_draw(problem *p, problem_instruction instruction, uint64_t *random) {
    const kind of = (kind)((draw(random) >> 8) % KINDS);
    *p = (problem){.head = {(uint8_t)instruction, draw_size(random), draw_size(random), draw_size(random)}};
    if (of == BORDER) p->head.depth = 2;
    set_bytes(p);
    if (instruction == PROBLEM_TILES_INT8) {
        for (int i = 0; i < PROBLEM_BYTES; i++) {
            if (i < p->a_bytes) p->a[i] = (unsigned char)(draw(random) >> 8);
            if (i < p->b_bytes) p->b[i] = (unsigned char)(draw(random) >> 8);
        }
    } else if (instruction == PROBLEM_TILES_BF16) {
        fill_left(of, &p->head, p->a, random);
        fill_bf16(of, p->b_bytes, p->head.columns, p->b, random);
    } else {
        fill_bf16(of, p->a_bytes, PROBLEM_BYTES, p->a, random);
        fill_bf16(of, p->b_bytes, PROBLEM_BYTES, p->b, random);
    }
    const bool is_zero = instruction != PROBLEM_ROUND && draw(random) >> 8 & 1;
    for (int i = 0; i < p->sums_bytes && !is_zero; i += 4) {
        const uint32_t number = instruction == PROBLEM_TILES_INT8 ? (uint32_t)draw(random) : draw_f32(of, random);
        memcpy(p->sums + i, &number, sizeof number);
    }
}

static an_tile_sizes sizes_of(const problem_head *h) {
    return (an_tile_sizes){
        .palette = 1,
        .row_bytes = {(uint16_t)(4 * h->columns), (uint16_t)(4 * h->depth), (uint16_t)(4 * h->columns)},
        .rows = {h->rows, h->rows, h->depth}};
}

/* ---- the model ---- */

static void run_vectors_on_model(problem *p) {
    float sums[16];
    uint16_t a[32], b[32], rounded[32] = {0};
    memcpy(sums, p->sums, sizeof sums);
    memcpy(a, p->a, sizeof a);
    memcpy(b, p->b, sizeof b);
    tile_model_round(16, sums, rounded);
    tile_model_multiply_pairs(16, sums, a, b);
    memcpy(p->sums, p->head.instruction == PROBLEM_ROUND ? (const void *)rounded : sums, sizeof sums);
}

static void run_tiles_on_model(problem *p) {
    const an_tile_sizes sizes = sizes_of(&p->head);
    tile_model_configure(&sizes);
    tile_model_load(0, p->sums, sizes.row_bytes[0]);
    tile_model_load(1, p->a, sizes.row_bytes[1]);
    tile_model_load(2, p->b, sizes.row_bytes[2]);
    if (p->head.instruction == PROBLEM_TILES_BF16)
        tile_model_multiply_bf16(0, 1, 2);
    else
        tile_model_multiply_int8(0, 1, 2);
    tile_model_store(0, p->sums, sizes.row_bytes[0]);
    tile_model_release();
}

void problem_run_on_model(problem *p) {
    if (is_of_tiles(p->head))
        run_tiles_on_model(p);
    else
        run_vectors_on_model(p);
}

/* ---- the processor ---- */

AN_TILES static void run_tiles(problem *p) {
    const an_tile_sizes sizes = sizes_of(&p->head);
    __asm__ volatile("" : : : "memory"); /* gcc's intrinsics do not say that they read memory */
    an_tile_configure(&sizes);
    an_tile_load(0, p->sums, sizes.row_bytes[0]);
    an_tile_load(1, p->a, sizes.row_bytes[1]);
    an_tile_load(2, p->b, sizes.row_bytes[2]);
    if (p->head.instruction == PROBLEM_TILES_BF16)
        an_tile_multiply_bf16(0, 1, 2);
    else
        an_tile_multiply_int8(0, 1, 2);
    an_tile_store(0, p->sums, sizes.row_bytes[0]);
    an_tile_release();
    __asm__ volatile("" : : : "memory");
}

AN_TILES static void run_vectors(problem *p) {
    const __m512 sums = _mm512_load_ps(p->sums);
    if (p->head.instruction == PROBLEM_ROUND)
        _mm512_store_si512(p->sums, _mm512_zextsi256_si512(an_round_16_to_bf16(sums)));
    else
        _mm512_store_ps(p->sums, an_multiply_pairs_bf16(sums, _mm512_load_si512(p->a), _mm512_load_si512(p->b)));
}

void problem_run_on_processor(problem *p) {
    if (is_of_tiles(p->head))
        run_tiles(p);
    else
        run_vectors(p);
}

/* ---- files ---- */

static bool is_sound(const problem_head *h) {
    return h->instruction < PROBLEM_INSTRUCTIONS && h->rows >= 1 && h->rows <= TILE_MODEL_ROWS && h->depth >= 1 &&
           h->depth <= TILE_MODEL_ROWS && h->columns >= 1 && h->columns <= TILE_MODEL_ROWS;
}

bool problem_write(FILE *file, const problem *before, const problem *after) {
    return fwrite(&before->head, sizeof before->head, 1, file) == 1 &&
           fwrite(before->a, 1, (size_t)before->a_bytes, file) == (size_t)before->a_bytes &&
           fwrite(before->b, 1, (size_t)before->b_bytes, file) == (size_t)before->b_bytes &&
           fwrite(before->sums, 1, (size_t)before->sums_bytes, file) == (size_t)before->sums_bytes &&
           fwrite(after->sums, 1, (size_t)after->sums_bytes, file) == (size_t)after->sums_bytes;
}

bool problem_read(FILE *file, problem *before, problem *after) {
    *before = (problem){0};
    if (fread(&before->head, sizeof before->head, 1, file) != 1 || !is_sound(&before->head)) return false;
    set_bytes(before);
    if (fread(before->a, 1, (size_t)before->a_bytes, file) != (size_t)before->a_bytes ||
        fread(before->b, 1, (size_t)before->b_bytes, file) != (size_t)before->b_bytes ||
        fread(before->sums, 1, (size_t)before->sums_bytes, file) != (size_t)before->sums_bytes)
        return false;
    *after = *before;
    return fread(after->sums, 1, (size_t)after->sums_bytes, file) == (size_t)after->sums_bytes;
}
