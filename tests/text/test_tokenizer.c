/* Tokenizers: what is refused and how, parts, streams of characters, long words, texts that are no UTF-8, failing
 * memory. */
#include "anneal/text.h"
#include "base/context.h"
#include "support/support.h"
#include "text/matcher.h"
#include "text/unicode.h"

static an_context *ctx;

#define GOLDEN(name) ANNEAL_SOURCE_DIR "/tests/golden/tokenizers/" name ".json"

static an_tokenizer *opened(const char *path) {
    an_tokenizer *t = NULL;
    OK(ctx, an_tokenizer_open(&t, ctx, path));
    return t;
}

/* ---- scanners ---- */

static uint32_t state_of_random = 1;
static uint32_t random_below(uint32_t limit) {
    state_of_random = state_of_random * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)state_of_random * limit) >> 32);
}

/* Each scanner gives the pieces that its regular expression gives. */
static void test_scanners(void **state) {
    static const char *const patterns[] = {AN_PATTERN_GPT2, AN_PATTERN_LLAMA3, AN_PATTERN_QWEN2};
    static const char *const parts[] = {
        " ",        "  ", "\n",  "\r\n",     "\t", "'",  "'s",       "'RE",          "'\xc5\xbf", "a",           "Zq",
        "\xc3\xa9", "1",  "234", "\xc2\xbd", "!",  "?.", "\xc2\xa0", "\xe1\xa0\x8e", "\xcc\x81",  "\xe4\xb8\x96"};
    char message[256];
    const an_note note = {message, sizeof message};
    an_match_space space;
    (void)state;
    assert_true(an_match_space_make(&space));
    for (int p = 0; p < 3; p++) {
        an_matcher scanner, expression;
        assert_int_equal(an_matcher_compile(&scanner, patterns[p], strlen(patterns[p]), true, note), AN_OK);
        assert_int_equal(an_matcher_compile(&expression, patterns[p], strlen(patterns[p]), false, note), AN_OK);
        assert_true(scanner.scanner != AN_SCANNER_NONE && expression.scanner == AN_SCANNER_NONE);
        for (int turn = 0; turn < 30000; turn++) {
            char text[128] = "";
            for (uint32_t n = 1 + random_below(10); n > 0; n--)
                strcat(text, parts[random_below(sizeof parts / sizeof *parts)]);
            const size_t length = strlen(text);
            for (size_t at = 0, begin, end; at < length; at = end) {
                bool found;
                assert_int_equal(an_matcher_find(&expression, &space, text, length, at, &found, &begin, &end, note),
                                 AN_OK);
                if (!found || begin != at || end != an_scanner_next(scanner.scanner, text, length, at))
                    fail_msg("pattern %d, '%s' from byte %zu: the scanner ends at %zu, the expression at %zu", p, text,
                             at, an_scanner_next(scanner.scanner, text, length, at), end);
            }
        }
        an_matcher_release(&expression);
    }
    an_match_space_release(&space);
}

/* A pattern that would take for ever ends with an error. */
static void test_match_limit(void **state) {
    static const char pattern[] = "(a+)+$x|(?:a|aa)+y",
                      letters[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
    char message[256];
    const an_note note = {message, sizeof message};
    an_match_space space;
    an_matcher m;
    bool found;
    size_t begin, end;
    (void)state;
    assert_true(an_match_space_make(&space));
    assert_int_equal(an_matcher_compile(&m, pattern, sizeof pattern - 1, true, note), AN_OK);
    assert_int_equal(an_matcher_find(&m, &space, letters, sizeof letters - 1, 0, &found, &begin, &end, note),
                     AN_ERR_UNSUPPORTED);
    assert_non_null(strstr(message, "takes too many steps"));
    an_matcher_release(&m);
    an_match_space_release(&space);
}

/* ---- what is refused ---- */

#define MODEL "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [\"a b\"]}"

static void test_refusals(void **state) {
    static const struct {
        const char *json;
        an_status status;
        const char *message;
    } files[] = {
        {"{}", AN_ERR_DAMAGED, "the file has no 'model'"},
        {"[]", AN_ERR_DAMAGED, "an object is expected here"},
        {"{\"model\": {}}", AN_ERR_DAMAGED, "the model has no 'vocab'"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": {}}}", AN_ERR_UNSUPPORTED,
         "the model 'Unigram' is not supported"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 9000000}}}", AN_ERR_DAMAGED,
         "the id 9000000 of a token is not possible"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 0}}}", AN_ERR_DAMAGED,
         "two tokens have the id 0"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]}}", AN_ERR_DAMAGED,
         "merge 1: 'b' is not in the vocabulary"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"ab\"]}}", AN_ERR_DAMAGED,
         "a merge is two texts"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [[\"a\"]]}}", AN_ERR_DAMAGED,
         "a merge has two texts, this has 1"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"dropout\": 0.1}}", AN_ERR_UNSUPPORTED, "dropout of merges"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"end_of_word_suffix\": \"</w>\"}}", AN_ERR_UNSUPPORTED,
         "end_of_word_suffix"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"unk_token\": \"?\"}}", AN_ERR_DAMAGED,
         "unk_token '?' is not in the vocabulary"},
        {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}}}", AN_ERR_DAMAGED,
         "a WordPiece model without unk_token"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"speed\": 1}}", AN_ERR_UNSUPPORTED, "the model has 'speed'"},
        {"{\"colour\": 1, " MODEL "}", AN_ERR_UNSUPPORTED, "the file has 'colour'"},
        {"{\"normalizer\": {\"type\": \"Precompiled\"}, " MODEL "}", AN_ERR_UNSUPPORTED,
         "the normalizer 'Precompiled' is not supported"},
        {"{\"normalizer\": {\"kind\": \"NFC\"}, " MODEL "}", AN_ERR_UNSUPPORTED, "a normalizer has 'kind'"},
        {"{\"normalizer\": {\"content\": \"NFC\"}, " MODEL "}", AN_ERR_DAMAGED, "a normalizer has no type"},
        {"{\"normalizer\": {\"type\": \"NFC\", \"content\": \"x\"}, " MODEL "}", AN_ERR_UNSUPPORTED,
         "the normalizer 'NFC' has 'content'"},
        {"{\"normalizer\": {\"type\": \"Prepend\"}, " MODEL "}", AN_ERR_DAMAGED,
         "the normalizer 'Prepend' has no 'prepend'"},
        {"{\"normalizer\": {\"type\": \"NFC\", \"type\": \"NFC\"}, " MODEL "}", AN_ERR_DAMAGED, "'type' appears twice"},
        {"{\"pre_tokenizer\": {\"type\": \"Metaspace\"}, " MODEL "}", AN_ERR_UNSUPPORTED,
         "the pre-tokenizer 'Metaspace' is not supported"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(a\"}, \"behavior\": "
         "\"Isolated\"}, " MODEL "}",
         AN_ERR_PARSE, "missing closing parenthesis"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\h\"}, \"behavior\": "
         "\"Isolated\"}, " MODEL "}",
         AN_ERR_UNSUPPORTED, "the pattern has '\\h'"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"a{1,2}+\"}, \"behavior\": "
         "\"Isolated\"}, " MODEL "}",
         AN_ERR_UNSUPPORTED, "the pattern has '}+'"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a[b]]\"}, \"behavior\": "
         "\"Isolated\"}, " MODEL "}",
         AN_ERR_UNSUPPORTED, "a class within a class"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \"\"}, \"behavior\": "
         "\"Isolated\"}, " MODEL "}",
         AN_ERR_UNSUPPORTED, "a pattern is empty"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Glob\": \"a\"}, \"behavior\": \"Isolated\"}, " MODEL
         "}",
         AN_ERR_UNSUPPORTED, "patterns of the kind 'Glob'"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \"a\"}, \"behavior\": \"Kept\"}, " MODEL
         "}",
         AN_ERR_UNSUPPORTED, "the behavior 'Kept'"},
        {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"ByteLevel\"}, {\"type\": "
         "\"Digits\"}]}, " MODEL "}",
         AN_ERR_UNSUPPORTED, "a pre-tokenizer after ByteLevel"},
        {"{\"decoder\": {\"type\": \"CTC\"}, " MODEL "}", AN_ERR_UNSUPPORTED, "the decoder 'CTC' is not supported"},
        {"{\"decoder\": {\"type\": \"Strip\", \"content\": \" \", \"start\": 0, \"stop\": 1}, " MODEL "}",
         AN_ERR_UNSUPPORTED, "strips the end of a text"},
        {"{\"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"x\", 99], \"cls\": [\"y\", 0]}, " MODEL "}",
         AN_ERR_DAMAGED, "the id 99, which is no token"},
        {"{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"x\", "
         "\"type_id\": 0}}], \"special_tokens\": {}}, " MODEL "}",
         AN_ERR_DAMAGED, "the special token 'x' of a template is not described"},
        {"{\"added_tokens\": [{\"id\": 1, \"content\": \"a\"}], " MODEL "}", AN_ERR_DAMAGED,
         "the added token 'a' has the id 1, and in the vocabulary 0"},
        {"{\"added_tokens\": [{\"id\": 1}], " MODEL "}", AN_ERR_DAMAGED, "an added token has no content"},
        {"{\"added_tokens\": [{\"id\": 3, \"content\": \"x\", \"weight\": 1}], " MODEL "}", AN_ERR_UNSUPPORTED,
         "an added token has 'weight'"},
        {"{" MODEL "} x", AN_ERR_DAMAGED, "unexpected text after the end"},
        {"{" MODEL ", " MODEL "}", AN_ERR_DAMAGED, "'model' appears twice"},
        {"{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"pre_tokenizer\": {\"type\": \"ByteLevel\"}, " MODEL "}",
         AN_ERR_DAMAGED, "'pre_tokenizer' appears twice"},
        {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"ByteLevel\"}, {\"type\": "
         "\"ByteLevel\"}]}, " MODEL "}",
         AN_ERR_UNSUPPORTED, "a pre-tokenizer after ByteLevel is not supported"},
    };
    const size_t held = an_context_bytes(ctx);
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        an_tokenizer *t = NULL;
        const char *json = files[i].json;
        FAILS(ctx, an_tokenizer_create(&t, ctx, json, strlen(json), NULL, 0), files[i].status, files[i].message);
        assert_true(!strncmp(an_last_error(ctx), "tokenizer.json: ", 16) && !t);
        assert_int_equal(an_context_bytes(ctx), held);
    }
}

/* Every allocation that fails is an error, and leaves nothing behind. */
static void test_failing_memory(void **state) {
    ledger l = {0};
    an_context *own = NULL;
    (void)state;
    assert_int_equal(context_with_ledger(&own, &l, 1), AN_OK);
    const size_t held = l.held;
    const long before = l.calls;
    for (long n = 1;; n++) {
        an_tokenizer *t = NULL;
        l.calls = before;
        l.fail_at = before + n;
        const an_status status = an_tokenizer_open(&t, own, GOLDEN("general"));
        l.fail_at = 0;
        an_tokenizer_destroy(&t);
        assert_int_equal(l.held, held);
        if (status == AN_OK) {
            assert_true(n > 10);
            break;
        }
        assert_int_equal(status, AN_ERR_MEMORY);
    }
    an_context_destroy(&own);
}

/* ---- special tokens and parts ---- */

static void test_config_names_tokens(void **state) {
    static const char json[] = "{\"added_tokens\": [{\"id\": 3, \"content\": \"<s>\", \"special\": true}], " MODEL "}";
    static const char config[] = "{\"bos_token\": {\"content\": \"<s>\", \"lstrip\": false}, \"eos_token\": \"ab\", "
                                 "\"pad_token\": null, \"chat_template\": \"x\"}";
    an_tokenizer *t = NULL;
    an_tokenizer_info info;
    size_t length;
    (void)state;
    an_tokenizer_info_init(&info, sizeof info);
    OK(ctx, an_tokenizer_create(&t, ctx, json, strlen(json), config, strlen(config)));
    OK(ctx, an_tokenizer_info_get(t, &info));
    assert_true(info.bos == 3 && info.eos == 2 && info.pad == -1 && info.unk == -1 && info.count == 4 &&
                !info.lossless);
    assert_string_equal(info.model, "bpe");
    assert_string_equal(an_tokenizer_token(t, 2, &length), "ab");
    assert_true(length == 2 && an_tokenizer_id(t, "ab", 2) == 2 && an_tokenizer_id(t, "abc", 3) == -1);
    assert_true(!an_tokenizer_token(t, 4, NULL) && !an_tokenizer_token(t, -1, NULL));
    assert_true(an_tokenizer_is_special(t, 3) && !an_tokenizer_is_special(t, 2) && !an_tokenizer_is_special(t, 77));
    an_tokenizer_destroy(&t);
    FAILS(ctx, an_tokenizer_create(&t, ctx, json, strlen(json), "{", 1), AN_ERR_DAMAGED,
          "tokenizer_config.json: byte 1");
}

/* The parts of a tokenizer give the tokens of the file that they are from. */
static void test_parts(void **state) {
    static const char text[] = "The dog's 12 dogs<|end|> it's na\xc3\xafve,  x\n";
    static const char *const pairs[][2] = {
        {"gpt-2", GOLDEN("gpt2")}, {"smollm", GOLDEN("smollm")}, {"qwen2", GOLDEN("qwen2")}};
    enum { PLAIN = 418 }; /* tokens before those that the script adds; two of them are control tokens */
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        static const char *tokens[512];
        static int32_t types[512] = {[PLAIN] = AN_TOKEN_NORMAL};
        an_tokenizer *t = opened(pairs[k][1]), *made = NULL;
        an_encoder *one = NULL, *two = NULL;
        const int32_t *ids, *wanted;
        int64_t count, wanted_count;
        an_tokenizer_info info;
        an_tokenizer_info_init(&info, sizeof info);
        an_tokenizer_parts parts;
        an_tokenizer_parts_init(&parts, sizeof parts);
        for (int i = 0; i < PLAIN; i++) {
            tokens[i] = an_tokenizer_token(t, i, NULL);
            types[i] = i < 2 ? AN_TOKEN_CONTROL : AN_TOKEN_NORMAL;
        }
        parts.model = "gpt2";
        parts.pre = pairs[k][0];
        parts.tokens = tokens;
        parts.types = types;
        parts.token_count = PLAIN;
        parts.eos = 1;
        OK(ctx, an_tokenizer_create_parts(&made, ctx, &parts));
        OK(ctx, an_encoder_create(&one, t));
        OK(ctx, an_encoder_create(&two, made));
        /* Without merges, every byte is a token, and special ones are found. */
        assert_int_equal(an_encoder_run(two, text, strlen(text), NULL, &ids, &count), AN_OK);
        assert_int_equal(count, (int64_t)(strlen(text) - strlen("<|end|>")) + 1);
        static const char *const merges[] = {"h e", "1 2"};
        parts.merges = merges;
        parts.merge_count = 2;
        tokens[PLAIN] = "12";
        parts.token_count = PLAIN + 1;
        parts.add_eos = true;
        an_encoder_destroy(&two);
        an_tokenizer_destroy(&made);
        OK(ctx, an_tokenizer_create_parts(&made, ctx, &parts));
        OK(ctx, an_encoder_create(&two, made));
        assert_int_equal(an_encoder_run(two, "12", 2, NULL, &ids, &count), AN_OK);
        assert_int_equal(count, k == 0 ? 2 : 3); /* digits are apart but for GPT-2 */
        assert_int_equal(an_encoder_run(two, "he", 2, NULL, &ids, &count), AN_OK);
        assert_int_equal(an_encoder_run(one, "he", 2, NULL, &wanted, &wanted_count), AN_OK);
        assert_true(wanted_count == 1 && count == 2 && ids[0] == wanted[0] && ids[1] == 1);
        OK(ctx, an_tokenizer_info_get(made, &info));
        assert_int_equal(info.lossless, k != 2); /* not with a normalizer */
        an_encoder_destroy(&two);
        an_tokenizer_destroy(&made);
        parts.pre = "falcon";
        FAILS(ctx, an_tokenizer_create_parts(&made, ctx, &parts), AN_ERR_UNSUPPORTED,
              "the pre-tokenizer 'falcon' is not supported");
        parts.pre = NULL;
        parts.eos = PLAIN + 1;
        FAILS(ctx, an_tokenizer_create_parts(&made, ctx, &parts), AN_ERR_DAMAGED, "the special token 419");
        parts.eos = -1;
        parts.model = "llama";
        FAILS(ctx, an_tokenizer_create_parts(&made, ctx, &parts), AN_ERR_UNSUPPORTED,
              "the tokenizer 'llama' is not supported");
        an_encoder_destroy(&one);
        an_tokenizer_destroy(&t);
    }
}

/* ---- texts ---- */

/* Characters that lie in several tokens come whole; what never becomes one is U+FFFD. */
static void test_stream(void **state) {
    an_tokenizer *t = opened(GOLDEN("gpt2"));
    an_decoder *decoder = NULL;
    const char *text;
    size_t length;
    (void)state;
    OK(ctx, an_decoder_create(&decoder, t, false));
    const char *const bytes[] = {"\xc3\xb0", "\xc5\x81", "\xc4\xba", "\xc4\xa2"}; /* F0 9F 98 80 as their characters */
    for (int i = 0; i < 4; i++) {
        const int32_t id = an_tokenizer_id(t, bytes[i], 2);
        assert_true(id >= 0);
        assert_int_equal(an_decoder_push(decoder, id, &text, &length), AN_OK);
        if (i < 3) assert_int_equal(length, 0);
    }
    assert_string_equal(text, "\xf0\x9f\x98\x80");
    assert_int_equal(an_decoder_push(decoder, an_tokenizer_id(t, bytes[0], 2), &text, &length), AN_OK);
    assert_int_equal(an_decoder_push(decoder, an_tokenizer_id(t, "a", 1), &text, &length), AN_OK);
    assert_string_equal(text, "\xef\xbf\xbd"
                              "a");
    assert_int_equal(an_decoder_push(decoder, an_tokenizer_id(t, bytes[0], 2), &text, &length), AN_OK);
    assert_int_equal(an_decoder_push(decoder, 100000, &text, &length), AN_OK);
    assert_int_equal(length, 0);
    assert_int_equal(an_decoder_end(decoder, &text, &length), AN_OK);
    assert_string_equal(text, "\xef\xbf\xbd");
    an_decoder_destroy(&decoder);
    an_tokenizer_destroy(&t);
}

/* A word of a million letters takes a moment, and is merged as short words are: its tokens decode to it, and repeat. */
static void test_long_word(void **state) {
    enum { LETTERS = 1 << 20 };
    char *word = malloc(LETTERS), *back = malloc(LETTERS);
    an_tokenizer *t = opened(GOLDEN("gpt2"));
    an_encoder *encoder = NULL;
    const int32_t *tokens;
    int64_t count, short_count;
    size_t length;
    (void)state;
    assert_true(word && back);
    for (int i = 0; i < LETTERS; i++) word[i] = "the"[i % 3];
    OK(ctx, an_encoder_create(&encoder, t));
    assert_int_equal(an_encoder_run(encoder, word, 48, NULL, &tokens, &short_count), AN_OK); /* searched */
    const int32_t second = tokens[1];
    assert_int_equal(an_encoder_run(encoder, word, 49, NULL, &tokens, &count), AN_OK); /* the least that has a heap */
    assert_true(count == short_count + 1 && tokens[1] == second);
    assert_int_equal(an_encoder_run(encoder, word, LETTERS, NULL, &tokens, &count), AN_OK);
    assert_true(count >= LETTERS / 48 * short_count && tokens[1] == second);
    OK(ctx, an_tokenizer_decode(t, tokens, count, false, back, LETTERS, &length));
    assert_true(length == LETTERS && !memcmp(back, word, LETTERS));
    an_encoder_destroy(&encoder);
    an_tokenizer_destroy(&t);
    free(word);
    free(back);
}

/* Words of any length against the definition: the pair with the lowest rank, the leftmost of equals, one at a
 * time. The merges are random. */
static void test_merges(void **state) {
    enum { LETTERS = 4, MERGES = 60, TOKENS = LETTERS + MERGES, LONGEST = 300 };
    static char names[TOKENS][512], json[1 << 17];
    int left[MERGES], right[MERGES], tokens = LETTERS, merges = 0;
    an_tokenizer *t = NULL;
    an_encoder *encoder = NULL;
    (void)state;
    for (int i = 0; i < LETTERS; i++) names[i][0] = (char)('a' + i);
    while (merges < MERGES) {
        const int l = (int)random_below((uint32_t)tokens), r = (int)random_below((uint32_t)tokens);
        const size_t left_length = strlen(names[l]), right_length = strlen(names[r]);
        bool is_new = left_length + right_length < 12;
        memcpy(names[tokens], names[l], left_length);
        memcpy(names[tokens] + left_length, names[r], right_length + 1);
        for (int i = 0; i < tokens && is_new; i++) is_new = strcmp(names[i], names[tokens]) != 0;
        if (!is_new) continue;
        left[merges] = l;
        right[merges++] = r;
        tokens++;
    }
    size_t used = (size_t)snprintf(json, sizeof json, "{\"model\": {\"type\": \"BPE\", \"vocab\": {");
    for (int i = 0; i < TOKENS; i++)
        used += (size_t)snprintf(json + used, sizeof json - used, "%s\"%s\": %d", i ? ", " : "", names[i], i);
    used += (size_t)snprintf(json + used, sizeof json - used, "}, \"merges\": [");
    for (int i = 0; i < MERGES; i++)
        used += (size_t)snprintf(json + used, sizeof json - used, "%s\"%s %s\"", i ? ", " : "", names[left[i]],
                                 names[right[i]]);
    used += (size_t)snprintf(json + used, sizeof json - used, "]}}");
    OK(ctx, an_tokenizer_create(&t, ctx, json, used, NULL, 0));
    OK(ctx, an_encoder_create(&encoder, t));
    for (int turn = 0; turn < 400; turn++) {
        char word[LONGEST];
        int wanted[LONGEST], n = 1 + (int)random_below(LONGEST - 1);
        const size_t length = (size_t)n;
        const int32_t *ids;
        int64_t count;
        for (int i = 0; i < n; i++) word[i] = (char)('a' + (wanted[i] = (int)random_below(LETTERS)));
        for (int m; n > 1;) {
            int at = -1;
            for (m = 0; m < MERGES && at < 0; m++)
                for (int i = 0; i + 1 < n && at < 0; i++)
                    if (wanted[i] == left[m] && wanted[i + 1] == right[m]) at = i;
            if (at < 0) break;
            wanted[at] = LETTERS + m - 1;
            memmove(&wanted[at + 1], &wanted[at + 2], (size_t)(n - at - 2) * sizeof *wanted);
            n--;
        }
        assert_int_equal(an_encoder_run(encoder, word, length, NULL, &ids, &count), AN_OK);
        assert_int_equal(count, n);
        for (int i = 0; i < n; i++) assert_int_equal(ids[i], wanted[i]);
    }
    an_encoder_destroy(&encoder);
    an_tokenizer_destroy(&t);
}

/* Bytes that are no characters are encoded as U+FFFD, one for each beginning of a character. */
static void test_invalid_bytes(void **state) {
    static const struct {
        const char *text, *valid;
    } texts[] = {{"a\xff"
                  "b",
                  "a\xef\xbf\xbd"
                  "b"},
                 {"\xe4\xb8", "\xef\xbf\xbd"},
                 {"\xe4\xb8x\xc3", "\xef\xbf\xbdx\xef\xbf\xbd"},
                 {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
                 {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
                 {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}};
    an_tokenizer *t = opened(GOLDEN("gpt2"));
    an_encoder *one = NULL, *two = NULL;
    (void)state;
    OK(ctx, an_encoder_create(&one, t));
    OK(ctx, an_encoder_create(&two, t));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const int32_t *a, *b;
        int64_t n, m;
        assert_int_equal(an_encoder_run(one, texts[i].text, strlen(texts[i].text), NULL, &a, &n), AN_OK);
        assert_int_equal(an_encoder_run(two, texts[i].valid, strlen(texts[i].valid), NULL, &b, &m), AN_OK);
        assert_true(n == m && !memcmp(a, b, (size_t)n * sizeof *a));
    }
    an_encoder_destroy(&one);
    an_encoder_destroy(&two);
    an_tokenizer_destroy(&t);
}

/* Characters on which versions of Unicode differ are what the package takes them for: its NFC knows Unicode 9, its
 * patterns 16, and BERT's rules 8. */
static void test_versions(void **state) {
    static const struct {
        const char *text, *normal;
    } texts[] = {
        {"a\xcc\x81", "\xc3\xa1"},
        {"a\xcd\x85\xcc\xb4", "a\xcc\xb4\xcd\x85"},                 /* classes 240 and 1 */
        {"a\xcd\x85\xf0\x91\xa0\xb9", "a\xcd\x85\xf0\x91\xa0\xb9"}, /* U+11839 has no class */
        {"a\xe0\xa2\x98\xcc\x81", "a\xe0\xa2\x98\xcc\x81"},         /* U+0898: nothing is composed across it */
        {"\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0", "\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0"}, /* parts of U+11938 */
        {"\xf0\x91\xa4\xb8", "\xf0\x91\xa4\xb8"},
        {"a\xcc\x81\xe0\xa2\x98o\xcc\x88\xe0\xa2\x98\xcc\x88", "\xc3\xa1\xe0\xa2\x98\xc3\xb6\xe0\xa2\x98\xcc\x88"}};
    an_tokenizer *t = opened(GOLDEN("qwen2"));
    an_encoder *encoder = NULL;
    (void)state;
    OK(ctx, an_encoder_create(&encoder, t));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char decoded[64];
        const int32_t *ids;
        int64_t count;
        size_t length;
        assert_int_equal(an_encoder_run(encoder, texts[i].text, strlen(texts[i].text), NULL, &ids, &count), AN_OK);
        OK(ctx, an_tokenizer_decode(t, ids, count, true, decoded, sizeof decoded - 1, &length));
        assert_true(length < sizeof decoded);
        decoded[length] = 0;
        assert_string_equal(decoded, texts[i].normal);
    }
    an_encoder_destroy(&encoder);
    an_tokenizer_destroy(&t);
    assert_int_equal(an_character_kind_of(0x13460), AN_CHARACTER_LETTER); /* Unicode 16 */
    assert_int_equal(an_character_kind_of(0x143fa), AN_CHARACTER_LETTER);
    assert_int_equal(an_character_kind_of(0x143fb), AN_CHARACTER_OTHER);
    assert_int_equal(an_character_kind_of(0x10d40), AN_CHARACTER_NUMBER);
    assert_int_equal(an_character_kind_of(0x2ee5d), AN_CHARACTER_LETTER);
    assert_int_equal(an_character_kind_of(0x10ffff), AN_CHARACTER_OTHER);
    assert_true(an_character_is_nonspacing(0x301) && !an_character_is_nonspacing(0x7fd));
    assert_true(an_character_is_nonspacing(0x1734) && !an_character_is_nonspacing(0x1735));
    assert_true(an_character_is_mark(0x301) && an_character_is_mark(0x8d4) && !an_character_is_mark(0x8d3));
    assert_true(an_character_is_punctuation(0x2e42) && !an_character_is_punctuation(0x2e43));
    assert_true(an_character_is_punctuation(0x166d) && !an_character_is_punctuation(0x61d));
    assert_true(an_character_is_other(0x200b) && !an_character_is_other(0x8e2));
    static const uint32_t lower[][2] = {{0x41, 0x61},       {0xc9, 0xe9},       {0x1c89, 0x1c8a},   {0x1c8a, 0x1c8a},
                                        {0xa7dc, 0x19b},    {0x10d4f, 0x10d4f}, {0x10d50, 0x10d70}, {0x10d65, 0x10d85},
                                        {0x10d66, 0x10d66}, {0x16eb8, 0x16ed3}, {0x4e00, 0x4e00}};
    for (size_t i = 0; i < sizeof lower / sizeof *lower; i++) {
        uint32_t to[2];
        assert_int_equal(an_character_lower(lower[i][0], to), 1);
        assert_int_equal(to[0], lower[i][1]);
    }
}

static int setup(void **state) {
    (void)state;
    return an_context_create(&ctx, NULL) != AN_OK;
}

static int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scanners),
                                       cmocka_unit_test(test_match_limit),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_failing_memory),
                                       cmocka_unit_test(test_config_names_tokens),
                                       cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_stream),
                                       cmocka_unit_test(test_long_word),
                                       cmocka_unit_test(test_invalid_bytes),
                                       cmocka_unit_test(test_versions),
                                       cmocka_unit_test(test_merges)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
