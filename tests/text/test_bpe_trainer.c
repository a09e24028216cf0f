/* Training byte-level BPE: the merges that a plain search finds, whatever the order of the texts and the number of
 * threads; special tokens; refusals. The comparison with the package tokenizers is in docs/evidence/tokenizers.md. */
#include "anneal/text.h"
#include "base/text/text.h"
#include "support/support.h"

enum { WORDS = 60, MOST = 4096 };

static an_context *ctx;

static void init(an_bpe_options *o, int64_t vocabulary) {
    an_bpe_options_init(o, sizeof *o);
    o->vocabulary = vocabulary;
}

static char *train(an_context *with, const an_bpe_options *o, const char *const *texts, int64_t count,
                   int64_t *tokens) {
    an_bpe_trainer *trainer = NULL;
    size_t lengths[WORDS];
    char *json = NULL;
    for (int64_t i = 0; i < count; i++) lengths[i] = strlen(texts[i]);
    OK(with, an_bpe_trainer_create(&trainer, with, o));
    OK(with, an_bpe_trainer_add(trainer, texts, lengths, count / 2));
    OK(with, an_bpe_trainer_add(trainer, texts + count / 2, lengths + count / 2, count - count / 2));
    OK(with, an_bpe_trainer_run(trainer, &json, tokens));
    an_bpe_trainer_destroy(&trainer);
    return json;
}

/* ---- a plain search, in which a token is its text ---- */

typedef struct {
    char parts[24][32];
    int count;
} word;

static int word_id(const char tokens[][32], int count, const char *text) {
    for (int i = 0; i < count; i++)
        if (!strcmp(tokens[i], text)) return i;
    return -1;
}

/* Ids of letters are in their order, then come merges. */
static int search(word *words, int word_count, int merges, char result[][80]) {
    static char tokens[26 + 200][32];
    int count = 0, made = 0;
    for (; count < 26; count++) snprintf(tokens[count], 32, "%c", 'a' + count);
    while (made < merges) {
        int best = 1, left = -1, right = -1;
        for (int a = 0; a < count; a++)
            for (int b = 0; b < count; b++) {
                int n = 0;
                for (int w = 0; w < word_count; w++)
                    for (int i = 0; i + 1 < words[w].count; i++)
                        n += !strcmp(words[w].parts[i], tokens[a]) && !strcmp(words[w].parts[i + 1], tokens[b]);
                if (n > best) best = n, left = a, right = b;
            }
        if (left < 0) break;
        char joined[64];
        snprintf(joined, sizeof joined, "%s%s", tokens[left], tokens[right]);
        snprintf(result[made++], 80, "%s %s", tokens[left], tokens[right]);
        for (int w = 0; w < word_count; w++)
            for (int i = 0; i + 1 < words[w].count; i++)
                if (!strcmp(words[w].parts[i], tokens[left]) && !strcmp(words[w].parts[i + 1], tokens[right])) {
                    snprintf(words[w].parts[i], 32, "%.31s", joined);
                    memmove(words[w].parts[i + 1], words[w].parts[i + 2],
                            (size_t)(words[w].count - i - 2) * sizeof *words[w].parts);
                    words[w].count--;
                }
        if (word_id(tokens, count, joined) < 0) snprintf(tokens[count++], 32, "%.31s", joined);
    }
    return made;
}

static uint32_t random_state = 1;
static uint32_t draw(uint32_t below) {
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 16) % below;
}

static void as_searched(void **state) {
    static word words[WORDS];
    static char texts[WORDS][24], result[200][80], list[MOST * 4];
    (void)state;
    for (int turn = 0; turn < 20; turn++) {
        const char *pointers[WORDS];
        for (int w = 0; w < WORDS; w++) {
            const uint32_t length = 1 + draw(12), letters = 1 + draw(4);
            words[w].count = (int)length;
            for (uint32_t i = 0; i < length; i++) {
                texts[w][i] = (char)('a' + draw(letters));
                snprintf(words[w].parts[i], 32, "%c", texts[w][i]);
            }
            texts[w][length] = 0;
            pointers[w] = texts[w];
        }
        an_bpe_options o;
        init(&o, 256 + 40);
        int64_t tokens = 0;
        char *json = train(ctx, &o, pointers, WORDS, &tokens);
        const int made = search(words, WORDS, (int)tokens - 256, result);
        an_text expected;
        an_text_init(&expected, ctx);
        for (int i = 0; i < made; i++) an_text_add(&expected, "%s\"%s\"", i ? "," : "", result[i]);
        size_t length = 0; /* the list without white space between its elements */
        bool inside = false;
        for (const char *at = strchr(strstr(json, "\"merges\""), '[') + 1; *at != ']' || inside; at++) {
            if (*at == '"') inside = !inside;
            if (inside || !strchr(" \n", *at)) list[length++] = *at;
        }
        list[length] = 0;
        /* merges of tokens that were there already are no new tokens, so the list may go on */
        if (strncmp(list, expected.bytes, strlen(expected.bytes)) != 0)
            fail_msg("turn %d:\n%s\n%s", turn, list, expected.bytes);
        an_text_destroy(&expected);
        an_string_release(ctx, &json);
    }
}

/* ---- what does not matter ---- */

static void order_and_threads(void **state) {
    static const char *const texts[] = {"the other there then\n", "a bath with them", "", "these 12 other 1234 bathe",
                                        "\xff\xfe the \xc3\xa4rger there"};
    static const char *const turned[] = {"\xff\xfe the \xc3\xa4rger there", "these 12 other 1234 bathe",
                                         "a bath with them", "the other there then\n", ""};
    static const char *const pres[] = {"gpt-2", "smollm", "llama-bpe", "qwen2"};
    (void)state;
    for (size_t p = 0; p < 4; p++) {
        an_context_options chosen;
        an_context *one = NULL;
        an_bpe_options o;
        an_tokenizer *tokenizer = NULL;
        an_encoder *encoder = NULL;
        const int32_t *tokens;
        int64_t count, made = 0, again = 0;
        char back[64];
        size_t length;
        an_context_options_init(&chosen, sizeof chosen);
        chosen.threads = p % 2 ? 1 : 3;
        OK(NULL, an_context_create(&one, &chosen));
        init(&o, 280);
        o.pre = pres[p];
        char *first = train(ctx, &o, texts, 5, &made), *second = train(one, &o, turned, 5, &again);
        assert_string_equal(first, second);
        assert_true(made == again && made > 260 && made <= 280);
        OK(ctx, an_tokenizer_create(&tokenizer, ctx, first, strlen(first), NULL, 0));
        OK(ctx, an_encoder_create(&encoder, tokenizer));
        OK(ctx, an_encoder_run(encoder, "the other b\xc3\xa4th", 14, NULL, &tokens, &count));
        assert_true(count < 10);
        OK(ctx, an_tokenizer_decode(tokenizer, tokens, count, true, back, sizeof back, &length));
        assert_int_equal(length, 14);
        assert_memory_equal(back, "the other b\xc3\xa4th", 14);
        an_encoder_destroy(&encoder);
        an_tokenizer_destroy(&tokenizer);
        an_string_release(ctx, &first);
        an_string_release(one, &second);
        an_context_destroy(&one);
    }
}

/* ---- special tokens ---- */

/* Text that is written like a special token never becomes it, however often it appears. */
static void special(void **state) {
    static const char *const texts[] = {"<|e|> <|e|> <|e|>", "<|e|><|e|>", "<|e|>"}, *const names[] = {"<|e|>",
                                                                                                       "\xc3\xa4 b"};
    an_bpe_options o;
    an_tokenizer *tokenizer = NULL;
    an_encoder *encoder = NULL;
    const int32_t *tokens;
    int64_t count, made = 0;
    an_encode_options options;
    (void)state;
    init(&o, 300);
    o.special = names;
    o.special_count = 2;
    char *json = train(ctx, &o, texts, 3, &made);
    OK(ctx, an_tokenizer_create(&tokenizer, ctx, json, strlen(json), NULL, 0));
    OK(ctx, an_encoder_create(&encoder, tokenizer));
    assert_int_equal(an_tokenizer_id(tokenizer, "<|e|>", 5), 0);
    assert_int_equal(an_tokenizer_id(tokenizer, "\xc3\xa4 b", 4), 1);
    an_encode_options_init(&options, sizeof options);
    OK(ctx, an_encoder_run(encoder, "<|e|>", 5, &options, &tokens, &count));
    assert_true(count == 1 && tokens[0] == 0);
    options.parse = false;
    OK(ctx, an_encoder_run(encoder, "<|e|>", 5, &options, &tokens, &count));
    assert_true(count > 1);
    for (int64_t i = 0; i < count; i++) assert_true(tokens[i] > 1);
    an_encoder_destroy(&encoder);
    an_tokenizer_destroy(&tokenizer);
    an_string_release(ctx, &json);
}

static void refusals(void **state) {
    static const char *const twice[] = {"<a>", "<a>"}, *const empty[] = {""}, *const byte[] = {"a"};
    an_bpe_trainer *trainer = NULL;
    an_bpe_options o;
    (void)state;
    init(&o, 255);
    FAILS(ctx, an_bpe_trainer_create(&trainer, ctx, &o), AN_ERR_ARGUMENT,
          "the vocabulary has 255 tokens, but must have 256");
    init(&o, 300);
    o.minimum = 0;
    FAILS(ctx, an_bpe_trainer_create(&trainer, ctx, &o), AN_ERR_ARGUMENT, "least is 0, but must be 1 or more");
    init(&o, 300);
    o.pre = "other";
    FAILS(ctx, an_bpe_trainer_create(&trainer, ctx, &o), AN_ERR_UNSUPPORTED,
          "the pre-tokenizer 'other' is not supported");
    init(&o, 300);
    o.special = twice;
    o.special_count = 2;
    FAILS(ctx, an_bpe_trainer_create(&trainer, ctx, &o), AN_ERR_ARGUMENT, "the special token '<a>' appears twice");
    o.special = empty;
    o.special_count = 1;
    FAILS(ctx, an_bpe_trainer_create(&trainer, ctx, &o), AN_ERR_ARGUMENT, "special token 1 is NULL, empty");
    o.special = byte;
    FAILS(ctx, an_bpe_trainer_create(&trainer, ctx, &o), AN_ERR_ARGUMENT,
          "the special token 'a' is the token of a byte");
    assert_null(trainer);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_searched), cmocka_unit_test(order_and_threads),
                                       cmocka_unit_test(special), cmocka_unit_test(refusals)};
    if (an_context_create(&ctx, NULL) != AN_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    an_context_destroy(&ctx);
    return failed;
}
