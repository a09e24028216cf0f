/* The device seam: nobody but kernels and copies touches tensor memory. tests/run/test_device.c has whole runs, and a
 * device with kernels of its own. */
#include "support/poisoned_device.h"

/* Trains a little on a device; returns the bits of all weights and losses. */
static uint64_t train(const an_device *device) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_params *params = NULL;
    an_plan *plan = NULL;
    an_program *program = NULL;
    uint64_t bits = 0;
    float x[6 * 4], y[6 * 2], w[64];
    options.device = device;
    options.threads = 2;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    OK(ctx, small_mlp(&g, ctx));
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_params_reset(params, 3));
    OK(ctx, plan_for(&plan, ctx, g, "batch", 8, 7));
    OK(ctx, an_program_create(&program, plan, params));
    OK(ctx, an_program_bind(program, "batch", 6));
    for (int i = 0; i < 24; i++) x[i] = (float)noise((uint64_t)i);
    for (int i = 0; i < 12; i++) y[i] = (float)noise((uint64_t)i + 100);
    an_array ax = array_of(x, AN_DTYPE_F32, 2, (const int64_t[]){6, 4}),
             ay = array_of(y, AN_DTYPE_F32, 2, (const int64_t[]){6, 2});
    OK(ctx, an_program_set_input(program, "x", &ax));
    OK(ctx, an_program_set_input(program, "y", &ay));
    for (int i = 0; i < 3; i++) {
        double loss;
        OK(ctx, an_program_run(program, i ? AN_FORM_TRAIN_NEXT : AN_FORM_TRAIN_FIRST));
        OK(ctx, an_program_loss(program, &loss));
        uint64_t u;
        memcpy(&u, &loss, sizeof u);
        bits = bits * 31 + u;
    }
    an_array aw = array_of(w, AN_DTYPE_F32, 2, (const int64_t[]){16, 4});
    OK(ctx, an_params_get(params, "fc1.weight", AN_PART_GRADIENT, &aw));
    for (int i = 0; i < 64; i++) {
        uint32_t u;
        memcpy(&u, &w[i], sizeof u);
        bits = bits * 31 + u;
    }
    OK(ctx, an_program_run(program, AN_FORM_PREDICT));
    float out[12];
    an_array aout = array_of(out, AN_DTYPE_F32, 2, (const int64_t[]){6, 2});
    OK(ctx, an_program_get_output(program, "out", &aout));
    an_program_destroy(&program);
    an_plan_destroy(&plan);
    an_params_destroy(&params);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
    return bits;
}

static void test_nobody_touches_device_memory(void **state) {
    (void)state;
    poisoned_memory p = {0};
    const an_device device = poisoned_device(&p);
    uint64_t there = train(&device), here = train(NULL);
    assert_true(there == here);
    assert_true(p.launches > 10 && p.copies > 5);
    assert_int_equal(p.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nobody_touches_device_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
