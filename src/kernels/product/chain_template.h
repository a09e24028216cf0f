/* The end of a product for REAL. Included by chain.c through instantiate.h. */

/* `rows` rows of an operand, from element `first` of the row `row` of dst on, `stride` apart in `to`. What lies along
 * the columns is the same for every row. */
static void NAME(load_rows)(const job *j, const an_tensor *t, int64_t row, int64_t column, int64_t rows,
                            int64_t columns, int64_t stride, REAL *to) {
    for (int64_t i = 0; i < rows; i++) {
        const int64_t offset = t->ndims == 1 ? column : (row + i) * j->columns + column;
        const REAL *from = NAME(an_row_load)(t, offset, 1, columns, to + i * stride);
        if (from != to + i * stride) memcpy(to + i * stride, from, (size_t)columns * sizeof *to);
    }
}

/* At most AN_ELEMENTWISE_ROW values, rows of them, so that short rows cost one pass of each stage. What lies along the
 * columns is in the buffers already if the columns are those of the rows before. */
static void NAME(finish_rows)(const job *j, int64_t row, int64_t column, int64_t rows, int64_t columns, int64_t stride,
                              bool same_columns, REAL (*buffers)[AN_ELEMENTWISE_ROW], REAL *values) {
    REAL copy[AN_ELEMENTWISE_ROW], *kept = copy;
    const REAL *inputs[AN_PRODUCT_CHAIN_INPUTS] = {NULL};
    const int64_t n = (rows - 1) * stride + columns;
    for (int i = j->operands; i < j->call->src_count; i++) {
        const an_tensor *t = &j->call->src[i];
        REAL *buffer = buffers[i - j->operands];
        inputs[i] = buffer;
        if (rows == 1) { /* is read where it is */
            const int64_t offset = t->ndims == 1 ? column : row * j->columns + column;
            inputs[i] = NAME(an_row_load)(t, offset, 1, columns, buffer);
            continue;
        }
        if (same_columns && t->ndims == 1) continue;
        if (columns < stride) memset(buffer, 0, sizeof *buffers); /* what lies between rows is computed too */
        NAME(load_rows)(j, t, row, column, rows, columns, stride, buffer);
    }
    NAME(an_chain_round)(j->dtype, n, values);
    if (rows == 1 && j->kept >= 0) kept = NAME(an_row_target)(&j->call->dst[1], row * j->columns + column, 1, copy);
    NAME(an_chain_run)(j->chain, n, inputs, values, j->kept, kept);
    for (int64_t i = 0; i < rows && j->kept >= 0; i++)
        NAME(an_row_store)(&j->call->dst[1], (row + i) * j->columns + column, 1, columns, kept + i * stride);
}

static void NAME(finish)(void *user, const an_product_block *b, REAL *values) {
    const job *j = user;
    REAL buffers[AN_PRODUCT_CHAIN_MORE][AN_ELEMENTWISE_ROW];
    const int64_t first = b->item * j->item_rows + b->row;
    const bool fits = b->stride <= AN_ELEMENTWISE_ROW;
    const int64_t rows = fits ? AN_ELEMENTWISE_ROW / b->stride : 1, columns = fits ? b->columns : AN_ELEMENTWISE_ROW;
    for (int64_t row = 0; row < b->rows; row += rows)
        for (int64_t column = 0; column < b->columns; column += columns) {
            const int64_t some_rows = b->rows - row < rows ? b->rows - row : rows;
            const int64_t some = b->columns - column < columns ? b->columns - column : columns;
            NAME(finish_rows)
            (j, first + row, b->column + column, some_rows, some, fits ? b->stride : some, fits && row > 0, buffers,
             values + row * b->stride + column);
        }
}
