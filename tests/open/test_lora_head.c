/* Layers that are trained whole beside an adapter: a new classifier of BERT, by itself, or what lora.train says.
 * tests/golden/make-lora makes the numbers of peft. */
#include <stdlib.h>

#include "anneal/checkpoint.h"
#include "anneal/config.h"
#include "anneal/predict.h"
#include "anneal/run.h"
#include "anneal/train.h"
#include "exec/params.h"
#include "formats/safetensors.h"
#include "train/trainer.h"

#include "open/bert_support.h" /* last, as its ctx would be shadowed */
#include "support/export_as.h"

#define BASE GOLDEN "huggingface/bert"
#define PEFT GOLDEN "lora/bert"
#define CONFIG(model, lora)                                                                                    \
    "model: {from: " BASE ", dropout: 0" model "}\nlora: {" lora "}\nbatch: {global: 2}\nsave: {every: off}\n" \
    "data: {train: {type: sentences, path: few.jsonl, tokenizer: tokenizer.json}}\nrun: {dir: runs/run, steps: 6}\n"
#define ADAPTER "targets: [query, value], rank: 2, alpha: 4"

enum { SENTENCES = 2, TOKENS = 8, CLASSES = 5, STEPS = 6 };

static void forget(const char *folders) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folders);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folders */
}

/* ---- what peft computed ---- */

static struct {
    int32_t tokens[SENTENCES][TOKENS], types[SENTENCES][TOKENS], mask[SENTENCES][TOKENS];
    int labels[SENTENCES];
    double loss, logits[SENTENCES][CLASSES];
} expected;

/* The sentences become the data of the run. */
static void read_expected(void) {
    char lines[512];
    size_t at = 0;
    FILE *file = fopen(PEFT "/expected.txt", "r");
    assert_non_null(file);
    /* NOLINTBEGIN(cert-err34-c): what is no number is seen by what follows */
    for (int s = 0; s < SENTENCES; s++)
        for (int i = 0; i < TOKENS; i++) {
            assert_int_equal(fscanf(file, "%d", &expected.tokens[s][i]), 1);
            expected.mask[s][i] = expected.tokens[s][i] > 0;
        }
    for (int s = 0; s < SENTENCES; s++) assert_int_equal(fscanf(file, "%d", &expected.labels[s]), 1);
    assert_int_equal(fscanf(file, "%lf", &expected.loss), 1);
    for (int i = 0; i < SENTENCES * CLASSES; i++)
        assert_int_equal(fscanf(file, "%lf", &expected.logits[i / CLASSES][i % CLASSES]), 1);
    /* NOLINTEND(cert-err34-c) */
    fclose(file);
    for (int s = 0; s < SENTENCES; s++) {
        at += (size_t)snprintf(lines + at, sizeof lines - at, "{\"text\": \"");
        for (int i = 0; i < TOKENS && expected.mask[s][i]; i++)
            at +=
                (size_t)snprintf(lines + at, sizeof lines - at, "%s%c", i ? " " : "", 'a' + expected.tokens[s][i] - 2);
        at += (size_t)snprintf(lines + at, sizeof lines - at, "\", \"label\": %d}\n", expected.labels[s]);
    }
    write_text("few.jsonl", lines);
    write_tokenizer();
    forget("runs");
}

static double size_of(double x) {
    return x < 0 ? -x : x;
}

/* Every gradient within 1e-9 of the norm of its tensor, and nothing else is trained. */
static void assert_gradients(const an_trainer *t) {
    static double wanted[512], found[512];
    static const char prefix[] = "base_model.model.", body[] = "bert.";
    an_safetensors *file = NULL;
    int trained = 0;
    OK(ctx, an_safetensors_open(&file, ctx, PEFT "/gradients.safetensors"));
    for (int64_t i = 0; i < an_params_count(t->params); i++)
        trained += t->params->entries[i].storage == AN_STORAGE_MASTER;
    assert_int_equal(trained, an_safetensors_count(file));
    for (int i = 0; i < trained; i++) {
        an_safetensor tensor;
        OK(ctx, an_safetensors_get(file, i, &tensor));
        assert_true(tensor.bytes <= (int64_t)sizeof wanted);
        OK(ctx, an_safetensors_read(file, &tensor, 0, (size_t)tensor.bytes, wanted));
        const char *own = tensor.name + strlen(prefix);
        if (!strncmp(own, body, strlen(body))) own += strlen(body);
        an_array array = array_of(found, AN_DTYPE_F64, tensor.ndims, tensor.dims);
        OK(ctx, an_params_get(t->params, own, AN_PART_GRADIENT, &array));
        double norm = 0, worst = 0;
        for (int64_t k = 0; k < tensor.bytes / 8; k++) {
            norm += wanted[k] * wanted[k];
            if (size_of(wanted[k] - found[k]) > worst) worst = size_of(wanted[k] - found[k]);
        }
        if (!(norm > 0 && worst <= 1e-9 * __builtin_sqrt(norm))) fail_msg("%s: off by %g of %g", own, worst, norm);
    }
    an_safetensors_close(&file);
}

/* With what the config says and with what the folder says; modules_to_save there also has 'score', which BERT has
 * not. */
static void test_gradients_of_peft(void **state) {
    static const char *const configs[] = {CONFIG(", classes: 5", "from: " PEFT),
                                          CONFIG(", classes: 5", ADAPTER ", from: " PEFT)};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char config[1024];
        an_step_metrics metrics;
        an_step_metrics_init(&metrics, sizeof metrics);
        read_expected();
        snprintf(config, sizeof config, "%strain: {precision: f64, clip_norm: off}\n", configs[i]);
        an_trainer *t = open_run(config);
        OK(ctx, an_trainer_step(t, &metrics));
        if (!(size_of(metrics.loss - expected.loss) <= 1e-9))
            fail_msg("the loss is %.12g, not %.12g", metrics.loss, expected.loss);
        assert_gradients(t);
        an_trainer_destroy(&t);
    }
}

/* ---- what is trained ---- */

static void assert_trained(const char *config, const char *words) {
    char found[1024] = "";
    forget("runs");
    an_trainer *t = open_run(config);
    for (int64_t i = 0; i < an_params_count(t->params); i++) {
        const an_stored *e = &t->params->entries[i];
        if (e->storage != AN_STORAGE_MASTER || strstr(e->name, ".lora_")) continue;
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s ", e->name);
    }
    assert_string_equal(found, words);
    an_trainer_destroy(&t);
}

static void test_what_is_trained(void **state) {
    (void)state;
    read_expected();
    begin_hearing();
    assert_trained(CONFIG(", classes: 5", ADAPTER), "classifier.weight classifier.bias ");
    assert_non_null(strstr(heard, BASE
                           ": has no head of this shape, so these parameters are new and begin with random values, "
                           "and are trained beside the adapter: classifier.weight, classifier.bias\n"));
    write_text("few.jsonl", "{\"text\": \"a b\", \"label\": 0}\n{\"text\": \"c\", \"label\": 2}\n");
    assert_trained(CONFIG("", ADAPTER), "");
    /* a layer is trained whole, whichever of its parameters matches */
    assert_trained(CONFIG("", ADAPTER ", train: [classifier.bias, ^embeddings.LayerNorm]"),
                   "embeddings.LayerNorm.weight embeddings.LayerNorm.bias classifier.weight classifier.bias ");
    /* and has no adapter */
    assert_trained(CONFIG("", "targets: [query, dense], rank: 2, train: [pooler]"),
                   "pooler.dense.weight pooler.dense.bias ");
    refused(CONFIG("", ADAPTER ", train: [head]"), AN_ERR_ARGUMENT,
            "'head', which says what is trained beside the adapter, matches no parameter");
    refused(CONFIG(", classes: 5", "targets: [classifier], rank: 2"), AN_ERR_ARGUMENT,
            "the target 'classifier' matches only 'classifier.weight', which is trained whole");
    refused(CONFIG("", "from: " PEFT ", train: [pooler]"), AN_ERR_ARGUMENT,
            "lora.train is set, but without lora.targets the adapter of lora.from says it");
    /* a model whose head is frozen does not get that of an adapter */
    refused(CONFIG("", ADAPTER ", from: " PEFT), AN_ERR_ARGUMENT,
            "unexpected: base_model.model.classifier.bias, renamed to classifier.bias, [5]");
    refused(CONFIG("", ADAPTER ", train: [classifier, pooler], from: " PEFT), AN_ERR_ARGUMENT,
            "missing: pooler.dense.weight [16, 16]");
}

/* ---- a run ---- */

static void take_steps(an_trainer *trainer, int64_t end) {
    while (an_trainer_next_step(trainer) < end) OK(ctx, an_trainer_step(trainer, NULL));
}

static void test_resume(void **state) {
    static const char *const ways[] = {
        CONFIG(", classes: 5", ADAPTER ", dropout: 0.2") "train: {precision: f32}\n",
        CONFIG(", classes: 5", ADAPTER ", dropout: 0.2") "train: {precision: bf16}\n",
        CONFIG(", classes: 5", ADAPTER ", dropout: 0.2") "train: {precision: bf16, recompute: block}\n"};
    char whole[AN_HASH_TEXT], first[AN_HASH_TEXT] = "", resumed[AN_HASH_TEXT];
    (void)state;
    for (int i = 0; i < 3; i++) {
        read_expected();
        an_trainer *t = open_run(ways[i]);
        take_steps(t, STEPS);
        OK(ctx, an_trainer_state_hash(t, whole));
        an_trainer_destroy(&t);
        if (i == 1) memcpy(first, whole, sizeof first);
        if (i == 2) assert_string_equal(first, whole);
        forget("runs");
        t = open_run(ways[i]);
        take_steps(t, 3);
        OK(ctx, an_trainer_save(t, 1));
        an_trainer_destroy(&t);
        t = open_run(ways[i]);
        assert_int_equal(an_trainer_next_step(t), 3);
        take_steps(t, STEPS);
        OK(ctx, an_trainer_state_hash(t, resumed));
        assert_string_equal(whole, resumed);
        an_trainer_destroy(&t);
    }
}

static void assert_logits(const char *path) {
    float logits[SENTENCES][CLASSES];
    const char *symbol = "tokens";
    const int64_t size = TOKENS;
    an_predictor *p = NULL;
    an_predictor_options o;
    an_predictor_options_init(&o, sizeof o);
    o.max_samples = SENTENCES;
    o.symbol_count = 1;
    o.symbols = &symbol;
    o.sizes = &size;
    OK(ctx, an_predictor_open(&p, ctx, path, &o));
    assert_int_equal(an_predictor_input_elements(p), TOKENS);
    assert_int_equal(an_predictor_output_elements(p), CLASSES);
    OK(ctx,
       an_predictor_run_sentences(p, SENTENCES, expected.tokens[0], expected.types[0], expected.mask[0], logits[0]));
    for (int i = 0; i < SENTENCES * CLASSES; i++) {
        const double found = (double)logits[i / CLASSES][i % CLASSES],
                     wanted = expected.logits[i / CLASSES][i % CLASSES];
        if (!(size_of(found - wanted) <= 2e-6)) fail_msg("%s: logit %d is %g, not %g", path, i, found, wanted);
    }
    /* a sentence alone */
    OK(ctx, an_predictor_run_sentences(p, 1, expected.tokens[1], expected.types[1], expected.mask[1], logits[0]));
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    assert_int_equal(an_predictor_run_tokens(p, 1, expected.tokens[0], logits[0]), AN_ERR_ARGUMENT);
    assert_non_null(strstr(an_last_error(NULL), "an_predictor_run_sentences"));
    an_predictor_destroy(&p);
}

static bool has_text(const char *path, const char *words) {
    static char bytes[1 << 16];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    bytes[fread(bytes, 1, sizeof bytes - 1, file)] = 0;
    fclose(file);
    return strstr(bytes, words) != NULL;
}

/* PEFT finds tensors by their whole names. */
static void assert_same_names(const char *from, const char *to) {
    an_safetensors *a = NULL, *b = NULL;
    an_safetensor tensor, other;
    OK(ctx, an_safetensors_open(&a, ctx, from));
    OK(ctx, an_safetensors_open(&b, ctx, to));
    assert_int_equal(an_safetensors_count(a), an_safetensors_count(b));
    for (int i = 0; i < an_safetensors_count(a); i++) {
        bool found = false;
        OK(ctx, an_safetensors_get(a, i, &tensor));
        for (int k = 0; k < an_safetensors_count(b) && !found; k++) {
            OK(ctx, an_safetensors_get(b, k, &other));
            found = !strcmp(tensor.name, other.name);
        }
        if (!found) fail_msg("%s: has no '%s'", to, tensor.name);
    }
    an_safetensors_close(&a);
    an_safetensors_close(&b);
}

/* The adapter of peft, saved, exported in every way, and read again. */
static void test_exports(void **state) {
    char weights[AN_HASH_TEXT], again[AN_HASH_TEXT];
    an_checkpoint *c = NULL;
    (void)state;
    read_expected();
    forget("adapter merged hf");
    an_trainer *t = open_run(CONFIG(", classes: 5", "from: " PEFT) "train: {precision: f32}\n");
    OK(ctx, an_trainer_weights_hash(t, weights));
    OK(ctx, an_trainer_save(t, 0));
    an_trainer_destroy(&t);
    assert_logits("runs/run");
    OK(ctx, an_checkpoint_open(&c, ctx, "runs/run"));
    OK(ctx, export_as(c, "adapter", AN_EXPORT_ADAPTER));
    OK(ctx, export_as(c, "hf", AN_EXPORT_HUGGINGFACE));
    mkdir("merged", 0777);
    OK(ctx, export_as(c, "merged/model.safetensors", AN_EXPORT_MERGED));
    an_checkpoint_close(&c);
    assert_logits("hf");
    assert_true(has_text("hf/config.json", "\"id2label\": {\"0\": \"LABEL_0\", \"1\": \"LABEL_1\", \"2\": \"LABEL_2\", "
                                           "\"3\": \"LABEL_3\", \"4\": \"LABEL_4\"}"));
    assert_same_names(PEFT "/adapter_model.safetensors", "adapter/adapter_model.safetensors");
    assert_true(has_text("adapter/adapter_config.json", "\"task_type\": \"SEQ_CLS\""));
    assert_true(has_text("adapter/adapter_config.json", "\"modules_to_save\": [\n\"classifier\"\n]"));
    /* the merged file has the names of the file that it came from, and the new head under its own */
    rename("hf/config.json", "merged/config.json");
    assert_logits("merged");
    forget("runs");
    t = open_run(CONFIG(", classes: 5", "from: adapter") "train: {precision: f32}\n");
    OK(ctx, an_trainer_weights_hash(t, again));
    assert_string_equal(weights, again);
    an_trainer_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_of_peft),
        cmocka_unit_test(test_what_is_trained),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_exports),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
