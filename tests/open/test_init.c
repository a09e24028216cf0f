/* model.init: weights from a file into a new run; what fits, what is renamed and converted, and every refusal. */
#include <sys/stat.h>
#include <unistd.h>

#include "open/init_model.h"

#define WIDE(init)                                      \
    "model: {type: mlp, hidden: [4], init: " init "}\n" \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: sum, dtype: f64}}\n" REST

/* ---- what works ---- */

static void test_file(void **state) {
    (void)state;
    static const char *const types[] = {"F32", "F64", "F16", "BF16"};
    write_sums();
    for (size_t i = 0; i < 4; i++) {
        write_model("w.safetensors", types[i], "");
        assert_loads(FROM("w.safetensors"));
        assert_loads(WIDE("{from: w.safetensors}"));
        assert_loads(FROM("w.safetensors") "train: {precision: bf16}\n"); /* the low copies are made from it */
    }
}

/* Rounding is to nearest, and a number that fits is taken as it is. */
static void test_rounding(void **state) {
    (void)state;
    builder b = begin();
    const double tenth = 0.1;
    const float third = 1.0f / 3;
    write_sums();
    add(&b, "hidden.0.weight", "F64", 2, 4, 2);
    add(&b, "hidden.0.bias", "F32", 1, 4, 0);
    memcpy(b.data, &tenth, sizeof tenth);
    memcpy(b.data + 64, &third, sizeof third);
    end(&b, "w.safetensors");
    an_trainer *t = open_run(MODEL("{from: w.safetensors, missing: init}"));
    assert_weight(t, "hidden.0.weight", 0, (double)0.1f);
    assert_weight(t, "hidden.0.bias", 0, (double)third);
    an_trainer_destroy(&t);
    t = open_run(WIDE("{from: w.safetensors, missing: init}"));
    assert_weight(t, "hidden.0.weight", 0, 0.1);
    assert_weight(t, "hidden.0.bias", 0, (double)third);
    an_trainer_destroy(&t);
}

/* Tensors that are larger than a piece. */
static void test_pieces(void **state) {
    (void)state;
    enum { SIDE = 300 };
    static const char *const types[] = {"F64", "BF16"};
    write_sums();
    for (int k = 0; k < 2; k++) {
        builder b = begin();
        add(&b, "hidden.1.weight", types[k], 2, SIDE, SIDE);
        end(&b, "w.safetensors");
        an_trainer *t =
            open_run("model: {type: mlp, hidden: [300, 300], init: {from: w.safetensors, missing: init}}\n" SUMS REST);
        for (int64_t i = 0; i < (int64_t)SIDE * SIDE; i += 97) assert_weight(t, "hidden.1.weight", i, value_of(i));
        assert_weight(t, "hidden.1.weight", (int64_t)SIDE * SIDE - 1, value_of((int64_t)SIDE * SIDE - 1));
        an_trainer_destroy(&t);
    }
}

/* What is missing starts as it would without a file; what nobody wants is left out. */
static void test_missing_and_unexpected(void **state) {
    (void)state;
    builder b = begin();
    write_sums();
    add(&b, "hidden.0.bias", "F32", 1, 4, 0);
    add(&b, "lm_head.weight", "I64", 2, 3, 5);
    end(&b, "w.safetensors");
    an_trainer *t = open_run(MODEL("{from: w.safetensors, missing: init, unexpected: ignore}")),
               *plain = open_run("model: {type: mlp, hidden: [4]}\n" SUMS REST);
    for (int64_t i = 0; i < 4; i++) assert_weight(t, "hidden.0.bias", i, value_of(i));
    float weight[8];
    const int64_t dims[] = {4, 2};
    an_array array = array_of(weight, AN_DTYPE_F32, 2, dims);
    OK(ctx, an_params_get(plain->params, "hidden.0.weight", AN_PART_WEIGHT, &array));
    for (int64_t i = 0; i < 8; i++) assert_weight(t, "hidden.0.weight", i, (double)weight[i]);
    an_trainer_destroy(&t);
    an_trainer_destroy(&plain);
}

static void test_run_states(void **state) {
    (void)state;
    builder b = begin();
    write_sums();
    add(&b, "hidden.0.norm.running_mean", "F32", 1, 4, 0);
    end(&b, "w.safetensors");
    an_trainer *t =
        open_run("model: {type: mlp, hidden: [4], batch_norm: on, init: {from: w.safetensors, missing: init}}\n" SUMS
                 "run: {steps: 3}\nbatch: {global: 16}\n");
    for (int64_t i = 0; i < 4; i++) assert_weight(t, "hidden.0.norm.running_mean", i, value_of(i));
    assert_weight(t, "hidden.0.norm.running_var", 0, 1);
    an_trainer_destroy(&t);
}

static void test_rename(void **state) {
    (void)state;
    write_sums();
    write_model("w.safetensors", "F32", "transformer.x.");
    assert_loads(MODEL("{from: w.safetensors, rename: {'^transformer\\.': '', 'x\\.': ''}}"));
    /* in their order, with groups, all places of a name */
    assert_loads(MODEL("{from: w.safetensors, rename: {'^transformer\\.(.)\\.(.*)$': '$2~$1', '~x': ''}}"));
    assert_loads(MODEL("{from: w.safetensors, rename: {'(transformer|x)\\.': ''}}"));
    begin_hearing();
    assert_loads(MODEL("{from: w.safetensors, rename: {'(transformer|x)\\.': '', '^module\\.': ''}}"));
    if (!strstr(heard, "'^module\\.' matches no tensor of w.safetensors")) fail_msg("heard: %s", heard);
    write_model("w.safetensors", "BF16", "");
    begin_hearing();
    assert_loads(FROM("w.safetensors"));
    if (!strstr(heard, "4 tensors have a different type than the model and were converted"))
        fail_msg("heard: %s", heard);
    write_model("w.safetensors", "F32", "");
    begin_hearing();
    assert_loads(FROM("w.safetensors"));
    assert_string_equal(heard, "");
}

/* A path is relative to the config, not to where the command runs. */
static void test_path(void **state) {
    (void)state;
    an_trainer *t = NULL;
    write_sums();
    mkdir("inside", 0777);
    write_model("inside/w.safetensors", "F32", "");
    write_text("inside/run.yaml", "model: {type: mlp, hidden: [4], init: {from: w.safetensors}}\n"
                                  "data: {train: {type: csv, path: ../sums.csv, inputs: [a, b], targets: sum}}\n" REST);
    OK(ctx, an_trainer_open(&t, ctx, "inside/run.yaml", NULL));
    assert_loaded(t);
    an_trainer_destroy(&t);
}

/* A plan needs no weights. */
static void test_plan(void **state) {
    (void)state;
    an_trainer *t = NULL;
    an_config *c = NULL;
    an_config_options from;
    an_config_options_init(&from, sizeof from);
    an_open_options options;
    an_open_options_init(&options, sizeof options);
    from.file = "run.yaml";
    options.purpose = AN_OPEN_PLAN;
    write_sums();
    write_text("run.yaml", FROM("nowhere.safetensors"));
    OK(ctx, an_config_create(&c, ctx, &from));
    OK(ctx, an_trainer_open_config(&t, ctx, c, &options));
    an_trainer_destroy(&t);
    an_config_destroy(&c);
}

/* ---- what does not fit ---- */

static void test_all_are_listed(void **state) {
    (void)state;
    static const char *const lines[] = {
        "run.yaml:1:46: model.init: w.safetensors does not fit the model:\n",
        "\n  missing: output.weight [1, 4]\n",
        "\n  missing: output.bias [1]\n",
        "\n  unexpected: lm_head.weight [3, 5]\n",
        "\n  unexpected: h.0.attn.bias, renamed to h0.attn.bias, []\n",
        "\n  shape: hidden.0.weight [2, 4], in the model [4, 2]\n",
        "\n  type: hidden.0.bias is I64; weights are F32, F64, F16 or BF16\n",
        "\n  twice: x.hidden.0.weight, renamed to hidden.0.weight, has the same name as hidden.0.weight\n",
        "use rename to change the names in the file, missing: init to accept missing tensors",
        "and unexpected: ignore to accept unexpected ones",
    };
    builder b = begin();
    write_sums();
    add(&b, "hidden.0.weight", "F32", 2, 2, 4);
    add(&b, "hidden.0.bias", "I64", 1, 4, 0);
    add(&b, "x.hidden.0.weight", "F32", 2, 4, 2);
    add(&b, "lm_head.weight", "F32", 2, 3, 5);
    add(&b, "h.0.attn.bias", "F32", 0, 0, 0);
    end(&b, "w.safetensors");
    static const char config[] = MODEL("{from: w.safetensors, rename: {'^x\\.': '', '^h\\.(\\d)': h$1}}");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) refused(config, AN_ERR_ARGUMENT, lines[i]);
    /* what is accepted is not listed */
    refused(MODEL("{from: w.safetensors, missing: init, unexpected: ignore, rename: {'^x\\.': ''}}"), AN_ERR_ARGUMENT,
            "does not fit the model:\n  shape: ");
    assert_null(strstr(an_last_error(ctx), "lm_head"));
    assert_null(strstr(an_last_error(ctx), "output"));
}

/* Two tensors with one name, which the model does not have: what is ignored would depend on their order in another
 * model. */
static void test_unknown_twice(void **state) {
    (void)state;
    builder b = begin();
    write_sums();
    add(&b, "a.head", "F32", 1, 3, 0);
    add(&b, "b.head", "F32", 1, 3, 0);
    add(&b, "c.tail", "F32", 1, 3, 0);
    end(&b, "w.safetensors");
    refused(MODEL("{from: w.safetensors, missing: init, unexpected: ignore, rename: {'^[ab]\\.': ''}}"),
            AN_ERR_ARGUMENT,
            "does not fit the model:\n  twice: b.head, renamed to head, has the same name as a.head\n");
    an_trainer *t =
        open_run(MODEL("{from: w.safetensors, missing: init, unexpected: ignore, rename: {'^[ac]\\.': ''}}"));
    an_trainer_destroy(&t);
}

static void test_missing_alone(void **state) {
    (void)state;
    builder b = begin();
    write_sums();
    end(&b, "w.safetensors");
    refused(FROM("w.safetensors"), AN_ERR_ARGUMENT, "does not fit the model:\n  missing: hidden.0.weight [4, 2]\n");
    an_trainer *t = open_run(MODEL("{from: w.safetensors, missing: init}"));
    an_trainer_destroy(&t);
}

/* More than a message has room for: each kind says how many more there are. */
static void test_many(void **state) {
    (void)state;
    char names[MOST_TENSORS][64];
    builder b = begin();
    write_sums();
    for (int i = 0; i < MOST_TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "transformer.h.%d.attn.c_attn.weight", i);
        add(&b, names[i], "F32", 1, 1, 0);
    }
    end(&b, "w.safetensors");
    refused(FROM("w.safetensors"), AN_ERR_ARGUMENT, "\n  unexpected: transformer.h.0.attn.c_attn.weight [1]\n");
    const char *message = an_last_error(ctx), *more = strstr(message, "\n  unexpected: and ");
    int lines = 0;
    assert_non_null(more);
    for (const char *c = message; (c = strstr(c, "\n  unexpected: transformer")); c++) lines++;
    assert_true(lines >= 5 && lines <= 20);
    assert_int_equal(strtol(more + strlen("\n  unexpected: and "), NULL, 10), MOST_TENSORS - lines);
    assert_non_null(strstr(message, "\n  missing: output.bias [1]\n"));
    assert_non_null(strstr(message, "use rename to change the names in the file, missing: init to accept missing "
                                    "tensors, and unexpected: ignore to accept unexpected ones"));
}

static void test_bad_renames(void **state) {
    (void)state;
    write_sums();
    write_model("w.safetensors", "F32", "");
    refused(MODEL("{from: w.safetensors, rename: {'(': a}}"), AN_ERR_ARGUMENT,
            "run.yaml:1:46: model.init: the pattern '(' of rename is not a valid regular expression:");
    refused(MODEL("{from: w.safetensors, rename: {hidden: $9}}"), AN_ERR_ARGUMENT,
            "model.init: renaming 'hidden.0.bias' by 'hidden: $9' failed:");
    write_model("w.safetensors", "F32", "a.name.that.takes.long.");
    refused(MODEL("{from: w.safetensors, rename: {'(.+)+[~!]': a}}"), AN_ERR_ARGUMENT, "match limit exceeded");
    char config[2048] = "model: {type: mlp, hidden: [4], init: {from: w.safetensors, rename: {'.': '";
    for (int i = 0; i < 300; i++) strcat(config, "long");
    strcat(config, "'}}}\n" SUMS REST);
    refused(config, AN_ERR_ARGUMENT, "the name would be too long");
    /* a name that is longer than any of a model */
    char name[2000];
    builder b = begin();
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    add(&b, name, "F32", 1, 1, 0);
    end(&b, "w.safetensors");
    refused(MODEL("{from: w.safetensors, rename: {n: ''}}"), AN_ERR_ARGUMENT, "\n  unexpected: nnnnn");
    an_trainer *t = open_run(MODEL("{from: w.safetensors, unexpected: ignore, missing: init, rename: {n: ''}}"));
    an_trainer_destroy(&t);
}

/* ---- files that are none ---- */

static void test_no_files(void **state) {
    (void)state;
    write_sums();
    refused(FROM("nowhere"), AN_ERR_FILE, "run.yaml:1:46: model.init: nowhere: cannot be opened:");
    write_text("w.safetensors", "{}");
    refused(FROM("w.safetensors"), AN_ERR_DAMAGED, "run.yaml:1:46: model.init: w.safetensors: byte 0: ");
    mkdir("empty", 0777);
    refused(FROM("empty"), AN_ERR_FILE,
            "model.init: empty: has neither model.safetensors nor model.safetensors.index.json");
    unlink("pipe");
    assert_int_equal(mkfifo("pipe", 0600), 0);
    refused(FROM("pipe"), AN_ERR_FILE, "pipe: is a pipe, not a file");
}

/* Every allocation may fail, and all is given back. */
static void test_memory(void **state) {
    (void)state;
    an_config *c = NULL;
    write_sums();
    write_model("w.safetensors", "F64", "x.");
    an_trainer *t = open_with_config(MODEL("{from: w.safetensors, rename: {'^x\\.': ''}}"), &c);
    init_without_memory(t, c, AN_OK, 100);
    assert_loaded(t);
    an_trainer_destroy(&t);
    an_config_destroy(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rounding, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_and_unexpected, setup, teardown),
        cmocka_unit_test_setup_teardown(test_run_states, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rename, setup, teardown),
        cmocka_unit_test_setup_teardown(test_path, setup, teardown),
        cmocka_unit_test_setup_teardown(test_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_are_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_renames, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
