/* Models of a config that are made of layers or come from a file: each gives the bits of the same model made another
 * way. */
#include "anneal/models.h"
#include "anneal/open.h"
#include "open/support.h"

#define SUMS "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}}\n"
#define WIDE_SUMS "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum], dtype: f64}}\n"
#define CLASSES "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [class], classes: on}}\n"
#define IMAGES "data: {train: {type: idx, path: images.idx, labels: labels.idx}}\n"
#define REST "run: {steps: 6, seed: 5}\nbatch: {global: 8}\noptimizer: {lr: 1e-2}\ntrain: {precision: f32}\n"

typedef struct outcome {
    char hash[AN_HASH_TEXT];
    double loss;
} outcome;

static outcome run(const char *config) {
    outcome o;
    an_trainer *trainer = open_run(config);
    o.loss = train(trainer);
    OK(ctx, an_trainer_weights_hash(trainer, o.hash));
    an_trainer_destroy(&trainer);
    assert_null(trainer);
    return o;
}

static void same(const char *a, const char *b) {
    const outcome first = run(a), second = run(b);
    assert_true(first.loss == second.loss);
    assert_string_equal(first.hash, second.hash);
}

/* ---- sequential ---- */

static void test_layers_are_an_mlp(void **state) {
    (void)state;
    write_sums();
    same("model: {type: mlp, hidden: [8, 4], activation: tanh}\n" SUMS REST,
         "model:\n  type: sequential\n  layers:\n"
         "  - {type: linear, size: 8, name: hidden.0}\n  - tanh\n"
         "  - {type: linear, size: 4, name: hidden.1}\n  - tanh\n"
         "  - {type: linear, name: output}\n" SUMS REST);
    same("model: {type: mlp, hidden: [8], activation: silu, batch_norm: on}\n" CLASSES REST,
         "model:\n  type: sequential\n  layers:\n"
         "  - {type: linear, size: 8, bias: off, name: hidden.0}\n  - {type: batch_norm, name: hidden.0.norm}\n"
         "  - silu\n  - {type: linear, name: output}\n" CLASSES REST);
}

static void test_layers_are_a_cnn(void **state) {
    (void)state;
    write_images();
    same("model: {type: cnn, filters: [3, 5], hidden: 8}\n" IMAGES REST,
         "model:\n  type: sequential\n  layers:\n"
         "  - {type: convolution, filters: 3, name: convolution.0}\n  - relu\n  - max_pool\n"
         "  - {type: convolution, filters: 5, name: convolution.1}\n  - relu\n  - {type: max_pool, window: 2}\n"
         "  - flatten\n  - {type: linear, size: 8, name: hidden}\n  - relu\n"
         "  - {type: linear, size: 4, name: output}\n" IMAGES REST);
}

/* What has depth and block is what decays by layer: the rates of groups agree too. */
static void test_depths_are_those_of_the_mlp(void **state) {
    (void)state;
    write_sums();
    same("model: {type: mlp, hidden: [8, 4]}\n" SUMS "run: {steps: 4}\noptimizer: {layer_decay: 0.8, lr: 1e-2}\n",
         "model:\n  type: sequential\n  layers:\n"
         "  - {type: linear, size: 8, name: hidden.0}\n  - relu\n  - {type: linear, size: 4, name: hidden.1}\n"
         "  - relu\n  - {type: linear, name: output}\n" SUMS
         "run: {steps: 4}\noptimizer: {layer_decay: 0.8, lr: 1e-2}\n");
}

static void test_every_layer_trains(void **state) {
    an_group_info info;
    an_group_info_init(&info, sizeof info);
    int group;
    (void)state;
    write_images();
    an_trainer *trainer =
        open_run("model:\n  type: sequential\n  loss: cross_entropy\n  layers:\n"
                 "  - {type: convolution, filters: 4, window: 2, padding: 0, stride: 2, bias: off}\n"
                 "  - {type: batch_norm, momentum: 0.2}\n  - gelu\n"
                 "  - {type: average_pool, window: 3, stride: 1, padding: 1}\n  - silu\n  - layer_norm\n  - flatten\n"
                 "  - rms_norm\n  - sigmoid\n  - {type: dropout, rate: 0.2}\n  - linear\n" IMAGES REST);
    const double loss = train(trainer);
    assert_true(loss > 0 && loss < 3);
    /* numbers are names */
    OK(ctx, an_groups_find(an_trainer_groups(trainer), "0.weight", &group));
    OK(ctx, an_groups_find(an_trainer_groups(trainer), "1.bias", &group));
    OK(ctx, an_groups_find(an_trainer_groups(trainer), "10.bias", &group));
    FAILS(ctx, an_groups_find(an_trainer_groups(trainer), "0.bias", &group), AN_ERR_UNKNOWN, "0.bias");
    an_trainer_destroy(&trainer);
}

/* Rows of numbers are images for layers if model.inputs says so; the bits are those of images. */
static void test_inputs_give_rows_a_shape(void **state) {
    (void)state;
    write_images();
    same("model: {type: sequential, layers: [{type: convolution, filters: 2}, flatten, linear]}\n" IMAGES REST,
         "model: {type: sequential, inputs: [1, 6, 6], layers: [{type: convolution, filters: 2}, flatten, linear]}\n"
         "data: {train: {type: idx, path: images.idx, labels: labels.idx, flat: on}}\n" REST);
}

static void test_mistakes_of_layers_have_their_place(void **state) {
    (void)state;
    write_sums();
    write_images();
    refused("model:\n  type: sequential\n  layers:\n  - {type: linear, size: 4}\n" IMAGES REST, AN_ERR_SHAPE,
            "run.yaml:4:5: this layer takes rows of features, [batch,features], but its input is f32[batch,1,6,6]; put "
            "{type: flatten} before it");
    refused("model:\n  type: sequential\n  layers:\n  - {type: linear}\n  - linear\n" SUMS REST, AN_ERR_ARGUMENT,
            "run.yaml:4:5: only the last linear layer can take its size from the targets; set the size of this one");
    refused("model:\n  type: sequential\n  layers:\n  - {type: convolution, filters: 2}\n" SUMS REST, AN_ERR_SHAPE,
            "run.yaml:4:5: this layer takes images, [batch,channels,height,width], but its input is f32[batch,2]");
    refused("model:\n  type: sequential\n  layers:\n  - {type: convolution, filters: 2, window: 4}\n" IMAGES REST,
            AN_ERR_ARGUMENT, ": no padding keeps the image size with a window of 4");
    refused("model:\n  type: sequential\n  layers:\n  - {type: max_pool, window: 9}\n" IMAGES REST, AN_ERR_SHAPE,
            "run.yaml:4:5: ");
    refused("model:\n  type: sequential\n  layers:\n  - {type: convolution, filters: 2}\n" IMAGES REST, AN_ERR_SHAPE,
            "end with {type: flatten} and a linear layer");
    refused("model:\n  type: sequential\n  layers:\n  - {type: linear, size: 3}\n" SUMS REST, AN_ERR_SHAPE,
            "the last layer gives [3] for each sample, but a target of the data is [1]");
    refused("model:\n  type: sequential\n  inputs: [3]\n  layers: [linear]\n" SUMS REST, AN_ERR_SHAPE,
            "run.yaml:3:11: model.inputs is [3], but a sample of the data is [2]");
    refused(
        "model:\n  type: sequential\n  layers: [{type: linear, size: 2, name: a}, {type: linear, name: a}]\n" SUMS REST,
        AN_ERR_ARGUMENT, "occurs twice");
}

/* As for models that have an option for it. */
static void test_batch_norm_over_few_samples_warns(void **state) {
    static const char text[] = "model: {type: sequential, layers: [linear, batch_norm]}\nbatch: {micro: 4}\n" SUMS;
    an_config *config = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    (void)state;
    options.file = "run.yaml";
    options.text = text;
    options.length = strlen(text);
    OK(ctx, an_config_create(&config, ctx, &options));
    assert_int_equal(an_config_warning_count(config), 1);
    assert_non_null(strstr(an_config_warning(config, 0), "batch norm over micro-batches of 4 samples is noisy"));
    an_config_destroy(&config);
}

/* What only the data and the batch together tell: 96 rows, 40 images. */
static void test_batch_norm_looks_at_the_micro_batches_of_a_run(void **state) {
#define ROWS "model: {type: mlp, batch_norm: on}\n" SUMS
#define NOISY(samples) "batch norm over micro-batches of " samples " samples is noisy; 16 or more samples are usual"
#define ALONE                                                                                                  \
    "some micro-batches have only one sample, and the batch norm of one sample does not depend on it; change " \
    "batch.global or batch.micro so that every micro-batch has more, or set data.drop_last to on"
    static const struct {
        const char *text, *warning; /* NULL: none */
    } cases[] = {
        {ROWS "run: {epochs: 1}\nbatch: {global: 8}\n", NOISY("8")},
        {ROWS "run: {epochs: 1}\nbatch: {global: 64, leaves: 8}\n", NOISY("8")},
        {ROWS "run: {epochs: 1}\nbatch: {global: 96}\n", NULL},
        {ROWS "run: {epochs: 1}\nbatch: {global: 95}\n", ALONE},
        {ROWS "run: {steps: 1}\nbatch: {global: 95}\n", NULL},
        {ROWS "run: {epochs: 1}\nbatch: {global: 96, micro: 19}\n", NULL}, /* six leaves of 16 */
        {ROWS "run: {epochs: 1}\nbatch: {global: 96, leaves: 1, micro: 19}\n", ALONE},
        {ROWS "run: {epochs: 1}\nbatch: {global: 66, leaves: 2, micro: 32}\n", ALONE},
        {ROWS "run: {epochs: 3}\nbatch: {micro: 19, accumulate: {0: 4, 2: 5}}\n", ALONE},
        {"model: {type: mlp}\n" SUMS "run: {epochs: 1}\nbatch: {global: 95}\n", NULL},
        {"model: {type: cnn, batch_norm: on}\n" IMAGES "run: {epochs: 1}\nbatch: {global: 39}\n", NULL},
    };
    (void)state;
    write_sums();
    write_images();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_config *config = NULL;
        an_trainer *trainer = NULL;
        an_config_options options;
        an_config_options_init(&options, sizeof options);
        options.text = cases[i].text;
        options.length = strlen(cases[i].text);
        OK(ctx, an_config_create(&config, ctx, &options));
        OK(ctx, an_trainer_open_config(&trainer, ctx, config, NULL));
        if (an_config_warning_count(config) != (cases[i].warning != NULL)) fail_msg("%s", cases[i].text);
        if (cases[i].warning) assert_non_null(strstr(an_config_warning(config, 0), cases[i].warning));
        an_trainer_destroy(&trainer);
        an_config_destroy(&config);
    }
}

/* ---- files ---- */

static void write_graph(const char *file, an_dtype dtype) {
    static const int64_t hidden[] = {8, 4};
    an_mlp_options options;
    an_mlp_options_init(&options, sizeof options);
    an_graph *graph = NULL;
    char *text = NULL;
    options.dtype = dtype;
    options.inputs = 2;
    options.outputs = 1;
    options.hidden = hidden;
    options.hidden_count = 2;
    options.loss = AN_LOSS_SQUARED;
    OK(ctx, an_model_mlp(&graph, ctx, &options));
    OK(ctx, an_graph_print(graph, &text));
    write_text(file, text);
    an_string_release(ctx, &text);
    an_graph_destroy(&graph);
}

static void test_graph_of_a_file_is_the_same_model(void **state) {
    (void)state;
    write_sums();
    write_graph("mlp.ang", AN_DTYPE_F32);
    same("model: {type: mlp, hidden: [8, 4]}\n" SUMS REST, "model: {graph: mlp.ang}\n" SUMS REST);
    same("model: {type: mlp, hidden: [8, 4]}\n" SUMS REST, "model: {type: graph, graph: mlp.ang}\n" SUMS REST);
}

static const char small_graph[] = "ang 1\n"
                                  "symbol batch\n"
                                  "%x = input(name=\"x\") : f32[batch,3]\n"
                                  "%y = input(name=\"y\") : f32[batch,1]\n"
                                  "%w = param(name=\"w\", initializer=2, scale=0.5) : f32[1,3]\n"
                                  "%o = matmul(%x, %w, transpose_b=true)\n"
                                  "%l = squared_error(%o, %y)\n";

static void test_mistakes_of_files_have_their_place(void **state) {
    char text[1024];
    (void)state;
    write_sums();
    write_text("small.ang", small_graph);
    refused("model: {graph: small.ang}\n" SUMS, AN_ERR_ARGUMENT, "run.yaml:1:16: small.ang has no loss");
    snprintf(text, sizeof text, "%sloss %%l\n", small_graph);
    write_text("small.ang", text);
    refused("model: {graph: small.ang}\n" SUMS, AN_ERR_ARGUMENT,
            "does not name its targets; write 'loss %9 targets %y'");
    snprintf(text, sizeof text, "%sloss %%l targets %%y\n", small_graph);
    write_text("small.ang", text);
    refused("model: {graph: small.ang}\n" SUMS, AN_ERR_SHAPE,
            "run.yaml:1:16: data.train: the model's input 'x' is f32[batch,3], where the first dimension is the "
            "sample, but the data's field 'inputs' is f32[2] for each sample; change the graph's input, or data.train");
    write_text("small.ang", "ang 1\n%x = inputt(name=\"x\") : f32[3]\n");
    refused("model: {graph: small.ang}\n" SUMS, AN_ERR_PARSE, "run.yaml:1:16: small.ang:2:6: there is no op 'inputt'");
    refused("model: {graph: no-such.ang}\n" SUMS, AN_ERR_FILE, "run.yaml:1:16: no-such.ang");
    write_graph("mlp.ang", AN_DTYPE_F32);
    refused("model: {graph: mlp.ang}\n" SUMS "train: {precision: f64}\n", AN_ERR_ARGUMENT,
            "run.yaml:3:20: train.precision is f64, but data.train is read in f32; set data.train.dtype to f64");
    refused("model: {graph: mlp.ang}\n" WIDE_SUMS "train: {precision: f64}\n", AN_ERR_DTYPE,
            "run.yaml:3:20: train.precision is f64, but the parameters of the graph are f32");
    write_graph("mlp.ang", AN_DTYPE_F64);
    refused("model: {graph: mlp.ang}\n" SUMS, AN_ERR_SHAPE, "is f64[batch,2]");
}

/* A graph of f64 on data of f64 needs no word about precision. */
static void test_graph_brings_its_precision(void **state) {
    (void)state;
    write_sums();
    write_graph("wide.ang", AN_DTYPE_F64);
    same("model: {type: mlp, hidden: [8, 4]}\n"
         "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum], dtype: f64}}\nrun: {steps: 3}\n",
         "model: {graph: wide.ang}\n"
         "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum], dtype: f64}}\nrun: {steps: 3}\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_are_an_mlp),
        cmocka_unit_test(test_layers_are_a_cnn),
        cmocka_unit_test(test_depths_are_those_of_the_mlp),
        cmocka_unit_test(test_every_layer_trains),
        cmocka_unit_test(test_inputs_give_rows_a_shape),
        cmocka_unit_test(test_mistakes_of_layers_have_their_place),
        cmocka_unit_test(test_batch_norm_over_few_samples_warns),
        cmocka_unit_test(test_batch_norm_looks_at_the_micro_batches_of_a_run),
        cmocka_unit_test(test_graph_of_a_file_is_the_same_model),
        cmocka_unit_test(test_mistakes_of_files_have_their_place),
        cmocka_unit_test(test_graph_brings_its_precision),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
