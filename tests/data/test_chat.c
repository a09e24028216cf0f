/* Records for fine-tuning: tokens and targets as transformers gives them (tests/golden/make-finetune), packing,
 * cutting, and what is refused. */
#include "anneal/chat.h"
#include "anneal/models.h"
#include "anneal/text.h"
#include "anneal/train.h"
#include "base/text/json.h"
#include "data/support.h"
#include "data/texts/pack.h"

#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/finetune/"

enum { MOST = 1 << 14, CONTEXT = 512, RECORDS = 11 };

static an_context *ctx;
static an_tokenizer *tokenizer;
static const an_chat_format chatml = {.size = sizeof chatml, .type = AN_CHAT_CHATML};

static an_chat_source source_of(const char *path, int64_t context) {
    an_chat_source s;
    an_chat_source_init(&s, sizeof s);
    s.path = path;
    s.tokenizer = tokenizer;
    s.format = &chatml;
    s.context = context;
    return s;
}

/* ---- golden records ---- */

typedef struct {
    int32_t tokens[CONTEXT], learned[CONTEXT];
    int count;
} expected;

static int read_list(an_json *json, int32_t *to) {
    int count = 0;
    int64_t number;
    assert_true(an_json_array(json));
    while (an_json_element(json)) {
        assert_true(count < CONTEXT && an_json_count(json, &number));
        to[count++] = (int32_t)number;
    }
    return count;
}

static void read_expected(expected *e) {
    static char line[MOST];
    int records = 0;
    FILE *file = fopen(GOLDEN "chat.jsonl", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        an_json json;
        an_json_string key;
        assert_true(records < RECORDS);
        an_json_init(&json, line, strlen(line));
        assert_true(an_json_object(&json));
        while (an_json_member(&json, &key))
            if (!strcmp(key.bytes, "tokens"))
                e[records].count = read_list(&json, e[records].tokens);
            else if (!strcmp(key.bytes, "learned"))
                assert_int_equal(read_list(&json, e[records].learned), e[records].count);
            else
                assert_true(an_json_skip(&json));
        records++;
    }
    fclose(file);
    assert_int_equal(records, RECORDS);
}

static void as_transformers(void **state) {
    static expected records[RECORDS];
    an_chat_source s = source_of(GOLDEN "chat.jsonl", CONTEXT);
    an_dataset *d = NULL;
    (void)state;
    read_expected(records);
    for (int prompts = 0; prompts < 2; prompts++) {
        s.packed = false;
        s.prompts = prompts;
        OK(ctx, an_dataset_create_chat(&d, ctx, &s));
        assert_int_equal(an_dataset_count(d), RECORDS);
        assert_int_equal(an_dataset_field_count(d), 2);
        assert_null(an_dataset_notice(d));
        for (int64_t i = 0; i < RECORDS; i++) {
            int32_t tokens[CONTEXT], targets[CONTEXT];
            const expected *e = &records[i];
            OK(ctx, an_dataset_read(d, 1, &i, (void *[]){tokens, targets}));
            for (int k = 0; k < CONTEXT; k++) {
                const bool in = k + 1 < e->count;
                const int32_t target = in && (prompts || e->learned[k + 1]) ? e->tokens[k + 1] : AN_TARGET_IGNORED;
                if (targets[k] != target || (in && tokens[k] != e->tokens[k]))
                    fail_msg("record %d, place %d: token %d and target %d, expected %d and %d", (int)i + 1, k,
                             tokens[k], targets[k], e->tokens[k], target);
            }
        }
        an_dataset_destroy(&d);
    }
}

/* ---- packing ---- */

/* Every piece is in one sample, no sample has too many, and there are few more samples than needed. */
static void packing_fits(void **state) {
    enum { PIECES = 3000, ROOM = 200 };
    static int32_t lengths[PIECES];
    static bool seen[PIECES];
    int64_t all = 0;
    an_packing p, again;
    (void)state;
    for (int i = 0; i < PIECES; i++)
        all += lengths[i] = 1 + (int32_t)(fabs(noise((uint64_t)i)) * (i % 7 ? 60 : ROOM - 1));
    OK(ctx, an_packing_create(&p, ctx, lengths, PIECES, ROOM));
    OK(ctx, an_packing_create(&again, ctx, lengths, PIECES, ROOM));
    assert_int_equal(p.samples, again.samples);
    assert_memory_equal(p.order, again.order, PIECES * sizeof *p.order);
    assert_int_equal(p.begins[0], 0);
    assert_int_equal(p.begins[p.samples], PIECES);
    for (int64_t s = 0; s < p.samples; s++) {
        int64_t used = 0;
        assert_true(p.begins[s] < p.begins[s + 1]);
        for (int64_t i = p.begins[s]; i < p.begins[s + 1]; i++) {
            assert_false(seen[p.order[i]]);
            seen[p.order[i]] = true;
            used += lengths[p.order[i]];
        }
        assert_true(used <= ROOM);
    }
    print_message("%d samples of %d, at least %d are needed\n", (int)p.samples, ROOM, (int)(all / ROOM));
    assert_true(p.samples <= all / ROOM + all / ROOM / 50 + 1);
    an_packing_destroy(&p);
    an_packing_destroy(&again);
}

/* A sample has its records one after another, each a document. */
static void packed_records(void **state) {
    static expected records[RECORDS];
    const an_chat_source s = source_of(GOLDEN "chat.jsonl", CONTEXT);
    int32_t tokens[CONTEXT], targets[CONTEXT], documents[CONTEXT];
    bool seen[RECORDS] = {false};
    an_dataset *d = NULL;
    (void)state;
    read_expected(records);
    OK(ctx, an_dataset_create_chat(&d, ctx, &s));
    assert_int_equal(an_dataset_field_count(d), 3);
    assert_true(an_dataset_count(d) < 3); /* 11 records */
    for (int64_t i = 0; i < an_dataset_count(d); i++) {
        OK(ctx, an_dataset_read(d, 1, &i, (void *[]){tokens, targets, documents}));
        for (int begin = 0, end; begin < CONTEXT && targets[begin] != AN_TARGET_IGNORED - 1; begin = end) {
            int found = -1;
            for (end = begin; end < CONTEXT && documents[end] == documents[begin];) end++;
            for (int r = 0; r < RECORDS && found < 0; r++)
                if (records[r].count == end - begin + 1 &&
                    !memcmp(records[r].tokens, tokens + begin, (size_t)(end - begin) * sizeof *tokens))
                    found = r;
            if (end == CONTEXT && found < 0) { /* padding */
                for (int k = begin; k < end; k++) assert_int_equal(targets[k], AN_TARGET_IGNORED);
                break;
            }
            assert_true(found >= 0 && !seen[found]);
            seen[found] = true;
            for (int k = begin; k < end; k++)
                assert_int_equal(targets[k], records[found].learned[k - begin + 1]
                                                 ? records[found].tokens[k - begin + 1]
                                                 : AN_TARGET_IGNORED);
        }
    }
    for (int r = 0; r < RECORDS; r++) assert_true(seen[r]);
    an_dataset_destroy(&d);
}

/* The loss of a model is the same, whether records share samples or not: none sees another. */
static double evaluate(bool packed) {
    an_chat_source s = source_of(GOLDEN "chat.jsonl", 256);
    an_llama_options m;
    an_graph *graph = NULL;
    an_dataset *d = NULL;
    an_trainer *trainer = NULL;
    an_trainer_options options;
    an_evaluation evaluation;
    s.packed = packed;
    OK(ctx, an_dataset_create_chat(&d, ctx, &s));
    an_llama_options_init(&m, sizeof m);
    m.layers = 2;
    m.heads = m.kv_heads = 2;
    m.width = 16;
    m.hidden = 24;
    m.context = 256;
    m.vocabulary = 320;
    m.dtype = AN_DTYPE_F64;
    m.documents = packed;
    OK(ctx, an_model_llama(&graph, ctx, &m));
    const an_batch_options batch = {.size = sizeof batch, .global = 4};
    an_trainer_options_init(&options, sizeof options);
    options.batch = &batch;
    an_evaluation_init(&evaluation, sizeof evaluation);
    OK(ctx, an_trainer_create(&trainer, graph, d, d, &options));
    OK(ctx, an_trainer_evaluate(trainer, &evaluation));
    an_trainer_destroy(&trainer);
    an_dataset_destroy(&d);
    an_graph_destroy(&graph);
    return evaluation.loss;
}

static void packing_changes_no_loss(void **state) {
    const double apart = evaluate(false), packed = evaluate(true);
    (void)state;
    if (!(fabs(apart - packed) < 1e-12)) fail_msg("the loss is %.17g, and %.17g with packing", apart, packed);
}

/* ---- cutting ---- */

static void cut_records(void **state) {
    an_chat_source s = source_of("cut.jsonl", 8);
    an_dataset *d = NULL;
    int32_t tokens[8], targets[8];
    const int64_t first = 0;
    (void)state;
    write_text("cut.jsonl", "{\"text\": \"abcdefghijklmnop\"}\n"
                            "{\"prompt\": \"abcdefghijklmnop\", \"completion\": \"q\"}\n"
                            "{\"text\": \"ab\"}\n{\"text\": \"cd\"}\n");
    s.packed = false;
    OK(ctx, an_dataset_create_chat(&d, ctx, &s));
    assert_int_equal(an_dataset_count(d), 3);
    assert_non_null(an_dataset_notice(d));
    assert_non_null(
        strstr(an_dataset_notice(d), "cut.jsonl: of 4 records, 2 (50%) are longer than 8 tokens and were cut, so "));
    assert_non_null(strstr(an_dataset_notice(d), "; 1 have nothing to learn within 8 tokens and were left out"));
    OK(ctx, an_dataset_read(d, 1, &first, (void *[]){tokens, targets}));
    for (int i = 0; i < 8; i++) assert_true(targets[i] >= 0); /* context + 1 tokens are used */
    an_dataset_destroy(&d);
    s.begin = 0.5;
    OK(ctx, an_dataset_create_chat(&d, ctx, &s));
    assert_int_equal(an_dataset_count(d), 2);
    assert_null(an_dataset_notice(d));
    an_dataset_destroy(&d);
}

/* ---- what is refused ---- */

static void refusals(void **state) {
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"{\"text\": 3}\n", "x.jsonl: byte 9, in record 1: 'text' is one text"},
        {"{\"text\": \"a\", \"text\": \"b\"}\n", "in record 1: a member appears twice"},
        {"{\"text\": \"a\"}\n{\"t\": \"a\"}\n",
         "x.jsonl: byte 14, in record 2: a record has 'text', or 'prompt' and 'completion', or 'messages'"},
        {"{\"text\": \"a\", \"prompt\": \"b\", \"completion\": \"c\"}\n", "and only one of these"},
        {"{\"prompt\": \"b\"}\n", "a record with 'prompt' needs 'completion'"},
        {"{\"completion\": \"b\"}\n", "a record with 'prompt' needs 'completion'"},
        {"{\"prompt\": [], \"completion\": \"c\"}\n", "'prompt' is one text; write a conversation as 'messages'"},
        {"{\"messages\": {}}\n", "messages are a list"},
        {"{\"messages\": []}\n", "there are no messages"},
        {"{\"messages\": [\"a\"]}\n", "a message is an object"},
        {"{\"messages\": [{\"role\": \"user\"}]}\n", "a message needs a role and a content"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [1]}]}\n", "the content of a message is one text"},
        {"{\"messages\": [{\"role\": \"tool\", \"content\": \"1\"}]}\n", "message 1: the role is 'tool'"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"\", \"tool_calls\": []}]}\n",
         "tool_calls are not supported"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n", "none of its 1 records has a token to learn"},
        {"[1]\n", "in record 1: "},
        {"{\"text\": \"a\"} x\n", "in record 1: "},
        {"", "the file has no records"},
    };
    an_chat_source s = source_of("x.jsonl", 8);
    an_dataset *d = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_text("x.jsonl", rows[i].text);
        const an_status status = an_dataset_create_chat(&d, ctx, &s);
        if (status == AN_OK || !strstr(an_last_error(ctx), rows[i].words))
            fail_msg("%s: '%s', expected '%s'", rows[i].text, an_last_error(ctx), rows[i].words);
        assert_null(d);
    }
    write_text("x.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n");
    s.format = NULL;
    FAILS(ctx, an_dataset_create_chat(&d, ctx, &s), AN_ERR_PARSE,
          "nothing says how the model writes one; give a template");
    const an_chat_format llama = {.size = sizeof llama, .type = AN_CHAT_LLAMA3};
    s.format = &llama;
    FAILS(ctx, an_dataset_create_chat(&d, ctx, &s), AN_ERR_ARGUMENT,
          "the tokenizer has no token '<|start_header_id|>', which the chat template llama3 needs");
    s.context = 0;
    FAILS(ctx, an_dataset_create_chat(&d, ctx, &s), AN_ERR_ARGUMENT,
          "the context is 0 tokens; it must be from 1 to 2147483646");
    s = source_of("nowhere.jsonl", 8);
    FAILS(ctx, an_dataset_create_chat(&d, ctx, &s), AN_ERR_FILE, "nowhere.jsonl");
}

static int begin(void **state) {
    (void)state;
    return an_context_create(&ctx, NULL) != AN_OK || an_tokenizer_open(&tokenizer, ctx, GOLDEN "bpe") != AN_OK;
}

static int end(void **state) {
    (void)state;
    an_tokenizer_destroy(&tokenizer);
    an_context_destroy(&ctx);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_transformers), cmocka_unit_test(packing_fits),
                                       cmocka_unit_test(packed_records),  cmocka_unit_test(packing_changes_no_loss),
                                       cmocka_unit_test(cut_records),     cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, begin, end);
}
