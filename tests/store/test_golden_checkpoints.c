/* Checkpoints of every version of the format that there was, in tests/golden/checkpoints: later versions must read
 * them, and runs that carry on from them must end with the bits of the run that was never stopped. They were made with
 * the instructions that every machine has; with these no model needs oneDNN, so its version, which a run is otherwise
 * held to, may be another one. So may anneal's: these runs keep their bits, and a user must still allow others. */
#include <zlib.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "anneal/run.h"
#include "open/support.h"

#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/checkpoints/"
enum { STEP = 7, STEPS = 15, PATH = 512 };

typedef struct {
    char checkpoint[PATH], config[PATH]; /* paths */
    long tensors;
    unsigned long crc;
    char weights[AN_HASH_TEXT], state[AN_HASH_TEXT]; /* at the end */
} golden;

static golden golden_of(const char *name) {
    golden g = {0};
    char path[PATH];
    snprintf(g.checkpoint, PATH, GOLDEN "%s/step-00000007-1", name);
    snprintf(g.config, PATH, GOLDEN "%s/run.yaml", name);
    snprintf(path, PATH, GOLDEN "%s/expected", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    /* NOLINTNEXTLINE(cert-err34-c): what is no number is seen by what follows */
    const int read = fscanf(file, "tensors %ld %lx weights %32s state %32s", &g.tensors, &g.crc, g.weights, g.state);
    assert_int_equal(read, 4);
    fclose(file);
    return g;
}

static int open_context(void **state) {
    an_allocator allocator = {sizeof allocator, ledger_allocate, ledger_release, &counted};
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    (void)state;
    options.allocator = &allocator;
    options.threads = 2;
    options.isa = AN_ISA_BASE;
    return an_context_create(&ctx, &options) != AN_OK;
}

/* ---- what is in one ---- */

static unsigned long crc_of(const an_checkpoint *c) {
    an_checkpoint_tensor t;
    an_checkpoint_tensor_init(&t, sizeof t);
    unsigned long crc = 0;
    for (int64_t i = 0; an_checkpoint_tensor_get(c, i, &t) == AN_OK; i++) {
        const size_t bytes = (size_t)t.elements * t.element_bytes;
        unsigned char *elements = malloc(bytes);
        assert_non_null(elements);
        const int64_t first = t.elements / 3; /* in two parts, each of which may begin inside a slice */
        OK(ctx, an_checkpoint_read(c, i, 0, first, elements));
        OK(ctx, an_checkpoint_read(c, i, first, t.elements - first, elements + (size_t)first * t.element_bytes));
        crc = crc32(crc, elements, (unsigned)bytes);
        free(elements);
    }
    return crc;
}

static void has(const an_checkpoint *c, const char *name, an_dtype dtype, int64_t slices, int ndims,
                const int64_t *dims) {
    an_checkpoint_tensor t;
    an_checkpoint_tensor_init(&t, sizeof t);
    const int64_t index = an_checkpoint_find(c, name);
    if (index < 0) fail_msg("it has no %s", name);
    OK(ctx, an_checkpoint_tensor_get(c, index, &t));
    assert_int_equal(t.role, strncmp(name, "moment_", 7) ? AN_SAVED_WEIGHT : AN_SAVED_MOMENT);
    assert_int_equal(t.dtype, dtype);
    assert_int_equal(t.slices, slices);
    assert_int_equal(t.ndims, ndims);
    for (int d = 0; d < ndims; d++) assert_int_equal(t.dims[d], dims[d]);
}
#define SHAPE(...)                                                                       \
    (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { \
        __VA_ARGS__                                                                      \
    }

static an_checkpoint *look_at(const golden *g, const char *precision, int64_t files) {
    an_checkpoint *c = NULL;
    an_graph *graph = NULL;
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    char *text = NULL;
    OK(ctx, an_checkpoint_verify(ctx, g->checkpoint));
    OK(ctx, an_checkpoint_open(&c, ctx, g->checkpoint));
    OK(ctx, an_checkpoint_info_get(c, &info));
    assert_true(info.is_run && !info.kept);
    assert_int_equal(info.step, STEP);
    assert_int_equal(info.steps, STEPS);
    assert_int_equal(info.generation, 1);
    assert_int_equal(info.tensors, g->tensors);
    assert_int_equal(info.files, files);
    assert_string_equal(info.isa, "base");
    assert_string_equal(info.precision, precision);
    assert_true(info.loss > 0 && info.rate > 0 && info.norm > 0);
    assert_int_equal(crc_of(c), g->crc);
    OK(ctx, an_checkpoint_text(c, "graph.ang", &text));
    OK(ctx, an_graph_parse(&graph, ctx, text, strlen(text)));
    an_graph_destroy(&graph);
    an_string_release(ctx, &text);
    return c;
}

/* ---- carrying on ---- */

/* The last checkpoint of the folder says from where on it computes as it does now. */
static void assert_since(const char *folder, int64_t step) {
    an_checkpoint *c = NULL;
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    OK(ctx, an_checkpoint_open(&c, ctx, folder));
    OK(ctx, an_checkpoint_info_get(c, &info));
    assert_string_equal(info.anneal, an_version());
    assert_int_equal(info.step, STEPS);
    assert_int_equal(info.bits_since, step);
    an_checkpoint_close(&c);
}

/* The data lies elsewhere than it did, and the folder of the run is the test's own: both may change. `note` is what the
 * user is told; NULL: nothing, if the machine is like the one that wrote it. */
static void carry_on(const golden *g, const char *name, const char *note) {
    char weights[AN_HASH_TEXT], state[AN_HASH_TEXT], command[PATH], dir[PATH];
    const char *const sets[] = {dir};
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_open_options open;
    an_open_options_init(&open, sizeof open);
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    snprintf(command, sizeof command, "rm -rf %s", name);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folder */
    snprintf(dir, sizeof dir, "run.dir=%s", name);
    options.file = g->config;
    options.set_count = 1;
    options.sets = sets;
    open.resume = g->checkpoint;
    OK(ctx, an_config_create(&config, ctx, &options));
    if (note) assert_int_equal(an_trainer_open_config(&trainer, ctx, config, &open), AN_ERR_UNSUPPORTED);
    if (note)
        assert_non_null(strstr(an_last_error(ctx), "so results would no longer be bit-identical; to resume anyway, add "
                                                   "--allow-new-bits or set run.allow_new_bits to on"));
    open.new_bits = true;
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, &open));
    if (note && !strstr(an_trainer_notes(trainer), note))
        fail_msg("'%s' is not in:\n%s", note, an_trainer_notes(trainer));
    assert_string_equal(an_trainer_resumed(trainer), g->checkpoint);
    assert_int_equal(an_trainer_next_step(trainer), STEP);
    OK(ctx, an_trainer_run(trainer, NULL, &outcome));
    assert_int_equal(outcome.steps, STEPS);
    OK(ctx, an_trainer_weights_hash(trainer, weights));
    OK(ctx, an_trainer_state_hash(trainer, state));
    assert_string_equal(weights, g->weights);
    assert_string_equal(state, g->state);
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
    if (note) assert_since(name, STEP);
}

#define OF_0_1 "now, 0.1 before; from here on, results may differ in the last bits"

/* ---- version 1 ---- */

/* f32, two writers, dropout, leaves, in the middle of a schedule and between two evaluations. */
static void test_v1_gpt2(void **state) {
    const golden g = golden_of("v1-gpt2");
    (void)state;
    an_checkpoint *c = look_at(&g, "none", 5);
    has(c, "h.0.attn.c_attn.weight", AN_DTYPE_F32, 1, SHAPE(24, 8));
    has(c, "moment_1/h.0.mlp.c_fc.weight", AN_DTYPE_F32, 2, SHAPE(32, 8));
    has(c, "moment_2/ln_f.bias", AN_DTYPE_F32, 1, SHAPE(8));
    an_checkpoint_close(&c);
    carry_on(&g, "v1-gpt2", OF_0_1);
}

/* f64, one moment. */
static void test_v1_mlp(void **state) {
    const golden g = golden_of("v1-mlp");
    (void)state;
    an_checkpoint *c = look_at(&g, "none", 4);
    has(c, "hidden.0.weight", AN_DTYPE_F64, 1, SHAPE(7, 2));
    has(c, "moment_1/output.bias", AN_DTYPE_F64, 1, SHAPE(1));
    assert_int_equal(an_checkpoint_find(c, "moment_2/output.bias"), -1);
    an_checkpoint_close(&c);
    carry_on(&g, "v1-mlp", OF_0_1);
}

/* bf16 with weights of f32, running statistics, the best so far. */
static void test_v1_cnn(void **state) {
    const golden g = golden_of("v1-cnn");
    (void)state;
    an_checkpoint *c = look_at(&g, "bf16", 4);
    has(c, "convolution.1.weight", AN_DTYPE_F32, 1, SHAPE(4, 3, 3, 3));
    has(c, "convolution.1.norm.running_var", AN_DTYPE_F32, 1, SHAPE(4));
    assert_int_equal(an_checkpoint_find(c, "moment_1/convolution.1.norm.running_var"), -1);
    an_checkpoint_close(&c);
    carry_on(&g, "v1-cnn", OF_0_1);
}

/* Of a version with other defaults than ours: the config does not give the decay, and the checkpoint's holds. */
static void test_v1_sgd(void **state) {
    const golden g = golden_of("v1-sgd");
    (void)state;
    an_checkpoint *c = look_at(&g, "none", 4);
    has(c, "moment_1/hidden.0.weight", AN_DTYPE_F32, 1, SHAPE(5, 2));
    an_checkpoint_close(&c);
    carry_on(&g, "v1-sgd", OF_0_1);
}

/* ---- version 2 ---- */

/* An adapter, whose base is elsewhere than it was. */
static void test_v2_lora(void **state) {
    const golden g = golden_of("v2-lora");
    (void)state;
    an_checkpoint *c = look_at(&g, "bf16", 4);
    has(c, "model.layers.1.self_attn.v_proj.lora_A.weight", AN_DTYPE_F32, 1, SHAPE(2, 16));
    has(c, "moment_2/model.layers.0.self_attn.q_proj.lora_B.weight", AN_DTYPE_F32, 1, SHAPE(16, 2));
    assert_int_equal(an_checkpoint_find(c, "model.layers.0.self_attn.q_proj.weight"), -1);
    an_checkpoint_close(&c);
    carry_on(&g, "v2-lora", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v1_gpt2), cmocka_unit_test(test_v1_mlp),  cmocka_unit_test(test_v1_cnn),
        cmocka_unit_test(test_v1_sgd),  cmocka_unit_test(test_v2_lora),
    };
    return cmocka_run_group_tests(tests, open_context, teardown);
}
