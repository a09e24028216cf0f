/* BERT for other programs: folders that our own readers give back, with the classes of a run.
 * tests/store/compare-export compares them with transformers. */
#include <stdlib.h>

#include "anneal/checkpoint.h"
#include "anneal/details.h"
#include "anneal/predict.h"
#include "anneal/pretrained.h"
#include "anneal/train.h"
#include "formats/weights.h"

#include "open/bert_support.h" /* last, as its ctx would be shadowed */
#include "support/export_as.h"

enum { TOKENS = 4, SENTENCES = 2, MOST_CLASSES = 16, MOST = 1 << 12 };
#define REST                                                                                                         \
    "data: {train: {type: sentences, path: few.jsonl, tokenizer: tokenizer.json, context: 4}}\nbatch: {global: 2}\n" \
    "run: {dir: run, steps: 2}\ntrain: {precision: f32}\nsave: {every: off}\noptimizer: {lr: 0.1}\n"

static void forget(const char *folders) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folders);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folders */
}

static an_status export_to(const char *from, const char *to) {
    an_checkpoint *c = NULL;
    an_export_options o;
    an_export_options_init(&o, sizeof o);
    forget(to);
    OK(ctx, an_checkpoint_open(&c, ctx, from));
    o.from = strcmp(from, "run") ? NULL : "hub"; /* as the command finds it in the run's config */
    if (access("hub", F_OK) != 0) o.from = NULL;
    o.format = AN_EXPORT_HUGGINGFACE;
    const an_status status = an_checkpoint_export(c, to, &o);
    an_checkpoint_close(&c);
    return status;
}

/* Two sentences, the second with padding. */
static int64_t predict(const char *path, float outputs[SENTENCES * MOST_CLASSES]) {
    static const int32_t tokens[SENTENCES][TOKENS] = {{2, 5, 7, 11}, {3, 4, 0, 0}};
    static const int32_t types[SENTENCES][TOKENS] = {{0, 0, 1, 1}}, mask[SENTENCES][TOKENS] = {{1, 1, 1, 1}, {1, 1}};
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
    const int64_t count = an_predictor_output_elements(p);
    assert_true(count <= MOST_CLASSES);
    OK(ctx, an_predictor_run_sentences(p, SENTENCES, tokens[0], types[0], mask[0], outputs));
    an_predictor_destroy(&p);
    return count;
}

static void assert_same_outputs(const char *from, const char *to) {
    float expected[SENTENCES * MOST_CLASSES], found[SENTENCES * MOST_CLASSES];
    const int64_t count = predict(from, expected);
    assert_int_equal(predict(to, found), count);
    assert_memory_equal(expected, found, (size_t)(SENTENCES * count) * sizeof *found);
}

static bool has_text(const char *path, const char *words) {
    static char bytes[MOST_BYTES];
    read_all(path, bytes);
    return strstr(bytes, words) != NULL;
}

/* Every tensor of `from`, under its name or with another prefix, and no others. */
static void assert_same_tensors(const char *from, const char *to, const char *old, const char *new) {
    static char expected[MOST * 4], found[MOST * 4];
    an_weights a, b;
    an_safetensor tensor, other;
    OK(ctx, an_weights_open_files(&a, ctx, from));
    OK(ctx, an_weights_open_files(&b, ctx, to));
    assert_int_equal(a.count, b.count);
    for (int64_t i = 0; i < a.count; i++) {
        char name[256];
        int64_t at = 0;
        OK(ctx, a.get(&a, i, &tensor));
        const bool changes = *old && !strncmp(tensor.name, old, strlen(old));
        snprintf(name, sizeof name, "%s%s", changes ? new : "", tensor.name + (changes ? strlen(old) : 0));
        for (; at < b.count; at++) {
            OK(ctx, b.get(&b, at, &other));
            if (!strcmp(name, other.name)) break;
        }
        if (at == b.count) fail_msg("%s: has no '%s'", to, name);
        assert_int_equal(tensor.bytes, other.bytes);
        assert_true(tensor.bytes <= (int64_t)sizeof expected);
        OK(ctx, a.read(&a, i, &tensor, 0, tensor.bytes / 4, expected));
        OK(ctx, b.read(&b, at, &other, 0, tensor.bytes / 4, found));
        assert_memory_equal(expected, found, (size_t)tensor.bytes);
    }
    an_weights_close(&a);
    an_weights_close(&b);
}

/* ---- folders ---- */

static void test_folders(void **state) {
    an_checkpoint *c = NULL;
    (void)state;
    make_folder("bert", "bert");
    OK(ctx, export_to("hub", "hf"));
    assert_same_tensors("hub", "hf", "", "");
    assert_same_outputs("hub", "hf");
    assert_true(has_text("hf/config.json", "\"2\": \"LABEL_2\"\n  },"));
    /* BertModel has nothing before its names; heads that it does not have go along */
    make_folder("BertForSequenceClassification", "BertModel");
    OK(ctx, export_to("hub", "hf"));
    assert_same_tensors("hub", "hf", "bert.", "");
    make_sentence_folder("{\"pooling_mode_mean_tokens\": true}");
    OK(ctx, export_to("hub", "hf"));
    assert_same_tensors("hub", "hf", "bert.", "");
    assert_same_outputs("hub", "hf");
    assert_true(has_text("hf/modules.json", "1_Pooling"));
    OK(ctx, an_checkpoint_open(&c, ctx, "hub"));
    FAILS(ctx, export_as(c, "m.gguf", AN_EXPORT_GGUF), AN_ERR_UNSUPPORTED, "bert");
    an_checkpoint_close(&c);
}

/* An embedding has length 1, and does not depend on its batch. */
static void test_embedding(void **state) {
    float rows[SENTENCES * MOST_CLASSES];
    (void)state;
    make_sentence_folder("{\"pooling_mode_mean_tokens\": true}");
    const int64_t count = predict("hub", rows);
    assert_int_equal(count, 16);
    for (int s = 0; s < SENTENCES; s++) {
        double square = 0;
        for (int64_t i = 0; i < count; i++) square += (double)rows[s * count + i] * (double)rows[s * count + i];
        assert_true(square > 1 - 1e-6 && square < 1 + 1e-6);
    }
    assert_true(rows[0] != rows[count]);
}

/* ---- runs ---- */

static const char named[] =
    "{\"text\": \"a b\", \"label\": \"no\"}\n{\"text\": \"b a\", \"label\": \"yes\"}\n"
    "{\"text\": \"c\", \"label\": \"perhaps, \\\"so\\\"\"}\n{\"text\": \"a\", \"label\": \"well\"}\n";
static const char numbered[] = "{\"text\": \"a b\", \"label\": 0}\n{\"text\": \"b a\", \"label\": 1}\n"
                               "{\"text\": \"c\", \"label\": 2}\n{\"text\": \"a\", \"label\": 0}\n";

static void make_run(const char *model, const char *sentences) {
    char config[1024];
    write_tokenizer();
    write_text("few.jsonl", sentences);
    forget("run");
    snprintf(config, sizeof config, "%s%s", model, REST);
    an_trainer *t = open_run(config);
    train(t);
    OK(ctx, an_trainer_save(t, 1));
    an_trainer_destroy(&t);
}

static void test_runs(void **state) {
    (void)state;
    /* a classifier for other classes, whose names go along */
    make_folder("bert", "bert");
    make_run("model: {from: hub}\n", named);
    OK(ctx, export_to("run", "hf"));
    assert_same_outputs("run", "hf");
    assert_true(has_text("hf/config.json", "\"id2label\": {\"0\": \"no\", \"1\": \"perhaps, \\\"so\\\"\", \"2\": "
                                           "\"well\", \"3\": \"yes\"},"));
    assert_true(
        has_text("hf/config.json", "\"label2id\": {\"no\": 0, \"perhaps, \\\"so\\\"\": 1, \"well\": 2, \"yes\": 3},"));
    /* the classes that there were keep their names */
    make_run("model: {from: hub}\n", numbered);
    OK(ctx, export_to("run", "hf"));
    assert_same_outputs("run", "hf");
    assert_true(has_text("hf/config.json", "\"2\": \"LABEL_2\"\n  },"));
    /* a model that was no classifier; what made rows of sentences does not go along */
    make_sentence_folder("{\"pooling_mode_mean_tokens\": true}");
    make_run("model: {from: hub, pooling: pooler}\n", named);
    OK(ctx, export_to("run", "hf"));
    assert_same_outputs("run", "hf");
    assert_true(has_text("hf/config.json", "\"architectures\": [\"BertForSequenceClassification\"],"));
    assert_int_not_equal(access("hf/modules.json", F_OK), 0);
    make_run("model: {from: hub}\n", named);
    FAILS(ctx, export_to("run", "hf"), AN_ERR_UNSUPPORTED,
          "BertForSequenceClassification of transformers has a pooler: train it with model.pooling: pooler");
    /* without a folder */
    forget("hub");
    make_run(
        "model: {type: bert, layers: 1, heads: 2, width: 16, hidden: 24, context: 6, vocabulary: 24, token_types: 2}\n",
        named);
    OK(ctx, export_to("run", "hf"));
    assert_same_outputs("run", "hf");
    assert_true(has_text("hf/config.json", "\"max_position_embeddings\": 6"));
    assert_true(has_text("hf/config.json", "\"BertForSequenceClassification\""));
    assert_true(has_text("hf/config.json", "\"1\": \"perhaps, \\\"so\\\"\""));
}

/* ---- evaluations ---- */

/* Classes are counted, as of other classifiers. */
static void test_classes(void **state) {
    an_trainer *t = NULL;
    an_config *config = NULL;
    an_config_options from;
    an_open_options o;
    an_evaluation e;
    an_config_options_init(&from, sizeof from);
    an_open_options_init(&o, sizeof o);
    an_evaluation_init(&e, sizeof e);
    (void)state;
    make_folder("bert", "bert");
    write_tokenizer();
    write_text("few.jsonl", numbered);
    forget("run");
    write_text("run.yaml",
               "model: {from: hub}\n"
               "data: {train: {type: sentences, path: few.jsonl, tokenizer: tokenizer.json, context: 4}, "
               "eval: {type: sentences, path: few.jsonl, tokenizer: tokenizer.json, context: 4}}\n"
               "batch: {global: 2}\nrun: {dir: run, steps: 2}\ntrain: {precision: f32}\nsave: {every: off}\n");
    from.file = "run.yaml";
    o.details = AN_DETAIL_CLASSES;
    OK(ctx, an_config_create(&config, ctx, &from));
    OK(ctx, an_trainer_open_config(&t, ctx, config, &o));
    OK(ctx, an_trainer_evaluate(t, &e));
    assert_int_equal(an_trainer_class_count(t), 3);
    int64_t sum = 0;
    for (int64_t i = 0; i < 9; i++) {
        int64_t count = 0;
        OK(ctx, an_trainer_confusion(t, i / 3, i % 3, &count));
        sum += count;
    }
    assert_int_equal(sum, 4);
    an_trainer_destroy(&t);
    an_config_destroy(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_classes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
