/* The text form under attack: damaged texts, memory that runs out, texts that are large. */
#include "ir/text_support.h"

/* Every beginning of every file, and every file with one byte changed: an error or a graph, never a leak. */
static void check_damaged(const char *name, const char *text, size_t length) {
    static const char bytes[] = {0, '"', '%', '(', ']', '\n', '9', '-', (char)0xff};
    char *copy = malloc(length ? length : 1);
    size_t held = memory.held;
    assert_non_null(copy);
    for (size_t i = 0; i < length; i++) {
        an_graph *g = NULL;
        memcpy(copy, text, length);
        an_graph_parse_dump(&g, ctx, copy, i);
        an_graph_destroy(&g);
        copy[i] = bytes[i % sizeof bytes];
        an_graph_parse_dump(&g, ctx, copy, length);
        an_graph_destroy(&g);
        if (memory.held != held) fail_msg("%s damaged at byte %zu left memory behind", name, i);
    }
    free(copy);
}

static void test_damaged(void **state) {
    (void)state;
    each_of_corpus(check_damaged);
}

/* The n-th allocation fails, for every n: a clean error, nothing left. */
static void check_faults(const char *name, const char *text, size_t length) {
    bool done = false, expected_failure = !strncmp(name, "wrong", strlen("wrong"));
    for (long n = 1; !done && !expected_failure; n++) {
        an_context *c = NULL;
        ledger l = {.fail_at = n};
        if (context_with_ledger(&c, &l, 1) != AN_OK) continue;
        an_graph *g = NULL;
        char *printed = NULL;
        an_text dumped;
        an_text_init(&dumped, c);
        an_status status = an_graph_parse_dump(&g, c, text, length);
        if (status == AN_OK) status = an_graph_print(g, &printed);
        if (status == AN_OK) status = an_graph_dump(g, &dumped);
        done = status == AN_OK;
        if (!done && (status != AN_ERR_MEMORY || !strstr(an_last_error(c), "memory")))
            fail_msg("%s, allocation %ld: %s: %s", name, n, an_status_name(status), an_last_error(c));
        an_string_release(c, &printed);
        an_text_destroy(&dumped);
        an_graph_destroy(&g);
        an_context_destroy(&c);
        if (l.held || l.mismatch) fail_msg("%s, allocation %ld: %zu bytes were left", name, n, l.held);
        assert_true(n < 100000);
    }
}

static void test_every_allocation(void **state) {
    (void)state;
    each_of_corpus(check_faults);
}

/* Twice the text takes twice the time; a quadratic search over names would take minutes here. */
static void test_large(void **state) {
    (void)state;
    enum { NODES = 100000, LINE = 64 };
    char *text = malloc((size_t)NODES * LINE + LINE), *at = text;
    assert_non_null(text);
    at += sprintf(at, "ang 1\nsymbol n\n%%value.0 = input(name=\"x\") : f32[n]\n");
    for (int i = 1; i < NODES; i++) at += sprintf(at, "%%value.%d = add(%%value.%d, %%value.%d)\n", i, i - 1, i / 2);
    an_graph *g = NULL;
    OK(ctx, an_graph_parse(&g, ctx, text, (size_t)(at - text)));
    assert_int_equal(g->node_count, NODES);
    check_model_round_trip(g);
    an_graph_destroy(&g);
    free(text);
}

/* Names that all hash to one slot cost an error, not the square of their number. */
static void test_colliding_names(void **state) {
    (void)state;
    enum { NAMES = 600, SLOTS = 2048, LINE = 40 };
    char *text = malloc((size_t)NAMES * LINE + LINE), *at = text, name[16];
    assert_non_null(text);
    at += sprintf(at, "ang 1\n");
    for (int i = 0, found = 0; found < NAMES; i++) {
        int length = snprintf(name, sizeof name, "v%d", i);
        if (an_hash(name, (size_t)length, 0) % SLOTS) continue;
        at += sprintf(at, "%%%s = constant() : f32[]\n", name);
        found++;
    }
    an_graph *g = NULL;
    FAILS(ctx, an_graph_parse(&g, ctx, text, (size_t)(at - text)), AN_ERR_OVERFLOW, "too many names collide");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_CONTEXT(test_damaged),
        IN_CONTEXT(test_every_allocation),
        IN_CONTEXT(test_large),
        IN_CONTEXT(test_colliding_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
