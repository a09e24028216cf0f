/* Pairs of answers: each is what a record of its own would be, but for what is learned; cutting, and what is refused.
 * tests/open/test_dpo.c has crafted lines. */
#include "anneal/chat.h"
#include "anneal/text.h"
#include "data/support.h"

#define BPE ANNEAL_SOURCE_DIR "/tests/golden/finetune/bpe/tokenizer.json"
#define LETTERS ANNEAL_SOURCE_DIR "/tests/golden/dpo/llama/tokenizer.json" /* a token for each letter */

enum { CONTEXT = 256, END = 23 };

static an_context *ctx;
static ledger counted;
static an_tokenizer *tokenizer;
static bool has_template; /* the tokenizer */
static const an_chat_format chatml = {.size = sizeof chatml, .type = AN_CHAT_CHATML};

static void open_tokenizer(const char *path) {
    an_tokenizer_destroy(&tokenizer);
    OK(ctx, an_tokenizer_open(&tokenizer, ctx, path));
    has_template = !strcmp(path, BPE);
}

static an_chat_source source_of(const char *path, int64_t context, bool pairs) {
    an_chat_source s;
    an_chat_source_init(&s, sizeof s);
    s.path = path;
    s.tokenizer = tokenizer;
    s.format = has_template ? &chatml : NULL;
    s.context = context;
    s.pairs = pairs;
    s.packed = pairs;
    return s;
}

typedef struct {
    int32_t tokens[CONTEXT], targets[CONTEXT], documents[CONTEXT], preferred;
} sample;

static an_dataset *open_pairs(const char *text, int64_t context) {
    an_dataset *d = NULL;
    write_text("p.jsonl", text);
    const an_chat_source s = source_of("p.jsonl", context, true);
    OK(ctx, an_dataset_create_chat(&d, ctx, &s));
    return d;
}

static void read_pair(an_dataset *d, int64_t index, sample *s) {
    assert_int_equal(an_dataset_field_count(d), 4);
    OK(ctx, an_dataset_read(d, 1, &index, (void *[]){s->tokens, s->targets, s->documents, &s->preferred}));
    assert_int_equal(s->preferred, 1);
}

/* ---- conversations ---- */

#define SYSTEM "{\"role\": \"system\", \"content\": \"Be kind.\"}, "
#define ASKED "{\"role\": \"user\", \"content\": \"Hello there\"}"
#define SAID ", {\"role\": \"assistant\", \"content\": \"Yes?\"}, {\"role\": \"user\", \"content\": \"Why?\"}"
#define ANSWER(text) "{\"role\": \"assistant\", \"content\": \"" text "\"}"

/* The targets of an answer are those of the whole conversation, without what the assistant has said in the prompt. */
static void compare(const sample *pair, const sample *whole, int document, int *at) {
    int first = 0, length = CONTEXT;
    while (length > 0 && whole->targets[length - 1] == AN_TARGET_IGNORED) length--;
    for (int k = 0; k < length; k++) /* the last turn that is learned */
        if (whole->targets[k] != AN_TARGET_IGNORED && (k == 0 || whole->targets[k - 1] == AN_TARGET_IGNORED)) first = k;
    int k = 0;
    for (; pair->documents[*at] == document; k++, ++*at) {
        const int32_t target = k < first ? AN_TARGET_IGNORED : whole->targets[k];
        if (pair->tokens[*at] != whole->tokens[k] || pair->targets[*at] != target)
            fail_msg("answer %d, place %d: token %d and target %d, expected %d and %d", document, k, pair->tokens[*at],
                     pair->targets[*at], whole->tokens[k], target);
    }
    assert_true(k >= length && first > 0);
}

static void conversations(void **state) {
    static sample pair, whole;
    (void)state;
    open_tokenizer(BPE);
    an_dataset *pairs = open_pairs(
        "{\"rejected\": [" ANSWER("Go away, please") "], \"prompt\": [" SYSTEM ASKED SAID "], \"chosen\": [" ANSWER(
            "Because") "], \"other\": [3]}\n"
                       "{\"prompt\": [" ASKED "], \"chosen\": [" ANSWER("Hi") "], \"rejected\": [" ANSWER("No") "]}\n",
        CONTEXT);
    an_dataset *wholes = NULL;
    write_text("c.jsonl",
               "{\"messages\": [" SYSTEM ASKED SAID
               ", " ANSWER("Because") "]}\n"
                                      "{\"messages\": [" SYSTEM ASKED SAID
                                      ", " ANSWER("Go away, please") "]}\n"
                                                                     "{\"messages\": [" ASKED
                                                                     ", " ANSWER("Hi") "]}\n{\"messages\": [" ASKED
                                                                                       ", " ANSWER("No") "]}\n");
    const an_chat_source s = source_of("c.jsonl", CONTEXT, false);
    OK(ctx, an_dataset_create_chat(&wholes, ctx, &s));
    assert_int_equal(an_dataset_count(pairs), 2);
    assert_null(an_dataset_notice(pairs));
    for (int64_t i = 0; i < 2; i++) {
        int at = 0;
        read_pair(pairs, i, &pair);
        for (int answer = 0; answer < 2; answer++) {
            const int64_t index = 2 * i + answer;
            OK(ctx, an_dataset_read(wholes, 1, &index, (void *[]){whole.tokens, whole.targets}));
            compare(&pair, &whole, answer, &at);
        }
        for (; at < CONTEXT; at++) {
            assert_int_equal(pair.documents[at], 2);
            assert_int_equal(pair.targets[at], AN_TARGET_IGNORED);
        }
    }
    an_dataset_destroy(&pairs);
    an_dataset_destroy(&wholes);
}

/* ---- texts, and what does not fit ---- */

/* Tokens of a document, as letters; targets that count, with '.' for the others and '$' for the end. */
static void spell(const sample *s, int64_t context, int document, char *tokens, char *targets) {
    int count = 0;
    for (int64_t k = 0; k < context; k++) {
        if (s->documents[k] != document) continue;
        tokens[count] = (char)('a' + s->tokens[k]);
        targets[count++] = s->targets[k] == AN_TARGET_IGNORED ? '.'
                           : s->targets[k] == END             ? '$'
                                                              : (char)('a' + s->targets[k]);
    }
    tokens[count] = targets[count] = 0;
}

static void texts(void **state) {
    static const struct {
        int64_t context;
        const char *chosen, *chosen_targets, *rejected, *rejected_targets;
    } cases[] = {
        {12, "abcd", ".cd$", "abefghij", ".efghij$"}, /* both fit */
        {11, "abcd", ".cd$", "abefghi", ".efghij"},   /* the longer one is cut */
        {8, "abcd", ".cd$", "abef", ".efg"},          /* to half of the room */
        {7, "abc", ".cd", "abef", ".efg"},            /* then both are */
        {4, "ab", ".c", "ab", ".e"},
    };
    static sample s;
    char tokens[CONTEXT + 1], targets[CONTEXT + 1];
    (void)state;
    open_tokenizer(LETTERS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_dataset *d =
            open_pairs("{\"prompt\": \"ab\", \"chosen\": \"cd\", \"rejected\": \"efghij\"}\n", cases[i].context);
        assert_int_equal(an_dataset_count(d), 1);
        read_pair(d, 0, &s);
        spell(&s, cases[i].context, 0, tokens, targets);
        assert_string_equal(tokens, cases[i].chosen);
        assert_string_equal(targets, cases[i].chosen_targets);
        spell(&s, cases[i].context, 1, tokens, targets);
        assert_string_equal(tokens, cases[i].rejected);
        assert_string_equal(targets, cases[i].rejected_targets);
        assert_int_equal(an_dataset_notice(d) != NULL, i > 0);
        if (i > 0) assert_non_null(strstr(an_dataset_notice(d), "of 1 records, 1 (100%) are longer than"));
        an_dataset_destroy(&d);
    }
}

static void nothing_left(void **state) {
    static const char line[] = "{\"prompt\": \"abcdefgh\", \"chosen\": \"cd\", \"rejected\": \"efghij\"}\n";
    static const char both[] = "{\"prompt\": \"abcdefgh\", \"chosen\": \"cd\", \"rejected\": \"efghij\"}\n"
                               "{\"prompt\": \"a\", \"chosen\": \"c\", \"rejected\": \"e\"}\n";
    an_dataset *d = NULL;
    (void)state;
    open_tokenizer(LETTERS);
    d = open_pairs(both, 8); /* of the first, neither answer is left */
    assert_int_equal(an_dataset_count(d), 1);
    assert_non_null(strstr(an_dataset_notice(d), "1 have nothing to learn within 8 tokens and were left out"));
    an_dataset_destroy(&d);
    write_text("p.jsonl", line);
    an_chat_source s = source_of("p.jsonl", 8, true);
    FAILS(ctx, an_dataset_create_chat(&d, ctx, &s), AN_ERR_ARGUMENT, "none of its 1 records has a token to learn");
    s.prompts = true;
    FAILS(ctx, an_dataset_create_chat(&d, ctx, &s), AN_ERR_ARGUMENT, "pairs of answers need");
    s.prompts = false;
    s.packed = false;
    FAILS(ctx, an_dataset_create_chat(&d, ctx, &s), AN_ERR_ARGUMENT, "pairs of answers need");
}

static int setup(void **state) {
    (void)state;
    return context_with_ledger(&ctx, &counted, 2) != AN_OK;
}

static int teardown(void **state) {
    (void)state;
    an_tokenizer_destroy(&tokenizer);
    an_context_destroy(&ctx);
    return counted.held != 0 || counted.mismatch;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversations),
        cmocka_unit_test(texts),
        cmocka_unit_test(nothing_left),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
