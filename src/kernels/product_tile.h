/* The register tile, for REAL: sums over k of a panel of a times a panel of b. Included by product_core.c through its
 * template.
 *
 * A panel of a has PANEL_ROWS rows, of b PANEL_VECTORS vectors of columns: as many as there are registers for sums. At
 * the edges of dst there are fewer, and the same code is compiled for each number of them. Every element is its own chain
 * of additions: all sizes give the same bits.
 */
typedef REAL NAME(vector) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef REAL NAME(vector_unaligned) __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(sizeof(REAL))));

/* sum[i] (+)= Σ a[i]·b for `rows` rows of `vectors` vectors. Constants all but k, a, b and sum: see run_tile. */
static inline __attribute__((always_inline)) void NAME(tile)(const int rows, const int vectors, int64_t k,
                                                             const REAL *restrict a, const REAL *restrict b,
                                                             REAL *restrict sum, int64_t stride, bool add,
                                                             const REAL *next) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL), A_STEP = PANEL_ROW_STRIDE, B_STEP = LANES * PANEL_VECTORS };
    NAME(vector) part[PANEL_ROWS][PANEL_VECTORS];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int v = 0; v < vectors; v++) part[i][v] = (NAME(vector)){0};
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int v = 0; v < vectors; v++) __builtin_prefetch(sum + i * stride + v * LANES);
    }
    for (int64_t p = 0; p < k; p++, a += A_STEP, b += B_STEP, next += A_STEP / 8) {
        __builtin_prefetch(next);
        NAME(vector) right[PANEL_VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) {
            right[v] = *(const NAME(vector) *)(b + v * LANES);
            __builtin_prefetch(b + v * LANES + PREFETCH_STEPS * B_STEP);
        }
        UNROLL for (int i = 0; i < rows; i++) {
            UNROLL for (int v = 0; v < vectors; v++) part[i][v] = NAME(MULTIPLY_ADD)(a[i], right[v], part[i][v]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int v = 0; v < vectors; v++) {
            NAME(vector_unaligned) *to = (NAME(vector_unaligned) *)(sum + i * stride + v * LANES);
            if (add)
                *to += part[i][v];
            else
                *to = part[i][v];
        }
    }
}

static void NAME(run_tile)(int64_t rows, int64_t vectors, int64_t k, const REAL *a, const REAL *b, REAL *sum,
                           int64_t stride, bool add, const REAL *next) {
#define TILE(n)                                                            \
    case n:                                                                \
        if (vectors == 1)                                                  \
            NAME(tile)(n, 1, k, a, b, sum, stride, add, next);             \
        else                                                               \
            NAME(tile)(n, PANEL_VECTORS, k, a, b, sum, stride, add, next); \
        break;
    switch (rows) {
        TILE(1)
        TILE(2)
        TILE(3)
        TILE(4)
#if PANEL_ROWS > 4
        TILE(5)
        TILE(6)
#endif
#if PANEL_ROWS > 6
        TILE(7)
        TILE(8)
        TILE(9)
        TILE(10)
        TILE(11)
        TILE(12)
        TILE(13)
        TILE(14)
#endif
    }
#undef TILE
}
