/* Copies: what checkops cannot ask of a kernel alone. Sizes that are symbols, wrong indices, large integers, mistakes
 * and their sentences. */
#include "ir/graph.h"
#include "support/support.h"

typedef struct {
    an_context *ctx;
    an_graph *graph;
    an_params *params;
    an_plan *plan;
    an_program *program;
} fixture;

static fixture begin(void) {
    fixture f = {0};
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = 4;
    assert_int_equal(an_context_create(&f.ctx, &options), AN_OK);
    OK(f.ctx, an_graph_create(&f.graph, f.ctx, "copies"));
    return f;
}

static void compile(fixture *f, const char *symbol, int64_t maximum, unsigned programs) {
    OK(f->ctx, an_graph_verify(f->graph));
    OK(f->ctx, an_params_create(&f->params, f->ctx, f->graph, NULL));
    OK(f->ctx, plan_for(&f->plan, f->ctx, f->graph, symbol, maximum, programs));
    OK(f->ctx, an_program_create(&f->program, f->plan, f->params));
}

static void end(fixture *f) {
    an_program_destroy(&f->program);
    an_plan_destroy(&f->plan);
    an_params_destroy(&f->params);
    an_graph_destroy(&f->graph);
    an_context_destroy(&f->ctx);
}

/* ---- sizes ---- */

/* x[batch,2] between `batch` rows of zeros before and one after, then x again: 3·batch + 1 rows. */
static void test_symbols(void **state) {
    (void)state;
    enum { MOST = 5, WIDTH = 2 };
    fixture f = begin();
    an_graph *g = f.graph;
    an_dim batch = an_symbol_dim(g, "batch");
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, WIDTH));
    an_value parts[] = {an_pad(g, x, 0, batch, 1), x};
    an_graph_set_output(g, an_concat(g, 0, 2, parts), "out");
    compile(&f, "batch", MOST, AN_PROGRAM_PREDICTION);
    for (int64_t rows = MOST; rows >= 1; rows -= 2) {
        float values[MOST * WIDTH], out[(3 * MOST + 1) * WIDTH];
        an_array from = array_of(values, AN_DTYPE_F32, 2, (const int64_t[]){rows, WIDTH});
        an_array to = array_of(out, AN_DTYPE_F32, 2, (const int64_t[]){3 * rows + 1, WIDTH});
        for (int64_t i = 0; i < rows * WIDTH; i++) values[i] = (float)(i + 1);
        OK(f.ctx, an_program_bind(f.program, "batch", rows));
        OK(f.ctx, an_program_set_input(f.program, "x", &from));
        OK(f.ctx, an_program_run(f.program, AN_FORM_PREDICT));
        OK(f.ctx, an_program_get_output(f.program, "out", &to));
        for (int64_t i = 0; i < (3 * rows + 1) * WIDTH; i++) {
            int64_t row = i / WIDTH, column = i % WIDTH, from_row = row < 2 * rows ? row - rows : row - 2 * rows - 1;
            bool is_zero = row < rows || row == 2 * rows;
            assert_true(out[i] == (is_zero ? 0 : values[from_row * WIDTH + column]));
        }
    }
    end(&f);
}

/* The gradient of both parts of a concat and of a pad by a symbol is cut out at the right rows. */
static void test_symbols_gradient(void **state) {
    (void)state;
    enum { ROWS = 3 };
    fixture f = begin();
    an_graph *g = f.graph;
    an_dim batch = an_symbol_dim(g, "batch");
    an_value w = an_param(g, "w", AN_DTYPE_F64, AN_INITIALIZER_CONSTANT, 1, AN_DIMS(1));
    an_value x = an_input(g, "x", AN_DTYPE_F64, AN_DIMS(batch)), y = an_input(g, "y", AN_DTYPE_F64, AN_DIMS(batch));
    an_value parts[] = {x, an_pad(g, an_multiply(g, y, w), 0, batch, 0)};
    an_value weights = an_input(g, "weights", AN_DTYPE_F64, AN_DIMS(an_dim_multiply(g, 3, batch)));
    an_value all = an_multiply(g, an_concat(g, 0, 2, parts), weights);
    an_graph_set_loss(g, an_reduce_sum(g, all, AN_ALL_AXES, false), AN_NONE);
    compile(&f, "batch", 2 * ROWS, AN_PROGRAM_TRAINING);
    double values[ROWS] = {1, 10, 100}, factors[3 * ROWS] = {1e6, 1e6, 1e6, 1e7, 1e7, 1e7, 2, 3, 4}, gradient = 0;
    an_array in = array_of(values, AN_DTYPE_F64, 1, (const int64_t[]){ROWS});
    an_array weighted = array_of(factors, AN_DTYPE_F64, 1, (const int64_t[]){3 * ROWS});
    an_array out = array_of(&gradient, AN_DTYPE_F64, 1, (const int64_t[]){1});
    OK(f.ctx, an_program_bind(f.program, "batch", ROWS));
    OK(f.ctx, an_program_set_input(f.program, "x", &in));
    OK(f.ctx, an_program_set_input(f.program, "y", &in));
    OK(f.ctx, an_program_set_input(f.program, "weights", &weighted));
    OK(f.ctx, an_program_run(f.program, AN_FORM_TRAIN_FIRST));
    OK(f.ctx, an_params_get(f.params, "w", AN_PART_GRADIENT, &out));
    assert_true(gradient == 2 * 1 + 3 * 10 + 4 * 100);
    end(&f);
}

/* ---- indices ---- */

/* The first wrong index is named, however many there are and whatever the threads do. */
static void test_wrong_index(void **state) {
    (void)state;
    enum { ROWS = 4096, ENTRIES = 5, PICKED = 9 };
    static int64_t indices[ROWS * PICKED];
    static float src[ROWS * ENTRIES], dst[ROWS * PICKED];
    fixture f = begin();
    an_graph *g = f.graph;
    an_dim rows = an_symbol_dim(g, "rows");
    an_value picked = an_gather(g, an_input(g, "src", AN_DTYPE_F32, AN_DIMS(rows, ENTRIES)),
                                an_input(g, "indices", AN_DTYPE_I64, AN_DIMS(rows, PICKED)), -1);
    an_graph_set_output(g, picked, "out");
    compile(&f, "rows", ROWS, AN_PROGRAM_PREDICTION);
    an_array from = array_of(src, AN_DTYPE_F32, 2, (const int64_t[]){ROWS, ENTRIES});
    an_array at = array_of(indices, AN_DTYPE_I64, 2, (const int64_t[]){ROWS, PICKED});
    an_array to = array_of(dst, AN_DTYPE_F32, 2, (const int64_t[]){ROWS, PICKED});
    for (int64_t i = 0; i < ROWS * ENTRIES; i++) src[i] = (float)i;
    for (int64_t i = 0; i < ROWS * PICKED; i++) indices[i] = i % ENTRIES;
    OK(f.ctx, an_program_set_input(f.program, "src", &from));
    OK(f.ctx, an_program_set_input(f.program, "indices", &at));
    OK(f.ctx, an_program_run(f.program, AN_FORM_PREDICT));
    OK(f.ctx, an_program_get_output(f.program, "out", &to));
    for (int64_t i = 0; i < ROWS * PICKED; i++) {
        int64_t row = i / PICKED;
        assert_true(dst[i] == src[row * ENTRIES + i % ENTRIES]);
    }

    for (int64_t i = 7 * PICKED + 2; i < ROWS * PICKED; i += 3) indices[i] = ENTRIES;
    OK(f.ctx, an_program_set_input(f.program, "indices", &at));
    for (int i = 0; i < 20; i++)
        FAILS(f.ctx, an_program_run(f.program, AN_FORM_PREDICT), AN_ERR_KERNEL,
              "indices[7,2] is 5, but src has 5 entries along axis 1: an index must be 0 to 4");
    indices[0] = INT64_MIN;
    OK(f.ctx, an_program_set_input(f.program, "indices", &at));
    FAILS(f.ctx, an_program_run(f.program, AN_FORM_PREDICT), AN_ERR_KERNEL, "indices[0,0] is -9223372036854775808");
    end(&f);
}

/* ---- values ---- */

/* Copies move bits: an integer that no f64 can hold stays what it is. */
static void test_large_integers(void **state) {
    (void)state;
    enum { ROWS = 2, COLUMNS = 3 };
    int64_t in[ROWS * COLUMNS], out[COLUMNS * ROWS];
    fixture f = begin();
    an_graph *g = f.graph;
    an_dim rows = an_symbol_dim(g, "rows");
    an_value x = an_input(g, "x", AN_DTYPE_I64, AN_DIMS(rows, COLUMNS));
    an_graph_set_output(g, an_contiguous(g, an_transpose(g, x, 0, 1)), "out");
    compile(&f, "rows", ROWS, AN_PROGRAM_PREDICTION);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) in[i] = INT64_MAX - i;
    an_array from = array_of(in, AN_DTYPE_I64, 2, (const int64_t[]){ROWS, COLUMNS});
    an_array to = array_of(out, AN_DTYPE_I64, 2, (const int64_t[]){COLUMNS, ROWS});
    OK(f.ctx, an_program_set_input(f.program, "x", &from));
    OK(f.ctx, an_program_run(f.program, AN_FORM_PREDICT));
    OK(f.ctx, an_program_get_output(f.program, "out", &to));
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) assert_true(out[i % COLUMNS * ROWS + i / COLUMNS] == in[i]);
    end(&f);
}

/* What there is nothing to do for adds no node. */
static void test_nothing_to_do(void **state) {
    (void)state;
    fixture f = begin();
    an_value x = an_input(f.graph, "x", AN_DTYPE_F32, AN_DIMS(3));
    assert_true(an_cast(f.graph, x, AN_DTYPE_F32) == x);
    assert_true(an_concat(f.graph, 0, 1, &x) == x);
    OK(f.ctx, an_graph_verify(f.graph));
    end(&f);
}

/* ---- mistakes ---- */

typedef struct {
    an_value x, y, i, scalar;
    an_dim batch;
} values;

typedef void mistake(an_graph *g, const values *v);

static void cast_to_integer(an_graph *g, const values *v) {
    an_cast(g, v->x, AN_DTYPE_I32);
}
static void concat_none(an_graph *g, const values *v) {
    an_concat(g, 0, 0, &v->x);
}
static void concat_many(an_graph *g, const values *v) {
    an_value many[33];
    for (int i = 0; i < 33; i++) many[i] = v->x;
    an_concat(g, 0, 33, many);
}
static void concat_axis(an_graph *g, const values *v) {
    an_concat(g, 2, 2, (const an_value[]){v->x, v->x});
}
static void concat_shapes(an_graph *g, const values *v) {
    an_concat(g, 0, 2, (const an_value[]){v->x, v->y});
}
static void concat_types(an_graph *g, const values *v) {
    an_concat(g, 0, 2, (const an_value[]){v->x, v->i});
}
static void concat_absent(an_graph *g, const values *v) {
    an_concat(g, 0, 2, (const an_value[]){v->x, AN_NONE});
}
static void pad_scalar(an_graph *g, const values *v) {
    an_pad(g, v->scalar, 0, 1, 1);
}
static void pad_huge(an_graph *g, const values *v) {
    an_pad(g, v->x, 1, INT64_MAX, 1);
}
static void gather_floats(an_graph *g, const values *v) {
    an_gather(g, v->x, v->x, 0);
}
static void gather_shapes(an_graph *g, const values *v) {
    an_gather(g, v->y, v->i, 0);
}
static void contiguous_absent(an_graph *g, const values *v) {
    (void)v;
    an_contiguous(g, AN_NONE);
}

static void test_mistakes(void **state) {
    (void)state;
    static const struct {
        mistake *make;
        an_status status;
        const char *words;
    } cases[] = {
        {cast_to_integer, AN_ERR_DTYPE,
         "f32[batch,3] cannot be cast to i32: values can be cast only to f32, f64, bf16 and f16"},
        {concat_none, AN_ERR_ARGUMENT, "concat takes 2 to 32 inputs, not 0"},
        {concat_many, AN_ERR_ARGUMENT, "concat takes 2 to 32 inputs, not 33"},
        {concat_axis, AN_ERR_ARGUMENT, "axis 2"},
        {concat_shapes, AN_ERR_SHAPE,
         "input 1 is f32[batch,2] and input 0 is f32[batch,3]: all dimensions except axis 0 must be the same"},
        {concat_types, AN_ERR_DTYPE, "input 1 is i64[batch,3] and input 0 is f32[batch,3]: cast one of them"},
        {concat_absent, AN_ERR_SHAPE, "input 1 is nothing"},
        {pad_scalar, AN_ERR_ARGUMENT, "axis 0 does not exist in 0 dimensions"},
        {pad_huge, AN_ERR_OVERFLOW, ""},
        {gather_floats, AN_ERR_DTYPE, "input 1 is f32[batch,3]"},
        {gather_shapes, AN_ERR_SHAPE, "indices are i64[batch,3] and src is f32[batch,2]"},
        {contiguous_absent, AN_ERR_SHAPE, "input 0 is nothing"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        fixture f = begin();
        an_graph *g = f.graph;
        values v = {.batch = an_symbol_dim(g, "batch"), .scalar = an_input(g, "scalar", AN_DTYPE_F32, 0, NULL)};
        v.x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(v.batch, 3));
        v.y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(v.batch, 2));
        v.i = an_input(g, "i", AN_DTYPE_I64, AN_DIMS(v.batch, 3));
        cases[k].make(g, &v);
        FAILS(f.ctx, an_graph_verify(g), cases[k].status, cases[k].words);
        if (!strstr(an_last_error(f.ctx), "test_copy.c:")) fail_msg("no place: %s", an_last_error(f.ctx));
        end(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symbols),       cmocka_unit_test(test_symbols_gradient),
        cmocka_unit_test(test_wrong_index),   cmocka_unit_test(test_large_integers),
        cmocka_unit_test(test_nothing_to_do), cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
