/* Small helpers of base: whole numbers, digits and endings. */
#include "base/integer.h"
#include "base/word.h"
#include "support/support.h"

static void test_integers(void **state) {
    (void)state;
    for (int64_t a = -20; a <= 20; a++) {
        for (int64_t b = 1; b <= 7; b++) {
            const int64_t quotient = an_divide_up(a, b); /* the least whole number that is not below a / b */
            assert_true(quotient * b >= a && (quotient - 1) * b < a);
            if (a >= 0) assert_true(an_next_multiple(a, b) == quotient * b);
            if (a > 0) { /* as few parts as parts of b would be, and no smaller size gives as few */
                const int64_t part = an_even_part(a, b);
                assert_true(part <= b && an_divide_up(a, part) == quotient);
                assert_true(part == 1 || an_divide_up(a, part - 1) > quotient);
            }
            assert_true(an_smaller(a, b) + an_larger(a, b) == a + b && an_smaller(a, b) <= an_larger(a, b));
        }
    }
    assert_true(an_divide_up(INT64_MAX, 2) == (INT64_C(1) << 62));
}

static void test_words(void **state) {
    (void)state;
    assert_true(an_ends_in("a.weight", ".weight") && an_ends_in(".weight", ".weight") && an_ends_in("a", ""));
    assert_false(an_ends_in("weight", ".weight") || an_ends_in("a.weights", ".weight") || an_ends_in("", "a"));
    for (int c = 0; c < 256; c++) assert_int_equal(an_is_digit((char)c), c >= 48 && c <= 57);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_integers), cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
