/* Records of ops and kernels that a program adds to a context: those that contradict themselves are refused with a
 * message. */
#include "support/own_ops.h"

static an_context *ctx;
static ledger counted;

static int setup(void **state) {
    (void)state;
    return context_with_ledger(&ctx, &counted, 2) != AN_OK;
}

static int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return counted.held != 0 || counted.mismatch;
}

static const an_kernel no_run[] = {{.name = "plain"}, {0}};
static const an_kernel bad_name[] = {{.name = "a=b", .run = run_steep}, {0}};
static const an_kernel no_kernels[] = {{0}};
static const an_kernel twins[] = {{.name = "plain", .run = run_steep}, {.name = "plain", .run = run_steep}, {0}};
static const an_kernel half_kept[] = {{.name = "plain", .run = run_steep, .keep = run_steep}, {0}};

static const an_attribute outside[] = {{"far", AN_ATTRIBUTE_FLOAT, sizeof(steep_attributes), false}, {0}};
static const an_attribute crooked[] = {{"crooked", AN_ATTRIBUTE_FLOAT, 3, false}, {0}};
static const an_attribute shared[] = {{"one", AN_ATTRIBUTE_FLOAT, 8, false}, {"two", AN_ATTRIBUTE_INT, 8, false}, {0}};
static const an_attribute twice[] = {{"one", AN_ATTRIBUTE_FLOAT, 0, false}, {"one", AN_ATTRIBUTE_INT, 8, false}, {0}};
static const an_attribute noted[] = {{"one", AN_ATTRIBUTE_FLOAT, 0, true}, {0}};
static const an_attribute unknown[] = {{"one", (an_attribute_type)77, 0, false}, {0}};
static const an_attribute large[] = {{"one", AN_ATTRIBUTE_DIMS, 0, false}, {0}};
static const an_attribute named[] = {{"Slope", AN_ATTRIBUTE_FLOAT, 0, false}, {0}};

#define REFUSED(change, words)                                                       \
    do {                                                                             \
        an_own_op op = steep_record();                                               \
        change;                                                                      \
        FAILS(ctx, an_context_add_op(ctx, &op), AN_ERR_ARGUMENT, words);             \
        assert_int_equal(an_context_bytes(ctx), before); /* nothing of it is kept */ \
    } while (0)

static void test_records(void **state) {
    const size_t before = an_context_bytes(ctx);
    char long_name[AN_MAX_OWN_NAME + 2];
    (void)state;
    memset(long_name, 'a', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    REFUSED(op.size = 8, "an_own_op has size 8");
    REFUSED(op.name = NULL, "the name of an own op");
    REFUSED(op.name = "", "the name of an own op");
    REFUSED(op.name = "Steep", "the name of an own op");
    REFUSED(op.name = "2steep", "the name of an own op");
    REFUSED(op.name = "steep relu", "the name of an own op");
    REFUSED(op.name = long_name, "the name of an own op");
    REFUSED(op.name = "relu", "relu is already the name of an op, one of the library's");
    REFUSED(op.inputs_min = 0, "inputs_min to inputs_max");
    REFUSED(op.inputs_min = 2, "inputs_min to inputs_max");
    REFUSED(op.inputs_max = AN_MAX_INPUTS + 1, "inputs_min to inputs_max");
    REFUSED(op.outputs = 0, "1 to 32 outputs");
    REFUSED(op.outputs = AN_MAX_OUTPUTS + 1, "1 to 32 outputs");
    REFUSED(op.infer = NULL, "the record of op steep_relu: it has no function infer");
    REFUSED(op.kernels = NULL, "it has no kernels");
    REFUSED(op.kernels = no_kernels, "it has no kernels");
    REFUSED(op.kernels = no_run, "a kernel has no function run");
    REFUSED(op.kernels = bad_name, "a kernel's name");
    REFUSED(op.kernels = twins, "the same name");
    REFUSED(op.kernels = half_kept, "kept and keep");
    REFUSED(op.flops = -1, "flops");
    REFUSED(op.flops = (double)NAN, "flops");
    REFUSED(op.reach = (an_reach)9, "its reach does not exist");
    REFUSED(op.autocast = (an_autocast)9, "autocast");
    REFUSED(op.dense = 2, "has a bit for an input");
    REFUSED(op.in_place = 4, "has a bit for an input");
    REFUSED(op.low_in = 2, "has a bit for an input");
    REFUSED(op.low_out = 2, "has a bit for an input");
    REFUSED(op.attributes = NULL, "attributes and attribute_bytes");
    REFUSED(op.attribute_bytes = 0, "attributes and attribute_bytes");
    REFUSED(op.attribute_bytes = AN_MAX_ATTRIBUTE_BYTES + 1, "more than 1024 bytes");
    REFUSED(op.attributes = outside, "does not lie inside");
    REFUSED(op.attributes = crooked, "does not lie inside");
    REFUSED(op.attributes = large, "does not lie inside");
    REFUSED(op.attributes = shared, "share bytes");
    REFUSED(op.attributes = twice, "the same name");
    REFUSED(op.attributes = noted, "noted");
    REFUSED(op.attributes = unknown, "a type that does not exist");
    REFUSED(op.attributes = named, "an attribute's name");
    OK(ctx, add_steep(ctx));
    FAILS(ctx, add_steep(ctx), AN_ERR_ARGUMENT, "steep_relu is already the name of an op, which was added before");
}

static void test_kernel_records(void **state) {
    const an_kernel mine = {.name = "mine", .run = run_steep}, reference = {.name = "reference", .run = run_steep},
                    empty = {.name = "mine"}, bad = {.name = "mine,yours", .run = run_steep};
    (void)state;
    FAILS(ctx, an_context_add_kernel(ctx, "rely", &mine), AN_ERR_UNKNOWN, "there is no op 'rely'");
    FAILS(ctx, an_context_add_kernel(ctx, "reshape", &mine), AN_ERR_ARGUMENT, "reshape has no kernels");
    FAILS(ctx, an_context_add_kernel(ctx, "relu", &reference), AN_ERR_ARGUMENT,
          "relu has a kernel 'reference' already");
    FAILS(ctx, an_context_add_kernel(ctx, "relu", &empty), AN_ERR_ARGUMENT, "no function run");
    FAILS(ctx, an_context_add_kernel(ctx, "relu", &bad), AN_ERR_ARGUMENT, "a kernel's name");
    OK(ctx, an_context_add_kernel(ctx, "relu", &mine));
    FAILS(ctx, an_context_add_kernel(ctx, "relu", &mine), AN_ERR_ARGUMENT, "relu has a kernel 'mine' already");
}

/* Each allocation fails once: an error, and the context is as good as before. */
static void test_no_memory(void **state) {
    const an_kernel mine = {.name = "mine", .run = run_steep};
    (void)state;
    counted.once = true;
    for (int made = 0, at = 1; !made; at++) {
        an_context *other = NULL;
        counted.fail_at = 0;
        OK(NULL, context_with_ledger(&other, &counted, 1));
        counted.fail_at = counted.calls + at;
        an_status status = add_steep(other);
        if (status == AN_OK) status = an_context_add_kernel(other, "relu", &mine);
        made = status == AN_OK;
        if (!made) assert_int_equal(status, AN_ERR_MEMORY);
        counted.fail_at = 0;
        an_graph *g = NULL;
        OK(other, small_mlp(&g, other));
        an_graph_destroy(&g);
        an_context_destroy(&other);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_records, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_kernel_records, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
