/* Norms and clipping against clip_grad_norm_ and clip_grad_value_, and the norm's order of addition. */
#include "step/series.h"

static const an_optimizer_options sgd = {DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_SGD};
static const an_dtype types[] = {AN_DTYPE_F32, AN_DTYPE_F64};

static const struct {
    const char *name;
    double factor;
} sizes[] = {{"usual", 1}, {"large", 3e15}, {"small", 1e-9}};

static const struct {
    const char *name;
    double norm, value;
} limits[] = {{"0.5", 0.5, 0}, {"1", 1, 0}, {"30", 30, 0}, {"1e+09", 1e9, 0}, {"value", 0, 0.3}};

/* Weights that were 0 show the gradients that an update of rate 1 took. */
static void set_weights_to_zero(bench *b) {
    const double zeros[MOST_ELEMENTS] = {0};
    for (int p = 0; p < PARAMETERS; p++) series_set(b->ctx, b->params, p, AN_PART_WEIGHT, b->dtype, zeros);
}

static double compare_gradients(const series_file *file, bench *b, const char *prefix, double size, double tolerance) {
    double numbers[MOST_ELEMENTS] = {0}, digest[MOST_DIGEST] = {0}, golden[MOST_DIGEST], largest = 0;
    for (int p = 0; p < PARAMETERS; p++) {
        const int64_t elements = series_parameters[p].elements;
        char name[96];
        snprintf(name, sizeof name, "%s.%s", prefix, series_parameters[p].name);
        series_get(b->ctx, b->params, p, AN_PART_WEIGHT, b->dtype, numbers);
        for (int64_t i = 0; i < elements; i++) numbers[i] = -numbers[i];
        const int count = series_digest(numbers, elements, digest);
        assert_int_equal(series_read(file, name, golden, MOST_DIGEST), count);
        for (int i = 0; i < count; i++) {
            /* the last but one is a sum of numbers that cancel */
            const bool cancels = count == MOST_DIGEST && i == MOST_DIGEST - 2;
            const double whole = cancels ? size * MOST_ELEMENTS : fabs(golden[i]);
            const double error = whole > 0 ? fabs(digest[i] - golden[i]) / whole : fabs(digest[i]);
            if (!(error <= tolerance)) fail_msg("%s: number %d is %.17g, not %.17g", name, i, digest[i], golden[i]);
            largest = fmax(largest, error);
        }
    }
    return largest;
}

static void test_parity(void **state) {
    (void)state;
    series_file file = series_open("clipping");
    double errors[2] = {0, 0};
    for (int t = 0; t < 2; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
                const double tolerance = types[t] == AN_DTYPE_F64 ? 1e-13 : 1e-6, factor = sizes[s].factor;
                const an_update u = {DEFAULTS(an_update), .rate = 1, .clip_norm = limits[l].norm * factor,
                                     .clip_value = limits[l].value * factor};
                bench b;
                char prefix[64], name[80];
                bench_open(&b, types[t], NULL, NULL, &sgd);
                set_weights_to_zero(&b);
                bench_gradients(&b, 3, factor);
                snprintf(prefix, sizeof prefix, "%s.%s.%s", series_type(types[t]), sizes[s].name, limits[l].name);
                if (u.clip_norm > 0) {
                    double norm, golden;
                    snprintf(name, sizeof name, "%s.norm", prefix);
                    assert_int_equal(series_read(&file, name, &golden, 1), 1);
                    OK(b.ctx, an_optimizer_norm(b.optimizer, 1, &norm));
                    if (!(fabs(norm - golden) <= tolerance * golden))
                        fail_msg("%s: the norm is %.17g, not %.17g", prefix, norm, golden);
                    errors[t] = fmax(errors[t], fabs(norm - golden) / golden);
                }
                OK(b.ctx, an_optimizer_update(b.optimizer, &u));
                errors[t] = fmax(errors[t], compare_gradients(&file, &b, prefix, factor, tolerance));
                bench_close(&b);
            }
    series_close(&file);
    print_message("largest error of norms and clipped gradients: f32 %.2g, f64 %.2g\n", errors[0], errors[1]);
}

/* Gradients that are a power of two too large give the same bits, clipped or not. */
static void test_unscaling_comes_first(void **state) {
    (void)state;
    bench a, b;
    double one, other, numbers[MOST_ELEMENTS] = {0}, others[MOST_ELEMENTS] = {0};
    bench_open(&a, AN_DTYPE_F32, NULL, NULL, &sgd);
    bench_open(&b, AN_DTYPE_F32, NULL, NULL, &sgd);
    bench_gradients(&a, 5, 1);
    bench_gradients(&b, 5, 65536);
    OK(a.ctx, an_optimizer_norm(a.optimizer, 1, &one));
    OK(b.ctx, an_optimizer_norm(b.optimizer, 65536, &other));
    assert_true(one == other && one > 1);
    an_update u = {DEFAULTS(an_update), .rate = 1, .clip_norm = 1, .clip_value = 0.02};
    OK(a.ctx, an_optimizer_update(a.optimizer, &u));
    u.scale = 65536;
    OK(b.ctx, an_optimizer_update(b.optimizer, &u));
    for (int p = 0; p < PARAMETERS; p++) {
        series_get(a.ctx, a.params, p, AN_PART_WEIGHT, a.dtype, numbers);
        series_get(b.ctx, b.params, p, AN_PART_WEIGHT, b.dtype, others);
        assert_memory_equal(numbers, others, (size_t)series_parameters[p].elements * sizeof *numbers);
    }
    bench_close(&a);
    bench_close(&b);
}

/* ---- the documented order: 16 lanes in a page, the lanes in order, a binary tree over pages ---- */

enum { PAGES = 6 }; /* 3 of the table, 1 of each other */

static void page_sums(double *sums, an_dtype dtype, int64_t step) {
    int page = 0;
    for (int p = 0; p < PARAMETERS; p++)
        for (int64_t first = 0; first < series_parameters[p].elements; first += AN_PAGE, page++) {
            double lanes[16] = {0};
            for (int64_t i = first; i < first + AN_PAGE && i < series_parameters[p].elements; i++) {
                double g = series_gradient(p, i, step);
                if (dtype == AN_DTYPE_F32) g = (double)(float)g;
                lanes[i % 16] += g * g;
            }
            sums[page] = 0;
            for (int k = 0; k < 16; k++) sums[page] += lanes[k];
        }
    assert_int_equal(page, PAGES);
}

static void test_order_of_addition(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) {
        bench b;
        double s[PAGES], norm;
        bench_open(&b, types[t], NULL, NULL, &sgd);
        bench_gradients(&b, 7, 1);
        page_sums(s, types[t], 7);
        const double sum = ((s[0] + s[1]) + (s[2] + s[3])) + (s[4] + s[5]);
        OK(b.ctx, an_optimizer_norm(b.optimizer, 4, &norm));
        assert_true(norm == sqrt(sum) / 4);
        OK(b.ctx, an_optimizer_parameter_norm(b.optimizer, "table.weight", &norm));
        assert_true(norm == sqrt((s[0] + s[1]) + s[2]) / 4);
        OK(b.ctx, an_optimizer_parameter_norm(b.optimizer, "layer.bias", &norm));
        assert_true(norm == sqrt(s[4]) / 4);
        OK(b.ctx, an_optimizer_parameter_norm(b.optimizer, "gain", &norm));
        assert_true(norm == 0);
        bench_close(&b);
    }
}

/* The sum of a node of the tree over pages [first, first + size), size a power of two; pages after the last are not
 * there. */
static double tree(const double *sums, int count, int first, int size) {
    if (size == 1) return sums[first];
    const int half = size / 2;
    const double left = tree(sums, count, first, half);
    return first + half < count ? left + tree(sums, count, first + half, half) : left;
}

enum { MOST_PAGES = 21 };

static void check_pages(an_context *ctx, int pages) {
    static double gradients[MOST_PAGES * AN_PAGE];
    const int64_t elements = (int64_t)pages * AN_PAGE - 5;
    const an_params_options store = {DEFAULTS(an_params_options), .moments = 0};
    an_graph *g = NULL;
    an_groups *groups = NULL;
    an_params *params = NULL;
    an_optimizer *optimizer = NULL;
    double sums[MOST_PAGES], norm;
    OK(ctx, an_graph_create(&g, ctx, "pages"));
    an_value w = an_param(g, "w", AN_DTYPE_F64, AN_INITIALIZER_CONSTANT, 0, AN_DIMS(elements));
    an_graph_set_loss(g, an_reduce_sum(g, w, 1, (const int[]){0}, false), AN_NONE);
    OK(ctx, an_groups_create(&groups, g, NULL));
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_params_create(&params, ctx, g, &store));
    OK(ctx, an_optimizer_create(&optimizer, params, groups, &sgd));
    for (int page = 0; page < pages; page++) {
        double lanes[16] = {0};
        sums[page] = 0;
        for (int64_t i = (int64_t)page * AN_PAGE; i < ((int64_t)page + 1) * AN_PAGE && i < elements; i++) {
            gradients[i] = noise((uint64_t)i);
            lanes[i % 16] += gradients[i] * gradients[i];
        }
        for (int k = 0; k < 16; k++) sums[page] += lanes[k];
    }
    const an_array array = array_of(gradients, AN_DTYPE_F64, 1, &elements);
    OK(ctx, an_params_set(params, "w", AN_PART_GRADIENT, &array));
    OK(ctx, an_optimizer_norm(optimizer, 1, &norm));
    if (norm != sqrt(tree(sums, pages, 0, 32))) fail_msg("%d pages are added in another order", pages);
    an_optimizer_destroy(&optimizer);
    an_params_destroy(&params);
    an_groups_destroy(&groups);
    an_graph_destroy(&g);
}

static void test_order_over_pages(void **state) {
    (void)state;
    an_context *ctx = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    for (int pages = 1; pages <= MOST_PAGES; pages++) check_pages(ctx, pages);
    an_context_destroy(&ctx);
}

static void test_norm_of_a_parameter_needs_the_norm(void **state) {
    (void)state;
    bench b;
    double norm;
    bench_open(&b, AN_DTYPE_F32, NULL, NULL, &sgd);
    FAILS(b.ctx, an_optimizer_parameter_norm(b.optimizer, "gain", &norm), AN_ERR_ORDER, "after an_optimizer_norm");
    OK(b.ctx, an_optimizer_norm(b.optimizer, 1, &norm));
    assert_true(norm == 0); /* nothing has run yet */
    FAILS(b.ctx, an_optimizer_parameter_norm(b.optimizer, "loss", &norm), AN_ERR_UNKNOWN, "no parameter 'loss'");
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parity),
        cmocka_unit_test(test_unscaling_comes_first),
        cmocka_unit_test(test_order_of_addition),
        cmocka_unit_test(test_order_over_pages),
        cmocka_unit_test(test_norm_of_a_parameter_needs_the_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
