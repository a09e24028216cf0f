/* lion against its formulas over 100 steps, and what its record promises: each element by itself. */
#include "anneal/experimental.h"
#include "anneal/optimizer.h"
#include "base/memory.h"
#include "step/optimizers/kind.h"
#include "step/series.h"

enum { STEPS = 100 };

typedef struct {
    const char *name;
    double weight_decay, beta_1, beta_2; /* betas 0: 0.9 and 0.99; -1: 0 */
    bool grouped; /* the table has a tenth of the rate and a decay of its own, the bias is frozen */
    double clip_norm, clip_value, scale;
} lion_case;

static const lion_case cases[] = {
    {.name = "plain"},
    {.name = "decay", .weight_decay = 0.1},
    {.name = "betas", .weight_decay = 0.1, .beta_1 = 0.8, .beta_2 = 0.95},
    {.name = "no first beta", .beta_1 = -1},
    {.name = "groups", .weight_decay = 0.1, .grouped = true},
    {.name = "clipped", .weight_decay = 0.1, .clip_norm = 1, .scale = 1024},
    {.name = "values", .clip_value = 0.3},
    {.name = "all", .weight_decay = 0.3, .grouped = true, .clip_norm = 2, .clip_value = 0.05, .scale = 3},
};

/* ---- the formulas ---- */

typedef struct {
    double w[PARAMETERS][MOST_ELEMENTS], m[PARAMETERS][MOST_ELEMENTS];
} formulas;

static double sign(double x) {
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static bool is_frozen(const lion_case *c, int parameter) {
    return c->grouped && !strcmp(series_parameters[parameter].name, "layer.bias");
}

static double norm_of(const lion_case *c, int step) {
    double sum = 0;
    for (int p = 0; p < PARAMETERS; p++)
        for (int64_t i = 0; !is_frozen(c, p) && i < series_parameters[p].elements; i++)
            sum += series_gradient(p, i, step) * series_gradient(p, i, step);
    return sqrt(sum);
}

static void apply_formulas(formulas *f, const lion_case *c, int step, double rate) {
    const double beta_1 = c->beta_1 == 0 ? 0.9 : fmax(c->beta_1, 0), beta_2 = c->beta_2 == 0 ? 0.99 : c->beta_2;
    const double factor = c->clip_norm > 0 ? fmin(1, c->clip_norm / (norm_of(c, step) + 1e-6)) : 1;
    for (int p = 0; p < PARAMETERS; p++) {
        const bool table = c->grouped && p == 0;
        const double decay = table ? 0.5 : series_parameters[p].ndims < 2 ? 0 : c->weight_decay;
        if (is_frozen(c, p)) continue;
        for (int64_t i = 0; i < series_parameters[p].elements; i++) {
            double g = series_gradient(p, i, step) * factor;
            if (c->clip_value > 0) g = fmax(-c->clip_value, fmin(c->clip_value, g));
            double *w = &f->w[p][i], *m = &f->m[p][i];
            const double direction = sign(beta_1 * *m + (1 - beta_1) * g);
            *w -= (table ? 0.1 : 1) * rate * (direction + decay * *w);
            *m = beta_2 * *m + (1 - beta_2) * g;
        }
    }
}

static double compare(bench *b, const formulas *f, const lion_case *c, int step) {
    double numbers[MOST_ELEMENTS] = {0}, largest = 0;
    for (int p = 0; p < PARAMETERS; p++)
        for (int part = AN_PART_WEIGHT; part <= AN_PART_MOMENT_1; part++) {
            if (part == AN_PART_GRADIENT || (part == AN_PART_MOMENT_1 && is_frozen(c, p))) continue;
            const double *expected = part == AN_PART_WEIGHT ? f->w[p] : f->m[p];
            series_get(b->ctx, b->params, p, (an_param_part)part, b->dtype, numbers);
            for (int64_t i = 0; i < series_parameters[p].elements; i++) {
                const double error = fabs(numbers[i] - expected[i]);
                if (!(error <= 1e-12))
                    fail_msg("%s, step %d: element %lld of '%s' is %.17g, not %.17g", c->name, step, (long long)i,
                             series_parameters[p].name, numbers[i], expected[i]);
                largest = fmax(largest, error);
            }
        }
    return largest;
}

static double run_case(const lion_case *c, const an_optimizer_options *chosen) {
    static formulas f;
    const an_group_rule rules[] = {
        {DEFAULTS(an_group_rule), .match = "^table\\.", .lr_scale = 0.1, .weight_decay = 0.5},
        {DEFAULTS(an_group_rule), .match = "^layer\\.bias", .freeze = true},
    };
    an_group_options groups = {DEFAULTS(an_group_options), .optimizer = AN_OPTIMIZER_LION,
                               .weight_decay = c->weight_decay}; /* 0 is lion's default, which is none */
    an_optimizer_options options = *chosen;
    bench b;
    double largest = 0, norm;
    options.beta_1 = c->beta_1 == 0 ? AN_AUTO : fmax(c->beta_1, 0);
    options.beta_2 = c->beta_2 == 0 ? AN_AUTO : c->beta_2;
    if (c->grouped) groups.rule_count = 2, groups.rules = rules;
    bench_open(&b, AN_DTYPE_F64, NULL, &groups, &options);
    memset(&f, 0, sizeof f);
    for (int p = 0; p < PARAMETERS; p++)
        for (int64_t i = 0; i < series_parameters[p].elements; i++) f.w[p][i] = series_weight(p, i);
    for (int step = 0; step < STEPS; step++) {
        an_update u = {DEFAULTS(an_update), .clip_norm = c->clip_norm, .clip_value = c->clip_value,
                       .scale = c->scale > 0 ? c->scale : 1};
        u.rate = 0.01 * (1 - step / 200.0);
        for (int p = 0; p < PARAMETERS; p++) {
            double numbers[MOST_ELEMENTS] = {0};
            for (int64_t i = 0; i < series_parameters[p].elements; i++)
                numbers[i] = series_gradient(p, i, step) * (c->scale > 0 ? c->scale : 1);
            if (!is_frozen(c, p)) series_set(b.ctx, b.params, p, AN_PART_GRADIENT, b.dtype, numbers);
        }
        if (c->clip_norm > 0) OK(b.ctx, an_optimizer_norm(b.optimizer, u.scale, &norm));
        OK(b.ctx, an_optimizer_update(b.optimizer, &u));
        apply_formulas(&f, c, step, u.rate);
        largest = fmax(largest, compare(&b, &f, c, step));
    }
    bench_close(&b);
    return largest;
}

static void test_formulas_over_100_steps(void **state) {
    (void)state;
    const an_optimizer_options by_type = {DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_LION},
                               by_name = {DEFAULTS(an_optimizer_options), .name = "lion"};
    double largest = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        largest = fmax(largest, run_case(&cases[i], i % 2 ? &by_name : &by_type));
    print_message("largest error of %d runs of lion: %.2g\n", (int)(sizeof cases / sizeof *cases), largest);
}

/* ---- cuts ---- */

/* However elements are divided among calls, each gets the same bits; and sign(0) is 0. */
static void test_any_cut(void **state) {
    enum { COUNT = 3001 };
    static float g[COUNT], w[4][COUNT], m[4][COUNT];
    static const int cuts[] = {COUNT, 1, 7, 1000};
    const an_optimizer_numbers n = {.update = 3,
                                    .rate = 0.01,
                                    .weight_decay = 0.1,
                                    .beta_1 = 0.9,
                                    .beta_2 = 0.99,
                                    .correction_1 = 1,
                                    .correction_2 = 1};
    (void)state;
    for (int cut = 0; cut < 4; cut++) {
        for (int i = 0; i < COUNT; i++) {
            g[i] = i % 5 ? (float)noise((uint64_t)i) : 0;
            w[cut][i] = (float)noise((uint64_t)i + COUNT);
            m[cut][i] = i % 5 ? (float)noise((uint64_t)i + 2 * COUNT) : 0;
        }
        for (int at = 0; at < COUNT; at += cuts[cut]) {
            const int count = COUNT - at < cuts[cut] ? COUNT - at : cuts[cut];
            an_optimizer_kind_lion.record.update_f32(NULL, &n, count, g + at, w[cut] + at, m[cut] + at, NULL);
        }
        assert_memory_equal(w[cut], w[0], sizeof w[0]);
        assert_memory_equal(m[cut], m[0], sizeof m[0]);
    }
    const float rate = 0.01F, decay = 0.1F, before = (float)noise(COUNT);
    assert_true(w[0][0] == before - rate * (decay * before));
}

/* The store holds one moment, and the plan of a trainer counts one. */
static void test_moments(void **state) {
    (void)state;
    const an_optimizer_options lion = {DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_LION};
    assert_int_equal(an_optimizer_moments(&lion), 1);
    bench b;
    bench_open(&b, AN_DTYPE_F32, NULL, NULL, &lion);
    an_array array = {0};
    array.ndims = -1;
    assert_int_not_equal(an_params_get(b.params, "gain", AN_PART_MOMENT_2, &array), AN_OK);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formulas_over_100_steps), cmocka_unit_test(test_any_cut),
                                       cmocka_unit_test(test_moments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
