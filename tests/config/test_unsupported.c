/* Options that nothing obeys yet: every value but the default is refused, however it is given, and
 * what lists options says so. */
#include "anneal/config.h"
#include "config/config.h"
#include "config/support.h"

#define BASE "model: {type: mlp}\ndata: {train: {type: csv, path: a.csv}}\n"
#define STREAM "model: {type: mlp}\ndata: {source: stream}\n"

/* A value that is right in kind and is not the default; the default, written in another way where there is one. */
static const struct {
    const char *path, *value, *usual, *message;
} values[] = {
    {"data.train.type", "array", "csv",
     "data.train.type is 'array', which is not supported yet; it takes idx, csv, images, npy, hdf5, jsonl, text, "
     "tokens, "
     "megatron, chat, preferences, sentences, mixture or "
     "stream"},
    {"data.capacity", "2k", "1000000", "data.capacity is not supported yet; remove it"},
    {"data.policy", "fifo", "reservoir", "data.policy is not supported yet; remove it"},
    {"data.holdout", "5%", "0", "data.holdout is not supported yet; remove it"},
};
enum { COUNT = sizeof values / sizeof *values };

static an_status create(an_config **config, an_context *ctx, const char *text, const char *set, bool stored) {
    an_config_options options = options_of("run.yaml", text, set != NULL, &set);
    options.stored = stored;
    return an_config_create(config, ctx, &options);
}

/* The base with one key more: "data.policy" is "data:\n  policy: VALUE". */
static void text_with(char *text, size_t size, const char *path, const char *value) {
    static const char stream[] = "model: {type: mlp}\ndata:\n  source: stream\n";
    static const char type[] = "model: {type: mlp}\ndata:\n  train:\n    path: a.csv\n    type: ";
    if (!strcmp(path, "data.train.type"))
        snprintf(text, size, "%s%s\n", type, value);
    else if (!strncmp(path, "data.train.", 11))
        snprintf(text, size, "%scsv\n    %s: %s\n", type, path + 11, value);
    else if (!strncmp(path, "data.", 5))
        snprintf(text, size, "%s  %s: %s\n", stream, path + 5, value);
    else {
        const char *dot = strchr(path, '.'), *second = strchr(dot + 1, '.');
        snprintf(text, size, "%s%.*s:\n  %.*s:%s%s%s %s\n", stream, (int)(dot - path), path,
                 second ? (int)(second - dot - 1) : (int)strlen(dot + 1), dot + 1, second ? "\n    " : "",
                 second ? second + 1 : "", second ? ":" : "", value);
    }
}

static void test_other_values_are_refused_everywhere(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config *c = NULL;
    char text[512], set[128];
    for (int i = 0; i < COUNT; i++) {
        text_with(text, sizeof text, values[i].path, values[i].value);
        FAILS(ctx, create(&c, ctx, text, NULL, false), AN_ERR_UNSUPPORTED, values[i].message);
        snprintf(set, sizeof set, "%s=%s", values[i].path, values[i].value);
        FAILS(ctx, create(&c, ctx, BASE, set, false), AN_ERR_UNSUPPORTED, values[i].message);
        FAILS(ctx, create(&c, ctx, BASE, set, true), AN_ERR_UNSUPPORTED, values[i].message);
        OK(ctx, create(&c, ctx, BASE, NULL, false));
        FAILS(ctx, an_config_set(c, set), AN_ERR_UNSUPPORTED, values[i].message);
        an_config_destroy(&c);
    }
    an_context_destroy(&ctx);
}

/* Run folders and checkpoints hold every key with its default. */
static void test_the_default_is_accepted(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config *c = NULL, *again = NULL;
    char text[512], set[128], *whole = NULL;
    for (int i = 0; i < COUNT; i++) {
        if (strncmp(values[i].path, "data.train.", 11) != 0) {
            text_with(text, sizeof text, values[i].path, values[i].usual);
            OK(ctx, create(&c, ctx, text, NULL, false));
            an_config_destroy(&c);
        }
        snprintf(set, sizeof set, "%s=%s", values[i].path, values[i].usual);
        OK(ctx, create(&c, ctx, BASE, set, false));
        OK(ctx, an_config_write(c, &whole));
        OK(ctx, create(&again, ctx, whole, NULL, false));
        an_string_release(ctx, &whole);
        an_config_destroy(&again);
        an_config_destroy(&c);
    }
    an_context_destroy(&ctx);
}

/* 0.1 took these values in silence: a checkpoint that has one opens as if it had the default, which is what the run
 * did. */
static void test_a_stored_value_reads_as_the_default(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config *c = NULL;
    int64_t capacity = 0;
    OK(ctx, create(&c, ctx, "model: mlp\ndata: {source: stream, capacity: 5, policy: fifo}\n", NULL, true));
    OK(ctx, an_config_count(c, "data.capacity", &capacity));
    assert_int_equal(capacity, 1000000);
    assert_true(an_config_is(c, "data.policy", "reservoir"));
    an_config_destroy(&c);
    an_context_destroy(&ctx);
}

/* The table of options has a refusal above for every mark, and the lists for users show it. */
static void test_every_mark_is_shown(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    char *schema = NULL, line[128];
    int marked = 0;
    OK(ctx, an_config_schema(ctx, &schema));
    for (int i = 0; an_config_key_get(ctx, i, &key) == AN_OK; i++) {
        bool tested = false;
        for (int k = 0; k < COUNT; k++) tested |= !strcmp(values[k].path, key.path);
        assert_int_equal(tested, key.unsupported != NULL);
        if (!key.unsupported) continue;
        marked++;
        const char *dot = strrchr(key.path, '.');
        snprintf(line, sizeof line, "\"%s\": {\"description\": \"not supported yet: ", dot + 1);
        if (!*key.unsupported && !strstr(schema, line)) fail_msg("the schema does not have %s", line);
    }
    assert_true(marked > 0);
    assert_null(strstr(schema, "\"array\", \"idx\""));
    assert_non_null(strstr(schema, "[\"idx\", \"csv\""));
    assert_non_null(strstr(schema, "kind of source; not supported yet: array\""));
    assert_non_null(strstr(schema, "\"default\": \"1M\", \"allOf\": [{\"enum\": [\"1M\"]}]"));
    an_string_release(ctx, &schema);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_values_are_refused_everywhere),
        cmocka_unit_test(test_the_default_is_accepted),
        cmocka_unit_test(test_a_stored_value_reads_as_the_default),
        cmocka_unit_test(test_every_mark_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
