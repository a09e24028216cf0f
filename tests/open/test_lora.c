/* Adapters from configs: loss, gradients and logits of peft, and what cannot be adapted.
 * tests/golden/make-lora makes the folders. */
#include <stdlib.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/config.h"
#include "anneal/predict.h"
#include "anneal/run.h"
#include "anneal/train.h"
#include "exec/params.h"
#include "exec/plan.h"
#include "formats/safetensors.h"
#include "train/trainer.h"

#include "open/init_support.h" /* last, as its ctx would be shadowed */
#include "support/export_as.h"

#define BASES ANNEAL_SOURCE_DIR "/tests/golden/huggingface/"
#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/lora/"
#define REST                                                                                                      \
    "data: {train: {type: tokens, path: tokens.bin}}\nrun: {dir: runs/run, steps: 1}\nbatch: {global: 2}\nsave: " \
    "{every: off}\n"
#define LLAMA(options, from)                                                                                 \
    "model: {type: llama, layers: 2, heads: 4, kv_heads: 2, width: 16, hidden: 40, context: 8, vocabulary: " \
    "24, " options "init: {from: " BASES from "}}\n" REST
#define GPT2                                                                                              \
    "model: {type: gpt2, layers: 2, heads: 4, width: 16, context: 8, vocabulary: 24, init: {from: " BASES \
    "gpt2}}\n" REST
#define EVERY "[q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]"

enum { TOKENS = 16, VOCABULARY = 24 };

static const struct {
    const char *name, *config;
    double low; /* how far peft's own logits in bf16 are from those in f64 */
} cases[] = {
    {"llama",
     LLAMA("rotary_base: 500000, ", "llama") "lora: {targets: " EVERY ", rank: 4, alpha: 8, from: " GOLDEN "llama}\n",
     0.130},
    {"llama-rslora",
     LLAMA("tied: on, ", "llama-tied") "lora: {targets: [q_proj, v_proj], rank: 2, alpha: 3, rslora: on, from: " GOLDEN
                                       "llama-rslora}\n",
     0.141},
    {"gpt2", GPT2 "lora: {targets: [c_attn, c_proj, c_fc], rank: 3, alpha: 6, from: " GOLDEN "gpt2}\n", 0.047},
    {"llama-dora",
     LLAMA("rotary_base: 500000, ", "llama") "lora: {targets: " EVERY ", rank: 4, alpha: 8, dora: on, from: " GOLDEN
                                             "llama-dora}\n",
     0.130},
    {"gpt2-dora",
     GPT2 "lora: {targets: [c_attn, c_proj, c_fc], rank: 3, alpha: 6, rslora: on, dora: on, from: " GOLDEN
          "gpt2-dora}\n",
     0.047},
};

typedef struct {
    int32_t tokens[TOKENS + 1];
    double loss, logits[TOKENS * VOCABULARY];
} expectation;

/* What peft computed; its tokens become the data of the run. */
static void read_expected(const char *name, expectation *e) {
    char path[512];
    unsigned short written[TOKENS + 1];
    snprintf(path, sizeof path, GOLDEN "%s/expected.txt", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    /* NOLINTBEGIN(cert-err34-c): what is no number is seen by what follows */
    for (int i = 0; i <= TOKENS; i++) {
        assert_int_equal(fscanf(file, "%d", &e->tokens[i]), 1);
        written[i] = (unsigned short)e->tokens[i];
    }
    assert_int_equal(fscanf(file, "%lf", &e->loss), 1);
    for (int i = 0; i < TOKENS * VOCABULARY; i++) assert_int_equal(fscanf(file, "%lf", &e->logits[i]), 1);
    /* NOLINTEND(cert-err34-c) */
    fclose(file);
    write_file("tokens.bin", written, sizeof written);
}

static void forget(const char *folder) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

/* A run that begins anew. */
static an_trainer *open_with(const char *config, const char *more) {
    char text[4096];
    forget("runs");
    snprintf(text, sizeof text, "%s%s", config, more);
    return open_run(text);
}

static double size_of(double x) {
    return x < 0 ? -x : x;
}

static double furthest(const float *logits, const double *expected) {
    double worst = 0;
    for (int k = 0; k < TOKENS * VOCABULARY; k++)
        if (size_of((double)logits[k] - expected[k]) > worst) worst = size_of((double)logits[k] - expected[k]);
    return worst;
}

/* Every gradient of the adapter, within 1e-9 of the norm of its tensor. */
static void assert_gradients(const an_trainer *t, const char *name) {
    static double expected[4096], found[4096];
    char path[512];
    an_safetensors *file = NULL;
    snprintf(path, sizeof path, GOLDEN "%s/gradients.safetensors", name);
    OK(ctx, an_safetensors_open(&file, ctx, path));
    assert_true(an_safetensors_count(file) > 0);
    int adapted = 0;
    for (int64_t i = 0; i < an_params_count(t->params); i++)
        adapted += t->params->entries[i].storage == AN_STORAGE_MASTER;
    assert_int_equal(adapted, an_safetensors_count(file)); /* nothing else is trained */
    for (int i = 0; i < an_safetensors_count(file); i++) {
        static const char prefix[] = "base_model.model.", old[] = "transformer.";
        an_safetensor tensor;
        OK(ctx, an_safetensors_get(file, i, &tensor));
        assert_true(tensor.bytes <= (int64_t)sizeof expected);
        OK(ctx, an_safetensors_read(file, &tensor, 0, (size_t)tensor.bytes, expected));
        const char *own = tensor.name + strlen(prefix);
        if (!strncmp(own, old, strlen(old))) own += strlen(old);
        an_array array = {.data = found, .dtype = AN_DTYPE_F64, .ndims = tensor.ndims};
        memcpy(array.dims, tensor.dims, sizeof array.dims);
        array.strides[0] = tensor.ndims == 2 ? tensor.dims[1] : 1;
        array.strides[1] = 1;
        OK(ctx, an_params_get(t->params, own, AN_PART_GRADIENT, &array));
        double norm = 0, worst = 0;
        for (int64_t k = 0; k < tensor.bytes / 8; k++) {
            norm += expected[k] * expected[k];
            if (size_of(expected[k] - found[k]) > worst) worst = size_of(expected[k] - found[k]);
        }
        if (!(norm > 0 && worst <= 1e-9 * __builtin_sqrt(norm))) fail_msg("%s: off by %g of %g", own, worst, norm);
    }
    an_safetensors_close(&file);
}

static void test_gradients_of_peft(void **state) {
    (void)state;
    static expectation e;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_step_metrics metrics;
        an_step_metrics_init(&metrics, sizeof metrics);
        read_expected(cases[i].name, &e);
        begin_hearing();
        an_trainer *t = open_with(cases[i].config, "train: {precision: f64, clip_norm: off}\n");
        assert_null(strstr(heard, "unknown keys"));
        OK(ctx, an_trainer_step(t, &metrics));
        if (!(size_of(metrics.loss - e.loss) <= 1e-9))
            fail_msg("%s: %.12g, not %.12g", cases[i].name, metrics.loss, e.loss);
        assert_gradients(t, cases[i].name);
        an_trainer_destroy(&t);
    }
}

/* adapter_config.json says all that the config leaves out. */
static void test_described_by_the_folder(void **state) {
    (void)state;
    static expectation e;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char config[2048];
        an_step_metrics metrics;
        an_step_metrics_init(&metrics, sizeof metrics);
        const char *lora = strstr(cases[i].config, "lora: {");
        snprintf(config, sizeof config, "%.*slora: {from: " GOLDEN "%s}\n", (int)(lora - cases[i].config),
                 cases[i].config, cases[i].name);
        read_expected(cases[i].name, &e);
        an_trainer *t = open_with(config, "train: {precision: f64, clip_norm: off}\n");
        OK(ctx, an_trainer_step(t, &metrics));
        assert_true(size_of(metrics.loss - e.loss) <= 1e-9);
        assert_gradients(t, cases[i].name);
        an_trainer_destroy(&t);
    }
}

static void test_what_the_folder_does_not_say(void **state) {
    static const struct {
        const char *text, *words;
        an_status status;
    } rows[] = {
        {"{\"r\": 4}", "a/adapter_config.json: has no target_modules", AN_ERR_DAMAGED},
        {"{\"target_modules\": [\"q_proj\"]}", "a/adapter_config.json: has no r, the rank", AN_ERR_DAMAGED},
        {"{\"r\": 4, \"target_modules\": \"all-linear\"}", "target_modules is all-linear; set the targets yourself",
         AN_ERR_UNSUPPORTED},
        {"{\"r\": 4, \"target_modules\": [\"q_proj\"], \"layers_to_transform\": [0]}", "layers_to_transform is set",
         AN_ERR_UNSUPPORTED},
        {"{\"r\": 4, \"target_modules\": [\"q\\\\E\"]}", "which is not the name of a layer", AN_ERR_UNSUPPORTED},
        {"{\"r\": 4, \"target_modules\": [1]}", "not a valid adapter_config.json", AN_ERR_DAMAGED},
        {"{\"r\": 4, \"target_modules\": [\"q_proj\"], \"modules_to_save\": [\"\"]}",
         "modules_to_save has '', which is not the name of a layer", AN_ERR_UNSUPPORTED},
        {"{\"r\": 4, \"target_modules\": [\"q_proj\"], \"modules_to_save\": \"norm\"}",
         "not a valid adapter_config.json", AN_ERR_DAMAGED},
        {"{\"r\": 4, \"target_modules\": [\"proj\"]}", "matches no linear layer", AN_ERR_ARGUMENT},
        {"{\"r\": 4, \"target_modules\": \"(\"}", "is not a valid regular expression", AN_ERR_ARGUMENT},
        {"{\"r\": 99, \"target_modules\": [\"q_proj\"]}", "the rank is 99", AN_ERR_ARGUMENT},
        {"", "not a valid adapter_config.json", AN_ERR_DAMAGED},
    };
    static expectation e;
    (void)state;
    read_expected("llama", &e);
    mkdir("a", 0777);
    forget("runs");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_text("a/adapter_config.json", rows[i].text);
        refused(LLAMA("", "llama-tied") "lora: {from: a}\n", rows[i].status, rows[i].words);
        assert_non_null(strstr(an_last_error(ctx), "run.yaml:"));
    }
    refused(LLAMA("", "llama-tied") "lora: {from: a, rank: 4}\n", AN_ERR_ARGUMENT,
            "lora.rank is set, but without lora.targets the adapter of lora.from says it; remove it, or set "
            "lora.targets too");
}

/* In f32, and in bf16 with the base stored in bf16: what peft's merged model gives. Twice the distance that peft itself
 * has in bf16 is allowed there: few of so small a model's sums have their errors cancel. */
static void test_logits_of_peft(void **state) {
    (void)state;
    static expectation e;
    static float logits[TOKENS * VOCABULARY];
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        const bool low = i % 2;
        an_predictor *p = NULL;
        an_predictor_options options;
        an_predictor_options_init(&options, sizeof options);
        read_expected(cases[i / 2].name, &e);
        an_trainer *t =
            open_with(cases[i / 2].config, low ? "train: {precision: bf16}\n" : "train: {precision: f32}\n");
        options.max_samples = 2;
        OK(ctx, an_predictor_create(&p, t, &options));
        OK(ctx, an_predictor_run_tokens(p, 2, e.tokens, logits));
        const double worst = furthest(logits, e.logits);
        print_message("%s: %.2g\n", cases[i / 2].name, worst);
        if (!(worst <= (low ? 2 * cases[i / 2].low : 2e-5)))
            fail_msg("%s: a logit is off by %g", cases[i / 2].name, worst);
        an_predictor_destroy(&p);
        an_trainer_destroy(&t);
    }
}

/* ---- what is stored ---- */

/* In bf16 the matrices of the base have two bytes an element and nothing else: no gradient, no moments, no f32. */
static void test_frozen_base(void **state) {
    (void)state;
    static expectation e;
    read_expected("llama", &e);
    an_trainer *t = open_with(cases[0].config, "train: {precision: bf16}\n");
    const an_params *p = t->params;
    int64_t frozen = 0, trained = 0;
    for (int64_t i = 0; i < an_params_count(p); i++) {
        const an_stored *entry = &p->entries[i];
        const int64_t pages = (entry->elements + AN_PAGE - 1) / AN_PAGE * AN_PAGE;
        if (entry->storage == AN_STORAGE_MASTER) {
            assert_non_null(strstr(entry->name, ".lora_"));
            assert_int_equal(entry->dtype, AN_DTYPE_F32);
            trained += pages;
        } else {
            assert_int_equal(entry->dtype, entry->ndims == 2 ? AN_DTYPE_BF16 : AN_DTYPE_F32);
            frozen += pages * (entry->ndims == 2 ? 2 : 4);
        }
    }
    assert_int_equal(p->sizes.frozen_bytes, frozen);
    assert_int_equal(p->sizes.trainable_elements, trained);
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    OK(ctx, an_plan_memory_get(t->plan, &memory));
    assert_int_equal(memory.weights, frozen + trained * (4 + 2)); /* masters and low copies of the adapter */
    assert_int_equal(memory.gradients, trained * 4);
    assert_int_equal(memory.optimizer, trained * 8);
    for (const an_node *n = t->plan->forms[AN_FORM_TRAIN_FIRST]->first; n;
         n = n->next) { /* nor is any of it converted in a step */
        const an_result *src = n->op->flags & AN_OP_CONVERTS ? an_node_input(n, 0) : NULL;
        if (src && src->root->storage == AN_STORAGE_FROZEN) fail_msg("%s converts a weight", n->path);
    }
    an_trainer_destroy(&t);
}

/* ---- checkpoints ---- */

enum { STEPS = 6 };
#define RUN(more)                                                                                                \
    "model: {type: llama, layers: 2, heads: 4, kv_heads: 2, width: 16, hidden: 40, context: 8, vocabulary: 24, " \
    "rotary_base: 500000, init: {from: base}}\ndata: {train: {type: tokens, path: many.bin}}\n"                  \
    "run: {dir: run, steps: 6}\nbatch: {global: 4, leaves: 2}\noptimizer: {lr: 1e-2}\nsave: {every: off}\n"      \
    "lora: {targets: [q_proj, down_proj], rank: 4, dropout: 0.2}\n" more

static void copy_base(float change) {
    static char bytes[1 << 16];
    mkdir("base", 0777);
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(i ? BASES "llama/config.json" : BASES "llama/model.safetensors", "rb");
        assert_non_null(file);
        const size_t count = fread(bytes, 1, sizeof bytes, file);
        assert_true(count > 64 && count < sizeof bytes);
        fclose(file);
        float last;
        memcpy(&last, bytes + count - sizeof last, sizeof last);
        last += change;
        if (!i) memcpy(bytes + count - sizeof last, &last, sizeof last);
        write_file(i ? "base/config.json" : "base/model.safetensors", bytes, count);
    }
}

static void begin_run(void) {
    unsigned short tokens[512];
    for (int i = 0; i < 512; i++) tokens[i] = (unsigned short)(i * i / 3 % 24);
    write_file("many.bin", tokens, sizeof tokens);
    copy_base(0);
    forget("run");
}

static void take_steps(an_trainer *trainer, int64_t end) {
    while (an_trainer_next_step(trainer) < end) OK(ctx, an_trainer_step(trainer, NULL));
}

/* A run that is stopped after any step and goes on has the state of one that never was: the base is read again. */
static void test_resume(void **state) {
    (void)state;
    static const char *const ways[] = {RUN("train: {precision: f32}\n"), RUN("train: {precision: bf16}\n"),
                                       RUN("train: {precision: bf16, recompute: block}\n")};
    char whole[AN_HASH_TEXT], first[AN_HASH_TEXT] = "", resumed[AN_HASH_TEXT];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        begin_run();
        an_trainer *t = open_run(ways[i]);
        take_steps(t, STEPS);
        OK(ctx, an_trainer_state_hash(t, whole));
        an_trainer_destroy(&t);
        if (i == 1) memcpy(first, whole, sizeof first);
        if (i == 2) assert_string_equal(first, whole); /* recompute gives the same bits */
        for (int64_t stop = 1; stop < STEPS; stop += 2) {
            begin_run();
            t = open_run(ways[i]);
            take_steps(t, stop);
            OK(ctx, an_trainer_save(t, 1));
            an_trainer_destroy(&t);
            t = open_run(ways[i]);
            assert_non_null(an_trainer_resumed(t));
            assert_int_equal(an_trainer_next_step(t), stop);
            take_steps(t, STEPS);
            OK(ctx, an_trainer_state_hash(t, resumed));
            assert_string_equal(whole, resumed);
            an_trainer_destroy(&t);
        }
    }
}

/* A checkpoint has the adapter, its moments, and no weight of the model; another model under the same name is
 * refused. */
static void test_base_is_named(void **state) {
    (void)state;
    begin_run();
    an_trainer *t = open_run(RUN(""));
    take_steps(t, 2);
    OK(ctx, an_trainer_save(t, 2));
    an_trainer_destroy(&t);
    an_checkpoint *c = NULL;
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    an_checkpoint_tensor tensor;
    an_checkpoint_tensor_init(&tensor, sizeof tensor);
    OK(ctx, an_checkpoint_open(&c, ctx, "run"));
    OK(ctx, an_checkpoint_info_get(c, &info));
    assert_int_equal(info.tensors, 3 * 2 * 2 * 2); /* weights and moments; A and B; two layers of two blocks */
    for (int64_t i = 0; i < info.tensors; i++) {
        OK(ctx, an_checkpoint_tensor_get(c, i, &tensor));
        assert_non_null(strstr(tensor.name, ".lora_"));
    }
    an_checkpoint_close(&c);
    copy_base(0.5F);
    refused(RUN(""), AN_ERR_ARGUMENT, "its adapter was trained on other weights than this trainer has");
    copy_base(0);
    t = open_run(RUN(""));
    assert_int_equal(an_trainer_next_step(t), 2);
    an_trainer_destroy(&t);
    refused(RUN("") "train: {precision: f64}\n", AN_ERR_ARGUMENT, "train.precision");
}

/* ---- exports ---- */

static void copy_file(const char *from, const char *to) {
    static char bytes[1 << 16];
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    const size_t count = fread(bytes, 1, sizeof bytes, file);
    assert_true(count < sizeof bytes);
    fclose(file);
    write_file(to, bytes, count);
}

#define MERGED_LLAMA(options)                                                                                \
    "model: {type: llama, layers: 2, heads: 4, kv_heads: 2, width: 16, hidden: 40, context: 8, vocabulary: " \
    "24, " options "init: {from: merged}}\n" REST
#define MERGED_GPT2 \
    "model: {type: gpt2, layers: 2, heads: 4, width: 16, context: 8, vocabulary: 24, init: {from: merged}}\n" REST

/* An adapter of peft that is saved: a predictor of the checkpoint reads its base, the merged model has the logits of
 * peft's, and what is exported is what was loaded. */
static void test_exports(void **state) {
    (void)state;
    static const char *const bases[] = {"llama", "llama-tied", "gpt2", "llama", "gpt2"};
    static const char *const plain[] = {MERGED_LLAMA("rotary_base: 500000, "), MERGED_LLAMA("tied: on, "), MERGED_GPT2,
                                        MERGED_LLAMA("rotary_base: 500000, "), MERGED_GPT2};
    static expectation e;
    static float logits[TOKENS * VOCABULARY];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[4096], path[512], weights[AN_HASH_TEXT], again[AN_HASH_TEXT];
        an_predictor_options options;
        an_predictor_options_init(&options, sizeof options);
        an_predictor *p = NULL;
        an_checkpoint *c = NULL;
        options.max_samples = 2;
        read_expected(cases[i].name, &e);
        forget("runs merged adapter");
        snprintf(text, sizeof text, "%strain: {precision: f32}\n", cases[i].config);
        an_trainer *t = open_run(text);
        OK(ctx, an_trainer_weights_hash(t, weights));
        OK(ctx, an_trainer_save(t, 0));
        an_trainer_destroy(&t);
        OK(ctx, an_predictor_open(&p, ctx, "runs/run", &options));
        OK(ctx, an_predictor_run_tokens(p, 2, e.tokens, logits));
        assert_true(furthest(logits, e.logits) <= 2e-5);
        an_predictor_destroy(&p);

        OK(ctx, an_checkpoint_open(&c, ctx, "runs/run"));
        OK(ctx, export_as(c, "adapter", AN_EXPORT_ADAPTER));
        mkdir("merged", 0777);
        OK(ctx, export_as(c, "merged/model.safetensors", AN_EXPORT_MERGED));
        FAILS(ctx, export_as(c, "torch", AN_EXPORT_TORCH), AN_ERR_UNSUPPORTED, "export the merged model instead");
        an_checkpoint_close(&c);
        snprintf(path, sizeof path, BASES "%s/config.json", bases[i]);
        copy_file(path, "merged/config.json");
        snprintf(text, sizeof text, "%strain: {precision: f32}\n", plain[i]);
        forget("runs");
        t = open_run(text);
        OK(ctx, an_predictor_create(&p, t, &options));
        OK(ctx, an_predictor_run_tokens(p, 2, e.tokens, logits));
        print_message("%s, merged: %.2g\n", cases[i].name, furthest(logits, e.logits));
        assert_true(furthest(logits, e.logits) <= 2e-5);
        an_predictor_destroy(&p);
        an_trainer_destroy(&t);

        forget("runs");
        char *from = strstr(strcpy(text, cases[i].config), "from: " GOLDEN);
        assert_non_null(from);
        strcpy(from, "from: adapter}\ntrain: {precision: f32}\n");
        t = open_run(text);
        OK(ctx, an_trainer_weights_hash(t, again));
        assert_string_equal(weights, again);
        an_trainer_destroy(&t);
    }
}

/* Names of magnitudes that end in .weight, as PEFT has them in memory and some programs write them. */
static void test_other_names(void **state) {
    (void)state;
    enum { MOST = 64 };
    static char names[MOST][256], data[1 << 16];
    static an_safetensor tensors[MOST];
    static expectation e;
    char hashes[2][AN_HASH_TEXT];
    an_safetensors *file = NULL;
    int64_t bytes = 0;
    int renamed = 0;
    OK(ctx, an_safetensors_open(&file, ctx, GOLDEN "llama-dora/adapter_model.safetensors"));
    const int count = (int)an_safetensors_count(file);
    assert_true(count <= MOST);
    for (int i = 0; i < count; i++) {
        OK(ctx, an_safetensors_get(file, i, &tensors[i]));
        const bool is_magnitude = strstr(tensors[i].name, "_vector") != NULL;
        assert_true(bytes + tensors[i].bytes <= (int64_t)sizeof data);
        OK(ctx, an_safetensors_read(file, &tensors[i], 0, (size_t)tensors[i].bytes, data + bytes));
        snprintf(names[i], sizeof names[i], "%s%s", tensors[i].name, is_magnitude ? ".weight" : "");
        renamed += is_magnitude;
        tensors[i].name = names[i];
        bytes += tensors[i].bytes;
    }
    assert_int_equal(renamed, count / 3);
    mkdir("other", 0777);
    write_tensors("other/adapter_model.safetensors", tensors, (size_t)count, data, (size_t)bytes);
    an_safetensors_close(&file);
    copy_file(GOLDEN "llama-dora/adapter_config.json", "other/adapter_config.json");
    read_expected("llama-dora", &e);
    for (int i = 0; i < 2; i++) {
        an_trainer *t = open_with(LLAMA("rotary_base: 500000, ", "llama"),
                                  i ? "lora: {from: other}\n" : "lora: {from: " GOLDEN "llama-dora}\n");
        OK(ctx, an_trainer_weights_hash(t, hashes[i]));
        an_trainer_destroy(&t);
    }
    assert_string_equal(hashes[0], hashes[1]);
}

/* A base that has changed since is neither merged nor predicted with. */
static void test_another_base(void **state) {
    (void)state;
    an_predictor *p = NULL;
    an_checkpoint *c = NULL;
    begin_run();
    an_trainer *t = open_run(RUN(""));
    OK(ctx, an_trainer_save(t, 0));
    an_trainer_destroy(&t);
    copy_base(0.5F);
    FAILS(ctx, an_predictor_open(&p, ctx, "run", NULL), AN_ERR_ARGUMENT,
          "does not have the weights that the adapter of");
    OK(ctx, an_checkpoint_open(&c, ctx, "run"));
    FAILS(ctx, export_as(c, "m.safetensors", AN_EXPORT_MERGED), AN_ERR_ARGUMENT,
          "does not have the weights that the adapter of");
    assert_int_not_equal(access("m.safetensors", F_OK), 0);
    assert_int_not_equal(access("m.safetensors.new", F_OK), 0);
    an_checkpoint_close(&c);
    forget("base");
    FAILS(ctx, an_predictor_open(&p, ctx, "run", NULL), AN_ERR_FILE, "the model of its adapter cannot be read");
}

/* ---- mistakes ---- */

#define PLAIN LLAMA("rotary_base: 500000, ", "llama")

static void test_mistakes(void **state) {
    (void)state;
    static expectation e;
    read_expected("llama", &e);
    forget("runs");
    refused(PLAIN "lora: {targets: [q_porj]}\n", AN_ERR_ARGUMENT,
            "the target 'q_porj' matches no linear layer; did you mean 'q_proj'?");
    refused(PLAIN "lora: {targets: [layernorm]}\n", AN_ERR_ARGUMENT, "which is not the weight of a linear layer");
    refused(PLAIN "lora: {targets: [embed_tokens]}\n", AN_ERR_ARGUMENT, "which is not the weight of a linear layer");
    refused(PLAIN "lora: {targets: ['(']}\n", AN_ERR_ARGUMENT, "is not a valid regular expression");
    refused(PLAIN "lora: {targets: [k_proj], rank: 9}\n", AN_ERR_ARGUMENT, "choose a lower rank");
    refused(PLAIN "lora: {rank: 4}\n", AN_ERR_ARGUMENT, "lora.rank is set, but lora.targets does not say");
    refused(PLAIN "lora: {targets: [q_proj]}\noptimizer: {groups: [{match: norm, freeze: on}]}\n", AN_ERR_ARGUMENT,
            "already freezes everything except the adapter");
    refused(PLAIN "lora: {targets: [q_proj], rank: 4, from: " GOLDEN "llama-rslora}\n", AN_ERR_ARGUMENT,
            "r is 2, but the rank of the model's adapter is 4");
    refused(PLAIN "lora: {targets: [q_proj], rank: 2, rslora: on, from: " GOLDEN "llama-rslora}\n", AN_ERR_ARGUMENT,
            "lora_alpha is 3, but alpha of the model's adapter is 2");
    refused(PLAIN "lora: {targets: [q_proj], rank: 2, alpha: 3, from: " GOLDEN "llama-rslora}\n", AN_ERR_ARGUMENT,
            "use_rslora is true, but rslora of the model's adapter is off");
    refused(PLAIN "lora: {targets: [q_proj], rank: 2, alpha: 3, rslora: on, from: " GOLDEN "llama-rslora}\n",
            AN_ERR_ARGUMENT, "renamed to model.layers.0.self_attn.v_proj.lora_A.weight, [2, 16]");
    refused(PLAIN "lora: {targets: [q_proj, v_proj, o_proj], rank: 2, alpha: 3, rslora: on, from: " GOLDEN
                  "llama-rslora}\n",
            AN_ERR_ARGUMENT, "missing: model.layers.0.self_attn.o_proj.lora_A.weight");
    refused(PLAIN "lora: {targets: " EVERY ", rank: 4, alpha: 8, from: " GOLDEN "llama-dora}\n", AN_ERR_ARGUMENT,
            "use_dora is true, but dora of the model's adapter is off");
    refused(PLAIN "lora: {targets: " EVERY ", rank: 4, alpha: 8, dora: on, from: " GOLDEN "llama}\n", AN_ERR_ARGUMENT,
            "use_dora is false, but dora of the model's adapter is on");
    refused(PLAIN "lora: {from: " GOLDEN "llama-dora, dora: on}\n", AN_ERR_ARGUMENT,
            "lora.dora is set, but without lora.targets the adapter of lora.from says it");
    refused(PLAIN "lora: {targets: [q_proj], dora: on, dropout: 0.1}\n", AN_ERR_UNSUPPORTED,
            "DoRA with dropout is not supported");
    refused(PLAIN "lora: {targets: [q_proj], from: .}\n", AN_ERR_FILE, "adapter_config.json");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_gradients_of_peft, setup, teardown),
        cmocka_unit_test_setup_teardown(test_described_by_the_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_the_folder_does_not_say, setup, teardown),
        cmocka_unit_test_setup_teardown(test_logits_of_peft, setup, teardown),
        cmocka_unit_test_setup_teardown(test_frozen_base, setup, teardown),
        cmocka_unit_test_setup_teardown(test_resume, setup, teardown),
        cmocka_unit_test_setup_teardown(test_base_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(test_exports, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_base, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mistakes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
