#include "tiles/model.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ----
 *
 * Intel's manual says of these instructions that they take denormals for zeros and make none, and round to the nearest,
 * whatever the environment asks for. The order of sums, what counts as too small, and which of two NaNs a sum gives
 * were found by experiment; they are those of the processor's other instructions. */

enum { SIGN = 1 << 31, EXPONENT = 0x7f800000, QUIET = 1 << 22 };

static inline uint32_t bits_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static inline float float_of_bf16(uint16_t bits) {
    return float_of((uint32_t)bits << 16);
}

/* Without a branch, which would keep gcc from using vectors. */
static inline uint32_t choose(bool condition, uint32_t yes, uint32_t no) {
    const uint32_t mask = (uint32_t)0 - condition;
    return (yes & mask) | (no & ~mask);
}

static inline uint32_t flush(uint32_t bits) {
    return choose(bits & EXPONENT, bits, bits & (uint32_t)SIGN);
}

static inline bool is_nan(uint32_t bits) {
    return (bits & ~(uint32_t)SIGN) > EXPONENT;
}

/* The NaN of an operation with these operands: that of the first operand that is one, or the default. */
static inline uint32_t nan_of(uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t none = (uint32_t)SIGN | EXPONENT | QUIET;
    return choose(is_nan(a), a | QUIET, choose(is_nan(b), b | QUIET, choose(is_nan(c), c | QUIET, none)));
}

static inline float add(float a, float b) {
    const uint32_t x = flush(bits_of(a)), y = flush(bits_of(b));
    const uint32_t sum = bits_of(float_of(x) + float_of(y));
    return float_of(choose(is_nan(sum), nan_of(x, y, 0), flush(sum)));
}

/* a·b + c, rounded once. A result is too small if it is so when rounded to 24 bits, as which the same sum of larger
 * numbers shows it: fmaf would round it to a denormal's fewer bits, and so up to the smallest normal number. */
static inline float multiply_add(float a, float b, float c) {
    const float larger = 0x1p64F, minimum = 0x1p-126F;
    const uint32_t x = flush(bits_of(a)), y = flush(bits_of(b)), z = flush(bits_of(c));
    const uint32_t sum = bits_of(fmaf(float_of(x), float_of(y), float_of(z)));
    const uint32_t size = bits_of(fmaf(float_of(x) * larger, float_of(y), float_of(z) * larger)) & ~(uint32_t)SIGN;
    const bool is_least = (sum & ~(uint32_t)SIGN) == bits_of(minimum), is_small = size < bits_of(minimum * larger);
    const uint32_t rounded = choose(is_least & is_small, sum & (uint32_t)SIGN, flush(sum));
    return float_of(choose(is_nan(sum), nan_of(x, y, z), rounded));
}

void tile_model_round(int count, const float *numbers, uint16_t *rounded) {
    enum { HALF = 0x7fff };
    for (int i = 0; i < count; i++) {
        const uint32_t bits = flush(bits_of(numbers[i]));
        const uint32_t nearest = bits + HALF + (bits >> 16 & 1);
        rounded[i] = (uint16_t)((is_nan(bits) ? bits | QUIET : nearest) >> 16);
    }
}

void tile_model_multiply_pairs(int count, float *sums, const uint16_t *a, const uint16_t *b) {
    for (int i = 0; i < count; i++) {
        const float odd = multiply_add(float_of_bf16(a[2 * i + 1]), float_of_bf16(b[2 * i + 1]), sums[i]);
        sums[i] = multiply_add(float_of_bf16(a[2 * i]), float_of_bf16(b[2 * i]), odd);
    }
}

/* ---- tiles ---- */

typedef struct {
    int rows, row_bytes;
    _Alignas(TILE_MODEL_ROW_BYTES) unsigned char bytes[TILE_MODEL_ROWS][TILE_MODEL_ROW_BYTES];
} tile;

static _Thread_local tile tiles[TILE_MODEL_TILES];
static _Thread_local bool is_configured;

static void require(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "tile model: %s\n", what);
    abort();
}

void tile_model_configure(const void *sizes) {
    enum { PALETTE = 1, HEAD = 16, ENTRIES = 16, BYTES = HEAD + 3 * ENTRIES };
    unsigned char bytes[BYTES];
    memcpy(bytes, sizes, sizeof bytes);
    require(!is_configured, "tiles are configured again before they are released");
    require(bytes[0] == PALETTE, "the palette is not 1");
    for (int i = 1; i < HEAD; i++) require(bytes[i] == 0, "a reserved byte of the configuration is not 0");
    for (int i = 0; i < ENTRIES; i++) {
        uint16_t row_bytes;
        const int rows = bytes[HEAD + 2 * ENTRIES + i];
        memcpy(&row_bytes, bytes + HEAD + 2 * i, sizeof row_bytes);
        require(rows <= TILE_MODEL_ROWS, "a tile has more than 16 rows");
        require(row_bytes <= TILE_MODEL_ROW_BYTES, "a tile has more than 64 bytes in a row");
        require((rows == 0) == (row_bytes == 0), "a tile has rows without bytes, or bytes without rows");
        require(i < TILE_MODEL_TILES || rows == 0, "there are no tiles after the eighth");
        if (i < TILE_MODEL_TILES) tiles[i] = (tile){.rows = rows, .row_bytes = row_bytes};
    }
    is_configured = true;
}

void tile_model_release(void) {
    is_configured = false;
}

static tile *tile_at(int number) {
    require(is_configured, "a tile is used before tiles are configured");
    require(number >= 0 && number < TILE_MODEL_TILES, "there is no tile of this number");
    require(tiles[number].rows > 0, "a tile is used that is not configured");
    return &tiles[number];
}

void tile_model_zero(int number) {
    tile *t = tile_at(number);
    memset(t->bytes, 0, sizeof t->bytes);
}

/* What a tile has no rows or columns for becomes zero. */
void tile_model_load(int number, const void *from, int64_t stride) {
    tile *t = tile_at(number);
    memset(t->bytes, 0, sizeof t->bytes);
    for (int i = 0; i < t->rows; i++) memcpy(t->bytes[i], (const char *)from + i * stride, (size_t)t->row_bytes);
}

void tile_model_store(int number, void *to, int64_t stride) {
    const tile *t = tile_at(number);
    for (int i = 0; i < t->rows; i++) memcpy((char *)to + i * stride, t->bytes[i], (size_t)t->row_bytes);
}

/* ---- products ---- */

enum { WORD = 4, COLUMNS = TILE_MODEL_ROW_BYTES / WORD }; /* of a tile: words of 32 bits */

static void require_sizes(const tile *sums, const tile *a, const tile *b) {
    require(sums != a && sums != b && a != b, "a tile is used twice in one matmul");
    require(sums->row_bytes % WORD == 0 && a->row_bytes % WORD == 0 && b->row_bytes % WORD == 0,
            "a row is not a number of words");
    require(sums->rows == a->rows, "the sums do not have the rows of the left side");
    require(sums->row_bytes == b->row_bytes, "the sums do not have the columns of the right side");
    require(a->row_bytes == b->rows * WORD, "the depth of the left side is not that of the right side");
}

/* The numbers of a tile at even places of its rows, and at odd ones. */
typedef struct {
    float even[TILE_MODEL_ROWS][COLUMNS], odd[TILE_MODEL_ROWS][COLUMNS];
} pairs;

static void split(const tile *t, pairs *p) {
    for (int row = 0; row < TILE_MODEL_ROWS; row++) {
        uint16_t numbers[2 * COLUMNS];
        memcpy(numbers, t->bytes[row], sizeof numbers);
        for (int i = 0; i < COLUMNS; i++) {
            p->even[row][i] = float_of_bf16(numbers[2 * i]);
            p->odd[row][i] = float_of_bf16(numbers[2 * i + 1]);
        }
    }
}

/* All columns of a row are computed, as compilers then use vectors. What a tile does not have is zero and stays zero:
 * 0·0 + 0. */
static void multiply_row(float a, const float *restrict b, float *restrict sums) {
    for (int i = 0; i < COLUMNS; i++) sums[i] = multiply_add(a, b[i], sums[i]);
}

/* Products of even places are summed, those of odd places are, and then both sums are added and this to what was
 * there. */
void tile_model_multiply_bf16(int sums, int a, int b) {
    tile *to = tile_at(sums);
    pairs left, right;
    require_sizes(to, tile_at(a), tile_at(b));
    split(tile_at(a), &left);
    split(tile_at(b), &right);
    for (int row = 0; row < to->rows; row++) {
        float even[COLUMNS] = {0}, odd[COLUMNS] = {0}, all[COLUMNS];
        for (int k = 0; k < tile_at(b)->rows; k++) {
            multiply_row(left.even[row][k], right.even[k], even);
            multiply_row(left.odd[row][k], right.odd[k], odd);
        }
        memcpy(all, to->bytes[row], sizeof all);
        for (int i = 0; i < COLUMNS; i++) all[i] = add(all[i], add(even[i], odd[i]));
        memcpy(to->bytes[row], all, (size_t)to->row_bytes);
    }
}

/* Sums wrap around. */
void tile_model_multiply_int8(int sums, int a, int b) {
    tile *to = tile_at(sums);
    const tile *left = tile_at(a), *right = tile_at(b);
    require_sizes(to, left, right);
    for (int row = 0; row < to->rows; row++) {
        uint32_t all[COLUMNS];
        int8_t factors[TILE_MODEL_ROW_BYTES], others[TILE_MODEL_ROW_BYTES];
        memcpy(all, to->bytes[row], sizeof all);
        memcpy(factors, left->bytes[row], sizeof factors);
        for (int k = 0; k < right->rows; k++) {
            memcpy(others, right->bytes[k], sizeof others);
            for (int i = 0; i < TILE_MODEL_ROW_BYTES; i++)
                all[i / WORD] += (uint32_t)(factors[k * WORD + i % WORD] * others[i]);
        }
        memcpy(to->bytes[row], all, (size_t)to->row_bytes);
    }
}
