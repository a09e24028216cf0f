/* The level of a context: what the machine has, what ANNEAL_MAX_ISA allows, and what a caller asks for. */
#include "base/isa.h"

#include <stdlib.h>

#include "support/support.h"

static an_status create(const char *variable, an_isa asked, an_isa *isa) {
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = 1;
    options.isa = asked;
    if (variable)
        setenv(AN_ISA_VARIABLE, variable, 1);
    else
        unsetenv(AN_ISA_VARIABLE);
    const an_status status = an_context_create(&ctx, &options);
    *isa = status == AN_OK ? an_context_isa(ctx) : AN_ISA_AUTO;
    an_context_destroy(&ctx);
    return status;
}

static an_isa machine(void) {
    an_isa isa;
    assert_int_equal(create(NULL, AN_ISA_AUTO, &isa), AN_OK);
    assert_in_range(isa, AN_ISA_BASE, AN_ISA_AMX);
    return isa;
}

static void test_the_variable_limits_every_context(void **state) {
    (void)state;
    const an_isa maximum = machine();
    for (an_isa limit = AN_ISA_BASE; limit <= AN_ISA_AMX; limit++) {
        const an_isa highest = limit < maximum ? limit : maximum;
        an_isa isa;
        assert_int_equal(create(an_isa_name(limit), AN_ISA_AUTO, &isa), AN_OK);
        assert_int_equal(isa, highest);
        assert_int_equal(an_isa_highest(), highest);
        for (an_isa asked = AN_ISA_BASE; asked <= AN_ISA_AMX; asked++) {
            const an_status status = create(an_isa_name(limit), asked, &isa);
            assert_int_equal(status, asked <= highest ? AN_OK : AN_ERR_UNSUPPORTED);
            assert_int_equal(isa, asked <= highest ? asked : AN_ISA_AUTO);
        }
    }
}

/* A refusal says whether the variable or the machine is the reason. */
static void test_a_refusal_says_why(void **state) {
    (void)state;
    const an_isa maximum = machine();
    an_isa isa;
    assert_int_equal(create("base", AN_ISA_AVX2, &isa), AN_ERR_UNSUPPORTED);
    assert_string_equal(an_last_error(NULL),
                        "the environment variable ANNEAL_MAX_ISA limits instructions to base, so the instruction set "
                        "avx2 cannot be used: unset it, or choose base");
    if (maximum == AN_ISA_AMX) skip();
    assert_int_equal(create("amx", AN_ISA_AMX, &isa), AN_ERR_UNSUPPORTED);
    assert_non_null(strstr(an_last_error(NULL), "this machine does not support the instruction set amx; it supports "));
}

static void test_a_word_that_is_no_level_is_refused(void **state) {
    static const char *const words[] = {"avx", "AVX2", "auto", "avx512 ", "4", "?"};
    an_isa isa;
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char message[256];
        snprintf(message, sizeof message,
                 "the environment variable ANNEAL_MAX_ISA is '%s'; set it to base, avx2, avx512 or amx, or unset it",
                 words[i]);
        for (an_isa asked = AN_ISA_AUTO; asked <= AN_ISA_BASE; asked++) {
            assert_int_equal(create(words[i], asked, &isa), AN_ERR_UNSUPPORTED);
            assert_string_equal(an_last_error(NULL), message);
        }
    }
    assert_int_equal(create("", AN_ISA_AUTO, &isa), AN_OK); /* as good as not set */
    assert_int_equal(isa, machine());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_variable_limits_every_context),
        cmocka_unit_test(test_a_refusal_says_why),
        cmocka_unit_test(test_a_word_that_is_no_level_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
