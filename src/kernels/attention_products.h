/* The products of attention: sum[i] += Σ factors[r]·rows[r][i] for i < n, r from 0 up.
 *
 * Included once for each width of vector, with REAL, PRODUCTS (the function's name) and TARGET (what it may assume of the
 * machine). Every element is its own chain of additions, and nothing here fuses a multiplication with an addition: all
 * widths give the same bits. Four r at a time save loads and stores of the sum and leave the chain as it is.
 */
TARGET static void PRODUCTS(int64_t n, int64_t count, const REAL *factors, int64_t factor_stride, const REAL *rows,
                            int64_t row_stride, REAL *restrict sum) {
    enum { AT_ONCE = 4 };
    int64_t r = 0;
    for (; r + AT_ONCE <= count; r += AT_ONCE) {
        const REAL *factor = factors + r * factor_stride, f0 = factor[0], f1 = factor[factor_stride];
        const REAL f2 = factor[2 * factor_stride], f3 = factor[3 * factor_stride];
        const REAL *row0 = rows + r * row_stride, *row1 = row0 + row_stride, *row2 = row1 + row_stride;
        const REAL *row3 = row2 + row_stride;
        for (int64_t i = 0; i < n; i++)
            sum[i] = (((sum[i] + f0 * row0[i]) + f1 * row1[i]) + f2 * row2[i]) + f3 * row3[i];
    }
    for (; r < count; r++) {
        const REAL factor = factors[r * factor_stride], *row = rows + r * row_stride;
        for (int64_t i = 0; i < n; i++) sum[i] += factor * row[i];
    }
}
#undef TARGET
#undef PRODUCTS
