/* Samples to predict: a file is read as the config says of the training data, with or without its targets, and samples
 * that the model does not read are refused. */
#include "anneal/open.h"
#include "support/support.h"

static an_context *ctx;
static ledger counted;

static int setup(void **state) {
    (void)state;
    return context_with_ledger(&ctx, &counted, 2) != AN_OK;
}

static int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return counted.held != 0 || counted.mismatch;
}

static void write_file(const char *name, const char *text) {
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static an_config *config_of(const char *model, const char *train) {
    an_config *config = NULL;
    an_config_options options;
    char text[512];
    an_config_options_init(&options, sizeof options);
    options.length = (size_t)snprintf(
        text, sizeof text, "model: {type: %s}\ndata: {train: %s}\nrun: {steps: 1}\nbatch: {global: 1}\n", model, train);
    options.text = text;
    OK(ctx, an_config_create(&config, ctx, &options));
    return config;
}

static an_status open_samples(an_dataset **dataset, an_config *config, const char *path, int64_t elements,
                              an_samples_info *info) {
    an_samples_options options;
    an_samples_options_init(&options, sizeof options);
    an_samples_info_init(info, sizeof *info);
    options.path = path;
    options.elements = elements;
    options.dtype = AN_DTYPE_F32;
    return an_samples_open(dataset, ctx, config, &options, info);
}

/* The part of the training data says nothing of this file, and neither does its own path. */
static void test_table(void **state) {
    (void)state;
    static const char *const files[] = {"a,b,y\n1,2,9\n3,4,9\n", "a,b\n1,2\n3,4\n"};
    an_config *config = config_of("mlp", "{type: csv, path: gone.csv, part: 0%..50%}");
    an_samples_info info;
    for (int i = 0; i < 2; i++) {
        an_dataset *d = NULL;
        float inputs[2][2], targets[2];
        write_file("rows.csv", files[i]);
        OK(ctx, open_samples(&d, config, "rows.csv", 2, &info));
        assert_int_equal(an_dataset_count(d), 2);
        void *const fields[] = {inputs, targets};
        OK(ctx, an_dataset_read(d, 2, (int64_t[]){1, 0}, fields));
        assert_true(inputs[0][0] == 3 && inputs[0][1] == 4 && inputs[1][0] == 1 && inputs[1][1] == 2);
        assert_false(info.has_classes || info.sentences || info.name || info.tokens);
        an_dataset_destroy(&d);
    }
    an_dataset *d = NULL;
    FAILS(ctx, open_samples(&d, config, "rows.csv", 5, &info), AN_ERR_SHAPE,
          "rows.csv: has 2 columns, but the model reads 5");
    assert_null(d);
    FAILS(ctx, open_samples(&d, config, "nowhere.csv", 2, &info), AN_ERR_FILE, "nowhere.csv");
    an_config_destroy(&config);
}

/* A text is cut into samples; the last is filled up, and each token knows the next one. */
static void test_text(void **state) {
    (void)state;
    an_config *config = config_of("gpt2", "{type: text, path: gone.txt, context: 8}");
    an_samples_info info;
    an_dataset *d = NULL;
    int32_t tokens[2][4], next[2][4];
    write_file("six.txt", "abcdef");
    OK(ctx, open_samples(&d, config, "six.txt", 4, &info));
    assert_int_equal(an_dataset_count(d), 2);
    assert_int_equal(info.tokens, 6);
    void *const fields[] = {tokens, next};
    OK(ctx, an_dataset_read(d, 2, (int64_t[]){0, 1}, fields));
    const int32_t all[] = {'a', 'b', 'c', 'd', 'e', 'f', 0, 0}, after[] = {'b', 'c', 'd', 'e', 'f', -1, -1, -1};
    assert_memory_equal(tokens, all, sizeof all);
    assert_memory_equal(next, after, sizeof after);
    an_dataset_destroy(&d);
    write_file("none.txt", "");
    FAILS(ctx, open_samples(&d, config, "none.txt", 4, &info), AN_ERR_FILE, "none.txt: is empty");
    an_config_destroy(&config);
}

/* Characters are numbered by the training text; without it, nothing that was read stays. */
static void test_characters(void **state) {
    (void)state;
    an_config *config = config_of("gpt2", "{type: text, path: letters.txt, tokens: chars, context: 8}");
    an_samples_info info;
    an_dataset *d = NULL;
    int32_t tokens[4], next[4];
    write_file("letters.txt", "the cab, a bad face");
    write_file("four.txt", "face");
    OK(ctx, open_samples(&d, config, "four.txt", 4, &info));
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){0}, (void *const[]){tokens, next}));
    for (int i = 0; i < 3; i++) assert_int_equal(tokens[i + 1], next[i]);
    assert_true(tokens[0] != tokens[1] && next[3] == -1);
    an_dataset_destroy(&d);
    assert_int_equal(remove("letters.txt"), 0);
    FAILS(ctx, open_samples(&d, config, "four.txt", 4, &info), AN_ERR_FILE,
          "The characters of the training text define the model's tokens");
    assert_null(d);
    an_config_destroy(&config);
}

/* A weight may be in a record or not, as the members of targets may. */
static void test_objects(void **state) {
    (void)state;
    static const char *const files[] = {
        "{\"a\": 1, \"b\": 2, \"w\": 5, \"y\": 9}\n{\"a\": 3, \"b\": 4, \"w\": 5, \"y\": 9}\n",
        "{\"a\": 1, \"b\": 2, \"y\": 9}\n{\"a\": 3, \"b\": 4, \"y\": 9}\n",
        "{\"a\": 1, \"b\": 2}\n{\"a\": 3, \"b\": 4}\n"};
    an_config *config = config_of("mlp", "{type: jsonl, path: gone.jsonl, part: 50%..100%}, weights: w");
    an_samples_info info;
    for (int i = 0; i < 3; i++) {
        an_dataset *d = NULL;
        float inputs[2][2], targets[2];
        double weights[2];
        write_file("rows.jsonl", files[i]);
        OK(ctx, open_samples(&d, config, "rows.jsonl", 2, &info));
        assert_int_equal(an_dataset_count(d), 2);
        OK(ctx, an_dataset_read(d, 2, (int64_t[]){0, 1}, (void *const[]){inputs, targets, weights}));
        assert_true(inputs[0][0] == 1 && inputs[0][1] == 2 && inputs[1][0] == 3 && inputs[1][1] == 4);
        an_dataset_destroy(&d);
    }
    an_config_destroy(&config);
}

/* All of the file, whatever part of its own the training data had. */
static void test_tokens(void **state) {
    (void)state;
    an_config *config = config_of(
        "gpt2",
        "{type: tokens, path: gone.bin, format: u16, context: 8, part: 0%..50%, documents: apart, end_token: 1}");
    an_samples_info info;
    an_dataset *d = NULL;
    int32_t tokens[2][4], next[2][4];
    FILE *file = fopen("nine.bin", "wb");
    assert_non_null(file);
    for (uint16_t i = 0; i < 9; i++) assert_int_equal(fwrite(&i, sizeof i, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    OK(ctx, open_samples(&d, config, "nine.bin", 4, &info));
    assert_int_equal(an_dataset_count(d), 2);
    assert_int_equal(an_dataset_field_count(d), 2);
    OK(ctx, an_dataset_read(d, 2, (int64_t[]){0, 1}, (void *const[]){tokens, next}));
    for (int i = 0; i < 8; i++) assert_true(tokens[i / 4][i % 4] == i && next[i / 4][i % 4] == i + 1);
    an_dataset_destroy(&d);
    an_config_destroy(&config);
}

/* The first part says how a file is read. */
static void test_mixture(void **state) {
    (void)state;
    an_config *config = config_of("mlp", "{type: mixture, parts: [{type: csv, path: gone.csv, header: off}, "
                                         "{type: csv, path: other.csv}]}");
    an_samples_info info;
    an_dataset *d = NULL;
    write_file("plain.csv", "1,2\n3,4\n5,6\n");
    OK(ctx, open_samples(&d, config, "plain.csv", 2, &info));
    assert_int_equal(an_dataset_count(d), 3);
    an_dataset_destroy(&d);
    an_config_destroy(&config);
}

static void test_refused(void **state) {
    (void)state;
    an_dataset *d = NULL;
    an_samples_info info;
    an_config *config = config_of("mlp", "{type: stream}");
    FAILS(ctx, open_samples(&d, config, "rows.csv", 2, &info), AN_ERR_UNSUPPORTED, "came from a program");
    FAILS(ctx, open_samples(&d, config, "", 2, &info), AN_ERR_ARGUMENT, "need a path");
    FAILS(ctx, open_samples(&d, config, "rows.csv", 0, &info), AN_ERR_ARGUMENT, "at least one element");
    an_config_destroy(&config);
    config = config_of("mlp", "{type: csv, path: gone.csv}");
    write_file("book.xlsx", "PK\3\4 xl/workbook.xml\1\2");
    FAILS(ctx, open_samples(&d, config, "book.xlsx", 2, &info), AN_ERR_PARSE, "Excel");
    an_config_destroy(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_table, setup, teardown),
        cmocka_unit_test_setup_teardown(test_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_characters, setup, teardown),
        cmocka_unit_test_setup_teardown(test_objects, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tokens, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mixture, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
