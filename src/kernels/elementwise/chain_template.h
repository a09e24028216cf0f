/* Chains for REAL. Included by chain.c through instantiate.h. */

void NAME(an_chain_round)(an_dtype dtype, int64_t n, REAL *values) {
    if (dtype == AN_DTYPE_BF16)
        for (int64_t i = 0; i < n; i++) values[i] = (REAL)an_bf16_to_f32(an_f32_to_bf16((float)values[i]));
    else if (dtype == AN_DTYPE_F16)
        for (int64_t i = 0; i < n; i++) values[i] = (REAL)an_f16_to_f32(an_f32_to_f16((float)values[i]));
    else if (dtype == AN_DTYPE_F32)
        for (int64_t i = 0; i < n; i++) values[i] = (REAL)(float)values[i];
}

void NAME(an_chain_run)(const an_chain *chain, int64_t n, const REAL *const *inputs, REAL *values, int kept,
                        REAL *copy) {
    for (int s = 0; s < chain->count; s++) {
        const an_chain_stage *stage = &chain->stages[s];
        const REAL *rows[AN_CHAIN_OPERANDS] = {NULL};
        for (int i = 0; i < stage->operand_count; i++)
            rows[i] = stage->operands[i] == AN_CHAIN_VALUE ? values : inputs[stage->operands[i]];
        stage->kernel->NAME(row)(n, rows, values, NULL);
        NAME(an_chain_round)(stage->dtype, n, values);
        if (s == kept) memcpy(copy, values, (size_t)n * sizeof *copy);
    }
}

/* As a row function of the elementwise driver; its attributes are the chain. */
static void NAME(chain_row)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {
    REAL values[AN_ELEMENTWISE_ROW] = {0}; /* not dst: stages may read any input again */
    memcpy(values, src[0], (size_t)n * sizeof *values);
    NAME(an_chain_run)(attributes, n, src, values, -1, NULL);
    memcpy(dst, values, (size_t)n * sizeof *dst);
}
