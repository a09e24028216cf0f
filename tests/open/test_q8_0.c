/* A base that is stored in q8_0: training has the bits of training on the same numbers, and one hash for threads,
 * recompute and resume; memory to the byte; blocks of a GGUF file stay what they are. */
#include <stdlib.h>

#include "anneal/checkpoint.h"
#include "anneal/predict.h"
#include "anneal/train.h"
#include "base/q8_0.h"
#include "exec/params.h"
#include "exec/plan.h"
#include "store/open_weights.h"
#include "train/trainer.h"

#include "open/init_support.h" /* last, as its ctx would be shadowed */
#include "support/export_as.h"

enum { STEPS = 4, WIDTH = 64, VOCABULARY = 70 };

/* 70 and 96 are no multiples of what kernels take at a time. */
#define LLAMA                                                                                                     \
    "model: {type: llama, layers: 2, heads: 4, kv_heads: 2, width: 64, hidden: 96, context: 24, vocabulary: 70, " \
    "tied: on}\n"
#define GPT2 "model: {type: gpt2, layers: 1, heads: 2, width: 64, context: 24, vocabulary: 70}\n"
#define DATA                                                                \
    "data: {train: {type: tokens, path: tokens.bin}}\nsave: {every: off}\n" \
    "batch: {global: 4, leaves: 2}\noptimizer: {lr: 1e-2}\n"
#define REST DATA "run: {dir: run, steps: 4}\n"
#define LORA(base) "lora: {targets: [q_proj, down_proj], rank: 4, dropout: 0.1, base: " base "}\n"
#define LORA_GPT2(base) "lora: {targets: [c_attn, c_fc], rank: 4, base: " base "}\n"
#define PRECISION(name) "train: {precision: " name "}\n"

static void begin(void) {
    unsigned short tokens[512];
    for (int i = 0; i < 512; i++) tokens[i] = (unsigned short)(i * i / 3 % VOCABULARY);
    write_file("tokens.bin", tokens, sizeof tokens);
    assert_int_equal(system("rm -rf run"), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

static void take_steps(an_trainer *trainer, int64_t end) {
    while (an_trainer_next_step(trainer) < end) OK(ctx, an_trainer_step(trainer, NULL));
}

/* Gives `to` the numbers of every frozen parameter of `from`. */
static void copy_frozen(an_trainer *to, an_trainer *from) {
    static float numbers[VOCABULARY * 256];
    int blocks = 0;
    for (int64_t i = 0; i < an_params_count(from->params); i++) {
        const an_stored *e = &from->params->entries[i];
        if (e->storage != AN_STORAGE_FROZEN) continue;
        an_array array = {.data = numbers, .dtype = AN_DTYPE_F32, .ndims = e->ndims};
        memcpy(array.dims, e->dims, sizeof array.dims);
        OK(ctx, an_params_get(from->params, e->name, AN_PART_WEIGHT, &array));
        blocks += e->dtype == AN_DTYPE_Q8_0;
        const an_stored *other = &to->params->entries[i];
        assert_string_equal(other->name, e->name);
        if (other->dtype == AN_DTYPE_BF16) {
            uint16_t *low = (uint16_t *)((char *)to->params->frozen + other->offset);
            for (int64_t k = 0; k < e->elements; k++) low[k] = an_f32_to_bf16(numbers[k]);
        } else {
            OK(ctx, an_params_set(to->params, e->name, AN_PART_WEIGHT, &array));
        }
    }
    assert_true(blocks >= 5);
}

/* Numbers of 7 bits with a scale that is a power of 2: bf16 has them too. An embedding does not round the
 * rows of a table of q8_0. */
static void set_table(an_trainer *t) {
    static float numbers[VOCABULARY * WIDTH];
    for (int i = 0; i < VOCABULARY * WIDTH; i++)
        numbers[i] = (float)(i % 32 == 5 ? 127 : i * 31 % 255 - 127) * 0x1p-10F;
    const an_array array = {.data = numbers, .dtype = AN_DTYPE_F32, .ndims = 2, .dims = {VOCABULARY, WIDTH}};
    OK(ctx, an_params_set(t->params, "model.embed_tokens.weight", AN_PART_WEIGHT, &array));
}

static void compare_masters(const an_trainer *a, const an_trainer *b) {
    assert_int_equal(a->params->sizes.trainable_elements, b->params->sizes.trainable_elements);
    assert_memory_equal(a->params->masters, b->params->masters, (size_t)an_params_flat_bytes(&a->params->sizes));
}

/* Trains a config whose base is stored in q8_0 and one that reads the same numbers from a base that is not: `ways` are
 * the two. */
static void compare_runs(const char *const ways[2], bool sets_table) {
    begin();
    an_trainer *a = open_run(ways[0]);
    assert_int_equal(system("rm -rf run"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    an_trainer *b = open_run(ways[1]);
    if (sets_table) set_table(a);
    copy_frozen(b, a);
    for (int step = 0; step < STEPS; step++) {
        an_step_metrics of_a, of_b;
        an_step_metrics_init(&of_a, sizeof of_a);
        an_step_metrics_init(&of_b, sizeof of_b);
        OK(ctx, an_trainer_step(a, &of_a));
        OK(ctx, an_trainer_step(b, &of_b));
        if (of_a.loss != of_b.loss) fail_msg("%s\nstep %d: %.17g, not %.17g", ways[0], step, of_a.loss, of_b.loss);
    }
    compare_masters(a, b);
    an_trainer_destroy(&a);
    an_trainer_destroy(&b);
}

/* In f32 with the base as it is, and on tiles with the base in bf16: the products read the same numbers. Elsewhere
 * bf16 is not compared, as blocks are not rounded there. */
static void test_bits_of_numbers(void **state) {
    (void)state;
    static const char *const ways[][2] = {
        {LLAMA REST LORA("q8_0") PRECISION("f32"), LLAMA REST LORA("full") PRECISION("f32")},
        {GPT2 REST LORA_GPT2("q8_0") PRECISION("f32"), GPT2 REST LORA_GPT2("full") PRECISION("f32")},
        {LLAMA REST LORA("q8_0") PRECISION("bf16"), LLAMA REST LORA("auto") PRECISION("bf16")},
    };
    const int count = an_context_isa(ctx) == AN_ISA_AMX ? 3 : 2;
    for (int i = 0; i < count; i++) compare_runs(ways[i], i == 2);
}

/* ---- preferences ---- */

#define DPO                                                                          \
    "data: {train: {type: preferences, path: " ANNEAL_SOURCE_DIR                     \
    "/tests/golden/dpo/llama/pairs.jsonl, tokenizer: " ANNEAL_SOURCE_DIR             \
    "/tests/golden/dpo/llama}}\nsave: {every: off}\nbatch: {global: 4, leaves: 2}\n" \
    "optimizer: {lr: 1e-2}\nrun: {dir: run, steps: 4}\n"

/* The reference is the frozen base: stored in q8_0, it is read as the numbers that it stands for, like the model. */
static void test_preferences(void **state) {
    (void)state;
    static const char *const ways[][2] = {
        {LLAMA DPO LORA("q8_0") PRECISION("f32"), LLAMA DPO LORA("full") PRECISION("f32")},
        {LLAMA DPO LORA("q8_0") PRECISION("bf16"), LLAMA DPO LORA("auto") PRECISION("bf16")},
    };
    const int count = an_context_isa(ctx) == AN_ISA_AMX ? 2 : 1;
    for (int i = 0; i < count; i++) compare_runs(ways[i], i == 1);
}

/* Threads, recompute and a stop after any step. */
static void test_one_hash(void **state) {
    (void)state;
    static const char *const ways[] = {
        LLAMA REST LORA("q8_0") PRECISION("bf16"),
        LLAMA REST LORA("q8_0") PRECISION("bf16"), /* on one thread */
        LLAMA REST LORA("q8_0") "train: {precision: bf16, recompute: block}\n",
    };
    char first[AN_HASH_TEXT] = "", other[AN_HASH_TEXT];
    for (size_t i = 0; i < 2 * (sizeof ways / sizeof *ways); i++) {
        begin();
        an_context_destroy(&ctx);
        assert_int_equal(context_with_ledger(&ctx, &counted, i / 2 == 1 ? 1 : 2), AN_OK);
        an_trainer *t = open_run(ways[i / 2]);
        if (i % 2) {
            take_steps(t, 2);
            OK(ctx, an_trainer_save(t, 1));
            an_trainer_destroy(&t);
            t = open_run(ways[i / 2]);
            assert_int_equal(an_trainer_next_step(t), 2);
        }
        take_steps(t, STEPS);
        OK(ctx, an_trainer_state_hash(t, i == 0 ? first : other));
        if (i > 0) assert_string_equal(first, other);
        an_trainer_destroy(&t);
    }
}

/* 34 bytes for 32 elements of every matrix, nothing else of it, and no step makes its numbers. */
static void test_memory(void **state) {
    (void)state;
    begin();
    an_trainer *t = open_run(LLAMA REST LORA("q8_0") PRECISION("bf16"));
    const an_params *p = t->params;
    int64_t frozen = 0, trained = 0;
    for (int64_t i = 0; i < an_params_count(p); i++) {
        const an_stored *e = &p->entries[i];
        const int64_t padded = (e->elements + AN_PAGE - 1) / AN_PAGE * AN_PAGE;
        if (e->storage == AN_STORAGE_MASTER) {
            trained += padded;
        } else {
            assert_int_equal(e->dtype, e->ndims == 2 ? AN_DTYPE_Q8_0 : AN_DTYPE_F32);
            frozen += e->ndims == 2 ? padded / 32 * 34 : padded * 4;
        }
    }
    assert_int_equal(p->sizes.frozen_bytes, frozen);
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    OK(ctx, an_plan_memory_get(t->plan, &memory));
    assert_int_equal(memory.weights, frozen + trained * (4 + 2)); /* masters and low copies of the adapter */
    for (int form = 0; form < AN_FORMS; form++)
        for (const an_node *n = t->plan->forms[form] ? t->plan->forms[form]->first : NULL; n; n = n->next) {
            const an_result *src = n->op->flags & AN_OP_CONVERTS ? an_node_input(n, 0) : NULL;
            if (src && src->root->storage == AN_STORAGE_FROZEN) fail_msg("%s converts a weight", n->path);
        }
    an_trainer_destroy(&t);
}

/* ---- graphs and files ---- */

/* The text of a graph has the type, and ops that cannot read it are refused. */
static void test_graph(void **state) {
    (void)state;
    char *first = NULL, *second = NULL;
    an_graph *g = NULL;
    begin();
    an_trainer *t = open_run(LLAMA REST LORA("q8_0"));
    OK(ctx, an_graph_print(t->graph, &first));
    OK(ctx, an_graph_parse(&g, ctx, first, strlen(first)));
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_graph_print(g, &second));
    assert_string_equal(first, second);
    const an_result *table = &g->parameters[0].node->outputs[0];
    assert_int_equal(table->dtype, AN_DTYPE_Q8_0);
    an_transpose(g, an_graph_value(g, table), 0, 1);
    assert_int_equal(an_graph_verify(g), AN_ERR_DTYPE);
    assert_non_null(strstr(an_last_error(ctx), "only products, embeddings and casts read q8_0"));
    an_string_release(ctx, &first);
    an_string_release(ctx, &second);
    an_graph_destroy(&g);
    an_trainer_destroy(&t);
}

static void test_blocks_of_a_file(void **state) {
    (void)state;
    an_weights w;
    bool found = false;
    OK(ctx, an_weights_open(&w, ctx, ANNEAL_SOURCE_DIR "/tests/golden/gguf/types.gguf", AN_MODEL_WEIGHTS_AUTO));
    for (int64_t i = 0; i < w.count; i++) {
        enum { FIRST = 64, COUNT = 128 };
        float numbers[COUNT], widened[COUNT];
        unsigned char blocks[COUNT / AN_Q8_0_ELEMENTS * AN_Q8_0_BYTES];
        an_safetensor tensor;
        OK(ctx, w.get(&w, i, &tensor));
        if (strcmp(tensor.type->name, "Q8_0") != 0) continue;
        found = true;
        OK(ctx, w.read(&w, i, &tensor, FIRST, COUNT, numbers));
        OK(ctx, w.read_q8_0(&w, i, &tensor, FIRST, COUNT, blocks));
        an_q8_0_to_f32(blocks, COUNT, widened);
        assert_memory_equal(numbers, widened, sizeof numbers);
    }
    assert_true(found);
    an_weights_close(&w);
}

#define FROM(path)                                                                                                \
    "model: {type: llama, layers: 2, heads: 4, kv_heads: 2, width: 64, hidden: 96, context: 24, vocabulary: 70, " \
    "tied: on, init: {from: " path "}}\n"

static void predict(an_trainer *t, float *logits) {
    int32_t tokens[24];
    an_predictor *p = NULL;
    for (int i = 0; i < 24; i++) tokens[i] = i * 5 % VOCABULARY;
    OK(ctx, an_predictor_create(&p, t, NULL));
    OK(ctx, an_predictor_run_tokens(p, 1, tokens, logits));
    an_predictor_destroy(&p);
}

/* A merged model has the numbers of the blocks, not of the file: its logits are those of the run. A checkpoint's own
 * predictor reads the base again. */
static void test_merged(void **state) {
    (void)state;
    static const char *const written[] = {FROM("merged.safetensors") REST PRECISION("f32"),
                                          FROM("published/model.safetensors") REST PRECISION("f32")};
    static float trained[24 * VOCABULARY], merged[24 * VOCABULARY];
    an_checkpoint *c = NULL;
    begin();
    assert_int_equal(system("rm -rf full published"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    an_trainer *t = open_run(LLAMA DATA "run: {dir: full, steps: 4}\n" PRECISION("f32"));
    OK(ctx, an_trainer_save(t, 0));
    an_trainer_destroy(&t);
    t = open_run(FROM("full") REST LORA("q8_0") PRECISION("f32"));
    take_steps(t, STEPS);
    OK(ctx, an_trainer_save(t, STEPS));
    predict(t, trained);
    an_trainer_destroy(&t);
    OK(ctx, an_checkpoint_open(&c, ctx, "run"));
    OK(ctx, export_as(c, "merged.safetensors", AN_EXPORT_MERGED));
    OK(ctx, export_as(c, "published", AN_EXPORT_HUGGINGFACE));
    an_checkpoint_close(&c);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(system("rm -rf run"), 0); /* NOLINT(cert-env33-c): the test's own folder */
        t = open_run(written[k]);
        predict(t, merged);
        an_trainer_destroy(&t);
        for (int i = 0; i < 24 * VOCABULARY; i++)
            if (!(fabsf(trained[i] - merged[i]) <= 1e-5F))
                fail_msg("%d, logit %d: %g, not %g", k, i, merged[i], trained[i]);
    }
}

static void test_refusals(void **state) {
    (void)state;
    begin();
    refused("model: {type: llama, layers: 1, heads: 2, width: 20, hidden: 40, context: 8, vocabulary: 70}\n" REST LORA(
                "q8_0"),
            AN_ERR_DTYPE, "multiple of 32 columns");
    refused(LLAMA REST LORA("q8_0") PRECISION("f64"), AN_ERR_DTYPE, "can be stored in q8_0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bits_of_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_preferences, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_hash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_graph, setup, teardown),
        cmocka_unit_test_setup_teardown(test_blocks_of_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_merged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
