/* Sentences with classes: tokens as transformers gives them and cuts them (tests/golden/make-finetune),
 * padding, and what is refused. */
#include "anneal/text.h"
#include "base/text/json.h"
#include "data/support.h"

#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/finetune/"

enum { MOST = 4096, LENGTH = 16, RECORDS = 7, FIELDS = 4 }; /* LENGTH: of make-finetune */

static an_context *ctx;
static an_tokenizer *tokenizer;

static an_sentence_source source_of(const char *path, int64_t context) {
    an_sentence_source s;
    an_sentence_source_init(&s, sizeof s);
    s.path = path;
    s.tokenizer = tokenizer;
    s.context = context;
    return s;
}

typedef struct {
    int32_t tokens[LENGTH], types[LENGTH];
    char label[16];
    int count;
} expected;

static int read_list(an_json *json, int32_t *to) {
    int count = 0;
    int64_t number;
    assert_true(an_json_array(json));
    while (an_json_element(json)) {
        assert_true(count < LENGTH && an_json_count(json, &number));
        to[count++] = (int32_t)number;
    }
    return count;
}

static void read_expected(expected *e) {
    static char line[MOST];
    int records = 0;
    FILE *file = fopen(GOLDEN "sentences.jsonl", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        an_json json;
        an_json_string key, label;
        assert_true(records < RECORDS);
        an_json_init(&json, line, strlen(line));
        assert_true(an_json_object(&json));
        while (an_json_member(&json, &key))
            if (!strcmp(key.bytes, "tokens"))
                e[records].count = read_list(&json, e[records].tokens);
            else if (!strcmp(key.bytes, "types"))
                assert_int_equal(read_list(&json, e[records].types), e[records].count);
            else if (!strcmp(key.bytes, "label")) {
                assert_true(an_json_string_value(&json, &label));
                snprintf(e[records].label, sizeof e[records].label, "%s", label.bytes);
            } else
                assert_true(an_json_skip(&json));
        records++;
    }
    fclose(file);
    assert_int_equal(records, RECORDS);
}

static void check_sample(an_dataset *d, int64_t index, const expected *e, int length) {
    int32_t tokens[2 * LENGTH], types[2 * LENGTH], mask[2 * LENGTH], label;
    OK(ctx, an_dataset_read(d, 1, &index, (void *[]){tokens, types, mask, &label}));
    for (int k = 0; k < length; k++) {
        const bool in = k < e->count;
        if (tokens[k] != (in ? e->tokens[k] : 0) || types[k] != (in ? e->types[k] : 0) || mask[k] != in)
            fail_msg("record %d, place %d: token %d, type %d, mask %d; expected %d and %d", (int)index + 1, k,
                     tokens[k], types[k], mask[k], in ? e->tokens[k] : 0, in ? e->types[k] : 0);
    }
    assert_string_equal(an_dataset_class_name(d, label), e->label);
}

static void as_transformers(void **state) {
    static expected records[RECORDS];
    an_sentence_source s = source_of(GOLDEN "sentences.jsonl", LENGTH);
    an_dataset *d = NULL, *other = NULL;
    (void)state;
    read_expected(records);
    OK(ctx, an_dataset_create_sentences(&d, ctx, &s));
    assert_int_equal(an_dataset_count(d), RECORDS);
    assert_int_equal(an_dataset_field_count(d), FIELDS);
    assert_string_equal(an_dataset_class_name(d, 0), "anger");
    assert_string_equal(an_dataset_class_name(d, 2), "joy");
    assert_null(an_dataset_class_name(d, 3));
    assert_non_null(
        strstr(an_dataset_notice(d), "sentences.jsonl: 4 of 7 records (57.1%) are longer than 16 tokens and were cut"));
    for (int64_t i = 0; i < RECORDS; i++) check_sample(d, i, &records[i], LENGTH);

    /* the last two records have two of three classes, and are numbered alike; samples are as long as the
     * longest, or as is asked for */
    s.begin = 5.0 / RECORDS;
    s.like = d;
    OK(ctx, an_dataset_create_sentences(&other, ctx, &s));
    assert_int_equal(field_bytes(other, 0), 9 * sizeof(int32_t));
    for (int64_t i = 0; i < 2; i++) check_sample(other, i, &records[5 + i], 9);
    an_dataset_destroy(&other);
    s.padded = true;
    OK(ctx, an_dataset_create_sentences(&other, ctx, &s));
    assert_int_equal(field_bytes(other, 0), LENGTH * sizeof(int32_t));
    for (int64_t i = 0; i < 2; i++) check_sample(other, i, &records[5 + i], LENGTH);
    assert_null(an_dataset_notice(other));
    an_dataset_destroy(&other);
    an_dataset_destroy(&d);
}

static void numbers_and_none(void **state) {
    an_sentence_source s = source_of("n.jsonl", LENGTH);
    an_dataset *d = NULL;
    an_field field;
    an_field_init(&field, sizeof field);
    (void)state;
    write_text("n.jsonl", "{\"text\": \"we\", \"label\": 2}\n{\"text\": \"all\", \"label\": 0, \"other\": {}}\n");
    OK(ctx, an_dataset_create_sentences(&d, ctx, &s));
    OK(ctx, an_dataset_field(d, 3, &field));
    assert_int_equal(field.limit, 3);
    assert_null(an_dataset_class_name(d, 0));
    an_dataset_destroy(&d);
    write_text("n.jsonl", "{\"text\": \"we\"}\n");
    s.has_targets = false;
    OK(ctx, an_dataset_create_sentences(&d, ctx, &s));
    assert_int_equal(an_dataset_field_count(d), FIELDS - 1);
    an_dataset_destroy(&d);
}

static void refusals(void **state) {
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"{\"label\": 1}\n", "x.jsonl: byte 0, in record 1: a record needs 'text'"},
        {"{\"text\": \"a\"}\n", "a record needs 'label', its class"},
        {"{\"text\": \"a\", \"label\": 1, \"label\": 1}\n", "'label' appears twice"},
        {"{\"text\": \"a\", \"label\": -1}\n", "this is not a class: classes are 0, 1, 2"},
        {"{\"text\": \"a\", \"label\": 1.5}\n", "in record 1: "},
        {"{\"text\": \"a\", \"label\": 1}\n{\"text\": \"a\", \"label\": \"b\"}\n",
         "in record 2: labels are all names, or all numbers"},
        {"{\"text\": \"a\", \"label\": \"b\"}\n{\"text\": \"a\", \"label\": 1}\n",
         "in record 2: labels are all names, or all numbers"},
        {"{\"text\": [], \"label\": 1}\n", "'text' is one text"},
        {"{\"text\": \"a\", \"text_pair\": 1, \"label\": 1}\n", "'text_pair' is one text"},
    };
    an_sentence_source s = source_of("x.jsonl", LENGTH);
    an_dataset *d = NULL, *like = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_text("x.jsonl", rows[i].text);
        const an_status status = an_dataset_create_sentences(&d, ctx, &s);
        if (status == AN_OK || !strstr(an_last_error(ctx), rows[i].words))
            fail_msg("%s: '%s', expected '%s'", rows[i].text, an_last_error(ctx), rows[i].words);
        assert_null(d);
    }
    an_sentence_source trained = source_of(GOLDEN "sentences.jsonl", LENGTH);
    OK(ctx, an_dataset_create_sentences(&like, ctx, &trained));
    write_text("x.jsonl", "{\"text\": \"a\", \"label\": \"awe\"}\n");
    s.like = like;
    FAILS(ctx, an_dataset_create_sentences(&d, ctx, &s), AN_ERR_PARSE,
          "the training data has no class of this name: 'awe'");
    write_text("x.jsonl", "{\"text\": \"a\", \"label\": 1}\n");
    FAILS(ctx, an_dataset_create_sentences(&d, ctx, &s), AN_ERR_PARSE, "labels are all names, or all numbers");
    an_dataset_destroy(&like);
    s = source_of("x.jsonl", 2);
    FAILS(ctx, an_dataset_create_sentences(&d, ctx, &s), AN_ERR_UNSUPPORTED,
          "samples of 2 tokens have no room for them");
}

static int begin(void **state) {
    (void)state;
    return an_context_create(&ctx, NULL) != AN_OK || an_tokenizer_open(&tokenizer, ctx, GOLDEN "wordpiece") != AN_OK;
}

static int end(void **state) {
    (void)state;
    an_tokenizer_destroy(&tokenizer);
    an_context_destroy(&ctx);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_transformers), cmocka_unit_test(numbers_and_none),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, begin, end);
}
