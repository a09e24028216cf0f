/* Numbers, sizes, times, shares and lengths as a config has them, with their units. */
#include <locale.h>

#include "config/config.h"
#include "support/support.h"

static void test_numbers_have_units(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value; /* NAN: refused */
    } counts[] = {{"0", 0},        {"12", 12},     {"50k", 5e4},
                  {"1.5M", 1.5e6}, {"300M", 3e8},  {"2G", 2e9},
                  {"7B", 7e9},     {"1T", 1e12},   {"1e6", 1e6},
                  {"-3", -3},      {"", NAN},      {"1.5", NAN},
                  {"12 k", NAN},   {"k", NAN},     {"1,5", NAN},
                  {"0x10", NAN},   {"1e", NAN},    {"--1", NAN},
                  {"1kk", NAN},    {"1e300", NAN}, {"9e18k", NAN},
                  {"1_000", NAN},  {"inf", NAN},   {" 1", NAN},
                  {"1 ", NAN},     {"+5", 5},      {"9223372036854775808", NAN}},
      reals[] = {{"1e-3", 1e-3}, {".5", 0.5},   {"5.", 5},      {"1E+2", 100},  {"-0.25", -0.25},
                 {"nan", NAN},   {"inf", NAN},  {"1e999", NAN}, {"1.2.3", NAN}, {"", NAN},
                 {"0x1p3", NAN}, {"1e-400", 0}, {"1d", NAN},    {".", NAN}},
      sizes[] = {{"6GiB", 6442450944.0}, {"500MB", 5e8},  {"1 KiB", 1024}, {"7", 7},
                 {"1.5kB", 1500},        {"6 gigs", NAN}, {"-1", NAN},     {"9999TiB", 9999.0 * 1099511627776.0},
                 {"1e30TB", NAN},        {"6Gib", NAN}},
      times[] = {{"3h50m", 13800}, {"10s", 10},        {"15m", 900},    {"250ms", 0.25}, {"1.5h", 5400},
                 {"2d", 172800},   {"1h 30min", 5400}, {"50m3h", NAN},  {"3", NAN},      {"3h50", NAN},
                 {"h", NAN},       {"-1s", NAN},       {"1e300d", NAN}, {"1h1h", NAN},   {"", NAN}},
      shares[] = {{"5%", 0.05}, {"0.05", 0.05}, {"3 %", 0.03}, {"90%", 0.9}, {"%", NAN}, {"5%%", NAN}};
    double real;
    int64_t count;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const bool ok = an_read_count(counts[i].text, &count);
        if (ok != !isnan(counts[i].value) || (ok && (double)count != counts[i].value))
            fail_msg("count '%s'", counts[i].text);
    }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        const bool ok = an_read_real(reals[i].text, &real);
        if (ok != !isnan(reals[i].value) || (ok && real != reals[i].value)) fail_msg("real '%s'", reals[i].text);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const bool ok = an_read_bytes(sizes[i].text, &count);
        if (ok != !isnan(sizes[i].value) || (ok && (double)count != sizes[i].value))
            fail_msg("size '%s'", sizes[i].text);
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const bool ok = an_read_seconds(times[i].text, &real);
        if (ok != !isnan(times[i].value) || (ok && real != times[i].value)) fail_msg("time '%s'", times[i].text);
    }
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        const bool ok = an_read_share(shares[i].text, &real);
        if (ok != !isnan(shares[i].value) || (ok && real != shares[i].value)) fail_msg("share '%s'", shares[i].text);
    }
    assert_true(an_read_count("9223372036854775807", &count) && count == INT64_MAX);
    assert_true(an_read_first_samples("first 10k samples", &count) && count == 10000);
    assert_false(an_read_first_samples("first", &count));
}

static void test_lengths_have_units(void **state) {
    (void)state;
    static const char all[] = "steps|epochs|tokens|samples|share|time";
    static const struct {
        const char *text, *units;
        int unit; /* -1: refused */
        double amount;
    } cases[] = {{"250 steps", all, AN_LENGTH_STEPS, 250},
                 {"1 step", all, AN_LENGTH_STEPS, 1},
                 {"250", all, AN_LENGTH_STEPS, 250},
                 {"2 epochs", all, AN_LENGTH_EPOCHS, 2},
                 {"0.5 epochs", all, AN_LENGTH_EPOCHS, 0.5},
                 {"1epoch", all, AN_LENGTH_EPOCHS, 1},
                 {"300M tokens", all, AN_LENGTH_TOKENS, 3e8},
                 {"50k samples", all, AN_LENGTH_SAMPLES, 5e4},
                 {"3%", all, AN_LENGTH_SHARE, 0.03},
                 {"10m", all, AN_LENGTH_TIME, 600},
                 {"10M", all, AN_LENGTH_STEPS, 1e7},
                 {"3", "epochs", AN_LENGTH_EPOCHS, 3},
                 {"0.5", "epochs", AN_LENGTH_EPOCHS, 0.5},
                 {"0.5", all, -1, 0},
                 {"0.5 tokens", all, -1, 0},
                 {"10m", "steps|share", -1, 0},
                 {"3%", "steps", -1, 0},
                 {"2 epochs", "steps", -1, 0},
                 {"-1", all, -1, 0},
                 {"1.5 steps", all, -1, 0},
                 {"101%", all, -1, 0},
                 {"5 parsecs", all, -1, 0},
                 {"steps", all, -1, 0},
                 {"5 stepss", all, -1, 0},
                 {"", all, -1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_length length;
        const bool ok = an_read_length(cases[i].text, cases[i].units, &length);
        if (ok != (cases[i].unit >= 0)) fail_msg("'%s' of %s", cases[i].text, cases[i].units);
        if (ok && ((int)length.unit != cases[i].unit || length.amount != cases[i].amount))
            fail_msg("'%s' is %d %g", cases[i].text, (int)length.unit, length.amount);
    }
}

static void test_numbers_do_not_depend_on_the_locale(void **state) {
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "C.UTF-8"};
    double real = 0;
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        if (!setlocale(LC_NUMERIC, locales[i])) continue;
        const bool ok = an_read_real("0.25", &real), comma = an_read_real("0,25", &(double){0});
        setlocale(LC_NUMERIC, "C");
        assert_true(ok && real == 0.25 && !comma);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_have_units),
        cmocka_unit_test(test_lengths_have_units),
        cmocka_unit_test(test_numbers_do_not_depend_on_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
