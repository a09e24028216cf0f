/* Every public function that touches a floating-point number, in every floating-point environment that a host may
 * have: four rounding modes, denormals flushed, exceptions that trap. The bits are those of the default
 * environment, and the host's is put back. */
#define AN_NO_PLACES
#include "train/float_run_calls.h"

static void test_every_environment_gives_the_same_bits(void **state) {
    (void)state;
    make_data();
    for (int i = 0; i < ENVIRONMENTS; i++) {
        host = &environments[i];
        record_count = 0;
        build_own();
        call_ranks();
        build_graph();
        build_models();
        make_parts(AN_DTYPE_NONE);
        make_parts(AN_DTYPE_F16);
        make_datasets();
        read_config();
        train_from_config(AN_DTYPE_F32);
        train_from_config(AN_DTYPE_F64);
        train_on_samples();
        train_on_text();
        predict_sentences();
        train_adapter();
        compare_records();
    }
}

/* A function that is new belongs in the test above, or in the list of those that touch no such number. */
static void test_every_public_call_was_made(void **state) {
    static public_calls all;
    int missing = 0;
    (void)state;
    read_public_calls(&all);
    assert_true(all.count > 200);
    for (int i = 0; i < all.count; i++) {
        bool made = is_listed(plain_calls, all.names[i]);
        for (int k = 0; k < first_count && !made; k++) made = !strcmp(first_record[k].name, all.names[i]);
        if (!made) print_error("%s is not tested in other floating-point environments\n", all.names[i]), missing++;
    }
    assert_int_equal(missing, 0);
    for (const char *const *name = plain_calls; *name; name++) {
        bool is_there = false;
        for (int i = 0; i < all.count && !is_there; i++) is_there = !strcmp(all.names[i], *name);
        if (!is_there) fail_msg("there is no public function %s", *name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_environment_gives_the_same_bits),
        cmocka_unit_test(test_every_public_call_was_made),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
