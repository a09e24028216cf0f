/* Trails of errors: the functions that the last error of a context passed through, and those of no other one. */
#include "base/context.h"
#include "base/status.h"
#include "support/support.h"

static an_status innermost(an_context *ctx) {
    return AN_ERROR(ctx, AN_ERR_SHAPE, "the shape of %s", "something");
}

static an_status between(an_context *ctx) {
    an_status status;
    AN_TRY(innermost(ctx));
fail:
    return status;
}

static an_status outermost(an_context *ctx) {
    AN_TRY_RETURN(between(ctx));
    return AN_OK;
}

static an_status deep(an_context *ctx, int calls) { /* NOLINT(misc-no-recursion) */
    AN_TRY_RETURN(calls > 1 ? deep(ctx, calls - 1) : innermost(ctx));
    return AN_OK;
}

/* The functions of a trail, with a space behind each. */
static const char *functions_of(const an_context *ctx) {
    static char names[AN_TRAIL_BYTES];
    size_t length = 0;
    for (const char *at = an_last_error_trail(ctx); at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        assert_int_equal(strncmp(at, "in ", 3), 0);
        const size_t name = strcspn(at + 3, " ");
        assert_int_equal(strncmp(at + 3 + name, " (test_status.c:", 16), 0); /* without folders */
        length += (size_t)snprintf(names + length, sizeof names - length, "%.*s ", (int)name, at + 3);
    }
    names[length] = 0;
    return names;
}

static void test_trail(void **state) {
    an_context *ctx = NULL;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    assert_string_equal(functions_of(ctx), "");
    for (int i = 0; i < 2; i++) { /* an error has nothing of the one before, though both have one status */
        FAILS(ctx, outermost(ctx), AN_ERR_SHAPE, "the shape of something");
        assert_string_equal(functions_of(ctx), "innermost between outermost ");
        assert_string_equal(functions_of(NULL), "innermost between outermost ");
    }
    FAILS(ctx, innermost(ctx), AN_ERR_SHAPE, "the shape of something");
    assert_string_equal(functions_of(ctx), "innermost ");
    an_context_destroy(&ctx);
}

/* A later error of another context, or of none, adds nothing: of the first one it is known where it began. */
static void test_trails_of_two_contexts(void **state) {
    an_context *first = NULL, *second = NULL;
    (void)state;
    assert_int_equal(an_context_create(&first, NULL), AN_OK);
    assert_int_equal(an_context_create(&second, NULL), AN_OK);
    FAILS(first, between(first), AN_ERR_SHAPE, "the shape of something");
    FAILS(second, outermost(second), AN_ERR_SHAPE, "the shape of something");
    assert_string_equal(functions_of(first), "innermost ");
    assert_string_equal(functions_of(second), "innermost between outermost ");
    FAILS(NULL, between(NULL), AN_ERR_SHAPE, "the shape of something");
    assert_string_equal(functions_of(second), "innermost ");
    assert_string_equal(functions_of(NULL), "innermost between ");
    an_context_destroy(&first);
    an_context_destroy(&second);
}

static void test_long_trail(void **state) {
    an_context *ctx = NULL;
    int count = 0;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    FAILS(ctx, deep(ctx, 2 * AN_TRAIL_FRAMES), AN_ERR_SHAPE, "the shape of something");
    for (const char *at = functions_of(ctx); (at = strchr(at, ' ')); at++) count++;
    assert_int_equal(count, AN_TRAIL_FRAMES); /* the innermost ones */
    assert_int_equal(strncmp(functions_of(ctx), "innermost deep deep ", 20), 0);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trail),
        cmocka_unit_test(test_trails_of_two_contexts),
        cmocka_unit_test(test_long_trail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
