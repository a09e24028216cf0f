/* Splits: two parts of one source that have every sample once, the same in every run. */
#include "data/support.h"

enum { COUNT = 997 };

static an_dataset *numbers_of(an_context *ctx, int32_t *inputs, int32_t *targets, int64_t count, int classes) {
    an_dataset *d = NULL;
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    an_array arrays[2] = {{.data = inputs, .dtype = AN_DTYPE_I32, .ndims = 1, .dims = {count}},
                          {.data = targets, .dtype = AN_DTYPE_I32, .ndims = 1, .dims = {count}}};
    for (int64_t i = 0; i < count; i++) {
        inputs[i] = (int32_t)i;
        targets[i] = (int32_t)(i * i % 101 % classes);
    }
    source.arrays = arrays;
    source.array_count = 2;
    OK(ctx, an_dataset_create_arrays(&d, ctx, &source));
    return d;
}

/* Marks the samples of a part, which must not be marked yet; gives how many there are. */
static int64_t mark(an_context *ctx, an_dataset *part, int sign, int *marks) {
    const int64_t count = an_dataset_count(part);
    int64_t indices[300];
    int32_t inputs[300], targets[300];
    for (int64_t begin = 0; begin < count; begin += 300) {
        const int64_t n = count - begin < 300 ? count - begin : 300;
        for (int64_t i = 0; i < n; i++) indices[i] = begin + i;
        OK(ctx, an_dataset_read(part, n, indices, (void *const[]){inputs, targets}));
        for (int64_t i = 0; i < n; i++) {
            assert_int_equal(marks[inputs[i]], 0);
            marks[inputs[i]] = sign;
        }
    }
    return count;
}

static uint64_t hash_of(const int *marks, int64_t count) {
    uint64_t hash = 14695981039346656037u;
    for (int64_t i = 0; i < count; i++) hash = (hash ^ (uint64_t)(marks[i] + 2)) * 1099511628211u;
    return hash;
}

static int32_t inputs[COUNT], targets[COUNT];

static uint64_t split_once(an_context *ctx, an_split_source *s, double minimum, double maximum, int *marks) {
    an_dataset *training = NULL, *evaluation = NULL;
    memset(marks, 0, COUNT * sizeof *marks);
    OK(ctx, an_dataset_split(&training, &evaluation, ctx, s));
    const int64_t a = mark(ctx, training, 1, marks), b = mark(ctx, evaluation, -1, marks);
    assert_int_equal(a + b, COUNT);
    assert_true((double)b >= minimum * COUNT && (double)b <= maximum * COUNT);
    an_dataset_destroy(&training); /* the source stays while either part is there */
    if (s->owns) assert_int_equal(an_dataset_count(evaluation), b);
    int again[COUNT] = {0};
    mark(ctx, evaluation, -1, again);
    an_dataset_destroy(&evaluation);
    return hash_of(marks, COUNT);
}

static void test_shuffle_and_time(void **state) {
    an_context *ctx = new_context();
    int marks[COUNT];
    (void)state;
    an_split_source s;
    an_split_source_init(&s, sizeof s);
    s.source = numbers_of(ctx, inputs, targets, COUNT, 7);
    const uint64_t hash = split_once(ctx, &s, 0.199, 0.201, marks);
    assert_true(split_once(ctx, &s, 0.199, 0.201, marks) == hash);
    /* These very samples, on every machine and in every version. */
    int evaluated[3], found = 0;
    for (int i = 0; i < COUNT && found < 3; i++)
        if (marks[i] < 0) evaluated[found++] = i;
    if (evaluated[0] != 1 || evaluated[1] != 10 || evaluated[2] != 19)
        fail_msg("%d %d %d", evaluated[0], evaluated[1], evaluated[2]);
    s.seed = 1;
    assert_true(split_once(ctx, &s, 0.199, 0.201, marks) != hash);
    s.evaluation = 0.5;
    split_once(ctx, &s, 0.499, 0.501, marks);
    s.by = AN_SPLIT_TIME;
    s.evaluation = 0.1;
    split_once(ctx, &s, 0.099, 0.101, marks);
    for (int i = 0; i < COUNT; i++) assert_int_equal(marks[i], i < COUNT - 100 ? 1 : -1);
    s.owns = true;
    split_once(ctx, &s, 0.099, 0.101, marks);
    end_context(&ctx);
}

static void test_stratify(void **state) {
    an_context *ctx = new_context();
    int marks[COUNT];
    (void)state;
    an_split_source s;
    an_split_source_init(&s, sizeof s);
    s.source = numbers_of(ctx, inputs, targets, COUNT, 5);
    targets[17] = 9; /* a class of one sample */
    targets[18] = AN_TARGET_IGNORED;
    s.by = AN_SPLIT_STRATIFY;
    s.evaluation = 0.25;
    const uint64_t hash = split_once(ctx, &s, 0.24, 0.26, marks);
    assert_true(split_once(ctx, &s, 0.24, 0.26, marks) == hash);
    for (int c = 0; c < 5; c++) {
        int all = 0, some = 0;
        for (int i = 0; i < COUNT; i++) {
            all += targets[i] == c;
            some += targets[i] == c && marks[i] < 0;
        }
        assert_int_equal(some, (int)(0.25 * all + 0.5));
    }
    assert_int_equal(marks[17], 1);
    assert_int_equal(marks[18], 1);
    s.seed = 3;
    assert_true(split_once(ctx, &s, 0.24, 0.26, marks) != hash);
    an_dataset_destroy(&s.source);
    /* Samples without classes. */
    an_csv_source csv;
    an_csv_source_init(&csv, sizeof csv);
    write_text("table.csv", "1,2\n3,4\n5,6\n");
    csv.path = "table.csv";
    OK(ctx, an_dataset_create_csv(&s.source, ctx, &csv));
    an_dataset *training = NULL, *evaluation = NULL;
    FAILS(ctx, an_dataset_split(&training, &evaluation, ctx, &s), AN_ERR_ARGUMENT, "needs one class for each sample");
    an_dataset_destroy(&s.source);
    end_context(&ctx);
}

static void test_groups(void **state) {
    enum { ROWS = 600, GROUPS = 60 };
    static const char *const all[] = {"*"};
    an_context *ctx = new_context();
    char *text = malloc(ROWS * 32);
    size_t used = (size_t)sprintf(text, "who,x,y\n");
    (void)state;
    for (int i = 0; i < ROWS; i++) used += (size_t)sprintf(text + used, "p%d,%d,0\n", i * 31 % GROUPS, i);
    write_text("groups.csv", text);
    an_csv_source csv;
    an_csv_source_init(&csv, sizeof csv);
    csv.path = "groups.csv";
    csv.group = "who";
    an_split_source s;
    an_split_source_init(&s, sizeof s);
    s.by = AN_SPLIT_GROUP;
    int first[GROUPS];
    for (uint64_t seed = 0; seed < 3; seed++) {
        an_dataset *parts[2] = {NULL};
        int where[GROUPS] = {0};
        int64_t counts[2];
        s.seed = seed;
        csv.inputs = all; /* the column of groups is no input, whether all are or a pattern says so */
        csv.input_count = seed == 2;
        OK(ctx, an_dataset_create_csv(&s.source, ctx, &csv));
        s.owns = true;
        OK(ctx, an_dataset_split(&parts[0], &parts[1], ctx, &s));
        for (int k = 0; k < 2; k++) {
            counts[k] = an_dataset_count(parts[k]);
            for (int64_t i = 0; i < counts[k]; i++) {
                float x, y;
                OK(ctx, an_dataset_read(parts[k], 1, &i, (void *const[]){&x, &y}));
                int *group = &where[(int)x * 31 % GROUPS];
                assert_true(*group == 0 || *group == k + 1);
                *group = k + 1;
            }
        }
        assert_int_equal(counts[0] + counts[1], ROWS);
        assert_true(counts[1] > ROWS / 20 && counts[1] < ROWS / 2);
        if (seed == 0) memcpy(first, where, sizeof first);
        if (seed == 1) assert_memory_not_equal(first, where, sizeof first);
        an_dataset_destroy(&parts[1]);
        an_dataset_destroy(&parts[0]);
    }
    /* Which part a group is in does not depend on the others. */
    write_text("groups.csv", "x,who,y\n1,p7,0\n2,p8,0\n3,p9,0\n4,p10,0\n5,p11,0\n6,p12,0\n7,p13,0\n8,p14,0\n9,p15,0\n");
    an_dataset *training = NULL, *evaluation = NULL;
    s.seed = 0;
    OK(ctx, an_dataset_create_csv(&s.source, ctx, &csv));
    const an_status status = an_dataset_split(&training, &evaluation, ctx, &s);
    if (status == AN_OK)
        for (int64_t i = 0; i < an_dataset_count(evaluation); i++) {
            float x, y;
            OK(ctx, an_dataset_read(evaluation, 1, &i, (void *const[]){&x, &y}));
            assert_int_equal(first[(int)x + 6], 2);
        }
    else
        an_dataset_destroy(&s.source);
    an_dataset_destroy(&evaluation);
    an_dataset_destroy(&training);
    write_text("groups.csv", "x,who,y\n1,p,0\n2,p,0\n");
    OK(ctx, an_dataset_create_csv(&s.source, ctx, &csv));
    FAILS(ctx, an_dataset_split(&training, &evaluation, ctx, &s), AN_ERR_ARGUMENT, "all groups fall into the");
    an_dataset_destroy(&s.source);
    csv.group = "whom";
    FAILS(ctx, an_dataset_create_csv(&s.source, ctx, &csv), AN_ERR_UNKNOWN,
          "there is no column 'whom'; did you mean 'who'?");
    free(text);
    end_context(&ctx);
}

static void test_mistakes(void **state) {
    an_context *ctx = new_context();
    an_dataset *training = NULL, *evaluation = NULL;
    (void)state;
    an_split_source s;
    an_split_source_init(&s, sizeof s);
    FAILS(ctx, an_dataset_split(&training, &evaluation, ctx, &s), AN_ERR_ARGUMENT, "there is no dataset to split");
    s.source = numbers_of(ctx, inputs, targets, 2, 7);
    for (int i = 0; i < 4; i++) {
        static const double shares[] = {0, 1, -0.5, __builtin_nan("")};
        s.evaluation = shares[i];
        FAILS(ctx, an_dataset_split(&training, &evaluation, ctx, &s), AN_ERR_ARGUMENT, "must be above 0 and below 1");
    }
    s.evaluation = 0.001; /* both parts have a sample */
    OK(ctx, an_dataset_split(&training, &evaluation, ctx, &s));
    assert_int_equal(an_dataset_count(training), 1);
    assert_int_equal(an_dataset_count(evaluation), 1);
    an_dataset_destroy(&training);
    an_dataset_destroy(&evaluation);
    s.by = AN_SPLIT_GROUP;
    FAILS(ctx, an_dataset_split(&training, &evaluation, ctx, &s), AN_ERR_ARGUMENT, "needs a source that has groups");
    s.by = (an_split_by)7;
    FAILS(ctx, an_dataset_split(&training, &evaluation, ctx, &s), AN_ERR_ARGUMENT, "by is 7");
    s.by = AN_SPLIT_SHUFFLE;
    an_dataset_destroy(&s.source);
    s.source = numbers_of(ctx, inputs, targets, 1, 7);
    FAILS(ctx, an_dataset_split(&training, &evaluation, ctx, &s), AN_ERR_ARGUMENT, "one sample cannot be split");
    an_dataset_destroy(&s.source);
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shuffle_and_time),
        cmocka_unit_test(test_stratify),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
