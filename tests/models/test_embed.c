/* Columns of categories that a model embeds: rows of a table, their gradients, and what is refused. */
#include "models/small_models.h"

enum { BATCH = 4, INPUTS = 8, OUTPUTS = 2, CATEGORIES = 3, WIDTH = 2 };

/* Columns: a number, three categories, a number, two categories, a number. The third sample has no
 * category in the second column. */
static double x[BATCH][INPUTS] = {
    {2, 0, 1, 0, -1, 1, 0, 3}, {5, 1, 0, 0, 4, 0, 1, -2}, {-3, 0, 1, 0, 2, 0, 0, 1}, {1, 0, 0, 1, 0, 1, 0, 4}};
static double y[BATCH][OUTPUTS] = {{1, 2}, {-1, 0.5}, {0, 3}, {2, -1}};

static an_embedded_column column(int64_t begin, int64_t count, int64_t width) {
    an_embedded_column c;
    an_embedded_column_init(&c, sizeof c);
    c.begin = begin;
    c.count = count;
    c.width = width;
    return c;
}

static an_mlp_options options_of(const an_embedded_column *columns, int count) {
    an_mlp_options o = small_mlp_options();
    o.inputs = INPUTS;
    o.outputs = OUTPUTS;
    o.dtype = AN_DTYPE_F64;
    o.loss = AN_LOSS_SQUARED;
    o.activation = AN_ACTIVATION_TANH;
    o.embedded = columns;
    o.embedded_count = count;
    return o;
}

typedef struct {
    an_plan *plan;
    an_params *params;
    an_program *program;
} running;

static running start(an_graph *g) {
    const char *symbols[] = {"batch"};
    const int64_t maxima[] = {BATCH}, dims[] = {BATCH, INPUTS}, target_dims[] = {BATCH, OUTPUTS};
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    running r = {0};
    options.symbols = symbols;
    options.maxima = maxima;
    options.symbol_count = 1;
    OK(ctx, an_plan_create(&r.plan, ctx, g, &options));
    OK(ctx, an_params_create(&r.params, ctx, g, NULL));
    OK(ctx, an_params_reset(r.params, 1));
    OK(ctx, an_program_create(&r.program, r.plan, r.params));
    OK(ctx, an_program_bind(r.program, "batch", BATCH));
    const an_array inputs = array_of(x, AN_DTYPE_F64, 2, dims), targets = array_of(y, AN_DTYPE_F64, 2, target_dims);
    OK(ctx, an_program_set_input(r.program, "x", &inputs));
    OK(ctx, an_program_set_input(r.program, "targets", &targets));
    return r;
}

static void stop(running *r) {
    an_program_destroy(&r->program);
    an_params_destroy(&r->params);
    an_plan_destroy(&r->plan);
}

static double loss_of(const running *r) {
    double loss;
    OK(ctx, an_program_run(r->program, AN_FORM_EVALUATE));
    OK(ctx, an_program_loss(r->program, &loss));
    return loss;
}

/* Every element of a table against the slope of the loss. */
static void check_gradients(const running *r, const char *name, int64_t rows, int64_t width) {
    static const double step = 1e-5;
    double table[CATEGORIES * WIDTH], gradients[CATEGORIES * WIDTH];
    const int64_t dims[] = {rows, width};
    an_array weights = array_of(table, AN_DTYPE_F64, 2, dims), slopes = array_of(gradients, AN_DTYPE_F64, 2, dims);
    OK(ctx, an_program_run(r->program, AN_FORM_TRAIN_FIRST));
    OK(ctx, an_params_get(r->params, name, AN_PART_GRADIENT, &slopes));
    OK(ctx, an_params_get(r->params, name, AN_PART_WEIGHT, &weights));
    double largest = 0;
    for (int64_t i = 0; i < rows * width; i++) {
        const double before = table[i];
        table[i] = before + step;
        OK(ctx, an_params_set(r->params, name, AN_PART_WEIGHT, &weights));
        const double above = loss_of(r);
        table[i] = before - step;
        OK(ctx, an_params_set(r->params, name, AN_PART_WEIGHT, &weights));
        const double slope = (above - loss_of(r)) / (2 * step);
        table[i] = before;
        OK(ctx, an_params_set(r->params, name, AN_PART_WEIGHT, &weights));
        if (fabs(slope - gradients[i]) > 1e-7 * (1 + fabs(slope)))
            fail_msg("%s[%lld]: the gradient is %.9g, the slope %.9g", name, (long long)i, gradients[i], slope);
        largest = fmax(largest, fabs(slope));
    }
    assert_true(largest > 1e-3);
}

static void gradients_are_slopes(void **state) {
    (void)state;
    const an_embedded_column columns[] = {column(1, CATEGORIES, WIDTH), column(5, 2, 1)};
    const an_mlp_options options = options_of(columns, 2);
    an_graph *g = NULL;
    OK(ctx, an_model_mlp(&g, ctx, &options));
    running r = start(g);
    check_gradients(&r, "embedding.0.weight", CATEGORIES, WIDTH);
    check_gradients(&r, "embedding.1.weight", 2, 1);
    stop(&r);
    an_graph_destroy(&g);
}

/* The first layer sees the numbers in their places, normalised if that is wanted, and rows of the tables
 * in those of the columns. */
static void see_rows(bool normalizes) {
    const an_embedded_column columns[] = {column(1, CATEGORIES, WIDTH), column(5, 2, 1)};
    enum { SEEN = 6 };
    const int64_t plain_dims[] = {BATCH, OUTPUTS}, table_dims[] = {CATEGORIES, WIDTH}, other_dims[] = {2, 1},
                  weight_dims[] = {OUTPUTS, SEEN}, bias_dims[] = {OUTPUTS};
    double rows[CATEGORIES][WIDTH], others[2], weight[OUTPUTS][SEEN], bias[OUTPUTS], given[BATCH][OUTPUTS];
    an_mlp_options options = options_of(columns, 2);
    an_array table = array_of(rows, AN_DTYPE_F64, 2, table_dims), other = array_of(others, AN_DTYPE_F64, 2, other_dims),
             output = array_of(given, AN_DTYPE_F64, 2, plain_dims),
             matrix = array_of(weight, AN_DTYPE_F64, 2, weight_dims),
             offsets = array_of(bias, AN_DTYPE_F64, 1, bias_dims);
    an_graph *g = NULL;
    double means[INPUTS] = {1, 0.5, 0.5, 0.5, 2, 0.5, 0.5, -1}, scales[INPUTS] = {2, 4, 4, 4, 8, 4, 4, 0.5};
    const int64_t state_dims[] = {INPUTS};
    const an_array mean = array_of(means, AN_DTYPE_F64, 1, state_dims),
                   scale = array_of(scales, AN_DTYPE_F64, 1, state_dims);
    options.hidden_count = 0; /* y is linear in what layers see */
    options.normalize_inputs = normalizes;
    OK(ctx, an_model_mlp(&g, ctx, &options));
    running r = start(g);
    if (normalizes) {
        OK(ctx, an_params_set(r.params, "normalize.input.mean", AN_PART_WEIGHT, &mean));
        OK(ctx, an_params_set(r.params, "normalize.input.scale", AN_PART_WEIGHT, &scale));
    }
    OK(ctx, an_params_get(r.params, "embedding.0.weight", AN_PART_WEIGHT, &table));
    OK(ctx, an_params_get(r.params, "embedding.1.weight", AN_PART_WEIGHT, &other));
    OK(ctx, an_params_get(r.params, "output.weight", AN_PART_WEIGHT, &matrix));
    OK(ctx, an_params_get(r.params, "output.bias", AN_PART_WEIGHT, &offsets));
    OK(ctx, an_program_run(r.program, AN_FORM_EVALUATE));
    OK(ctx, an_program_get_output(r.program, "y", &output));
    for (int i = 0; i < BATCH; i++) {
        const int first = x[i][1] == 1 ? 0 : x[i][2] == 1 ? 1 : 2;
        const double second = x[i][5] == 1 ? others[0] : x[i][6] == 1 ? others[1] : 0;
        double n[INPUTS]; /* x, as a model without embeddings would see it */
        for (int j = 0; j < INPUTS; j++) n[j] = normalizes ? (x[i][j] - means[j]) / scales[j] : x[i][j];
        const double seen[SEEN] = {n[0], rows[first][0], rows[first][1], n[4], second, n[7]};
        for (int k = 0; k < OUTPUTS; k++) {
            double sum = bias[k];
            for (int j = 0; j < SEEN; j++) sum += weight[k][j] * seen[j];
            if (fabs(sum - given[i][k]) > 1e-12 * (1 + fabs(sum)))
                fail_msg("sample %d: y[%d] is %.15g, expected %.15g", i, k, given[i][k], sum);
        }
    }
    stop(&r);
    an_graph_destroy(&g);
}

static void layers_see_rows(void **state) {
    (void)state;
    see_rows(false);
    see_rows(true);
}

static void wrong_columns_are_refused(void **state) {
    (void)state;
    const struct {
        an_embedded_column columns[2];
        const char *words;
    } rows[] = {{{column(1, 3, 2), column(3, 2, 1)}, "do not overlap"},
                {{column(5, 2, 1), column(1, 3, 2)}, "in the order of the inputs"},
                {{column(1, 3, 2), column(6, 3, 1)}, "embedded column 1 is inputs 6 to 8 of 8"},
                {{column(-1, 3, 2), column(6, 1, 1)}, "embedded column 0"},
                {{column(1, 0, 2), column(6, 1, 1)}, "the categories of an embedded column"},
                {{column(1, 3, 0), column(6, 1, 1)}, "the width of an embedded column"}};
    an_graph *g = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const an_mlp_options options = options_of(rows[i].columns, 2);
        assert_int_equal(an_model_mlp(&g, ctx, &options), AN_ERR_ARGUMENT);
        assert_null(g);
        if (!strstr(an_last_error(ctx), rows[i].words))
            fail_msg("'%s' is not in: %s", rows[i].words, an_last_error(ctx));
    }
    an_mlp_options options = options_of(NULL, 1);
    assert_int_equal(an_model_mlp(&g, ctx, &options), AN_ERR_ARGUMENT);
    options.embedded_count = -1;
    assert_int_equal(an_model_mlp(&g, ctx, &options), AN_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_slopes), cmocka_unit_test(layers_see_rows),
                                       cmocka_unit_test(wrong_columns_are_refused)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
