/* rmsprop against PyTorch's formulas over 100 steps, its bits at every level and after a restart, and mistakes. */
#include "step/series.h"

enum { STEPS = 100 };

typedef struct {
    const char *name;
    double alpha, momentum, weight_decay; /* alpha 0: the default, 0.99 */
    bool centered;
    double clip_value;
} rmsprop_case;

static const rmsprop_case cases[] = {
    {.name = "plain"},
    {.name = "alpha", .alpha = 0.9},
    {.name = "decay", .weight_decay = 0.1},
    {.name = "momentum", .momentum = 0.9, .weight_decay = 0.1},
    {.name = "centered", .centered = true},
    {.name = "all", .alpha = 0.95, .weight_decay = 0.3, .centered = true, .clip_value = 0.3},
};
enum { CASES = sizeof cases / sizeof *cases };

static an_optimizer_options options_of(const rmsprop_case *c) {
    return (an_optimizer_options){DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_RMSPROP,
                                  .beta_2 = c->alpha > 0 ? c->alpha : AN_AUTO, .momentum = c->momentum,
                                  .centered = c->centered};
}

/* ---- the formulas ---- torch.optim.RMSprop, _single_tensor_rmsprop */

typedef struct {
    double w, square_average, gradient_average, buffer;
} element;

static void apply_formulas(element *e, const rmsprop_case *c, double g, double decay, double rate) {
    const double alpha = c->alpha > 0 ? c->alpha : 0.99;
    if (c->clip_value > 0) g = fmax(-c->clip_value, fmin(c->clip_value, g));
    g += decay * e->w;
    e->square_average = alpha * e->square_average + (1 - alpha) * g * g;
    double average = e->square_average;
    if (c->centered) {
        e->gradient_average += (1 - alpha) * (g - e->gradient_average);
        average -= e->gradient_average * e->gradient_average;
    }
    const double direction = g / (sqrt(fmax(average, 0)) + 1e-8);
    e->buffer = c->momentum * e->buffer + direction;
    e->w -= rate * (c->momentum > 0 ? e->buffer : direction);
}

/* Centered, the first steps divide by the root of a difference, in which digits cancel. */
static double run_case(const rmsprop_case *c) {
    static element elements[PARAMETERS][MOST_ELEMENTS];
    const an_group_options groups = {DEFAULTS(an_group_options), .optimizer = AN_OPTIMIZER_RMSPROP,
                                     .weight_decay = c->weight_decay};
    const an_optimizer_options options = options_of(c);
    double numbers[MOST_ELEMENTS] = {0}, largest = 0;
    bench b;
    bench_open(&b, AN_DTYPE_F64, NULL, &groups, &options);
    memset(elements, 0, sizeof elements);
    for (int p = 0; p < PARAMETERS; p++)
        for (int64_t i = 0; i < series_parameters[p].elements; i++) elements[p][i].w = series_weight(p, i);
    for (int step = 0; step < STEPS; step++) {
        const an_update u = {DEFAULTS(an_update), .rate = 0.01 * (1 - step / 200.0), .clip_value = c->clip_value};
        bench_gradients(&b, step, 1);
        OK(b.ctx, an_optimizer_update(b.optimizer, &u));
        for (int p = 0; p < PARAMETERS; p++) {
            series_get(b.ctx, b.params, p, AN_PART_WEIGHT, b.dtype, numbers);
            for (int64_t i = 0; i < series_parameters[p].elements; i++) {
                apply_formulas(&elements[p][i], c, series_gradient(p, i, step),
                               series_parameters[p].ndims < 2 ? 0 : c->weight_decay, u.rate);
                const double error = fabs(numbers[i] - elements[p][i].w);
                if (!(error <= 1e-10))
                    fail_msg("%s, step %d: element %lld of '%s' is %.17g, not %.17g", c->name, step, (long long)i,
                             series_parameters[p].name, numbers[i], elements[p][i].w);
                largest = fmax(largest, error);
            }
        }
    }
    bench_close(&b);
    return largest;
}

static void test_formulas_over_100_steps(void **state) {
    double largest = 0;
    (void)state;
    for (int i = 0; i < CASES; i++) largest = fmax(largest, run_case(&cases[i]));
    print_message("largest error of %d runs of rmsprop: %.2g\n", (int)CASES, largest);
}

/* A gradient that stays the same has no variance, and rounding makes it less than none: f32 shows that. */
static void test_variance_is_never_negative(void **state) {
    const an_optimizer_options options = {DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_RMSPROP, .beta_2 = 0.5,
                                          .centered = true};
    const an_update u = {DEFAULTS(an_update), .rate = 1e-12};
    double numbers[MOST_ELEMENTS] = {0};
    bench b;
    (void)state;
    bench_open(&b, AN_DTYPE_F32, NULL, NULL, &options);
    for (int step = 0; step < STEPS; step++) {
        bench_gradients(&b, 0, 1);
        OK(b.ctx, an_optimizer_update(b.optimizer, &u));
    }
    for (int p = 0; p < PARAMETERS; p++) {
        series_get(b.ctx, b.params, p, AN_PART_WEIGHT, b.dtype, numbers);
        for (int64_t i = 0; i < series_parameters[p].elements; i++) assert_true(isfinite(numbers[i]));
    }
    bench_close(&b);
}

/* ---- the same bits ---- */

static void take_steps(bench *b, int begin, int end) {
    const an_update u = {DEFAULTS(an_update), .rate = 0.01};
    for (int step = begin; step < end; step++) {
        bench_gradients(b, step, 1);
        OK(b->ctx, an_optimizer_update(b->optimizer, &u));
    }
}

static void compare(const bench *a, const bench *b) {
    double numbers[MOST_ELEMENTS] = {0}, others[MOST_ELEMENTS] = {0};
    for (int p = 0; p < PARAMETERS; p++) {
        series_get(a->ctx, a->params, p, AN_PART_WEIGHT, a->dtype, numbers);
        series_get(b->ctx, b->params, p, AN_PART_WEIGHT, b->dtype, others);
        assert_memory_equal(numbers, others, (size_t)series_parameters[p].elements * sizeof *numbers);
    }
}

static void test_same_bits_at_each_level(void **state) {
    (void)state;
    for (int i = 0; i < CASES; i++) {
        an_context_options context;
        const an_optimizer_options options = options_of(&cases[i]);
        bench base, best;
        an_context_options_init(&context, sizeof context);
        context.isa = AN_ISA_BASE;
        context.threads = 1;
        bench_open(&base, AN_DTYPE_F32, &context, NULL, &options);
        bench_open(&best, AN_DTYPE_F32, NULL, NULL, &options);
        take_steps(&base, 0, 10);
        take_steps(&best, 0, 10);
        compare(&base, &best);
        bench_close(&base);
        bench_close(&best);
    }
}

/* Weights and moments are all of its state. */
static void test_starts_again_with_the_same_bits(void **state) {
    double numbers[MOST_ELEMENTS] = {0};
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const an_optimizer_options options = options_of(&cases[i]);
        const int moments = an_optimizer_moments(&options);
        bench a, b;
        assert_int_equal(moments, cases[i].momentum > 0 || cases[i].centered ? 2 : 1);
        bench_open(&a, AN_DTYPE_F32, NULL, NULL, &options);
        bench_open(&b, AN_DTYPE_F32, NULL, NULL, &options);
        take_steps(&a, 0, 5);
        for (int p = 0; p < PARAMETERS; p++)
            for (int part = AN_PART_WEIGHT; part < AN_PART_MOMENT_1 + moments; part++) {
                if (part == AN_PART_GRADIENT) continue;
                series_get(a.ctx, a.params, p, (an_param_part)part, a.dtype, numbers);
                series_set(b.ctx, b.params, p, (an_param_part)part, b.dtype, numbers);
            }
        an_optimizer_set_updates(b.optimizer, an_optimizer_updates(a.optimizer));
        take_steps(&a, 5, 8);
        take_steps(&b, 5, 8);
        compare(&a, &b);
        bench_close(&a);
        bench_close(&b);
    }
}

/* ---- mistakes ---- */

static void refuses(an_optimizer_options options, const char *words) {
    bench b;
    an_optimizer *none = NULL;
    bench_open(&b, AN_DTYPE_F32, NULL, NULL, NULL);
    FAILS(b.ctx, an_optimizer_create(&none, b.params, b.groups, &options), AN_ERR_ARGUMENT, words);
    assert_null(none);
    bench_close(&b);
}

static void test_mistakes(void **state) {
    (void)state;
    refuses(
        (an_optimizer_options){DEFAULTS(an_optimizer_options), .name = "rmsprop", .momentum = 0.9, .centered = true},
        "rmsprop has momentum or is centered, not both");
    refuses((an_optimizer_options){DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_RMSPROP, .momentum = 0.9,
                                   .dampening = 0.5},
            "dampening is for sgd; rmsprop does not have it");
    refuses((an_optimizer_options){DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_RMSPROP, .nesterov = true},
            "nesterov is for sgd; rmsprop does not have it");
    refuses((an_optimizer_options){DEFAULTS(an_optimizer_options), .centered = true},
            "centered is for rmsprop; adamw does not have it");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas_over_100_steps), cmocka_unit_test(test_variance_is_never_negative),
        cmocka_unit_test(test_same_bits_at_each_level), cmocka_unit_test(test_starts_again_with_the_same_bits),
        cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
