/* Direct preference optimization from configs: loss and gradients of the formula in PyTorch, one hash however a step is
 * computed, and what cannot be done. tests/golden/make-dpo makes the folders. */
#include <stdlib.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/generate.h"
#include "exec/params.h"
#include "exec/plan.h"
#include "formats/safetensors.h"
#include "ranks/threads.h"
#include "train/trainer.h"

#include "open/init_support.h" /* last, as its ctx would be shadowed */
#include "support/export_as.h"

#define BASES ANNEAL_SOURCE_DIR "/tests/golden/huggingface/"
#define ADAPTERS ANNEAL_SOURCE_DIR "/tests/golden/lora/"
#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/dpo/"
#define EVERY "[q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]"
#define LLAMA(options, from)                                                                                  \
    "model: {type: llama, layers: 2, heads: 4, kv_heads: 2, width: 16, hidden: 40, context: 28, vocabulary: " \
    "24, " options "init: {from: " BASES from "/model.safetensors}}\n"
#define PAIRS(name) "type: preferences, path: " GOLDEN name "/pairs.jsonl, tokenizer: " GOLDEN name
#define REST(name)                                                                                                    \
    "data: {train: {" PAIRS(name) "}, eval: {" PAIRS(name) "}}\nrun: {dir: runs/run, steps: 1}\nbatch: {global: 4}\n" \
                                                           "save: {every: off}\n"

static const struct {
    const char *name, *config;
} cases[] = {
    {"llama", LLAMA("rotary_base: 500000, ", "llama") REST("llama") "lora: {targets: " EVERY
                                                                    ", rank: 4, alpha: 8, from: " ADAPTERS "llama}\n"
                                                                    "train: {precision: f64, clip_norm: off"},
    {"llama-rslora",
     LLAMA("tied: on, ", "llama-tied")
         REST("llama-rslora") "lora: {targets: [q_proj, v_proj], rank: 2, alpha: 3, rslora: on, from: " ADAPTERS
                              "llama-rslora}\n"
                              "train: {precision: f64, clip_norm: off, loss: {beta: 0.5, label_smoothing: 0.2}"},
    {"llama-dora",
     LLAMA("rotary_base: 500000, ", "llama")
         REST("llama-dora") "lora: {targets: " EVERY ", rank: 4, alpha: 8, dora: on, from: " ADAPTERS "llama-dora}\n"
                            "train: {precision: f64, clip_norm: off, loss: {beta: "
                            "0.2}"},
};

static void forget(const char *folder) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

static double size_of(double x) {
    return x < 0 ? -x : x;
}

/* ---- the formula ---- */

/* The loss, and the mean margin of the rewards and the share of pairs in the right order. */
static double read_loss(const char *name, double *margin, double *accuracy) {
    enum { PAIRS_OF_FILE = 4 };
    char path[512];
    double beta, smoothing, loss, chosen, rejected;
    *margin = *accuracy = 0;
    snprintf(path, sizeof path, GOLDEN "%s/expected.txt", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lf %lf %lf", &beta, &smoothing, &loss), 3); /* NOLINT(cert-err34-c): seen below */
    for (int i = 0; i < PAIRS_OF_FILE; i++) {
        assert_int_equal(fscanf(file, "%lf %lf", &chosen, &rejected), 2); /* NOLINT(cert-err34-c): seen below */
        *margin += (chosen - rejected) / PAIRS_OF_FILE;
        *accuracy += chosen > rejected ? 1.0 / PAIRS_OF_FILE : 0;
    }
    fclose(file);
    return loss;
}

/* Every gradient of the adapter, within 1e-9 of the norm of its tensor. */
static void assert_gradients(const an_trainer *t, const char *name) {
    static double expected[4096], found[4096];
    char path[512];
    an_safetensors *file = NULL;
    snprintf(path, sizeof path, GOLDEN "%s/gradients.safetensors", name);
    OK(ctx, an_safetensors_open(&file, ctx, path));
    assert_true(an_safetensors_count(file) > 0);
    for (int i = 0; i < an_safetensors_count(file); i++) {
        static const char prefix[] = "base_model.model.";
        an_safetensor tensor;
        OK(ctx, an_safetensors_get(file, i, &tensor));
        assert_true(tensor.bytes <= (int64_t)sizeof expected);
        OK(ctx, an_safetensors_read(file, &tensor, 0, (size_t)tensor.bytes, expected));
        an_array array = {.data = found, .dtype = AN_DTYPE_F64, .ndims = tensor.ndims};
        memcpy(array.dims, tensor.dims, sizeof array.dims);
        array.strides[0] = tensor.ndims == 2 ? tensor.dims[1] : 1;
        array.strides[1] = 1;
        OK(ctx, an_params_get(t->params, tensor.name + strlen(prefix), AN_PART_GRADIENT, &array));
        double norm = 0, worst = 0;
        for (int64_t k = 0; k < tensor.bytes / 8; k++) {
            norm += expected[k] * expected[k];
            if (size_of(expected[k] - found[k]) > worst) worst = size_of(expected[k] - found[k]);
        }
        if (!(norm > 0 && worst <= 1e-9 * __builtin_sqrt(norm)))
            fail_msg("%s: off by %g of %g", tensor.name, worst, __builtin_sqrt(norm));
    }
    an_safetensors_close(&file);
}

static int count_ops(const an_trainer *t, const char *op) {
    int count = 0;
    for (const an_node *n = t->plan->forms[AN_FORM_TRAIN_FIRST]->first; n; n = n->next)
        count += !strcmp(n->op->name, op);
    return count;
}

/* Whole batches, micro-batches and recompute; logits are never stored. */
static void test_formula(void **state) {
    (void)state;
    static const char *const ways[] = {"}\n", "}\nbatch: {global: 4, micro: 1}\n", ", recompute: block}\n"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            char text[4096];
            an_step_metrics metrics;
            an_evaluation evaluation;
            an_step_metrics_init(&metrics, sizeof metrics);
            an_evaluation_init(&evaluation, sizeof evaluation);
            forget("runs");
            snprintf(text, sizeof text, "%s%s", cases[i].config, ways[k]);
            char *first = strstr(text, "batch: {global: 4}\n"), *second = strstr(text, "batch: {global: 4, ");
            if (second) memset(first, '#', 1); /* a comment */
            an_trainer *t = open_run(text);
            double margin, accuracy;
            const double loss = read_loss(cases[i].name, &margin, &accuracy);
            OK(ctx, an_trainer_evaluate(t, &evaluation));
            assert_int_equal(evaluation.targets, 4); /* pairs */
            assert_true(size_of(evaluation.loss - loss) <= 1e-9);
            assert_true(evaluation.prefers && size_of(evaluation.margin - margin) <= 1e-9);
            assert_true(evaluation.counts_right && evaluation.accuracy == accuracy);
            OK(ctx, an_trainer_step(t, &metrics));
            if (!(size_of(metrics.loss - loss) <= 1e-9))
                fail_msg("%s: %.12g, not %.12g", cases[i].name, metrics.loss, loss);
            assert_gradients(t, cases[i].name);
            assert_int_equal(count_ops(t, "matmul_cross_entropy_each"), 2);
            assert_int_equal(count_ops(t, "matmul_cross_entropy"), 1);
            assert_int_equal(count_ops(t, "cross_entropy_diff"), 1); /* that of the rewards */
            an_trainer_destroy(&t);
        }
}

/* A new adapter changes nothing, and the reference rounds where the model does: rewards are 0, and no pair is right. */
static void test_start(void **state) {
    (void)state;
    static const char *const precisions[] = {"f32", "bf16", "f16"};
    for (size_t i = 0; i < 2 * (sizeof precisions / sizeof *precisions); i++) {
        char text[4096];
        an_evaluation evaluation;
        an_evaluation_init(&evaluation, sizeof evaluation);
        forget("runs");
        snprintf(text, sizeof text,
                 LLAMA("rotary_base: 500000, ", "llama") REST("llama") "lora: {targets: " EVERY
                                                                       ", rank: 4, dora: %s}\ntrain: {precision: %s}\n",
                 i % 2 ? "on" : "off", precisions[i / 2]);
        an_trainer *t = open_run(text);
        OK(ctx, an_trainer_evaluate(t, &evaluation));
        assert_true(evaluation.loss == (double)0.693147181F); /* log 2 */
        assert_true(evaluation.counts_right && evaluation.accuracy == 0 && evaluation.margin == 0);
        an_trainer_destroy(&t);
    }
}

/* ---- the same bits ---- */

#define RUN(options, more)                                                                                        \
    "model: {type: llama, layers: 2, heads: 4, kv_heads: 2, width: 16, hidden: 40, context: 28, vocabulary: 24, " \
    "rotary_base: 500000, init: {from: " BASES "llama/model.safetensors}}\n"                                      \
    "data: {train: {" PAIRS("llama") "}}\nrun: {dir: run, steps: 6}\nbatch: {global: 4, leaves: 4}\n"             \
                                     "optimizer: {lr: 1e-2}\nsave: {every: off}\nlora: {targets: [q_proj, "       \
                                     "down_proj], rank: 4, dropout: 0.2}\n"                                       \
                                     "train: {" options "}\n" more

enum { STEPS = 6, GENERATED = 16 };

static void take_steps(an_trainer *trainer, int64_t end) {
    while (an_trainer_next_step(trainer) < end) OK(ctx, an_trainer_step(trainer, NULL));
}

static void hash_whole(const char *config, char *hash) {
    forget("run");
    an_trainer *t = open_run(config);
    take_steps(t, STEPS);
    OK(ctx, an_trainer_state_hash(t, hash));
    an_trainer_destroy(&t);
}

static void test_resume(void **state) {
    (void)state;
    static const char *const ways[] = {RUN("precision: f32", ""), RUN("precision: bf16", ""),
                                       RUN("precision: bf16, recompute: block", ""),
                                       RUN("precision: bf16, recompute: full", "")};
    char whole[AN_HASH_TEXT], first[AN_HASH_TEXT] = "", resumed[AN_HASH_TEXT];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        hash_whole(ways[i], whole);
        if (i == 1) memcpy(first, whole, sizeof first);
        if (i > 1) assert_string_equal(first, whole); /* recompute gives the same bits */
        forget("run");
        an_trainer *t = open_run(ways[i]);
        take_steps(t, 2 + (int64_t)i);
        OK(ctx, an_trainer_save(t, 1));
        an_trainer_destroy(&t);
        t = open_run(ways[i]);
        assert_non_null(an_trainer_resumed(t));
        take_steps(t, STEPS);
        OK(ctx, an_trainer_state_hash(t, resumed));
        assert_string_equal(whole, resumed);
        an_trainer_destroy(&t);
    }
}

static void train_rank(one_rank *r) {
    an_trainer *t = NULL;
    an_status status = an_trainer_open(&t, r->ctx, "run.yaml", NULL);
    while (status == AN_OK && an_trainer_next_step(t) < STEPS) status = an_trainer_step(t, NULL);
    if (status == AN_OK) status = an_trainer_state_hash(t, r->hash);
    rank_failed(r, "training", status);
    an_trainer_destroy(&t);
}

static void test_ranks(void **state) {
    (void)state;
    static const char *const ways[] = {RUN("precision: bf16", "ranks: {shard: none}\n"),
                                       RUN("precision: bf16", "ranks: {shard: full}\n")};
    one_rank ranks[4];
    char whole[AN_HASH_TEXT];
    hash_whole(RUN("precision: bf16", ""), whole);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (int count = 1; count <= 4; count *= 2) {
            forget("run");
            write_text("run.yaml", ways[i]);
            run_ranks(ranks, count, train_rank, NULL, NULL);
            for (int k = 0; k < count; k++) {
                if (*ranks[k].error) fail_msg("%s", ranks[k].error);
                assert_string_equal(ranks[k].hash, whole);
            }
        }
}

/* ---- afterwards ---- */

/* Tokens at random: they follow from the bits of the logits. */
static void generate(an_generator *g, int32_t *tokens) {
    an_sampling_options o;
    an_generated one;
    int64_t count = 1;
    an_sampling_options_init(&o, sizeof o);
    o.temperature = 1;
    o.seed = 3;
    o.max_tokens = GENERATED;
    OK(ctx, an_generator_add(g, (int32_t[]){1, 2, 3}, 3, &o));
    for (int i = 0; i < GENERATED; i++) {
        OK(ctx, an_generator_step(g, &one, &count));
        assert_int_equal(count, 1);
        tokens[i] = one.token;
    }
}

/* A checkpoint generates without a reference, the same as its adapter on the model. */
static void test_generation(void **state) {
    (void)state;
    int32_t tokens[GENERATED], again[GENERATED];
    an_generator *g = NULL;
    an_generator_options options;
    an_generator_options_init(&options, sizeof options);
    forget("run adapter");
    an_trainer *t = open_run(RUN("precision: f32", ""));
    take_steps(t, STEPS);
    OK(ctx, an_trainer_save(t, STEPS));
    an_trainer_destroy(&t);
    OK(ctx, an_generator_open(&g, ctx, "run", &options));
    generate(g, tokens);
    an_generator_destroy(&g);
    an_checkpoint *c = NULL;
    OK(ctx, an_checkpoint_open(&c, ctx, "run"));
    OK(ctx, export_as(c, "adapter", AN_EXPORT_ADAPTER));
    an_checkpoint_close(&c);
    forget("run");
    write_file("t.bin", (unsigned short[64]){0}, 128);
    t = open_run(LLAMA("rotary_base: 500000, ",
                       "llama") "data: {train: {type: tokens, path: t.bin}}\n"
                                "run: {dir: run, steps: 1}\nbatch: {global: 1}\ntrain: {precision: f32}\n"
                                "lora: {targets: [q_proj, down_proj], rank: 4, dropout: 0.2, from: adapter}\n");
    OK(ctx, an_generator_create(&g, t, &options));
    generate(g, again);
    assert_memory_equal(tokens, again, sizeof tokens);
    an_generator_destroy(&g);
    an_trainer_destroy(&t);
}

/* ---- mistakes ---- */

#define DATA "data: {train: {type: preferences, path: p.jsonl, tokenizer: " GOLDEN "llama}}\n"
#define SMALL                                                                                   \
    "model: {type: llama, layers: 1, heads: 2, width: 8, hidden: 16, context: 28}\nrun: {dir: " \
    "r, steps: 1}\n"
#define ADAPTER "lora: {targets: [q_proj]}\n"

static void test_mistakes(void **state) {
    (void)state;
    static const char pair[] = "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n";
    forget("r");
    write_text("p.jsonl", pair);
    write_file("t.bin", (unsigned short[64]){0}, 128);
    refused(SMALL DATA, AN_ERR_ARGUMENT,
            "data of type preferences needs an adapter, because the model is compared with");
    refused(SMALL DATA "lora: {targets: [q_proj], dropout: 0}\ntrain: {loss: {focal: 2}}\n", AN_ERR_UNSUPPORTED,
            "a focal loss is for classes");
    refused(
        "model: {type: llama, layers: 1, heads: 2, width: 8, hidden: 16, context: 8, vocabulary: 24}\nrun: {dir: r, "
        "steps: 1}\ndata: {train: {type: tokens, path: t.bin}}\n" ADAPTER "train: {loss: {beta: 0.2}}\n",
        AN_ERR_ARGUMENT, "train.loss.beta is for data of type preferences, which data.train is not; remove it");
    refused("model: {type: gpt2, layers: 1, heads: 2, width: 8, context: 28}\nrun: {dir: r, steps: 1}\n" DATA
            "lora: {targets: [c_attn]}\n",
            AN_ERR_UNSUPPORTED, "its positions are learned");
    refused(SMALL ADAPTER "data: {train: {type: preferences, path: p.jsonl, tokenizer: " GOLDEN
                          "llama, packing: on}}\n",
            AN_ERR_UNKNOWN, "has no key 'packing'");
    static const struct {
        const char *line, *words;
    } lines[] = {
        {"{\"prompt\": \"a\", \"chosen\": \"b\"}", "in record 2: a pair has 'prompt', 'chosen' and 'rejected'"},
        {"{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": [{\"role\": \"assistant\", \"content\": \"c\"}]}",
         "are all texts, or all lists of messages"},
        {"{\"prompt\": \"a\", \"chosen\": 3, \"rejected\": \"c\"}",
         "byte 74, in record 2: 'prompt', 'chosen' and 'rejected' are texts"},
        {"{\"prompt\": \"a\", \"prompt\": \"b\", \"chosen\": \"b\", \"rejected\": \"c\"}", "appears twice"},
        {"{\"prompt\": [], \"chosen\": [], \"rejected\": []}", "there are no messages"},
        {"{\"prompt\": [{\"role\": \"user\"}], \"chosen\": [], \"rejected\": []}",
         "a message needs a role and a content"},
        {"{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}], \"chosen\": [{\"role\": \"assistant\", \"content\": "
         "\"b\"}], \"rejected\": [{\"role\": \"assistant\", \"content\": \"c\"}]}",
         "template"},
        {"[1]", "record 2"},
        {"{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"", "record 2"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s\n", pair, lines[i].line);
        write_text("p.jsonl", text);
        an_trainer *t = NULL;
        write_text("run.yaml", SMALL DATA ADAPTER);
        const an_status status = an_trainer_open(&t, ctx, "run.yaml", NULL);
        if (status == AN_OK) fail_msg("%s was not refused", lines[i].line);
        if (!strstr(an_last_error(ctx), lines[i].words))
            fail_msg("'%s' is not in: %s", lines[i].words, an_last_error(ctx));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_formula, setup, teardown),
        cmocka_unit_test_setup_teardown(test_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_resume, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_generation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mistakes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
