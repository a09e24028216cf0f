/* Rows of the binary functions, for REAL, and the kernels that run them. Included by binary_portable.c through
 * instantiate.h. */

#define BINARY(name, formula)                                                                      \
    static void NAME(name)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) { \
        const REAL *a_row = src[0], *b_row = src[1];                                               \
        (void)attributes;                                                                          \
        AN_EACH_ELEMENT(i, n) {                                                                    \
            REAL a = a_row[i], b = b_row[i];                                                       \
            dst[i] = (formula);                                                                    \
        }                                                                                          \
    }                                                                                              \
    AN_KERNEL_OF_ROWS(name)

BINARY(add, a + b)
BINARY(subtract, a - b)
BINARY(multiply, a *b)
BINARY(divide, a / b)
BINARY(maximum, a > b || a != a ? a : b) /* NaN if one is */
BINARY(minimum, a < b || a != a ? a : b)
#undef BINARY

/* `d` is diff_dst, and a and b are the inputs of the forward op */
#define BINARY_DIFF(name, formula)                                                                 \
    static void NAME(name)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) { \
        const REAL *d_row = src[0], *a_row = src[1], *b_row = src[2];                              \
        (void)attributes;                                                                          \
        AN_EACH_ELEMENT(i, n) {                                                                    \
            REAL d = d_row[i], a = a_row[i], b = b_row[i];                                         \
            dst[i] = (formula);                                                                    \
        }                                                                                          \
    }

/* As PyTorch: NaN beside a number counts as selected on both sides. */
BINARY_DIFF(maximum_diff, a < b ? 0 : a == b ? d / 2 : d)
BINARY_DIFF(minimum_diff, a > b ? 0 : a == b ? d / 2 : d)
#undef BINARY_DIFF

static void NAME(power)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {
    (void)attributes;
    NAME(an_vector_pow)(n, src[0], src[1], dst);
}
AN_KERNEL_OF_ROWS(power)

/* b a^(b-1); b = 0 gives 0, also where a^-1 is infinite. */
static void NAME(power_diff_base)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {
    const REAL *d = src[0], *a = src[1], *b = src[2];
    REAL powers[AN_ELEMENTWISE_ROW] = {0}; /* gcc does not know that n > 0 */
    (void)attributes;
    for (int64_t i = 0; i < n; i++) powers[i] = b[i] - 1;
    NAME(an_vector_pow)(n, a, powers, powers);
    AN_EACH_ELEMENT(i, n) dst[i] = b[i] == 0 ? 0 : d[i] * (b[i] * powers[i]);
}

/* a^b log a, whose limit for a → 0 is 0 for b > 0; for b = 0 it is taken as 0 too. */
static void NAME(power_diff_exponent)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {
    const REAL *d = src[0], *a = src[1], *b = src[2];
    REAL powers[AN_ELEMENTWISE_ROW], logs[AN_ELEMENTWISE_ROW];
    (void)attributes;
    NAME(an_vector_pow)(n, a, b, powers);
    NAME(an_vector_log)(n, a, logs);
    AN_EACH_ELEMENT(i, n) dst[i] = a[i] == 0 && b[i] >= 0 ? 0 : d[i] * (powers[i] * logs[i]);
}
