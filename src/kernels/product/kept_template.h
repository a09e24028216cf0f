/* Products with kept panels, for REAL. Included by kept.c through instantiate.h. */

#include "kernels/product/tile.h"

/* Panels one after the other, each with all of k; lanes after the last column stay zero. */
static void NAME(keep)(const REAL *b, int64_t columns, int64_t depth, int64_t column_stride, int64_t k_stride,
                       REAL *kept) {
    enum { WIDTH = PANEL_BYTES / sizeof(REAL) };
    for (int64_t column = 0; column < columns; column++) {
        REAL *panel = kept + column / WIDTH * WIDTH * depth + column % WIDTH;
        for (int64_t k = 0; k < depth; k++) panel[k * WIDTH] = b[column * column_stride + k * k_stride];
    }
}

/* sum (+)= a · b for few rows and WIDE_PANELS whole panels of b. `rows` is a constant where this is inlined. */
static inline __attribute__((always_inline)) void NAME(wide)(const int rows, int64_t k, const REAL *a, int64_t lane,
                                                             const REAL *b, int64_t panel, REAL *sum, int64_t stride,
                                                             bool add) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL), VECTORS = WIDE_PANELS * PANEL_VECTORS };
    NAME(vector) part[WIDE_ROWS][VECTORS];
    AN_UNROLL for (int i = 0; i < rows; i++) {
        AN_UNROLL for (int v = 0; v < VECTORS; v++) part[i][v] = (NAME(vector)){0};
    }
    for (int64_t p = 0; p < k; p++, a++, b += PANEL_VECTORS * LANES) {
        AN_UNROLL for (int v = 0; v < VECTORS; v++) {
            const REAL *at = b + v / PANEL_VECTORS * panel + v % PANEL_VECTORS * LANES;
            const NAME(vector) columns = *(const NAME(vector_unaligned) *)at;
            AN_UNROLL for (int i = 0; i < rows; i++) part[i][v] = NAME(MULTIPLY_ADD)(a[i * lane], columns, part[i][v]);
        }
    }
    AN_UNROLL for (int i = 0; i < rows; i++) {
        AN_UNROLL for (int v = 0; v < VECTORS; v++) {
            NAME(vector_unaligned) *to = (NAME(vector_unaligned) *)(sum + i * stride + v * LANES);
            if (add)
                *to += part[i][v];
            else
                *to = part[i][v];
        }
    }
}

static void NAME(run_wide)(int64_t rows, int64_t k, const REAL *a, int64_t lane, const REAL *b, int64_t panel,
                           REAL *sum, int64_t stride, bool add) {
    if (rows == 1)
        NAME(wide)(1, k, a, lane, b, panel, sum, stride, add);
    else if (rows == 2)
        NAME(wide)(2, k, a, lane, b, panel, sum, stride, add);
    else
        NAME(wide)(3, k, a, lane, b, panel, sum, stride, add);
}

/* At the right edge of dst, beyond which whole vectors would write. */
static void NAME(run_edge)(int64_t rows, int64_t vectors, int64_t columns, int64_t k, NAME(panels) a, NAME(panels) b,
                           REAL *sum, int64_t stride, bool add, fetch ahead) {
    enum { WIDTH = PANEL_BYTES / sizeof(REAL) };
    _Alignas(AN_ALIGNMENT) REAL edge[PANEL_ROWS][WIDTH];
    NAME(run_tile)(rows, vectors, k, a, b, edge[0], WIDTH, false, ahead);
    for (int64_t i = 0; i < rows; i++) {
        if (!add) {
            memcpy(sum + i * stride, edge[i], (size_t)columns * sizeof *sum);
            continue;
        }
        for (int64_t j = 0; j < columns; j++) sum[i * stride + j] += edge[i][j];
    }
}

/* Rows of a times some panels of b, for one piece of k: how many columns those have, the same for all rows of a piece.
 * `few`: these are all its rows, and no more than WIDE_ROWS. */
static int64_t NAME(run_panels)(const job *j, int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t begin,
                                int64_t k, bool few) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL), WIDTH = PANEL_BYTES / sizeof(REAL) };
    const int64_t panel = WIDTH * j->depth, stride = j->columns, vectors = columns > LANES ? PANEL_VECTORS : 1;
    const REAL *a = (const REAL *)j->a + row * j->depth + begin;
    const REAL *b = (const REAL *)j->b + column / WIDTH * panel + begin * WIDTH;
    REAL *sum = (REAL *)j->dst + row * stride + column;
    const NAME(panels) lanes = {a, j->depth, 1, 0}, panels = {b, 1, WIDTH, panel};
    const fetch ahead = {.from = (const char *)a};
    if (few && columns >= WIDE_PANELS * WIDTH) {
        NAME(run_wide)(rows, k, a, j->depth, b, panel, sum, stride, begin > 0);
        return WIDE_PANELS * WIDTH;
    }
    if (columns < vectors * LANES)
        NAME(run_edge)(rows, vectors, columns, k, lanes, panels, sum, stride, begin > 0, ahead);
    else
        NAME(run_tile)(rows, vectors, k, lanes, panels, sum, stride, begin > 0, ahead);
    return WIDTH;
}

/* Rows of a times a block of columns, for one piece of k: a panel of b stays in the first-level cache for all rows. */
static void NAME(run_piece)(const job *j, range rows, range columns, int64_t begin, int64_t k) {
    const int64_t tiles = an_divide_up(rows.count, PANEL_ROWS),
                  tile = an_divide_up(rows.count, tiles); /* none much smaller */
    int64_t some = 0;
    for (int64_t column = 0; column < columns.count; column += some)
        for (int64_t row = 0; row < rows.count; row += tile)
            some = NAME(run_panels)(j, rows.begin + row, an_smaller(tile, rows.count - row), columns.begin + column,
                                    columns.count - column, begin, k, rows.count <= WIDE_ROWS);
}

/* Sums of a block of columns that is not all of them have others between their rows. */
static void NAME(finish_rows_of)(const job *j, range rows, range columns) {
    const int64_t step = columns.count == j->columns ? rows.count : 1;
    for (int64_t i = 0; i < rows.count && j->finish; i += step) {
        const int64_t row = rows.begin + i;
        const an_product_block block = {
            .row = row, .column = columns.begin, .rows = step, .columns = columns.count, .stride = columns.count};
        NAME(finish)(j->finish, &block, (REAL *)j->dst + row * j->columns + columns.begin);
    }
}

static void NAME(run)(const job *j) {
    const int64_t width = BLOCK_COLUMN_BYTES / (int64_t)sizeof(REAL);
    for (int64_t row = 0; row < j->rows; row += BLOCK_ROWS)
        for (int64_t column = 0; column < j->columns; column += width) {
            const range rows = {row, an_smaller(BLOCK_ROWS, j->rows - row)};
            const range columns = {column, an_smaller(width, j->columns - column)};
            for (int64_t k = 0; k < j->depth; k += AN_PRODUCT_PIECE)
                NAME(run_piece)(j, rows, columns, k, an_smaller(AN_PRODUCT_PIECE, j->depth - k));
            NAME(finish_rows_of)(j, rows, columns);
        }
}
