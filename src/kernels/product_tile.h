/* The register tile: PANEL_ROWS × PANEL_COLUMNS sums over k of a panel of a times a panel of b, added to `sum`.
 *
 * Included once for each width of vector, with REAL, TILE (the function's name), TARGET (what it may assume of the
 * machine), VECTOR_BYTES, and ROWS × VECTORS, the part of the tile whose sums fit into the registers. Every element is
 * its own chain of additions, and nothing here fuses a multiplication with an addition: all widths give the same bits.
 */
TARGET static void TILE(int64_t k, const REAL *restrict a, const REAL *restrict b, REAL *restrict sum, int64_t stride) {
    typedef REAL vector __attribute__((vector_size(VECTOR_BYTES), may_alias));
    enum { COLUMNS = PANEL_BYTES / sizeof(REAL), PART = VECTOR_BYTES / sizeof(REAL) * VECTORS };
    for (int row = 0; row < PANEL_ROWS; row += ROWS) {
        for (int column = 0; column < COLUMNS; column += PART) {
            vector part[ROWS][VECTORS] = {0};
            for (int64_t p = 0; p < k; p++) {
                const REAL *left = a + p * PANEL_ROWS + row;
                const vector *right = (const vector *)(b + p * COLUMNS + column);
                for (int i = 0; i < ROWS; i++)
                    for (int v = 0; v < VECTORS; v++) part[i][v] += left[i] * right[v];
            }
            for (int i = 0; i < ROWS; i++) {
                vector *to = (vector *)(sum + (row + i) * stride + column);
                for (int v = 0; v < VECTORS; v++) to[v] += part[i][v];
            }
        }
    }
}
#undef TARGET
#undef TILE
#undef VECTOR_BYTES
#undef ROWS
#undef VECTORS
