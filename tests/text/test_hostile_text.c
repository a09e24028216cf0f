/* Files that are crafted to do harm, and the sentence that each gets: it names the file and says where. A
 * tokenizer.json is a good one in which one thing was replaced; lines of chat data follow a good line. */
#include "anneal/chat.h"
#include "anneal/data.h"
#include "anneal/text.h"
#include "base/context.h"
#include "support/support.h"

static an_context *ctx;

/* ---- tokenizer.json ---- */

static const char good[] = "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[{\"id\":3,"
                           "\"content\":\"<|e|>\",\"single_word\":false,"
                           "\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":true}],\"normalizer\":{"
                           "\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":"
                           "\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},\"post_"
                           "processor\":{\"type\":\"TemplateProcessing\","
                           "\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"<|e|>"
                           "\",\"type_id\":0}}],\"pair\":[{\"Sequence\":{"
                           "\"id\":\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],\"special_"
                           "tokens\":{\"<|e|>\":{\"id\":\"<|e|>\",\"ids\":[3],"
                           "\"tokens\":[\"<|e|>\"]}}},\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\","
                           "\"dropout\":null,\"unk_token\":null,"
                           "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_"
                           "fallback\":false,\"vocab\":{\"a\":0,\"b\":1,"
                           "\"ab\":2},\"merges\":[\"a b\"]}}";

static const struct {
    const char *what, *with, *words;
} replaced[] = {
    {"{\"version\"", "", "byte 0: an object is expected here"},
    {"{\"version\"", "[{\"version\"", "byte 0: an object is expected here"},
    {"\"truncation\":null", "\"truncation\":tru", "byte 30: a value is expected here"},
    {"\"padding\":null", "\"padding\":null,,", "byte 50: a string is expected here"},
    {"\"padding\":null",
     "\"padding\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
     "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
     "byte 108: it is nested deeper than 64 levels"},
    {"\"added_tokens\":[", "\"added_tokens\":{\"x\":[", "byte 65: an array is expected here"},
    {"\"id\":3,", "\"id\":-1,", "byte 72: a number without a sign is expected here"},
    {"\"id\":3,", "\"id\":2147483648,", "byte 185: an added token has no content, or no id that is possible"},
    {"\"id\":3,", "\"id\":99999999999999999999,", "byte 72: a number does not fit in 64 bits"},
    {"\"id\":3,", "\"id\":3.5,", "byte 72: a whole number is expected here, without fraction and exponent"},
    {"\"id\":3,", "\"id\":\"3\",", "byte 72: a number is expected here"},
    {"\"id\":3,", "", "byte 169: an added token has no content, or no id that is possible"},
    {"\"content\":\"<|e|>\"", "\"content\":7", "byte 84: a string is expected here"},
    {"\"content\":\"<|e|>\"", "\"content\":\"\"", "byte 171: an added token has no content, or no id that is possible"},
    {"\"content\":\"<|e|>\"", "\"content\":\"\\u0000\"", "byte 85: a string has the character U+0000"},
    {"\"content\":\"<|e|>\"", "\"content\":\"\\ud800\"", "byte 85: this escape is half of a surrogate pair"},
    {"\"content\":\"<|e|>\"",
     "\"content\":\"\xff"
     "\"",
     "byte 85: a string is not valid UTF-8"},
    {"\"special\":true}", "\"special\":1}", "byte 171: true or false is expected here"},
    {"\"special\":true}", "\"special\":true},{\"id\":3,\"content\":\"x\"}", "two tokens have the id 3"},
    {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":{\"type\":\"Precompiled\"}",
     "byte 213: the normalizer 'Precompiled' is not supported"},
    {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":{\"type\":7}", "byte 199: a string is expected here"},
    {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":{}", "byte 193: a normalizer has no type"},
    {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":\"NFC\"", "byte 191: an object is expected here"},
    {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":{\"type\":\"Sequence\"}",
     "byte 210: the normalizer 'Sequence' has no 'normalizers'"},
    {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{}]}",
     "byte 227: a normalizer has no type"},
    {"\"normalizer\":{\"type\":\"NFC\"}",
     "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(\"},\"content\":\"\"}",
     "byte 246: the pattern '('"},
    {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{},\"content\":\"\"}",
     "byte 221: a pattern is one String or one Regex"},
    {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":3}",
     "byte 228: true or false is expected here"},
    {"\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":{\"type\":\"Prepend\"}",
     "byte 209: the normalizer 'Prepend' has no 'prepend'"},
    {"\"pre_tokenizer\":{\"type\":\"ByteLevel\"", "\"pre_tokenizer\":{\"type\":\"Metaspace\"",
     "byte 304: the pre-tokenizer 'Metaspace' is not supported"},
    {"\"pre_tokenizer\":{\"type\":\"ByteLevel\"",
     "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[\"},"
     "\"behavior\":\"Isolated\",\"invert\":false}]",
     "byte 335: the pattern '['"},
    {"\"pre_tokenizer\":{\"type\":\"ByteLevel\"",
     "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Sideways\",\"invert\":false",
     "byte 283: the behavior 'Sideways' is not supported"},
    {"\"pre_tokenizer\":{\"type\":\"ByteLevel\"", "\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\"",
     "byte 322: the pre-tokenizer 'Split' has no 'pattern'"},
    {"\"pre_tokenizer\":{\"type\":\"ByteLevel\"",
     "\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":\"yes\"",
     "byte 259: true or false is expected here"},
    {"\"pre_tokenizer\":{\"type\":\"ByteLevel\"", "\"pre_tokenizer\":[\"ByteLevel\"",
     "byte 222: an object is expected here"},
    {"\"use_regex\":true", "\"use_regex\":\"true\"", "byte 299: true or false is expected here"},
    {"\"use_regex\":true", "\"use_regex\":true,\"shape\":1",
     "byte 312: a pre-tokenizer has 'shape', which is not supported"},
    {"\"type\":\"TemplateProcessing\"", "\"type\":\"Other\"", "byte 581: the post-processor 'Other' is not supported"},
    {"\"ids\":[3]", "\"ids\":[4]", "the post-processor has the id 4, which is no token"},
    {"\"ids\":[3]", "\"ids\":[-3]", "byte 570: a number without a sign is expected here"},
    {"\"ids\":[3]", "\"ids\":3", "byte 569: an array is expected here"},
    {"\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\"",
     "\"Sequence\":{\"id\":\"C\",\"type_id\":0}},{\"SpecialToken\"",
     "byte 395: a template has the text 'C', but texts are A and B"},
    {"{\"SpecialToken\":{\"id\":\"<|e|>\"", "{\"SpecialToken\":{\"id\":\"<|f|>\"",
     "byte 594: the special token '<|f|>' of a template is not described"},
    {"\"single\":[{", "\"single\":[{\"Other\":{}},{", "byte 370: a template has 'Other', which is not supported"},
    {"\"special_tokens\":{\"<|e|>\"", "\"special_tokens\":{\"<|g|>\"",
     "byte 594: the special token '<|e|>' of a template is not described"},
    {"\"decoder\":{\"type\":\"ByteLevel\"}", "\"decoder\":{\"type\":\"Metaspace\"}",
     "byte 625: the decoder 'Metaspace' is not supported"},
    {"\"decoder\":{\"type\":\"ByteLevel\"}", "\"decoder\":7", "byte 605: an object is expected here"},
    {"\"type\":\"BPE\"", "\"type\":\"Unigram\"",
     "byte 828: the model 'Unigram' is not supported: BPE and WordPiece are"},
    {"\"type\":\"BPE\"", "\"type\":null", "byte 642: a string is expected here"},
    {"\"dropout\":null", "\"dropout\":0.5", "byte 661: dropout of merges is not supported"},
    {"\"dropout\":null", "\"dropout\":\"0\"", "byte 658: a number is expected here"},
    {"\"unk_token\":null", "\"unk_token\":\"zz\"", "unk_token 'zz' is not in the vocabulary"},
    {"\"unk_token\":null", "\"unk_token\":{}", "byte 675: a string is expected here"},
    {"\"continuing_subword_prefix\":null", "\"continuing_subword_prefix\":\"##\"",
     "byte 824: continuing_subword_prefix of BPE is not supported"},
    {"\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"</w>\"", "byte 740: end_of_word_suffix is not supported"},
    {"\"fuse_unk\":false", "\"fuse_unk\":0", "byte 750: true or false is expected here"},
    {"\"byte_fallback\":false", "\"byte_fallback\":null,\"later\":1", "byte 772: true or false is expected here"},
    {"\"vocab\":{", "\"vocab\":[\"a\"],\"x\":{", "byte 786: an object is expected here"},
    {"\"a\":0", "\"a\":-1", "byte 791: a number without a sign is expected here"},
    {"\"a\":0", "\"a\":1e3", "byte 791: a whole number is expected here, without fraction and exponent"},
    {"\"a\":0", "\"a\":2000000000", "byte 801: the id 2000000000 of a token is not possible in a file of this size"},
    {"\"a\":0", "\"a\":1", "byte 798: two tokens have the id 1"},
    {"\"a\":0", "\"a\":0,\"a\":4", "the token 'a' appears twice, with the ids 0 and 4"},
    {"\"a\":0", "\"\\u0000\":0", "byte 788: a string has the character U+0000"},
    {"\"a\":0",
     "\"\x80"
     "\":0",
     "byte 788: a string is not valid UTF-8"},
    {"\"a\":0", "\"a\":null", "byte 791: a number is expected here"},
    {"\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},", "", "byte 795: the model has no 'vocab'"},
    {"\"merges\":[\"a b\"]", "\"merges\":[\"ab\"]", "byte 821: a merge is two texts with a space between"},
    {"\"merges\":[\"a b\"]", "\"merges\":[\"a c\"]", "merge 1: 'c' is not in the vocabulary"},
    {"\"merges\":[\"a b\"]", "\"merges\":[\"b a\"]", "merge 1: 'ba' is not in the vocabulary"},
    {"\"merges\":[\"a b\"]", "\"merges\":[[\"a\"]]", "byte 822: a merge has two texts, this has 1"},
    {"\"merges\":[\"a b\"]", "\"merges\":[[\"a\",\"b\",\"b\"]]", "byte 830: a merge has two texts, this has 3"},
    {"\"merges\":[\"a b\"]", "\"merges\":[3]", "byte 817: an array is expected here"},
    {"\"merges\":[\"a b\"]", "\"merges\":\"a b\"", "byte 816: an array is expected here"},
    {"\"merges\":[\"a b\"]", "\"merges\":[\"a b", "byte 817: this string is not terminated"},
    {"\"merges\":[\"a b\"]}}", "\"merges\":[\"a b\"]}} x", "byte 826: unexpected text after the end of the value"},
    {"\"merges\":[\"a b\"]}}", "\"merges\":[\"a b\"]}", "byte 824: ',' or '}' is expected here"},
};

/* ---- tokenizer_config.json ---- */

static const struct {
    const char *text, *words;
} settings[] = {
    {"", "tokenizer_config.json: byte 0: an object is expected here"},
    {"[", "tokenizer_config.json: byte 0: an object is expected here"},
    {"{", "tokenizer_config.json: byte 1: a string is expected here"},
    {"{}x", "tokenizer_config.json: byte 2: unexpected text after the end of the value"},
    {"7", "tokenizer_config.json: byte 0: an object is expected here"},
    {"{\"eos_token\":7}", "tokenizer_config.json: byte 13: a string is expected here"},
    {"{\"eos_token\":{\"content\":7}}", "tokenizer_config.json: byte 24: a string is expected here"},
    {"{\"eos_token\":\"\\ud800\"}", "tokenizer_config.json: byte 14: this escape is half of a surrogate pair"},
    {"{\"eos_token\":\"a\",}", "tokenizer_config.json: byte 17: nothing follows a comma"},
    {"{\"bos_token\":\"\x80"
     "\"}",
     "tokenizer_config.json: byte 14: a string is not valid UTF-8"},
};

/* ---- lines of chat data ---- */

static const struct {
    const char *text, *words;
} lines[] = {
    {"{", "byte 25, in record 2: a string is expected here"},
    {"[]", "byte 23, in record 2: an object is expected here"},
    {"7", "byte 23, in record 2: an object is expected here"},
    {"{\"messages\":[]}", "byte 37, in record 2: there are no messages"},
    {"{\"messages\":{}}", "byte 35, in record 2: messages are a list"},
    {"{\"messages\":[7]}", "byte 36, in record 2: a message is an object"},
    {"{\"messages\":[{}]}", "byte 36, in record 2: a message needs a role and a content"},
    {"{\"messages\":[{\"role\":\"user\"}]}", "byte 36, in record 2: a message needs a role and a content"},
    {"{\"messages\":[{\"content\":\"x\"}]}", "byte 36, in record 2: a message needs a role and a content"},
    {"{\"messages\":[{\"role\":7,\"content\":\"x\"}]}", "byte 44, in record 2: the role of a message is one text"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":null}]}",
     "byte 61, in record 2: the content of a message is one text"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":[\"x\"]}]}",
     "byte 61, in record 2: the content of a message is one text"},
    {"{\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]}",
     "byte 35, in record 2: message 1: the role is 'tool'; only system, user and assistant are supported"},
    {"{\"messages\":[{\"role\":\"\",\"content\":\"x\"}]}",
     "byte 35, in record 2: message 1: the role is ''; only system, user and assistant are supported"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"messages\":[]}",
     "byte 78, in record 2: 'messages' appears twice"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"text\":\"y\"}",
     "byte 23, in record 2: a record has 'text', or 'prompt' and 'completion', or 'messages', and only one of these"},
    {"{\"prompt\":\"x\"}", "byte 23, in record 2: a record with 'prompt' needs 'completion', and the other way round"},
    {"{\"completion\":\"x\"}",
     "byte 23, in record 2: a record with 'prompt' needs 'completion', and the other way round"},
    {"{\"prompt\":7,\"completion\":\"x\"}",
     "byte 33, in record 2: 'prompt' is one text; write a conversation as 'messages'"},
    {"{\"prompt\":\"x\",\"completion\":[]}",
     "byte 50, in record 2: 'completion' is one text; write a conversation as 'messages'"},
    {"{\"text\":7}", "byte 31, in record 2: 'text' is one text"},
    {"{\"text\":\"x\",\"text\":\"y\"}", "byte 42, in record 2: a member appears twice"},
    {"{}",
     "byte 23, in record 2: a record has 'text', or 'prompt' and 'completion', or 'messages', and only one of these"},
    {"{\"text\":\"\\u0000\"}", "byte 32, in record 2: a string has the character U+0000"},
    {"{\"text\":\"\\ud800\"}", "byte 32, in record 2: this escape is half of a surrogate pair"},
    {"{\"text\":\"\x80"
     "\"}",
     "byte 32, in record 2: a string is not valid UTF-8"},
    {"{\"text\":\"x\"} y", "byte 36, in record 2: unexpected text after the end of the value"},
    {"{\"text\":\"x\"", "byte 35, in record 2: ',' or '}' is expected here"},
    {"{\"messages\":[{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[]}]}",
     "byte 83, in record 2: messages with tool_calls are not supported; write them as text"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},]}", "byte 66, in record 2: nothing follows a comma"},
    {"{\"messages\":[{\"role\":\"user\",\"role\":\"system\",\"content\":\"x\"}]}",
     "byte 58, in record 2: a member appears twice"},
};

/* Every one is refused, with these words; the number of bytes that the context holds is as before. */
static void expect(an_status status, const char *input, const char *words, size_t held) {
    const char *message = an_last_error(ctx);
    if (status == AN_OK) fail_msg("%s: is not refused", input);
    if (!strstr(message, words)) fail_msg("%s:\n\"%s\" has no \"%s\"", input, message, words);
    assert_true(status == AN_ERR_DAMAGED || status == AN_ERR_UNSUPPORTED || status == AN_ERR_PARSE ||
                status == AN_ERR_ARGUMENT);
    assert_int_equal(an_context_bytes(ctx), held);
}

static void tokenizers(void **state) {
    static char text[2 * sizeof good];
    an_tokenizer *t = NULL;
    (void)state;
    OK(ctx, an_tokenizer_create(&t, ctx, good, sizeof good - 1, NULL, 0));
    an_tokenizer_destroy(&t);
    const size_t held = an_context_bytes(ctx);
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++) {
        const char *at = strstr(good, replaced[i].what);
        if (!at) fail_msg("there is no %s", replaced[i].what);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, replaced[i].with,
                 at + strlen(replaced[i].what));
        const an_status status = an_tokenizer_create(&t, ctx, text, strlen(text), NULL, 0);
        an_tokenizer_destroy(&t);
        expect(status, replaced[i].with, replaced[i].words, held);
        if (strncmp(an_last_error(ctx), "tokenizer.json: ", 16) != 0) fail_msg("%s: no name", replaced[i].with);
    }
    for (size_t length = 0; length < sizeof good - 1; length += 7) { /* cut off anywhere */
        const an_status status = an_tokenizer_create(&t, ctx, good, length, NULL, 0);
        expect(status, "a beginning", "tokenizer.json: byte ", held);
    }
    print_message("%zu replaced, %zu cut\n", sizeof replaced / sizeof *replaced, sizeof good / 7);
}

static void configs(void **state) {
    an_tokenizer *t = NULL;
    const size_t held = an_context_bytes(ctx);
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const an_status status =
            an_tokenizer_create(&t, ctx, good, sizeof good - 1, settings[i].text, strlen(settings[i].text));
        an_tokenizer_destroy(&t);
        expect(status, settings[i].text, settings[i].words, held);
    }
}

static void chat_lines(void **state) {
    an_tokenizer *t = NULL;
    an_dataset *d = NULL;
    an_chat_format format;
    an_chat_source source;
    (void)state;
    an_chat_format_init(&format, sizeof format);
    an_chat_source_init(&source, sizeof source);
    OK(ctx, an_tokenizer_open(&t, ctx, ANNEAL_SOURCE_DIR "/tests/golden/finetune/bpe"));
    source.tokenizer = t;
    source.format = &format;
    source.context = 64;
    source.path = "hostile.jsonl";
    const size_t held = an_context_bytes(ctx);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        FILE *file = fopen(source.path, "wb");
        assert_non_null(file);
        fprintf(file, "{\"text\":\"a good line\"}\n%s\n", lines[i].text);
        assert_int_equal(fclose(file), 0);
        const an_status status = an_dataset_create_chat(&d, ctx, &source);
        an_dataset_destroy(&d);
        expect(status, lines[i].text, lines[i].words, held);
        if (strncmp(an_last_error(ctx), "hostile.jsonl: byte ", 20) != 0 ||
            !strstr(an_last_error(ctx), ", in record 2: "))
            fail_msg("%s: \"%s\" does not say where", lines[i].text, an_last_error(ctx));
    }
    remove(source.path);
    an_tokenizer_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokenizers), cmocka_unit_test(configs),
                                       cmocka_unit_test(chat_lines)};
    if (an_context_create(&ctx, NULL) != AN_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    an_context_destroy(&ctx);
    return failed;
}
