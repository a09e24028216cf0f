/* The register tile, for REAL: sums over k of a panel of a times a panel of b. Included by core.c through its
 * template.
 *
 * A panel of a has PANEL_ROWS rows, of b PANEL_VECTORS vectors of columns: as many as there are registers for sums. At
 * the edges of dst there are fewer, and the same code is compiled for each number of them. Every element is its own
 * chain of additions: all sizes give the same bits.
 */
typedef REAL NAME(vector) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef REAL NAME(vector_unaligned) __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(sizeof(REAL))));

/* Panels of a side as the register tile reads them: packed, or an operand's own memory. */
typedef struct {
    const REAL *first;
    int64_t lane, step, panel; /* elements from one lane, one k and one panel to the next; b's lanes are 1 apart */
} NAME(panels);

/* part += Σ a·b for `rows` rows of a panel of a and `vectors` vectors of one of b. rows, vectors and `packed` (whether
 * a is) are constants where this is inlined. What is not at hand is fetched in time: steps of b, and `ahead`. */
static inline __attribute__((always_inline)) void NAME(multiply)(const int rows, const int vectors, const bool packed,
                                                                 int64_t k, NAME(panels) left, NAME(panels) right,
                                                                 NAME(vector) part[PANEL_ROWS][PANEL_VECTORS],
                                                                 fetch ahead) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL), TOGETHER = 3, GROUPS = (PANEL_ROWS + TOGETHER - 1) / TOGETHER };
    const REAL *a = left.first, *b = right.first, *groups[GROUPS];
    const int64_t lane = left.lane, a_step = packed ? left.step : 1, b_step = right.step;
    /* Rows that are not packed need addresses: three have one register, at 0, 1 and 2 times their distance. */
    AN_UNROLL for (int i = 0; i < GROUPS; i++) groups[i] = a + i * TOGETHER * lane;
    for (int64_t p = 0; p < k; p++, a += a_step, b += b_step) {
        NAME(vector) columns[PANEL_VECTORS];
        __builtin_prefetch(ahead.from);
        if (!packed) __builtin_prefetch(ahead.from + ahead.gap);
        ahead.from += ahead.step;
        AN_UNROLL for (int byte = 0; byte < vectors * VECTOR_BYTES; byte += AN_ALIGNMENT)
            __builtin_prefetch((const char *)(b + FETCH_STEPS * b_step) + byte);
        AN_UNROLL for (int v = 0; v < vectors; v++) columns[v] = *(const NAME(vector_unaligned) *)(b + v * LANES);
        AN_UNROLL for (int i = 0; i < rows; i++) {
            const REAL element = packed ? a[i] : groups[i / TOGETHER][i % TOGETHER * lane];
            AN_UNROLL for (int v = 0; v < vectors; v++) part[i][v] =
                NAME(MULTIPLY_ADD)(element, columns[v], part[i][v]);
        }
        AN_UNROLL for (int i = 0; i < GROUPS; i++) groups[i]++;
    }
}

/* A sanitizer gives the sums of every size of a tile a place of their own on the stack, if they are inlined. */
#undef TILE_FUNCTION
#ifdef __SANITIZE_ADDRESS__
#define TILE_FUNCTION static __attribute__((noinline))
#else
#define TILE_FUNCTION static inline __attribute__((always_inline))
#endif

/* sum (+)= Σ a·b. The sums are fetched too. */
TILE_FUNCTION void NAME(tile)(const int rows, const int vectors, const bool packed, int64_t k, NAME(panels) left,
                              NAME(panels) right, REAL *restrict sum, int64_t stride, bool add, fetch ahead) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL) };
    NAME(vector) part[PANEL_ROWS][PANEL_VECTORS];
    AN_UNROLL for (int i = 0; i < rows; i++) {
        AN_UNROLL for (int v = 0; v < vectors; v++) {
            part[i][v] = (NAME(vector)){0};
            __builtin_prefetch(sum + i * stride + v * LANES);
        }
    }
    NAME(multiply)(rows, vectors, packed, k, left, right, part, ahead);
    AN_UNROLL for (int i = 0; i < rows; i++) {
        AN_UNROLL for (int v = 0; v < vectors; v++) {
            NAME(vector_unaligned) *to = (NAME(vector_unaligned) *)(sum + i * stride + v * LANES);
            if (add)
                *to += part[i][v];
            else
                *to = part[i][v];
        }
    }
}

#define TILE(n)                                                                     \
    case n:                                                                         \
        if (vectors == 1)                                                           \
            NAME(tile)(n, 1, packed, k, a, b, sum, stride, add, ahead);             \
        else                                                                        \
            NAME(tile)(n, PANEL_VECTORS, packed, k, a, b, sum, stride, add, ahead); \
        break;
static inline __attribute__((always_inline)) void NAME(run_rows)(const bool packed, int64_t rows, int64_t vectors,
                                                                 int64_t k, NAME(panels) a, NAME(panels) b, REAL *sum,
                                                                 int64_t stride, bool add, fetch ahead) {
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
}
#undef TILE

static void NAME(run_tile)(int64_t rows, int64_t vectors, int64_t k, NAME(panels) a, NAME(panels) b, REAL *sum,
                           int64_t stride, bool add, fetch ahead) {
    if (a.step > 1)
        NAME(run_rows)(true, rows, vectors, k, a, b, sum, stride, add, ahead);
    else
        NAME(run_rows)(false, rows, vectors, k, a, b, sum, stride, add, ahead);
}
