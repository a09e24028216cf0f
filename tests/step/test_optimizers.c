/* Optimizers against PyTorch's over 100 steps in f32 and f64, and what an update promises besides: bits that depend on
 * neither threads nor level, copies of low precision. */
#include <fenv.h>

#include "base/float16.h"
#include "exec/params.h"
#include "step/optimizer.h"
#include "step/series.h"

enum { STEPS = 100 };

/* ---- parity ---- */

typedef struct {
    const char *name;
    double rate, weight_decay;
    an_optimizer_options options;
    bool one_cycle, grouped; /* grouped: the table has a tenth of the rate and a decay of its own */
    double clip_norm, clip_value, scale;
} optimizer_case;

#define OPTIMIZER(...) \
    { DEFAULTS(an_optimizer_options), __VA_ARGS__ }
#define ADAMW OPTIMIZER(.type = AN_OPTIMIZER_ADAMW)
#define ADAM OPTIMIZER(.type = AN_OPTIMIZER_ADAM)
#define LION OPTIMIZER(.type = AN_OPTIMIZER_LION)
#define SGD(...) OPTIMIZER(.type = AN_OPTIMIZER_SGD, __VA_ARGS__)
#define CASE(case_name, peak, decay) .name = case_name, .rate = (peak), .weight_decay = (decay), .options

static const optimizer_case cases[] = {
    {CASE("sgd", 0.1, 0) = SGD(.momentum = 0)},
    {CASE("sgd_momentum", 0.1, 0) = SGD(.momentum = 0.9)},
    {CASE("sgd_dampening", 0.1, 0) = SGD(.momentum = 0.9, .dampening = 0.5)},
    {CASE("sgd_dampening_alone", 0.1, 0) = SGD(.dampening = 0.5)},
    {CASE("sgd_nesterov", 0.1, 0) = SGD(.momentum = 0.9, .nesterov = true)},
    {CASE("sgd_decay", 0.1, 0.1) = SGD(.momentum = 0.9)},
    {CASE("sgd_all", 0.02, 0.1) = SGD(.momentum = 0.95, .nesterov = true)},
    {CASE("sgd_values", 0.1, 0) = SGD(.momentum = 0), .clip_value = 0.3},
    {CASE("sgd_one_cycle", 0.1, 0.1) = SGD(.momentum = 0.9), .one_cycle = true},
    {CASE("adam", 0.01, 0) = ADAM},
    {CASE("adam_decay", 0.01, 0.1) = ADAM},
    {CASE("adamw", 0.01, 0.01) = ADAMW},
    {CASE("adamw_betas", 0.01, 0.1) = OPTIMIZER(.beta_1 = 0.8, .beta_2 = 0.95, .epsilon = 1e-6)},
    {CASE("adamw_no_betas", 0.001, 0.1) = OPTIMIZER(.beta_1 = 0)},
    {CASE("adamw_groups", 0.01, 0.01) = ADAMW, .grouped = true},
    {CASE("adamw_one_cycle", 0.01, 0.01) = ADAMW, .one_cycle = true},
    {CASE("adamw_clipped", 0.01, 0.01) = ADAMW, .clip_norm = 1, .scale = 1024},
};

/* Weights are of size 1 and end near 0 only where larger numbers cancel, which leaves the errors of those. */
static double relative(double a, double b, double size) {
    return fabs(a - b) / (fabs(b) > size ? fabs(b) : size);
}

static double compare(const series_file *file, bench *b, const char *name, int step) {
    double numbers[MOST_ELEMENTS] = {0}, digest[MOST_DIGEST] = {0}, golden[MOST_DIGEST], largest = 0;
    const double tolerance = b->dtype == AN_DTYPE_F64 ? 1e-13 : 1e-6;
    for (int p = 0; p < PARAMETERS; p++) {
        char series[96];
        snprintf(series, sizeof series, "%s.%s.%s.%d", name, series_type(b->dtype), series_parameters[p].name, step);
        series_get(b->ctx, b->params, p, AN_PART_WEIGHT, b->dtype, numbers);
        const int count = series_digest(numbers, series_parameters[p].elements, digest);
        assert_int_equal(series_read(file, series, golden, MOST_DIGEST), count);
        for (int i = 0; i < count; i++) {
            const bool is_sum = count == MOST_DIGEST && i >= MOST_DIGEST - 2;
            const double error = relative(digest[i], golden[i], is_sum ? MOST_ELEMENTS : 1);
            if (!(error <= tolerance)) fail_msg("%s: number %d is %.17g, not %.17g", series, i, digest[i], golden[i]);
            if (error > largest) largest = error;
        }
    }
    return largest;
}

static double run_case(const series_file *file, const optimizer_case *c, an_dtype dtype) {
    const an_schedule_options cycle = {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_ONE_CYCLE, .steps = STEPS};
    const an_group_rule rule = {DEFAULTS(an_group_rule), .match = "^table\\.", .lr_scale = 0.1, .weight_decay = 0.5};
    an_group_options groups = {DEFAULTS(an_group_options), .weight_decay = c->weight_decay};
    an_schedule *schedule = NULL;
    bench b;
    double largest = 0, norms[STEPS] = {0};
    char name[96];
    if (c->grouped) groups.rule_count = 1, groups.rules = &rule;
    bench_open(&b, dtype, NULL, &groups, &c->options);
    OK(b.ctx, an_schedule_create(&schedule, b.ctx, &cycle));
    snprintf(name, sizeof name, "%s.%s.norms", c->name, series_type(dtype));
    if (c->clip_norm > 0) assert_int_equal(series_read(file, name, norms, STEPS), STEPS);
    for (int step = 0; step < STEPS; step++) {
        an_update u = {DEFAULTS(an_update), .clip_norm = c->clip_norm, .clip_value = c->clip_value,
                       .scale = c->scale > 0 ? c->scale : 1};
        u.rate = c->rate * (c->one_cycle ? an_schedule_factor(schedule, step) : 1 - step / 200.0);
        if (c->one_cycle) u.beta_1 = an_schedule_momentum(schedule, step);
        bench_gradients(&b, step, c->scale > 0 ? c->scale : 1);
        if (c->clip_norm > 0) {
            double norm;
            OK(b.ctx, an_optimizer_norm(b.optimizer, c->scale, &norm));
            assert_true(fabs(norm - norms[step]) <= norms[step] * (dtype == AN_DTYPE_F64 ? 1e-13 : 1e-6));
        }
        OK(b.ctx, an_optimizer_update(b.optimizer, &u));
        if (step == 0 || step == 1 || step == 9 || step == 99) {
            const double error = compare(file, &b, c->name, step + 1);
            if (error > largest) largest = error;
        }
    }
    assert_int_equal(an_optimizer_updates(b.optimizer), STEPS);
    an_schedule_destroy(&schedule);
    bench_close(&b);
    return largest;
}

static void test_parity_over_100_steps(void **state) {
    (void)state;
    series_file file = series_open("optimizers");
    double f32 = 0, f64 = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f32 = fmax(f32, run_case(&file, &cases[i], AN_DTYPE_F32));
        f64 = fmax(f64, run_case(&file, &cases[i], AN_DTYPE_F64));
    }
    series_close(&file);
    print_message("largest error of %d optimizers: f32 %.2g, f64 %.2g\n", (int)(sizeof cases / sizeof *cases), f32,
                  f64);
}

/* ---- the same bits ---- */

/* A model of many pages, so that threads share the work: odd sizes, gradients of all magnitudes. */
enum { WIDE = 70001, MODES = 4 };

typedef struct {
    double norm;
    float weights[WIDE];
} outcome;

static void run_wide(outcome *result, int threads, an_isa isa, int rounding, const an_optimizer_options *options) {
    an_context_options context;
    an_context_options_init(&context, sizeof context);
    an_params_options store;
    an_params_options_init(&store, sizeof store);
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_groups *groups = NULL;
    an_params *params = NULL;
    an_optimizer *optimizer = NULL;
    static float numbers[WIDE];
    const int64_t dims[] = {WIDE};
    context.threads = threads;
    context.isa = isa;
    store.moments = an_optimizer_moments(options);
    assert_int_equal(an_context_create(&ctx, &context), AN_OK);
    OK(ctx, an_graph_create(&g, ctx, "wide"));
    an_value small = an_param(g, "small", AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 0, AN_DIMS(3));
    an_value wide = an_param(g, "wide", AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 0, AN_DIMS(WIDE));
    an_graph_set_loss(g,
                      an_add(g, an_reduce_sum(g, wide, 1, (const int[]){0}, false),
                             an_reduce_sum(g, small, 1, (const int[]){0}, false)),
                      AN_NONE);
    OK(ctx, an_groups_create(&groups, g, NULL));
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_params_create(&params, ctx, g, &store));
    OK(ctx, an_optimizer_create(&optimizer, params, groups, options));
    an_array array = array_of(numbers, AN_DTYPE_F32, 1, dims);
    for (int i = 0; i < WIDE; i++) numbers[i] = (float)noise((uint64_t)i);
    OK(ctx, an_params_set(params, "wide", AN_PART_WEIGHT, &array));
    for (int step = 0; step < 3; step++) {
        an_update u = {DEFAULTS(an_update), .rate = 0.01, .clip_norm = 1, .clip_value = 1e-3, .scale = 3};
        for (int i = 0; i < WIDE; i++)
            numbers[i] = (float)ldexp(noise((uint64_t)i + (uint64_t)WIDE * (uint64_t)(step + 1)), i % 40 - 30);
        OK(ctx, an_params_set(params, "wide", AN_PART_GRADIENT, &array));
        assert_int_equal(fesetround(rounding), 0);
        OK(ctx, an_optimizer_norm(optimizer, u.scale, &result->norm));
        OK(ctx, an_optimizer_update(optimizer, &u));
        assert_int_equal(fegetround(), rounding);
        assert_int_equal(fesetround(FE_TONEAREST), 0);
    }
    array.data = result->weights;
    OK(ctx, an_params_get(params, "wide", AN_PART_WEIGHT, &array));
    an_optimizer_destroy(&optimizer);
    an_params_destroy(&params);
    an_groups_destroy(&groups);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

static bool machine_has(an_isa isa) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_context *ctx = NULL;
    options.isa = isa;
    const bool has = an_context_create(&ctx, &options) == AN_OK;
    an_context_destroy(&ctx);
    return has;
}

static void test_same_bits(void **state) {
    (void)state;
    static const an_optimizer_options options[MODES] = {ADAMW, ADAM, SGD(.momentum = 0.9, .nesterov = true), LION};
    static outcome one, other;
    int levels = 0;
    for (int mode = 0; mode < MODES; mode++) {
        levels = 0;
        run_wide(&one, 1, AN_ISA_BASE, FE_TONEAREST, &options[mode]);
        assert_true(one.norm > 0 && one.weights[WIDE - 1] != 0);
        for (int isa = AN_ISA_BASE; isa <= AN_ISA_AMX; isa++) {
            if (!machine_has((an_isa)isa)) continue;
            levels++;
            for (int threads = 1; threads <= 4; threads++) {
                run_wide(&other, threads, (an_isa)isa, threads == 2 ? FE_UPWARD : FE_TONEAREST, &options[mode]);
                assert_memory_equal(&one.norm, &other.norm, sizeof one.norm);
                assert_memory_equal(one.weights, other.weights, sizeof one.weights);
            }
        }
    }
    print_message("the same bits at %d levels, 1 to 4 threads, whatever the host's rounding\n", levels);
}

/* ---- copies of low precision ---- */

static void check_low(an_dtype low, an_dtype master, const an_optimizer_options *options) {
    bench b;
    bench_open(&b, master, NULL, NULL, options);
    OK(b.ctx, an_params_need_low(b.params, low));
    for (int step = 0; step < 3; step++) {
        const an_update u = {DEFAULTS(an_update), .rate = 0.01};
        bench_gradients(&b, step, 1);
        OK(b.ctx, an_optimizer_update(b.optimizer, &u));
        assert_true(b.params->low_version == b.params->version); /* nothing will make them anew */
        const size_t bytes = (size_t)an_params_low_bytes(&b.params->sizes, low);
        void *made = malloc(bytes);
        assert_non_null(made);
        memcpy(made, b.params->low, bytes);
        memset(b.params->low, 0x55, bytes);
        b.params->low_version--;
        OK(b.ctx, an_params_refresh(b.params)); /* a cast of the masters */
        assert_memory_equal(made, b.params->low, bytes);
        free(made);
    }
    assert_true(an_bf16_to_f32(0x3f80) == 1); /* the type is what it says */
    bench_close(&b);
}

static void test_low_copy_is_a_cast_of_the_masters(void **state) {
    (void)state;
    const an_optimizer_options lion = LION;
    check_low(AN_DTYPE_BF16, AN_DTYPE_F32, NULL);
    check_low(AN_DTYPE_F16, AN_DTYPE_F32, NULL);
    check_low(AN_DTYPE_BF16, AN_DTYPE_F64, NULL);
    check_low(AN_DTYPE_BF16, AN_DTYPE_F32, &lion);
}

/* ---- starting again ---- */

/* Weights, moments and the number of updates are all of its state. */
static void test_starts_again_with_the_same_bits(void **state) {
    (void)state;
    const an_optimizer_options options[] = {ADAMW, SGD(.momentum = 0.9, .dampening = 0.1), LION};
    for (size_t o = 0; o < sizeof options / sizeof *options; o++) {
        bench a, b;
        double numbers[MOST_ELEMENTS] = {0}, others[MOST_ELEMENTS] = {0};
        const an_update u = {DEFAULTS(an_update), .rate = 0.1};
        bench_open(&a, AN_DTYPE_F32, NULL, NULL, &options[o]);
        bench_open(&b, AN_DTYPE_F32, NULL, NULL, &options[o]);
        for (int step = 0; step < 5; step++) {
            bench_gradients(&a, step, 1);
            OK(a.ctx, an_optimizer_update(a.optimizer, &u));
        }
        const int moments = an_optimizer_moments(&options[o]);
        for (int p = 0; p < PARAMETERS; p++)
            for (int part = AN_PART_WEIGHT; part < AN_PART_MOMENT_1 + moments; part++) {
                if (part == AN_PART_GRADIENT) continue;
                series_get(a.ctx, a.params, p, (an_param_part)part, a.dtype, numbers);
                series_set(b.ctx, b.params, p, (an_param_part)part, b.dtype, numbers);
            }
        an_optimizer_set_updates(b.optimizer, an_optimizer_updates(a.optimizer));
        for (int step = 5; step < 8; step++) {
            bench_gradients(&a, step, 1);
            bench_gradients(&b, step, 1);
            OK(a.ctx, an_optimizer_update(a.optimizer, &u));
            OK(b.ctx, an_optimizer_update(b.optimizer, &u));
        }
        for (int p = 0; p < PARAMETERS; p++) {
            series_get(a.ctx, a.params, p, AN_PART_WEIGHT, a.dtype, numbers);
            series_get(b.ctx, b.params, p, AN_PART_WEIGHT, b.dtype, others);
            assert_memory_equal(numbers, others, (size_t)series_parameters[p].elements * sizeof *numbers);
        }
        bench_close(&a);
        bench_close(&b);
    }
}

/* A store with more moments than SGD needs gives the same. */
static void test_spare_moments_change_nothing(void **state) {
    (void)state;
    bench b;
    an_optimizer_options options = SGD(.dampening = 0.5);
    double numbers[MOST_ELEMENTS] = {0};
    const an_update u = {DEFAULTS(an_update), .rate = 0.5};
    bench_open(&b, AN_DTYPE_F64, NULL, NULL, NULL); /* two moments */
    an_optimizer_destroy(&b.optimizer);
    OK(b.ctx, an_optimizer_create(&b.optimizer, b.params, b.groups, &options));
    for (int step = 0; step < 2; step++) {
        bench_gradients(&b, step, 1);
        OK(b.ctx, an_optimizer_update(b.optimizer, &u));
    }
    series_get(b.ctx, b.params, 1, AN_PART_WEIGHT, b.dtype, numbers);
    for (int64_t i = 0; i < series_parameters[1].elements; i++) {
        double expected = series_weight(1, i) - 0.5 * series_gradient(1, i, 0);
        expected -= 0.5 * series_gradient(1, i, 1);
        assert_true(numbers[i] == expected);
    }
    bench_close(&b);
}

/* Every allocation in turn fails, of groups and of the optimizer: the error says so, and nothing stays behind. */
static void test_memory_runs_out(void **state) {
    (void)state;
    const an_group_rule rule = {DEFAULTS(an_group_rule), .match = "table", .lr_scale = 0.5};
    const an_group_options options = {DEFAULTS(an_group_options), .rule_count = 1, .rules = &rule};
    bool done = false;
    for (long n = 1; !done; n++) {
        ledger l = {0};
        an_context *ctx = NULL;
        an_groups *groups = NULL, *good = NULL;
        an_params *params = NULL;
        an_optimizer *optimizer = NULL;
        assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
        an_graph *g = series_graph(ctx, AN_DTYPE_F32);
        OK(ctx, an_groups_create(&good, g, &options));
        OK(ctx, an_params_create(&params, ctx, g, NULL));
        const size_t before = l.held;
        l.fail_at = l.calls + n;
        an_status status = an_groups_create(&groups, g, &options);
        if (status == AN_OK) status = an_optimizer_create(&optimizer, params, good, NULL);
        done = status == AN_OK;
        if (!done) assert_int_equal(status, AN_ERR_MEMORY);
        assert_true(done == (optimizer != NULL));
        an_optimizer_destroy(&optimizer);
        an_groups_destroy(&groups);
        assert_int_equal(l.held, before);
        an_params_destroy(&params);
        an_groups_destroy(&good);
        an_graph_destroy(&g);
        an_context_destroy(&ctx);
        assert_true(l.held == 0 && !l.mismatch && n < 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parity_over_100_steps),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_low_copy_is_a_cast_of_the_masters),
        cmocka_unit_test(test_starts_again_with_the_same_bits),
        cmocka_unit_test(test_spare_moments_change_nothing),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
