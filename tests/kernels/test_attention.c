/* Fast kernels of attention at sizes that checkops' small cases do not reach: many tiles, whole heads as tasks, views
 * into one buffer of q, k and v. Every kernel of every level that this machine has is asked. */
#include "kernels/attention_calls.h"

/* ---- how right they are ---- */

/* Errors of a tensor: the root of their mean square, as a part of that of what is right; and the largest, as a part of
 * that or of its own element, whichever is larger. */
typedef struct {
    double usual, largest;
} errors;

static errors compare(const an_tensor *got, const an_tensor *want) {
    double sizes = 0, squares = 0, count = 0, largest = 0;
    for (int is_second = 0; is_second < 2; is_second++)
        for (int64_t b = 0; b < got->dims[0]; b++)
            for (int64_t h = 0; h < got->dims[1]; h++)
                for (int64_t n = 0; n < got->dims[2]; n++)
                    for (int64_t d = 0; d < (got->ndims == 4 ? got->dims[3] : 1); d++) {
                        const double right = get(want, offset_of(want, b, h, n, d));
                        const double error = fabs(get(got, offset_of(got, b, h, n, d)) - right);
                        assert_true(error == error);
                        if (is_second) {
                            largest = fmax(largest, error / fmax(fabs(right), sqrt(sizes / count)));
                            continue;
                        }
                        sizes += right * right;
                        squares += error * error;
                        count++;
                    }
    return (errors){sqrt(squares / sizes), largest};
}

/* In units of rounding: 2^-53, 2^-24, or 2^-9 of a bf16 output. Sums in f32 and f64 are of up to 1024
 * terms; the largest is the largest of up to 65,536 elements. In bf16 the rounding of an output is most of
 * its error; others are that of dst before the gradient reads it and, on AMX, of probabilities and
 * gradients of scores before they are summed. */
static const errors most_f32 = {20, 150}, most_bf16 = {2, 30};

static operands *right[2]; /* in f64, by the portable kernel */

static problem precision_problem(int i, an_dtype dtype) {
    const int64_t tokens = i == 0 ? 256 : 1024, heads = 2 - i;
    const an_attention_attributes attributes = {.causal = true, .scale = 0.125, .window = i == 0 ? 100 : 0};
    return (problem){dtype, 1, heads, heads, tokens, tokens, 64, 0, attributes, 3, false};
}

static void check_precision(an_context *ctx, int number, const char *name, an_dtype dtype) {
    for (int i = 0; i < 2; i++) {
        const problem p = precision_problem(i, dtype);
        operands *o = make(&p);
        run(o, ctx, number);
        for (int t = DST; t <= LOG_SUM; t++) {
            const errors e = compare(&o->t[t], &right[i]->t[t]);
            const bool is_low = o->t[t].dtype == AN_DTYPE_BF16;
            const double unit = dtype == AN_DTYPE_F64 ? 0x1p-53 : is_low ? 0x1p-9 : 0x1p-24;
            const errors maximum = is_low ? most_bf16 : most_f32;
            if (e.usual > maximum.usual * unit || e.largest > maximum.largest * unit)
                fail_msg("%s, %s, %s, %d tokens: tensor %d is off by %.3g units, at most by %.3g",
                         an_isa_name(an_context_isa(ctx)), name, an_dtype_name(dtype), (int)p.keys, t, e.usual / unit,
                         e.largest / unit);
        }
        destroy(&o);
    }
}

static void test_precision(void **state) {
    (void)state;
    an_context *base = context_of(AN_ISA_BASE, 2);
    for (int i = 0; i < 2; i++) {
        const problem p = precision_problem(i, AN_DTYPE_F64);
        right[i] = make(&p);
        run(right[i], base, portable_of(AN_ISA_BASE));
    }
    for_each_kernel(check_precision);
    for (int i = 0; i < 2; i++) destroy(&right[i]);
    an_context_destroy(&base);
}

/* ---- the same bits ---- */

/* Tensors DST to LOG_SUM of a sample have the bits of those of another call. */
static void same_sample(const operands *a, int64_t sample_a, const operands *b, int64_t sample_b) {
    for (int t = DST; t < TENSORS; t++) {
        const size_t bytes = a->bytes[t] / (size_t)a->p.batch;
        assert_int_equal(bytes, b->bytes[t] / (size_t)b->p.batch);
        assert_memory_equal((const char *)a->memory[t] + (size_t)sample_a * bytes,
                            (const char *)b->memory[t] + (size_t)sample_b * bytes, bytes);
    }
}

/* In a large batch a task of the gradient is a whole head; alone, a sample is cut by tiles of queries and of keys.
 * Three heads share keys; a window and dropout are there. */
static void check_batch(an_context *ctx, int number, const char *name, an_dtype dtype) {
    const an_attention_attributes attributes = {true, 0.2, 150, 0.3, 77};
    const problem whole = {dtype, 16, 3, 1, 270, 270, 24, 0, attributes, 100, false};
    problem one = whole;
    operands *all = make(&whole);
    (void)name;
    run(all, ctx, number);
    one.batch = 1;
    for (int64_t sample = 0; sample < whole.batch; sample += 15) {
        one.first_sample = whole.first_sample + (uint64_t)sample;
        operands *alone = make(&one);
        run(alone, ctx, number);
        same_sample(alone, 0, all, sample);
        destroy(&alone);
    }
    destroy(&all);
}

static void test_batch(void **state) {
    (void)state;
    for_each_kernel(check_batch);
}

static void check_threads(an_context *ctx, int number, const char *name, an_dtype dtype) {
    static const int threads[] = {1, 5};
    const an_attention_attributes attributes = {true, 0.2, 0, 0.3, 77};
    const problem p = {dtype, 2, 8, 8, 270, 270, 32, 0, attributes, 100, false};
    operands *first = make(&p);
    (void)name;
    run(first, ctx, number);
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        an_context *other = context_of(an_context_isa(ctx), threads[i]);
        operands *again = make(&p);
        run(again, other, number);
        for (int64_t b = 0; b < p.batch; b++) same_sample(first, b, again, b);
        destroy(&again);
        an_context_destroy(&other);
    }
    destroy(&first);
}

static void test_threads(void **state) {
    (void)state;
    for_each_kernel(check_threads);
}

static bool has_nan(const operands *o, int t) {
    for (size_t i = 0; i < o->bytes[t] / an_dtype_size(o->t[t].dtype); i++)
        if (isnan(get(&o->t[t], (int64_t)i))) return true;
    return false;
}

/* Some queries at a time over a cache whose unused part is NaN, the forward op gives the bits of the sequence at once,
 * and gradients are numbers. */
static void check_cache(an_context *ctx, int number, const char *name, an_dtype dtype) {
    static const int64_t counts[] = {1, 5, 64, 100};
    const problem whole = {dtype, 1, 2, 1, 300, 300, 48, 0, {.causal = true, .scale = 0.2}, 9, false};
    operands *all = make(&whole);
    (void)name;
    run_one(all, ctx, false, number);
    for (int64_t first = 0, i = 0; first < whole.queries; first += counts[i % 4], i++) {
        problem part = whole;
        part.offset = first;
        part.queries = an_smaller(counts[i % 4], whole.queries - first);
        part.nan_after = true;
        operands *some = make(&part);
        run(some, ctx, number);
        for (int t = DST; t < TENSORS; t++) assert_false(has_nan(some, t));
        for (int64_t head = 0; head < whole.heads; head++)
            for (int64_t n = 0; n < part.queries; n++) {
                const an_tensor *a = &all->t[DST], *b = &some->t[DST];
                const size_t element = an_dtype_size(dtype);
                assert_memory_equal((char *)a->data + (size_t)offset_of(a, 0, head, first + n, 0) * element,
                                    (char *)b->data + (size_t)offset_of(b, 0, head, n, 0) * element,
                                    (size_t)whole.size * element);
                assert_true(get(&all->t[LOG_SUM], head * whole.queries + first + n) ==
                            get(&some->t[LOG_SUM], head * part.queries + n));
            }
        destroy(&some);
    }
    destroy(&all);
}

static void test_cache(void **state) {
    (void)state;
    for_each_kernel(check_cache);
}

/* Vectors of another width have the same bits. */
static void test_levels(void **state) {
    (void)state;
    static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F64};
    an_context *machine = context_of(AN_ISA_AUTO, 1);
    const bool has_both = an_context_isa(machine) >= AN_ISA_AVX512;
    an_context_destroy(&machine);
    if (!has_both) {
        print_message("skipped: this machine has no AVX-512 to compare with AVX2\n");
        skip();
    }
    an_context *narrow = context_of(AN_ISA_AVX2, 2), *wide = context_of(AN_ISA_AVX512, 2);
    for (size_t d = 0; d < 2; d++) {
        const an_attention_attributes attributes = {true, 0.2, 0, 0.3, 77};
        const problem p = {dtypes[d], 1, 4, 2, 290, 290, 56, 0, attributes, 5, false};
        operands *a = make(&p), *b = make(&p);
        assert_string_equal(kernels_of(false, AN_ISA_AVX2)[0].name, "tiled");
        assert_string_equal(kernels_of(false, AN_ISA_AVX512)[1].name, "tiled");
        run(a, narrow, 0);
        run(b, wide, 1);
        same_sample(a, 0, b, 0);
        destroy(&a);
        destroy(&b);
    }
    an_context_destroy(&narrow);
    an_context_destroy(&wide);
}

/* ---- dropout ---- */

/* With as many keys as elements, v the identity and all scores 0, dst shows which probabilities were
 * dropped; in the gradient of v, the gradient of dst being the identity, so does that. They are those
 * that the portable kernel drops. */
static void check_dropout(an_context *ctx, int number, const char *name, an_dtype dtype) {
    const int64_t tokens = AN_ATTENTION_HEAD;
    const an_attention_attributes attributes = {false, 1, 0, 0.4, -5};
    const problem p = {dtype, 2, 1, 1, tokens, tokens, tokens, 0, attributes, 1000, false};
    operands *o[2] = {make(&p), make(&p)};
    (void)name;
    for (int i = 0; i < 2; i++) {
        for (int t = Q; t <= DIFF_DST; t++)
            for (int64_t b = 0; b < p.batch; b++)
                for (int64_t n = 0; n < tokens; n++)
                    for (int64_t d = 0; d < tokens; d++)
                        set(&o[i]->t[t], offset_of(&o[i]->t[t], b, 0, n, d), (t == V || t == DIFF_DST) && n == d);
        run(o[i], ctx, i == 0 ? number : portable_of(an_context_isa(ctx)));
    }
    int64_t dropped = 0;
    for (int t = DST; t <= DIFF_V; t += DIFF_V - DST)
        for (int64_t e = 0; e < p.batch * tokens * tokens; e++) {
            const double got = get(&o[0]->t[t], e), want = get(&o[1]->t[t], e);
            assert_true((got == 0) == (want == 0));
            dropped += want == 0;
        }
    assert_in_range(dropped, 100000, 110000); /* 0.4 of four times 65,536, within 40 deviations */
    destroy(&o[0]);
    destroy(&o[1]);
}

static void test_dropout(void **state) {
    (void)state;
    for_each_kernel(check_dropout);
}

/* ---- scratch ---- */

/* A kernel is chosen, and asked for its scratch, at the largest sizes; smaller ones, which may be cut in another way,
 * must do with it. */
static void check_scratch(an_context *ctx, int number, const char *name, an_dtype dtype) {
    const problem large = {dtype, 16, 4, 2, 300, 300, 64, 0, {.scale = 1}, 0, false};
    static const int64_t sizes[] = {1, 2, 63, 64, 65, 127, 129, 300};
    an_tensor src[MOST_SOURCES], dst[3];
    operands *o = make_empty(&large);
    size_t maximum[2];
    (void)name;
    for (int is_diff = 0; is_diff < 2; is_diff++) {
        const an_call call = call_of(o, ctx, is_diff, src, dst);
        maximum[is_diff] = kernels_of(is_diff, an_context_isa(ctx))[number].scratch(&call);
    }
    destroy(&o);
    for (int64_t i = 0; i < 16 * 8 * 8; i += 7) { /* batches, sizes of queries, sizes of keys */
        problem small = large;
        small.batch = 1 + i / 64;
        small.queries = sizes[i / 8 % 8];
        small.keys = sizes[i % 8];
        o = make_empty(&small);
        for (int is_diff = 0; is_diff < 2; is_diff++) {
            const an_call call = call_of(o, ctx, is_diff, src, dst);
            assert_true(kernels_of(is_diff, an_context_isa(ctx))[number].scratch(&call) <= maximum[is_diff]);
        }
        destroy(&o);
    }
}

static void test_scratch(void **state) {
    (void)state;
    for_each_kernel(check_scratch);
}

/* ---- what is not a number ---- */

/* A query that is NaN has a result of NaN, not the zeros of one that sees nothing; others are as they were. */
static void check_nan(an_context *ctx, int number, const char *name, an_dtype dtype) {
    enum { BAD = 17 };
    const problem p = {dtype, 1, 1, 1, 40, 40, 32, 0, {.causal = true, .scale = 0.2}, 0, false};
    operands *good = make(&p), *bad = make(&p);
    (void)name;
    for (int64_t d = 0; d < p.size; d++) set(&bad->t[Q], offset_of(&bad->t[Q], 0, 0, BAD, d), NAN);
    run_one(good, ctx, false, number);
    run_one(bad, ctx, false, number);
    for (int64_t n = 0; n < p.queries; n++)
        for (int64_t d = 0; d < p.size; d++) {
            const double x = get(&bad->t[DST], offset_of(&bad->t[DST], 0, 0, n, d));
            if (n == BAD)
                assert_true(isnan(x));
            else
                assert_true(x == get(&good->t[DST], offset_of(&good->t[DST], 0, 0, n, d)));
        }
    assert_true(isnan(get(&bad->t[LOG_SUM], BAD)));
    destroy(&good);
    destroy(&bad);
}

static void test_nan(void **state) {
    (void)state;
    for_each_kernel(check_nan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precision), cmocka_unit_test(test_batch),  cmocka_unit_test(test_threads),
        cmocka_unit_test(test_cache),     cmocka_unit_test(test_levels), cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_scratch),   cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
