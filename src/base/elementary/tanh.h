/* tanh of arrays, for REAL. Included by elementary.c, once a type.
 *
 * The operations of an_tanh, on several vectors at a time: the polynomials of one are a chain too long for a core to
 * find enough other work behind it. Where all arguments of a block are small, nothing else is computed. Each result has
 * the bits of an_tanh.
 */
typedef REAL NAME(vector) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef BITS NAME(bits) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef BITS NAME(bits_unaligned) __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(sizeof(REAL))));

static INLINE NAME(vector) NAME(all)(REAL x) {
    return x - (NAME(vector)){0};
}

/* Masks of lanes, and what is chosen by them; the smaller of two numbers, and NaN if b is. */
#if defined(__AVX512F__)
typedef NAME(MASK) NAME(mask);
static INLINE NAME(mask) NAME(below)(NAME(vector) a, REAL b) {
    return NAME(BELOW)(a, NAME(all)(b));
}
static INLINE NAME(vector) NAME(choose)(NAME(mask) mask, NAME(vector) yes, NAME(vector) no) {
    return NAME(BLEND)(mask, no, yes);
}
static INLINE NAME(vector) NAME(smaller)(REAL a, NAME(vector) b) {
    return NAME(MIN)(NAME(all)(a), b);
}
static INLINE bool NAME(in_all)(const NAME(mask) * masks) {
    NAME(mask) all = masks[0];
    AN_UNROLL for (int v = 1; v < TANH_VECTORS; v++) all &= masks[v];
    return all == (NAME(mask)) ~0U;
}
#else
typedef NAME(bits) NAME(mask);
static INLINE NAME(mask) NAME(below)(NAME(vector) a, REAL b) {
    return (NAME(mask))(a < b);
}
static INLINE NAME(vector) NAME(choose)(NAME(mask) mask, NAME(vector) yes, NAME(vector) no) {
    return (NAME(vector))(((NAME(bits))yes & mask) | ((NAME(bits))no & ~mask));
}
static INLINE NAME(vector) NAME(smaller)(REAL a, NAME(vector) b) {
    return NAME(choose)((NAME(mask))(b > a), NAME(all)(a), b);
}
static INLINE bool NAME(in_all)(const NAME(mask) * masks) {
    uint64_t words[VECTOR_BYTES / sizeof(uint64_t)], found = ~UINT64_C(0);
    NAME(mask) all = masks[0];
    AN_UNROLL for (int v = 1; v < TANH_VECTORS; v++) all &= masks[v];
    memcpy(words, &all, sizeof words);
    AN_UNROLL for (size_t i = 0; i < VECTOR_BYTES / sizeof(uint64_t); i++) found &= words[i];
    return found == ~UINT64_C(0);
}
#endif

#define EACH AN_UNROLL for (int v = 0; v < TANH_VECTORS; v++)

/* 1 + e^2a for each, where a is limited. */
static INLINE void NAME(tanh_large)(const NAME(vector) * a, NAME(vector) * denominator) {
    NAME(vector) count[TANH_VECTORS], rest[TANH_VECTORS], correction[TANH_VECTORS], p[TANH_VECTORS];
    EACH p[v] = (REAL)2 * NAME(smaller)(LIMIT, a[v]);
    EACH count[v] = p[v] * AN(LOG2_E) + AN(ROUNDER); /* its low bits are the integer */
    EACH correction[v] = p[v] - (count[v] - AN(ROUNDER)) * AN(LN2_HIGH);
    EACH p[v] = (count[v] - AN(ROUNDER)) * AN(LN2_LOW);
    EACH rest[v] = correction[v] - p[v];
    EACH correction[v] = (correction[v] - rest[v]) - p[v];
    EACH p[v] = NAME(all)(AN(EXP_FIRST));
#define STEP(coefficient)                       \
    EACH p[v] = p[v] * rest[v] + (coefficient); \
    TOGETHER(p)
    AN(EXP_STEPS)
    (STEP)
#undef STEP
        EACH p[v] = p[v] * (rest[v] * rest[v]) + correction[v];
    EACH p[v] = (REAL)1 + (rest[v] + p[v]);
    EACH count[v] = (NAME(vector))(((NAME(bits))count[v] + AN(BIAS)) << AN(SHIFT));
    EACH denominator[v] = p[v] * count[v] + (REAL)1;
}

/* Numerator and denominator below TANH_SMALL. */
static INLINE void NAME(tanh_small)(const NAME(vector) * a, NAME(vector) * numerator, NAME(vector) * denominator) {
    NAME(vector) z[TANH_VECTORS];
    EACH z[v] = a[v] * a[v];
    EACH numerator[v] = a[v] * z[v] * AN(TANH_NUMERATOR)(z[v]);
    EACH denominator[v] = AN(TANH_DENOMINATOR)(z[v]);
}

static __attribute__((noinline)) void NAME(tanh_block)(const REAL *src, REAL *dst) {
    enum { LANES = VECTOR_BYTES / sizeof(REAL) };
    NAME(vector) a[TANH_VECTORS], start[TANH_VECTORS], numerator[TANH_VECTORS], denominator[TANH_VECTORS];
    NAME(mask) small[TANH_VECTORS];
    EACH a[v] = (NAME(vector))(*(const NAME(bits_unaligned) *)(src + v * LANES) & ~AN(SIGN));
    EACH small[v] = NAME(below)(a[v], AN(TANH_SMALL));
    if (NAME(in_all)(small)) {
        NAME(tanh_small)(a, numerator, denominator);
        EACH start[v] = a[v];
    } else {
        NAME(vector) other[TANH_VECTORS];
        NAME(tanh_large)(a, other);
        NAME(tanh_small)(a, numerator, denominator);
        EACH start[v] = NAME(choose)(small[v], a[v], NAME(all)(1));
        EACH numerator[v] = NAME(choose)(small[v], numerator[v], NAME(all)(2));
        EACH denominator[v] = NAME(choose)(small[v], denominator[v], other[v]);
    }
    EACH {
        const NAME(bits) sign = *(const NAME(bits_unaligned) *)(src + v * LANES) & AN(SIGN);
        const NAME(vector) result = start[v] - numerator[v] / denominator[v];
        *(NAME(bits_unaligned) *)(dst + v * LANES) = ((NAME(bits))result & ~AN(SIGN)) | sign;
    }
}
#undef EACH

void NAME(an_vector_tanh)(int64_t n, const REAL *src, REAL *dst) {
    enum { BLOCK = TANH_VECTORS * VECTOR_BYTES / sizeof(REAL) };
    int64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) NAME(tanh_block)(src + i, dst + i);
    if (i < n) {
        REAL rest[BLOCK] = {0};
        memcpy(rest, src + i, (size_t)(n - i) * sizeof *rest);
        NAME(tanh_block)(rest, rest);
        memcpy(dst + i, rest, (size_t)(n - i) * sizeof *rest);
    }
}
