/* model.from with BERT: the graph of a folder is that of an_model_bert, whose numbers tests/golden and
 * tests/models compare with transformers; its weights are those of the file; a head that the folder does not
 * have is new, and said to be. */
#include "anneal/pretrained.h"
#include "anneal/train.h"
#include "base/context.h"
#include "interchange/load_model.h"

#include "open/bert_support.h" /* last, as its ctx would be shadowed */

enum { WIDTH = 16, CLASSES = 3, TOKENS = 12 };

/* ---- graphs ---- */

static char *text_of(an_graph *graph) {
    char *text = NULL;
    OK(ctx, an_graph_print(graph, &text));
    an_graph_destroy(&graph);
    return text;
}

static void assert_graph(const an_pretrained_options *options, an_bert_head head, an_bert_pooling pooling,
                         int64_t classes, double dropout) {
    an_pretrained *p = NULL;
    an_graph *theirs = NULL, *ours = NULL;
    an_bert_options o;
    an_bert_options_init(&o, sizeof o);
    o.layers = 2;
    o.heads = 4;
    o.width = WIDTH;
    o.hidden = 40;
    o.context = TOKENS;
    o.vocabulary = VOCABULARY;
    o.head = head;
    o.pooling = pooling;
    o.classes = classes;
    o.dropout = dropout;
    OK(ctx, an_pretrained_open(&p, ctx, "hub"));
    OK(ctx, an_pretrained_graph(p, &theirs, options));
    OK(ctx, an_model_bert(&ours, ctx, &o));
    char *a = text_of(theirs), *b = text_of(ours);
    assert_string_equal(a, b);
    an_string_release(ctx, &a);
    an_string_release(ctx, &b);
    an_pretrained_close(&p);
}

static void test_graphs(void **state) {
    an_pretrained_options o;
    an_pretrained_options_init(&o, sizeof o);
    (void)state;
    make_folder("bert", "bert");
    assert_graph(NULL, AN_BERT_HEAD_CLASSES, AN_BERT_POOLING_POOLER, CLASSES, 0);
    o.classes = 5;
    o.pooling = 1 + AN_BERT_POOLING_FIRST;
    o.dropout = 0.25;
    assert_graph(&o, AN_BERT_HEAD_CLASSES, AN_BERT_POOLING_FIRST, 5, 0.25);
    make_folder("BertForSequenceClassification", "BertModel");
    assert_graph(NULL, AN_BERT_HEAD_NONE, AN_BERT_POOLING_POOLER, 0, 0);
    make_sentence_folder(
        "{\"word_embedding_dimension\": 16, \"pooling_mode_cls_token\": false, \"pooling_mode_mean_tokens\": true}");
    assert_graph(NULL, AN_BERT_HEAD_EMBEDDING, AN_BERT_POOLING_MEAN, 0, 0);
    make_sentence_folder("{\"embedding_dimension\": 16, \"pooling_mode\": \"cls\"}");
    assert_graph(NULL, AN_BERT_HEAD_EMBEDDING, AN_BERT_POOLING_FIRST, 0, 0);
}

/* ---- weights ---- */

static const char sentences[] = "{\"text\": \"a b\", \"label\": 0}\n{\"text\": \"b a\", \"label\": 1}\n"
                                "{\"text\": \"c\", \"label\": 2}\n{\"text\": \"a\", \"label\": 0}\n";

static an_trainer *open_folder(const char *model) {
    char config[1024];
    write_text("few.jsonl", sentences);
    snprintf(config, sizeof config,
             "model: {from: hub%s}\ndata: {train: {type: sentences, path: few.jsonl, tokenizer: tokenizer.json}}\n"
             "batch: {global: 2}\nrun: {steps: 2}\ntrain: {precision: f32}\nsave: {every: off}\n",
             model);
    return open_run(config);
}

static float first_of(an_trainer *t, const char *name, int64_t rows) {
    static float numbers[VOCABULARY * WIDTH];
    const int64_t dims[2] = {rows, WIDTH};
    an_array array = array_of(numbers, AN_DTYPE_F32, 2, dims);
    OK(ctx, an_params_get(an_trainer_params(t), name, AN_PART_WEIGHT, &array));
    return numbers[0];
}

static void test_weights(void **state) {
    char hash[AN_HASH_TEXT], other[AN_HASH_TEXT];
    (void)state;
    write_tokenizer();
    make_folder("bert", "bert");
    begin_hearing();
    an_trainer *t = open_folder("");
    assert_string_equal(heard, ""); /* all of config.json is compared, and nothing is new */
    OK(ctx, an_trainer_weights_hash(t, hash));
    an_trainer_destroy(&t);
    t = open_run("model: {type: bert, layers: 2, heads: 4, width: 16, hidden: 40, context: 12, vocabulary: 24, "
                 "classes: 3, init: {from: hub/model.safetensors}}\n"
                 "data: {train: {type: sentences, path: few.jsonl, tokenizer: tokenizer.json}}\nbatch: {global: "
                 "2}\nrun: {steps: 2}\n"
                 "train: {precision: f32}\nsave: {every: off}\n");
    OK(ctx, an_trainer_weights_hash(t, other));
    const float kept = first_of(t, "classifier.weight", CLASSES);
    assert_string_equal(hash, other);
    an_trainer_destroy(&t);
    /* other classes: a new head */
    begin_hearing();
    t = open_folder(", classes: 5");
    assert_string_equal(heard,
                        "hub: has no head of this shape, so these parameters are new and begin with random values: "
                        "classifier.weight, classifier.bias\n");
    const float fresh = first_of(t, "classifier.weight", 5);
    assert_true(fresh != kept && fresh != 0); /* random, although all other weights were not drawn */
    train(t);
    an_trainer_destroy(&t);
    /* a pooler that the folder has and the model does not */
    begin_hearing();
    t = open_folder(", pooling: mean, dropout: 0");
    assert_string_equal(heard, "");
    assert_true(first_of(t, "classifier.weight", CLASSES) == kept);
    an_trainer_destroy(&t);
    refused("model: {type: bert, layers: 2, heads: 4, width: 16, hidden: 40, context: 12, vocabulary: 24, classes: 5, "
            "init: {from: hub}}\n"
            "data: {train: {type: sentences, path: few.jsonl, tokenizer: tokenizer.json}}\n",
            AN_ERR_ARGUMENT, "shape: classifier.weight [3, 16], in the model [5, 16]");
}

/* The folder says how its encoder pools. */
static void test_sentence_folder(void **state) {
    an_pretrained *p = NULL;
    an_graph *graph = NULL;
    an_params *params = NULL;
    (void)state;
    write_tokenizer();
    make_sentence_folder("{\"pooling_mode_mean_tokens\": true}");
    begin_hearing();
    an_trainer *t = open_folder(", classes: 4");
    assert_string_equal(heard,
                        "hub: has no head of this shape, so these parameters are new and begin with random values: "
                        "classifier.weight, classifier.bias\n");
    train(t);
    an_trainer_destroy(&t);
    /* the classifier and the pooler of its files are not used */
    OK(ctx, an_pretrained_open(&p, ctx, "hub"));
    OK(ctx, an_pretrained_graph(p, &graph, NULL));
    OK(ctx, an_params_create(&params, ctx, graph, NULL));
    OK(ctx, an_weights_load(params, "hub", AN_MODEL_WEIGHTS_AUTO));
    assert_int_equal(an_params_count(params), 3 + 2 + 2 * 16); /* tables, a norm, two blocks */
    an_params_destroy(&params);
    an_graph_destroy(&graph);
    an_pretrained_close(&p);
}

/* ---- refusals ---- */

static void assert_refused(const char *words, const an_pretrained_options *options) {
    an_pretrained *p = NULL;
    an_graph *g = NULL;
    const size_t held = an_context_bytes(ctx);
    an_status status = an_pretrained_open(&p, ctx, "hub");
    if (status == AN_OK) status = an_pretrained_graph(p, &g, options);
    an_pretrained_close(&p);
    assert_null(g);
    assert_true(status != AN_OK);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
    assert_int_equal(an_context_bytes(ctx), held);
}

static void test_refusals(void **state) {
    static const struct {
        const char *old, *new, *words;
    } keys[] = {
        {"\"is_decoder\": false", "\"is_decoder\": true", "is_decoder: true: attention goes in both directions here"},
        {"\"model_type\"", "\"position_embedding_type\": \"relative_key\", \"model_type\"",
         "position_embedding_type: relative_key: only absolute is supported"},
        {"\"hidden_act\": \"gelu\"", "\"hidden_act\": \"relu\"",
         "the activation (hidden_act) is relu, but a model of type bert has gelu here"},
        {"BertForSequenceClassification", "BertForTokenClassification", "architectures: BertForTokenClassification"},
        {"\"type_vocab_size\": 2", "\"type_vocab_size\": 0", "the number of token types (type_vocab_size) is 0"},
        {"\"model_type\"", "\"embedding_size\": 8, \"model_type\"", "embedding_size"},
        {"\"hidden_size\": 16", "\"hidden_size\": 160", "describes a model of"},
        {"\"2\": \"LABEL_2\"", "\"2\": ", "id2label"},
        {"\"0\": \"LABEL_0\",", "", ""}, /* two classes: taken, with a new head */
    };
    static const char *const poolings[][2] = {
        {"{\"pooling_mode_max_tokens\": true}",
         "1_Pooling: pooling_mode_max_tokens: true: only mean and cls are supported"},
        {"{\"pooling_mode_mean_tokens\": true, \"pooling_mode_cls_token\": true}",
         "only one kind of pooling is supported"},
        {"{\"pooling_mode\": \"median\"}", "1_Pooling: pooling_mode: median: only mean and cls are supported"},
        {"{\"pooling_mode_mean_tokens\": 1}", "hub/1_Pooling/config.json: byte"},
        {"[]", "hub/1_Pooling/config.json: byte"},
        {"", "hub/1_Pooling/config.json: byte"},
    };
    an_pretrained_options o;
    an_pretrained_options_init(&o, sizeof o);
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        make_folder(keys[i].old, keys[i].new);
        if (*keys[i].words) assert_refused(keys[i].words, NULL);
    }
    for (size_t i = 0; i < sizeof poolings / sizeof *poolings; i++) {
        make_sentence_folder(poolings[i][0]);
        assert_refused(poolings[i][1], NULL);
    }
    make_sentence_folder("{\"pooling_mode_mean_tokens\": true}");
    write_text("hub/modules.json", "[{\"path\": \"2_Dense\", \"type\": \"sentence_transformers.models.Dense\"}]");
    assert_refused("modules.json: type: sentence_transformers.models.Dense: only Transformer, Pooling and Normalize",
                   NULL);
    write_text("hub/modules.json", "[{\"path\": \"3_Pooling\", \"type\": \"Pooling\"}]");
    assert_refused("modules.json: path: 3_Pooling: the pooling must be in 1_Pooling", NULL);
    write_text("hub/modules.json", "[{\"type\": 1}]");
    assert_refused("hub/modules.json: byte", NULL);
    make_folder("bert", "bert");
    o.documents = true;
    assert_refused("takes sentences, not documents", &o);
}

/* Options of BERT for other families. */
static void test_other_families(void **state) {
    static const char data[] = "data: {train: {type: tokens, path: few.bin}}\n";
    static const struct {
        const char *option, *words;
    } rows[] = {{"classes: 3", "a model of type qwen2 predicts tokens: it has no classes"},
                {"pooling: mean", "a model of type qwen2 predicts tokens: it has no pooling"},
                {"dropout: 0.1", "the dropout is 0.1, but a model of type qwen2 has none here"}};
    const uint16_t tokens[64] = {0};
    char config[512];
    (void)state;
    write_file("few.bin", tokens, sizeof tokens);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(config, sizeof config, "model: {from: " GOLDEN "pretrained/qwen2, context: 8, %s}\n%s", rows[i].option,
                 data);
        refused(config, AN_ERR_ARGUMENT, rows[i].words);
    }
    /* without model.context, samples have at most what the model takes */
    an_trainer_info info;
    an_trainer_info_init(&info, sizeof info);
    snprintf(config, sizeof config,
             "model: {from: " GOLDEN
             "pretrained/gpt2, dropout: 0.5}\n%srun: {steps: 1}\nbatch: {global: 2}\nsave: {every: off}\n",
             data);
    an_trainer *t = open_run(config);
    OK(ctx, an_trainer_info_get(t, &info));
    an_trainer_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs),   cmocka_unit_test(test_weights),        cmocka_unit_test(test_sentence_folder),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_other_families),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
