/* Ops of sequences, and batch norm: what checkops cannot ask of a kernel alone. Bits that do not depend on what else is
 * computed, caches whose rest holds anything, mistakes and their sentences, forms for evaluation, views. */
#include "anneal/experimental.h"
#include "base/memory.h"
#include "ir/graph.h"
#include "kernels/attention/attention.h"
#include "kernels/elementwise/dropout.h"
#include "kernels/embedding/embedding.h"
#include "support/support.h"

enum { HEADS = 2, TOKENS = 70, SIZE = 5 }; /* more than one tile of queries and of keys */

static an_context *new_context(void) {
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = 2;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    return ctx;
}

static an_tensor dense(void *data, an_dtype dtype, int ndims, const int64_t *dims) {
    an_tensor t = {.data = data, .dtype = dtype, .ndims = ndims};
    int64_t stride = 1;
    for (int i = ndims - 1; i >= 0; i--) {
        t.dims[i] = dims[i];
        t.strides[i] = stride;
        stride *= dims[i];
    }
    return t;
}

static an_tensor scalar(int64_t *value) {
    return (an_tensor){.data = value, .dtype = AN_DTYPE_I64};
}

static an_status run(an_context *ctx, const an_kernel *kernel, const void *attributes, int src_count,
                     const an_tensor *src, int dst_count, const an_tensor *dst) {
    an_call call = {
        .ctx = ctx, .attributes = attributes, .src_count = src_count, .src = src, .dst_count = dst_count, .dst = dst};
    void *scratch = NULL;
    const size_t bytes = kernel->scratch ? kernel->scratch(&call) : 0;
    if (bytes) assert_int_equal(an_alloc_raw(ctx, &scratch, bytes), AN_OK);
    call.scratch = scratch;
    const an_status status = kernel->run(&call);
    an_release(ctx, &scratch, bytes, 1);
    return status;
}

static void fill(float *values, int64_t n, uint64_t first) {
    for (int64_t i = 0; i < n; i++) values[i] = (float)noise(first + (uint64_t)i);
}

/* ---- attention ---- */

typedef struct {
    float q[HEADS * TOKENS * SIZE], k[HEADS * TOKENS * SIZE], v[HEADS * TOKENS * SIZE];
    float dst[HEADS * TOKENS * SIZE], sums[HEADS * TOKENS];
} sequence;

/* Queries first to first + count - 1 against `keys` keys of buffers that have room for TOKENS. */
static void attend(an_context *ctx, sequence *s, int64_t first, int64_t count, int64_t keys) {
    const an_attention_attributes attributes = {.causal = true, .scale = 0.4};
    int64_t offset = first;
    an_tensor q = dense(s->q + first * SIZE, AN_DTYPE_F32, 4, (const int64_t[]){1, HEADS, TOKENS, SIZE});
    an_tensor k = dense(s->k, AN_DTYPE_F32, 4, (const int64_t[]){1, HEADS, TOKENS, SIZE}), v = k, dst = q;
    an_tensor sums = dense(s->sums + first, AN_DTYPE_F32, 3, (const int64_t[]){1, HEADS, TOKENS});
    v.data = s->v;
    dst.data = s->dst + first * SIZE;
    q.dims[2] = dst.dims[2] = sums.dims[2] = count;
    k.dims[2] = v.dims[2] = keys;
    OK(ctx, run(ctx, an_kernels_attention, &attributes, 4, (const an_tensor[]){q, k, v, scalar(&offset)}, 2,
                (const an_tensor[]){dst, sums}));
}

/* Token by token over a cache whose unused part is NaN, the bits are those of the whole sequence at once. */
static void test_attention_with_cache(void **state) {
    (void)state;
    an_context *ctx = new_context();
    sequence whole, steps;
    fill(whole.q, HEADS * TOKENS * SIZE, 0);
    fill(whole.k, HEADS * TOKENS * SIZE, 10000);
    fill(whole.v, HEADS * TOKENS * SIZE, 20000);
    steps = whole;
    attend(ctx, &whole, 0, TOKENS, TOKENS);
    for (int64_t t = 0; t < TOKENS; t++) {
        sequence now = steps;
        for (int64_t i = 0; i < HEADS * TOKENS * SIZE; i++)
            if (i / SIZE % TOKENS > t) now.k[i] = now.v[i] = NAN;
        attend(ctx, &now, t, 1, TOKENS);
        for (int head = 0; head < HEADS; head++) {
            const int64_t row = head * TOKENS + t;
            assert_memory_equal(now.dst + row * SIZE, whole.dst + row * SIZE, SIZE * sizeof(float));
            assert_memory_equal(now.sums + row, whole.sums + row, sizeof(float));
        }
    }
    an_context_destroy(&ctx);
}

/* ---- dropout ---- */

/* A sample's mask goes with its number, wherever it lies in a batch. */
static void test_dropout_follows_samples(void **state) {
    (void)state;
    enum { BATCH = 3, WIDTH = 37 };
    an_context *ctx = new_context();
    const an_dropout_attributes attributes = {0.4, 77};
    int64_t samples[] = {5, 1000000007, 9}, swapped[] = {9, 5, 1000000007}, seed = 3, step = 12;
    float src[BATCH * WIDTH], a[BATCH * WIDTH], b[BATCH * WIDTH];
    an_tensor x = dense(src, AN_DTYPE_F32, 2, (const int64_t[]){BATCH, WIDTH}), to_a = x, to_b = x;
    an_tensor numbers = dense(samples, AN_DTYPE_I64, 1, (const int64_t[]){BATCH}), others = numbers;
    int kept = 0;
    for (int i = 0; i < BATCH * WIDTH; i++) src[i] = 1;
    to_a.data = a;
    to_b.data = b;
    others.data = swapped;
    OK(ctx, run(ctx, an_kernels_dropout, &attributes, 4, (const an_tensor[]){x, numbers, scalar(&seed), scalar(&step)},
                1, &to_a));
    OK(ctx, run(ctx, an_kernels_dropout, &attributes, 4, (const an_tensor[]){x, others, scalar(&seed), scalar(&step)},
                1, &to_b));
    assert_memory_equal(a, b + WIDTH, WIDTH * sizeof(float));
    assert_memory_equal(a + WIDTH, b + 2 * WIDTH, WIDTH * sizeof(float));
    assert_memory_equal(a + 2 * WIDTH, b, WIDTH * sizeof(float));
    for (int i = 0; i < BATCH * WIDTH; i++) {
        assert_true(a[i] == 0 || a[i] == (float)(1 / (1 - attributes.rate)));
        kept += a[i] != 0;
    }
    assert_in_range(kept, BATCH * WIDTH * 4 / 10, BATCH * WIDTH * 8 / 10); /* 0.6, and four deviations */
    an_context_destroy(&ctx);
}

/* ---- embedding ---- */

static void test_embedding_names_wrong_index(void **state) {
    (void)state;
    an_context *ctx = new_context();
    int32_t numbers[] = {0, 3, 1, 2, 0, 7};
    float rows[4 * 2] = {0}, out[6 * 2];
    an_tensor indices = dense(numbers, AN_DTYPE_I32, 2, (const int64_t[]){2, 3});
    an_tensor table = dense(rows, AN_DTYPE_F32, 2, (const int64_t[]){4, 2});
    an_tensor dst = dense(out, AN_DTYPE_F32, 3, (const int64_t[]){2, 3, 2});
    FAILS(ctx, run(ctx, an_kernels_embedding, NULL, 2, (const an_tensor[]){indices, table}, 1, &dst), AN_ERR_KERNEL,
          "indices[1,2] is 7, but the table has 4 entries");
    numbers[5] = -1;
    FAILS(ctx, run(ctx, an_kernels_embedding_diff, NULL, 2, (const an_tensor[]){dst, indices}, 1, &table),
          AN_ERR_KERNEL, "indices[1,2] is -1");
    an_context_destroy(&ctx);
}

/* ---- mistakes ---- */

typedef struct {
    an_context *ctx;
    an_graph *g;
    an_dim batch, tokens;
} rig;

static rig rig_up(void) {
    rig r = {.ctx = new_context()};
    OK(r.ctx, an_graph_create(&r.g, r.ctx, "sequence"));
    r.batch = an_symbol_dim(r.g, "batch");
    r.tokens = an_symbol_dim(r.g, "tokens");
    return r;
}

static an_value heads_of(const rig *r, const char *name, an_dim heads, an_dim size) {
    return an_input(r->g, name, AN_DTYPE_F32, AN_DIMS(r->batch, heads, r->tokens, size));
}

static void rig_down(rig *r, an_status status, const char *words) {
    FAILS(r->ctx, an_graph_verify(r->g), status, words);
    an_graph_destroy(&r->g);
    an_context_destroy(&r->ctx);
}

static void test_mistakes(void **state) {
    (void)state;
    an_attention_options attention;
    an_attention_options_init(&attention, sizeof attention);
    an_rotary_options rotary;
    an_rotary_options_init(&rotary, sizeof rotary);

    rig r = rig_up();
    an_value q = heads_of(&r, "q", 4, 300);
    an_attention(r.g, q, q, q, NULL);
    rig_down(&r, AN_ERR_UNSUPPORTED, ": the head size must be a constant of at most 256; use more, smaller heads");

    r = rig_up();
    q = heads_of(&r, "q", 6, 8);
    an_value k = heads_of(&r, "k", 4, 8);
    an_attention(r.g, q, k, k, NULL);
    rig_down(&r, AN_ERR_SHAPE, "the number of heads of q must be a multiple of that of k and v");

    r = rig_up();
    q = heads_of(&r, "q", 4, 8);
    attention.dropout = 0.1;
    an_attention(r.g, q, q, q, &attention);
    rig_down(&r, AN_ERR_ARGUMENT, "set options.samples");

    r = rig_up();
    q = heads_of(&r, "q", 4, 8);
    attention.size = 0;
    an_attention(r.g, q, q, q, &attention);
    rig_down(&r, AN_ERR_ARGUMENT, "call an_attention_options_init first");

    r = rig_up();
    rotary.rotated = 5;
    an_rotary(r.g, heads_of(&r, "q", 4, 8), &rotary);
    rig_down(&r, AN_ERR_ARGUMENT,
             "elements of a head cannot be rotated: the number must be even and at most the head size");

    r = rig_up();
    an_dropout(r.g, heads_of(&r, "q", 4, 8), an_input(r.g, "samples", AN_DTYPE_I64, AN_DIMS(r.batch)), 1);
    rig_down(&r, AN_ERR_ARGUMENT, "the share to drop must be at least 0 and less than 1");

    r = rig_up();
    an_value weight = an_param(r.g, "weight", AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 1, AN_DIMS(7));
    an_layer_norm(r.g, heads_of(&r, "q", 4, 8), weight, AN_NONE, 1e-5);
    rig_down(&r, AN_ERR_SHAPE, "weight and bias must have one dimension, equal to the last of src");
}

/* ---- forms and views ---- */

static const an_node *node_of(const rig *r, an_value value) {
    const an_result *result = an_graph_result(r->g, value);
    assert_non_null(result);
    return result->node;
}

static void test_evaluation(void **state) {
    (void)state;
    rig r = rig_up();
    an_value samples = an_input(r.g, "samples", AN_DTYPE_I64, AN_DIMS(r.batch)), q = heads_of(&r, "q", 4, 8);
    an_value dropped = an_dropout(r.g, q, samples, 0.5);
    an_attention_options options;
    an_attention_options_init(&options, sizeof options);
    options.dropout = 0.5;
    options.samples = samples;
    an_value attended = an_attention(r.g, dropped, q, q, &options);
    an_value channels[] = {an_param(r.g, "weight", AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 1, AN_DIMS(4)),
                           an_param(r.g, "bias", AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 0, AN_DIMS(4)),
                           an_run_state(r.g, "mean", AN_DTYPE_F32, 0, AN_DIMS(4)),
                           an_run_state(r.g, "variance", AN_DTYPE_F32, 1, AN_DIMS(4))};
    an_value normed = an_batch_norm(r.g, attended, channels[0], channels[1], channels[2], channels[3], 0.1, 1e-5);
    OK(r.ctx, an_graph_verify(r.g));

    assert_true(an_dropout(r.g, q, samples, 0) == q);
    assert_true(node_of(&r, dropped)->op->evaluate(r.g, node_of(&r, dropped)) == q);

    const an_node *plain = node_of(&r, node_of(&r, attended)->op->evaluate(r.g, node_of(&r, attended)));
    assert_string_equal(plain->op->name, "attention");
    assert_true(((const an_attention_attributes *)plain->attributes)->dropout == 0);
    assert_null(an_node_input(plain, AN_ATTENTION_SAMPLES));

    const an_node *fixed = node_of(&r, node_of(&r, normed)->op->evaluate(r.g, node_of(&r, normed)));
    assert_string_equal(fixed->op->name, "batch_norm_fixed");
    assert_true(an_node_input_value(r.g, fixed, 3) == channels[2]);

    /* sites differ, also under one path */
    const an_dropout_attributes *first = node_of(&r, dropped)->attributes;
    const an_dropout_attributes *second = node_of(&r, an_dropout(r.g, q, samples, 0.5))->attributes;
    assert_true(first->site != second->site);
    an_graph_destroy(&r.g);
    an_context_destroy(&r.ctx);
}

/* From the heads back to features without a copy: attention and rotary give (batch, tokens, heads, size) in memory. */
static void test_views(void **state) {
    (void)state;
    rig r = rig_up();
    an_value q = heads_of(&r, "q", 4, 8);
    an_value both[] = {an_attention(r.g, q, q, q, NULL), an_rotary(r.g, q, NULL)};
    for (int i = 0; i < 2; i++) {
        an_value features = an_reshape(r.g, an_transpose(r.g, both[i], 1, 2), AN_DIMS(r.batch, r.tokens, 32));
        assert_ptr_equal(an_graph_result(r.g, features)->root, an_graph_result(r.g, both[i]));
    }
    OK(r.ctx, an_graph_verify(r.g));
    an_graph_destroy(&r.g);
    an_context_destroy(&r.ctx);
}

/* Causality and windows skip tiles; a mask that says the same does not. */
static void test_cost(void **state) {
    (void)state;
    enum { MANY = 2048 };
    rig r = rig_up();
    an_value q = heads_of(&r, "q", 4, 8), mask = an_input(r.g, "mask", AN_DTYPE_F32, AN_DIMS(r.tokens, r.tokens));
    an_attention_options causal, window, masked;
    an_attention_options_init(&causal, sizeof causal);
    an_attention_options_init(&window, sizeof window);
    an_attention_options_init(&masked, sizeof masked);
    causal.causal = window.causal = true;
    window.window = MANY / 16;
    masked.mask = mask;
    const an_attention_options *options[] = {&masked, &causal, &window};
    double flops[3];
    an_value values[3];
    for (int i = 0; i < 3; i++) values[i] = an_attention(r.g, q, q, q, options[i]);
    OK(r.ctx, an_graph_verify(r.g));
    OK(r.ctx, an_graph_bind(r.g, "batch", 2));
    OK(r.ctx, an_graph_bind(r.g, "tokens", MANY));
    for (int i = 0; i < 3; i++) flops[i] = node_of(&r, values[i])->op->cost(r.g, node_of(&r, values[i])).flops;
    assert_true(flops[0] == 4.0 * 2 * 4 * MANY * MANY * 8);
    assert_true(flops[1] > 0.5 * flops[0] && flops[1] < 0.52 * flops[0]);
    assert_true(flops[2] > 0.06 * flops[0] && flops[2] < 0.1 * flops[0]);
    an_graph_destroy(&r.g);
    an_context_destroy(&r.ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention_with_cache),
        cmocka_unit_test(test_dropout_follows_samples),
        cmocka_unit_test(test_embedding_names_wrong_index),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
