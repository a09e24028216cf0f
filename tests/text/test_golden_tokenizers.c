/* Tokenizers of every kind against what the package `tokenizers` makes of the same texts:
 * tests/golden/make-tokenizers. */
#include <dirent.h>

#include "anneal/text.h"
#include "base/text/json.h"
#include "support/support.h"

enum { MOST_TOKENS = 4096, MOST_LINE = 1 << 16 };

static an_context *ctx;

typedef struct golden_case {
    an_json_string text, pair, decoded;
    int32_t ids[MOST_TOKENS], types[MOST_TOKENS], plain[MOST_TOKENS];
    int64_t id_count, type_count, plain_count;
} golden_case;

static void read_numbers(an_json *j, int32_t *to, int64_t *count) {
    assert_true(an_json_array(j));
    while (an_json_element(j)) {
        int64_t number;
        assert_true(an_json_count(j, &number) && *count < MOST_TOKENS);
        to[(*count)++] = (int32_t)number;
    }
}

static void read_case(char *line, golden_case *c) {
    an_json j;
    an_json_string key;
    memset(c, 0, sizeof *c);
    an_json_init(&j, line, strlen(line));
    assert_true(an_json_object(&j));
    while (an_json_member(&j, &key)) {
        if (!strcmp(key.bytes, "text"))
            assert_true(an_json_string_value(&j, &c->text));
        else if (!strcmp(key.bytes, "pair"))
            assert_true(an_json_string_value(&j, &c->pair));
        else if (!strcmp(key.bytes, "decoded"))
            assert_true(an_json_string_value(&j, &c->decoded));
        else if (!strcmp(key.bytes, "ids"))
            read_numbers(&j, c->ids, &c->id_count);
        else if (!strcmp(key.bytes, "types"))
            read_numbers(&j, c->types, &c->type_count);
        else
            read_numbers(&j, c->plain, &c->plain_count);
    }
    assert_true(an_json_end(&j));
}

static void same_numbers(const char *name, const char *what, const golden_case *c, const int32_t *given, int64_t count,
                         const int32_t *wanted, int64_t wanted_count) {
    for (int64_t i = 0; i < count || i < wanted_count; i++)
        if (i >= count || i >= wanted_count || given[i] != wanted[i])
            fail_msg("%s: %s of '%s': number %lld of %lld is %d, not %d of %lld", name, what, c->text.bytes,
                     (long long)i, (long long)count, i < count ? given[i] : -1, i < wanted_count ? wanted[i] : -1,
                     (long long)wanted_count);
}

/* The decoder gives one token at a time, and whole characters; together they are what the tokens decode to. */
static void check_decoding(const char *name, const an_tokenizer *t, const golden_case *c) {
    static char text[MOST_LINE], streamed[MOST_LINE];
    size_t length, used = 0, more;
    const char *part;
    an_decoder *decoder = NULL;
    OK(ctx, an_tokenizer_decode(t, c->ids, c->id_count, false, text, sizeof text, &length));
    OK(ctx, an_decoder_create(&decoder, t, false));
    for (int64_t i = 0; i <= c->id_count; i++) {
        const an_status status =
            i < c->id_count ? an_decoder_push(decoder, c->ids[i], &part, &more) : an_decoder_end(decoder, &part, &more);
        assert_int_equal(status, AN_OK);
        memcpy(streamed + used, part, more);
        used += more;
    }
    an_decoder_destroy(&decoder);
    /* The package has U+FFFD for each byte that is no character of its own, and so has the stream. */
    if (used != c->decoded.length || memcmp(streamed, c->decoded.bytes, used) != 0)
        fail_msg("%s: '%s' decodes to '%.*s', not to '%s'", name, c->text.bytes, (int)used, streamed, c->decoded.bytes);
    if (!strstr(streamed, "\xef\xbf\xbd")) assert_true(length == used && !memcmp(text, streamed, used));
}

static void check_file(const char *name) {
    static golden_case c;
    static char line[MOST_LINE];
    char path[4096];
    an_tokenizer *t = NULL;
    an_encoder *encoder = NULL;
    an_encode_options pair, plain;
    const int32_t *tokens;
    int64_t count;
    int lines = 0;
    an_encode_options_init(&plain, sizeof plain);
    plain.special = plain.parse = false;
    snprintf(path, sizeof path, ANNEAL_SOURCE_DIR "/tests/golden/tokenizers/%s.json", name);
    OK(ctx, an_tokenizer_open(&t, ctx, path));
    OK(ctx, an_encoder_create(&encoder, t));
    snprintf(path, sizeof path, ANNEAL_SOURCE_DIR "/tests/golden/tokenizers/%s.cases", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); lines++) {
        read_case(line, &c);
        an_encode_options_init(&pair, sizeof pair);
        pair.pair = c.pair.bytes;
        pair.pair_length = c.pair.length;
        assert_int_equal(an_encoder_run(encoder, c.text.bytes, c.text.length, &pair, &tokens, &count), AN_OK);
        same_numbers(name, "ids", &c, tokens, count, c.ids, c.id_count);
        same_numbers(name, "types", &c, an_encoder_types(encoder), count, c.types, c.type_count);
        assert_int_equal(an_encoder_run(encoder, c.text.bytes, c.text.length, &plain, &tokens, &count), AN_OK);
        same_numbers(name, "plain ids", &c, tokens, count, c.plain, c.plain_count);
        check_decoding(name, t, &c);
    }
    fclose(file);
    assert_true(lines >= 64);
    an_encoder_destroy(&encoder);
    an_tokenizer_destroy(&t);
}

static void test_golden_tokenizers(void **state) {
    DIR *folder = opendir(ANNEAL_SOURCE_DIR "/tests/golden/tokenizers");
    int files = 0;
    (void)state;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[256];
        const char *dot = strstr(entry->d_name, ".json");
        if (!dot) continue;
        snprintf(name, sizeof name, "%.*s", (int)(dot - entry->d_name), entry->d_name);
        check_file(name);
        files++;
    }
    closedir(folder);
    assert_int_equal(files, 10);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden_tokenizers)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
