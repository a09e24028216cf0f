/* Statistics of features against sums over all samples at once, in two passes. */
#include "data/support.h"

enum { FEATURES = 3, SIDE = 2, SAMPLES = 2 * 256 * 5 + 77 }; /* chunks that are no power of two, the last one short */

static an_context *ctx;
static ledger counted;

static int setup(void **state) {
    (void)state;
    return context_with_ledger(&ctx, &counted, 1) != AN_OK;
}

static int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return counted.held != 0 || counted.mismatch;
}

/* Features of size 1e6 around 1e7, around 0, and always the same number. */
static double numbers[SAMPLES][FEATURES][SIDE];

static void make_numbers(void) {
    for (int i = 0; i < SAMPLES; i++)
        for (int k = 0; k < SIDE; k++) {
            numbers[i][0][k] = 1e7 + 1e6 * noise(2 * (uint64_t)i + (uint64_t)k);
            numbers[i][1][k] = 1e-3 * noise(7 * (uint64_t)i + (uint64_t)k + 5);
            numbers[i][2][k] = 0.1;
        }
}

static an_dataset *make_dataset(void *data, an_dtype dtype) {
    const int64_t dims[] = {SAMPLES, FEATURES, SIDE};
    an_dataset *dataset = NULL;
    const an_array array = array_of(data, dtype, 3, dims);
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    source.array_count = 1;
    source.arrays = &array;
    source.has_targets = false;
    OK(ctx, an_dataset_create_arrays(&dataset, ctx, &source));
    return dataset;
}

static an_feature_info info_of(const an_features *features, int64_t feature) {
    an_feature_info info;
    an_feature_info_init(&info, sizeof info);
    OK(ctx, an_features_get(features, feature, &info));
    return info;
}

/* One feature: all sides together, or one of them alone. The sums here have more digits, as they are over all
 * samples. */
static void expect(const an_feature_info *info, int rows, int feature, int first, int sides) {
    long double sum = 0, squares = 0;
    double minimum = numbers[0][feature][first], maximum = minimum;
    for (int i = 0; i < rows; i++)
        for (int k = first; k < first + sides; k++) {
            const double x = numbers[i][feature][k];
            sum += (long double)x;
            minimum = x < minimum ? x : minimum;
            maximum = x > maximum ? x : maximum;
        }
    const long double count = (long double)rows * sides, mean = sum / count;
    for (int i = 0; i < rows; i++)
        for (int k = first; k < first + sides; k++) {
            const long double distance = (long double)numbers[i][feature][k] - mean;
            squares += distance * distance;
        }
    const double size = fabs(minimum) > fabs(maximum) ? fabs(minimum) : fabs(maximum),
                 deviation = sqrt((double)(squares / count));
    if (!(fabs(info->mean - (double)mean) <= 1e-14 * size)) fail_msg("the mean is %.17g, not %.17Lg", info->mean, mean);
    if (!(fabs(info->deviation - deviation) <= 1e-13 * deviation + 1e-14 * size))
        fail_msg("the deviation is %.17g, not %.17g", info->deviation, deviation);
    assert_true(info->minimum == minimum && info->maximum == maximum);
    assert_null(info->name);
}

static void test_two_passes(void **state) {
    (void)state;
    static const int64_t some[] = {SAMPLES, 1, 255, 256, 257, 1024};
    make_numbers();
    an_dataset *dataset = make_dataset(numbers, AN_DTYPE_F64);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const int rows = (int)some[i];
        an_features *features = NULL;
        OK(ctx, an_features_create(&features, dataset, 0, i == 0 ? 0 : rows, FEATURES));
        assert_int_equal(an_features_count(features), FEATURES);
        for (int f = 0; f < FEATURES; f++) {
            const an_feature_info info = info_of(features, f);
            expect(&info, rows, f, 0, SIDE);
        }
        an_features_destroy(&features);
        OK(ctx, an_features_create(&features, dataset, 0, rows, 0));
        assert_int_equal(an_features_count(features), FEATURES * SIDE);
        for (int f = 0; f < FEATURES * SIDE; f++) {
            const an_feature_info info = info_of(features, f);
            expect(&info, rows, f / SIDE, f % SIDE, 1);
        }
        an_features_destroy(&features);
    }
    an_dataset_destroy(&dataset);
}

/* More samples than there are is all of them, and f32 is read as what it is. */
static void test_f32_and_all(void **state) {
    (void)state;
    static float narrow[SAMPLES][FEATURES][SIDE];
    make_numbers();
    for (int i = 0; i < SAMPLES; i++)
        for (int f = 0; f < FEATURES; f++)
            for (int k = 0; k < SIDE; k++) {
                narrow[i][f][k] = (float)numbers[i][f][k];
                numbers[i][f][k] = (double)narrow[i][f][k];
            }
    an_dataset *dataset = make_dataset(narrow, AN_DTYPE_F32);
    an_features *features = NULL;
    OK(ctx, an_features_create(&features, dataset, 0, INT64_MAX, FEATURES));
    for (int f = 0; f < FEATURES; f++) {
        const an_feature_info info = info_of(features, f);
        expect(&info, SAMPLES, f, 0, SIDE);
    }
    assert_true(info_of(features, 2).minimum == info_of(features, 2).maximum);
    an_features_destroy(&features);
    an_dataset_destroy(&dataset);
}

static void test_mistakes(void **state) {
    (void)state;
    an_features *features = NULL;
    an_feature_info info;
    an_feature_info_init(&info, sizeof info);
    make_numbers();
    an_dataset *dataset = make_dataset(numbers, AN_DTYPE_F64);
    FAILS(ctx, an_features_create(&features, dataset, 1, 0, 0), AN_ERR_ARGUMENT, "has no field 1");
    FAILS(ctx, an_features_create(&features, dataset, 0, 0, 4), AN_ERR_ARGUMENT, "has 6 elements");
    FAILS(ctx, an_features_create(&features, dataset, 0, -1, 0), AN_ERR_ARGUMENT, "over -1 samples");
    numbers[700][1][1] = NAN;
    FAILS(ctx, an_features_create(&features, dataset, 0, 0, 0), AN_ERR_NONFINITE, "sample 700, element 3");
    assert_null(features);
    numbers[700][1][1] = -INFINITY;
    FAILS(ctx, an_features_create(&features, dataset, 0, 0, FEATURES), AN_ERR_NONFINITE, "-inf");
    OK(ctx, an_features_create(&features, dataset, 0, 700, FEATURES)); /* the one after these is not looked at */
    FAILS(ctx, an_features_get(features, FEATURES, &info), AN_ERR_ARGUMENT, "there is no feature 3");
    an_features_destroy(&features);
    numbers[700][1][1] = 1e200;
    OK(ctx, an_features_create(&features, dataset, 0, 0, FEATURES));
    assert_true(!isfinite(info_of(features, 1).deviation));
    assert_true(info_of(features, 1).maximum == 1e200);
    an_features_destroy(&features);
    an_dataset_destroy(&dataset);
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    an_features *features = NULL;
    an_status status = AN_ERR_MEMORY;
    make_numbers();
    an_dataset *dataset = make_dataset(numbers, AN_DTYPE_F64);
    const size_t held = counted.held;
    for (long at = 1; status == AN_ERR_MEMORY; at++) {
        counted.fail_at = counted.calls + at;
        status = an_features_create(&features, dataset, 0, 0, FEATURES);
        if (status != AN_OK) assert_true(!features && counted.held == held);
    }
    counted.fail_at = 0;
    OK(ctx, status);
    an_features_destroy(&features);
    assert_true(counted.held == held);
    an_dataset_destroy(&dataset);
}

static void test_columns_have_names(void **state) {
    (void)state;
    an_dataset *dataset = NULL;
    an_features *features = NULL;
    an_csv_source source;
    an_csv_source_init(&source, sizeof source);
    write_text("named.csv", "id,\"the \"\"mass\"\"\",speed,y\n1,2,3,4\n5,6,7,8\n");
    source.path = "named.csv";
    source.inputs = (const char *const[]){"speed", "2"};
    source.input_count = 2;
    OK(ctx, an_dataset_create_csv(&dataset, ctx, &source));
    assert_string_equal(an_dataset_column(dataset, 0, 0), "speed");
    assert_string_equal(an_dataset_column(dataset, 1, 0), "y");
    assert_null(an_dataset_column(dataset, 0, 2));
    assert_null(an_dataset_column(dataset, 2, 0));
    OK(ctx, an_features_create(&features, dataset, 0, 0, 0));
    assert_string_equal(info_of(features, 0).name, "speed");
    assert_true(info_of(features, 1).mean == 4);
    an_features_destroy(&features);
    an_dataset_destroy(&dataset);
    write_text("bare.csv", "1,2,3\n");
    source.path = "bare.csv";
    source.input_count = 0;
    OK(ctx, an_dataset_create_csv(&dataset, ctx, &source));
    assert_null(an_dataset_column(dataset, 0, 0));
    an_dataset_destroy(&dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_passes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_f32_and_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mistakes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_allocation_may_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(test_columns_have_names, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
