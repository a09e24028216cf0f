/* The register tile of several leaves, or of one whose sums complete others, for REAL. Included by core.c through its
 * template, after tile.h.
 *
 * Sums of leaves that wait for their right neighbour lie on the stack, in the first-level cache. What waits outside of
 * the piece is added last, from the tile's registers.
 */

/* What is added to the sums of a tile of dst, in this order, and where they go then. */
typedef struct {
    int count;
    const REAL *from[MOST_ENDS];
    int64_t strides[MOST_ENDS];
    REAL *to;
    int64_t stride;
} NAME(ends);

static void NAME(ends_add)(NAME(ends) * ends, const REAL *from, int64_t stride) {
    ends->from[ends->count] = from;
    ends->strides[ends->count++] = stride;
}

/* Ends a row, or the beginning of one, whose sums are in `values`. */
static void NAME(ends_row)(const NAME(ends) * ends, int64_t row, int64_t column, int64_t count, REAL *restrict values) {
    for (int e = 0; e < ends->count; e++) {
        const REAL *restrict from = ends->from[e] + row * ends->strides[e] + column;
        for (int64_t j = 0; j < count; j++) values[j] = from[j] + values[j];
    }
    memcpy(ends->to + row * ends->stride + column, values, (size_t)count * sizeof *values);
}

/* A piece of a panel of a times that of b. `row` and `column` are the places of the panels in the tile of dst. */
TILE_FUNCTION void NAME(leaf_tile)(const int rows, const int vectors, const bool packed, const an_product_piece *piece,
                                   NAME(panels) left, NAME(panels) right, const NAME(ends) * ends, int64_t row,
                                   int64_t column, fetch ahead) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL) };
    NAME(vector) part[PANEL_ROWS][PANEL_VECTORS], waiting[AN_PRODUCT_LEAF_LEVELS][PANEL_ROWS][PANEL_VECTORS];
    REAL *to = ends->to + row * ends->stride + column;
    int64_t wait = 0;
    AN_UNROLL for (int i = 0; i < rows; i++) {
        AN_UNROLL for (int v = 0; v < vectors; v++) __builtin_prefetch(to + i * ends->stride + v * LANES);
    }
    for (int64_t leaf = 0;; leaf++) {
        const int64_t k = piece->leaf_count > 1 ? piece->leaves[leaf].rows : piece->count;
        const int64_t next = piece->leaf_count > 1 ? wait - piece->leaves[leaf].joins : 0;
        AN_UNROLL for (int i = 0; i < rows; i++) {
            AN_UNROLL for (int v = 0; v < vectors; v++) part[i][v] = (NAME(vector)){0};
        }
        NAME(multiply)(rows, vectors, packed, k, left, right, part, ahead);
        while (wait > next) {
            wait--;
            AN_UNROLL for (int i = 0; i < rows; i++) {
                AN_UNROLL for (int v = 0; v < vectors; v++) part[i][v] = waiting[wait][i][v] + part[i][v];
            }
        }
        if (leaf + 1 == piece->leaf_count) break;
        AN_UNROLL for (int i = 0; i < rows; i++) {
            AN_UNROLL for (int v = 0; v < vectors; v++) waiting[wait][i][v] = part[i][v];
        }
        wait++;
        left.first += k * (packed ? left.step : 1);
        right.first += k * right.step;
        ahead.from += k * ahead.step;
    }
    for (int e = 0; e < ends->count; e++) {
        const int64_t stride = ends->strides[e];
        const REAL *from = ends->from[e] + row * stride + column;
        AN_UNROLL for (int i = 0; i < rows; i++) {
            AN_UNROLL for (int v = 0; v < vectors; v++) {
                const NAME(vector_unaligned) *at = (const NAME(vector_unaligned) *)(from + i * stride + v * LANES);
                part[i][v] = *at + part[i][v];
            }
        }
    }
    AN_UNROLL for (int i = 0; i < rows; i++) {
        AN_UNROLL for (int v = 0; v < vectors; v++) * (NAME(vector_unaligned) *)(to + i * ends->stride + v * LANES) =
            part[i][v];
    }
}

/* Only for whole panels, as each form of it takes the compiler seconds. */
/* Its sums take 16 kB of the stack, which chains at the end of a product must not find taken: it is no part of its
 * caller. */
static __attribute__((noinline)) void NAME(run_leaf_tile)(int64_t vectors, const an_product_piece *piece,
                                                          NAME(panels) a, NAME(panels) b, const NAME(ends) * ends,
                                                          int64_t row, int64_t column, fetch ahead) {
    if (a.step > 1 && vectors == 1)
        NAME(leaf_tile)(PANEL_ROWS, 1, true, piece, a, b, ends, row, column, ahead);
    else if (a.step > 1)
        NAME(leaf_tile)(PANEL_ROWS, PANEL_VECTORS, true, piece, a, b, ends, row, column, ahead);
    else if (vectors == 1)
        NAME(leaf_tile)(PANEL_ROWS, 1, false, piece, a, b, ends, row, column, ahead);
    else
        NAME(leaf_tile)(PANEL_ROWS, PANEL_VECTORS, false, piece, a, b, ends, row, column, ahead);
}

/* The same for any number of rows, and where whole vectors would write behind the right edge of dst. */
static __attribute__((noinline)) void NAME(run_leaf_edge)(int64_t rows, int64_t vectors, int64_t columns,
                                                          const an_product_piece *piece, NAME(panels) a, NAME(panels) b,
                                                          const NAME(ends) * ends, int64_t row, int64_t column,
                                                          fetch ahead) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL), WIDTH = PANEL_BYTES / sizeof(REAL) };
    _Alignas(AN_ALIGNMENT) REAL sums[AN_PRODUCT_LEAF_LEVELS + 1][PANEL_ROWS][WIDTH];
    int64_t wait = 0;
    for (int64_t leaf = 0; leaf < piece->leaf_count; leaf++, wait++) {
        const int64_t k = piece->leaf_count > 1 ? piece->leaves[leaf].rows : piece->count;
        const int64_t joins = piece->leaf_count > 1 ? piece->leaves[leaf].joins : 0;
        NAME(run_tile)(rows, vectors, k, a, b, sums[wait][0], WIDTH, false, ahead);
        for (int64_t end = wait - joins; wait > end; wait--)
            for (int64_t i = 0; i < rows; i++) {
                REAL *left = sums[wait - 1][i], *right = sums[wait][i];
                for (int64_t j = 0; j < vectors * LANES; j++) left[j] = left[j] + right[j];
            }
        a.first += k * a.step;
        b.first += k * b.step;
        ahead.from += k * ahead.step;
    }
    for (int64_t i = 0; i < rows; i++) NAME(ends_row)(ends, row + i, column, columns, sums[0][i]);
}
