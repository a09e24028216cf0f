/* Arrays of the caller's as a dataset, and what every dataset promises: indices, limits, fields,
 * records of the caller's own. */
#include "data/support.h"

static an_array_source source_of(int count, const an_array *arrays) {
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    source.array_count = count;
    source.arrays = arrays;
    return source;
}

static void test_dense(void **state) {
    float x[5][3];
    int32_t y[5] = {4, 3, 2, 1, 0};
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    an_field field;
    an_field_init(&field, sizeof field);
    (void)state;
    for (int i = 0; i < 15; i++) (&x[0][0])[i] = (float)i;
    const an_array arrays[2] = {array_of(x, AN_DTYPE_F32, 2, (int64_t[]){5, 3}),
                                array_of(y, AN_DTYPE_I32, 1, (int64_t[]){5})};
    const an_array_source source = source_of(2, arrays);
    OK(ctx, an_dataset_create_arrays(&d, ctx, &source));
    assert_int_equal(an_dataset_count(d), 5);
    assert_int_equal(an_dataset_field_count(d), 2);
    OK(ctx, an_dataset_field(d, 0, &field));
    assert_string_equal(field.name, "inputs");
    assert_int_equal(field.dtype, AN_DTYPE_F32);
    assert_int_equal(field.ndims, 1);
    assert_int_equal(field.dims[0], 3);
    assert_false(field.target);
    OK(ctx, an_dataset_field(d, 1, &field));
    assert_string_equal(field.name, "targets");
    assert_int_equal(field.ndims, 0);
    assert_true(field.target);
    float in[3][3];
    int32_t out[3];
    OK(ctx, an_dataset_read(d, 3, (int64_t[]){4, 0, 4}, (void *const[]){in, out}));
    const float expected[3][3] = {{12, 13, 14}, {0, 1, 2}, {12, 13, 14}};
    assert_memory_equal(in, expected, sizeof in);
    assert_memory_equal(out, ((int32_t[]){0, 4, 0}), sizeof out);
    y[4] = 9; /* not copied */
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){4}, (void *const[]){in, out}));
    assert_int_equal(out[0], 9);
    OK(ctx, an_dataset_read(d, 0, NULL, (void *const[]){in, out}));
    FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){5}, (void *const[]){in, out}), AN_ERR_ARGUMENT, "sample 5");
    FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){-1}, (void *const[]){in, out}), AN_ERR_ARGUMENT, "there are 5");
    FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){0}, (void *const[]){in, NULL}), AN_ERR_ARGUMENT, "targets");
    an_dataset_destroy(&d);
    assert_null(d);
    end_context(&ctx);
}

/* Every order of strides gives what indexing gives. */
static void test_strides(void **state) {
    double memory[400];
    static const int64_t strides[][3] = {{20, 5, 1}, {1, 5, 20}, {5, 1, 25}, {-20, 5, -1}, {20, 0, 1}, {0, 10, -3}};
    static const int64_t dims[] = {4, 3, 5};
    an_context *ctx = new_context();
    (void)state;
    for (int i = 0; i < 400; i++) memory[i] = i;
    for (size_t c = 0; c < sizeof strides / sizeof *strides; c++) {
        an_dataset *d = NULL;
        double out[15];
        an_array a = array_of(memory + 200, AN_DTYPE_F64, 3, dims);
        memcpy(a.strides, strides[c], sizeof strides[c]);
        const an_array_source source = source_of(1, &a);
        OK(ctx, an_dataset_create_arrays(&d, ctx, &source));
        for (int64_t i = 0; i < dims[0]; i++) {
            OK(ctx, an_dataset_read(d, 1, &i, (void *const[]){out}));
            for (int64_t j = 0; j < dims[1]; j++)
                for (int64_t k = 0; k < dims[2]; k++)
                    assert_true(out[j * dims[2] + k] ==
                                memory[200 + i * strides[c][0] + j * strides[c][1] + k * strides[c][2]]);
        }
        an_dataset_destroy(&d);
    }
    end_context(&ctx);
}

/* Parts of a source share nothing and leave nothing out. */
static void test_parts(void **state) {
    int64_t x[1000];
    static const double cuts[] = {0, 0.1, 0.3, 0.9, 0.999, 1};
    an_context *ctx = new_context();
    int64_t next = 0;
    (void)state;
    for (int i = 0; i < 1000; i++) x[i] = i;
    const an_array a = array_of(x, AN_DTYPE_I64, 1, (int64_t[]){1000});
    an_array_source source = source_of(1, &a);
    an_dataset *d = NULL;
    for (int i = 0; i < 5; i++) {
        source.begin = cuts[i];
        source.end = cuts[i + 1];
        OK(ctx, an_dataset_create_arrays(&d, ctx, &source));
        for (int64_t k = 0; k < an_dataset_count(d); k++) {
            int64_t value;
            OK(ctx, an_dataset_read(d, 1, &k, (void *const[]){&value}));
            assert_int_equal(value, next++);
        }
        an_dataset_destroy(&d);
    }
    assert_int_equal(next, 1000);
    static const double wrong[][2] = {{0.5, 0.5}, {0.6, 0.5}, {-0.1, 1}, {0, 1.1}, {NAN, 1}, {0, NAN}, {1, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        source.begin = wrong[i][0];
        source.end = wrong[i][1];
        FAILS(ctx, an_dataset_create_arrays(&d, ctx, &source), AN_ERR_ARGUMENT, "part");
        assert_null(d);
    }
    source.begin = 0;
    source.end = 0.0001;
    FAILS(ctx, an_dataset_create_arrays(&d, ctx, &source), AN_ERR_ARGUMENT, "no samples");
    end_context(&ctx);
}

static void test_limits(void **state) {
    int32_t x[3][2] = {{0, 9}, {3, 1}, {2, -1}}, y[3] = {1, AN_TARGET_IGNORED, 0}, in[2], out;
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    an_field field;
    an_field_init(&field, sizeof field);
    (void)state;
    const an_array arrays[2] = {array_of(x, AN_DTYPE_I32, 2, (int64_t[]){3, 2}),
                                array_of(y, AN_DTYPE_I32, 1, (int64_t[]){3})};
    const an_array_source source = source_of(2, arrays);
    void *const fields[] = {in, &out};
    OK(ctx, an_dataset_create_arrays(&d, ctx, &source));
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){0}, fields));
    OK(ctx, an_dataset_set_limit(d, "inputs", 9));
    FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){0}, fields), AN_ERR_PARSE,
          "sample 0, element 1: the value 9 in field 'inputs'");
    OK(ctx, an_dataset_set_limit(d, "inputs", 10));
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){0}, fields));
    FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){2}, fields), AN_ERR_PARSE, "-1 in field");
    OK(ctx, an_dataset_field(d, 0, &field));
    assert_int_equal(field.limit, 10);
    OK(ctx, an_dataset_set_limit(d, "targets", 2));
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){1}, fields)); /* what losses ignore */
    OK(ctx, an_dataset_set_limit(d, "targets", 1));
    FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){0}, fields), AN_ERR_PARSE, "1 in field 'targets'");
    FAILS(ctx, an_dataset_set_limit(d, "labels", 1), AN_ERR_UNKNOWN, "labels");
    FAILS(ctx, an_dataset_set_limit(d, "targets", 0), AN_ERR_ARGUMENT, "limit");
    an_dataset_destroy(&d);
    end_context(&ctx);
}

static void test_mistakes(void **state) {
    float x[4] = {0};
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    an_array a[3];
    (void)state;
    for (int i = 0; i < 3; i++) a[i] = array_of(x, AN_DTYPE_F32, 1, (int64_t[]){4});
    an_array_source source = source_of(3, a);
    FAILS(ctx, an_dataset_create_arrays(&d, ctx, &source), AN_ERR_ARGUMENT, "arrays, but names is NULL");
    source.names = (const char *const[]){"a", "b", "a"};
    FAILS(ctx, an_dataset_create_arrays(&d, ctx, &source), AN_ERR_ARGUMENT, "two fields of the dataset are called 'a'");
    source.names = (const char *const[]){"a", "b", "c"};
    a[2].dims[0] = 3;
    FAILS(ctx, an_dataset_create_arrays(&d, ctx, &source), AN_ERR_SHAPE, "array 2 has 3 samples, but array 0 has 4");
    a[2].dims[0] = 0;
    FAILS(ctx, an_dataset_create_arrays(&d, ctx, &source), AN_ERR_SHAPE, "dimension 0 of array 2 is 0");
    a[2].ndims = 4;
    for (int i = 0; i < 4; i++) a[2].dims[i] = INT64_C(1) << 20;
    FAILS(ctx, an_dataset_create_arrays(&d, ctx, &source), AN_ERR_SHAPE, "dimension 3");
    a[2].data = NULL;
    FAILS(ctx, an_dataset_create_arrays(&d, ctx, &source), AN_ERR_ARGUMENT, "no data");
    source.size = 0;
    FAILS(ctx, an_dataset_create_arrays(&d, ctx, &source), AN_ERR_ARGUMENT, "an_array_source_init");
    end_context(&ctx);
}

/* ---- a dataset of the caller's own ---- */

static an_status read_squares(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    (void)user;
    for (int64_t i = 0; i < n; i++) {
        if (indices[i] == 13) {
            snprintf(message, message_capacity, "squares: 13 brings bad luck");
            return AN_ERR_STATE;
        }
        ((int64_t *)fields[0])[i] = indices[i] * indices[i];
    }
    return AN_OK;
}

static void count_close(void *user) {
    ++*(int *)user;
}

static void test_record(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    int closed = 0;
    int64_t values[2];
    char name[] = "square";
    an_field field;
    an_field_init(&field, sizeof field);
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    (void)state;
    field.name = name;
    field.dtype = AN_DTYPE_I64;
    record.count = 100;
    record.field_count = 1;
    record.fields = &field;
    record.read = read_squares;
    record.close = count_close;
    record.user = &closed;
    OK(ctx, an_dataset_create(&d, ctx, &record));
    name[0] = 'x'; /* copied */
    OK(ctx, an_dataset_set_limit(d, "square", 1000));
    OK(ctx, an_dataset_read(d, 2, (int64_t[]){3, 31}, (void *const[]){values}));
    assert_int_equal(values[0], 9);
    FAILS(ctx, an_dataset_read(d, 2, (int64_t[]){3, 13}, (void *const[]){values}), AN_ERR_STATE, "bad luck");
    FAILS(ctx, an_dataset_read(d, 2, (int64_t[]){3, 32}, (void *const[]){values}), AN_ERR_PARSE,
          "sample 32, element 0: the value 1024");
    an_dataset_destroy(&d);
    assert_int_equal(closed, 1);
    field.ndims = AN_MAX_DIMS;
    FAILS(ctx, an_dataset_create(&d, ctx, &record), AN_ERR_SHAPE, "8 dimensions");
    field.ndims = 3;
    field.dims[0] = field.dims[1] = field.dims[2] = INT64_C(1) << 30;
    FAILS(ctx, an_dataset_create(&d, ctx, &record), AN_ERR_OVERFLOW, "does not fit");
    record.count = 0;
    FAILS(ctx, an_dataset_create(&d, ctx, &record), AN_ERR_ARGUMENT, "no samples");
    assert_int_equal(closed, 1); /* what was not made is not closed */
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),  cmocka_unit_test(test_strides),  cmocka_unit_test(test_parts),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_mistakes), cmocka_unit_test(test_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
