/* A trainer that was made from C is compared with the limits of its process too, before anything is allocated for
 * it. */
#include <sys/resource.h>

#include "anneal/models.h"
#include "anneal/train.h"
#include "base/system/limits.h"
#include "open/support.h"

enum { SAMPLES = 64, INPUTS = 8 };
static float inputs[SAMPLES][INPUTS], targets[SAMPLES][1];

static an_status make(an_trainer **trainer, an_graph **graph, an_dataset **data, an_context *own) {
    static const int64_t hidden[] = {4096, 4096}; /* 16.8 million weights: 268 MB with gradients and moments */
    const int64_t input_dims[] = {SAMPLES, INPUTS}, target_dims[] = {SAMPLES, 1};
    const an_array arrays[] = {array_of(inputs, AN_DTYPE_F32, 2, input_dims),
                               array_of(targets, AN_DTYPE_F32, 2, target_dims)};
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    an_mlp_options model;
    an_mlp_options_init(&model, sizeof model);
    an_trainer_options options;
    an_trainer_options_init(&options, sizeof options);
    source.array_count = 2;
    source.arrays = arrays;
    model.inputs = INPUTS;
    model.outputs = 1;
    model.hidden_count = 2;
    model.hidden = hidden;
    model.loss = AN_LOSS_SQUARED;
    an_batch_options batch;
    an_batch_options_init(&batch, sizeof batch);
    batch.global = SAMPLES;
    options.batch = &batch;
    options.steps = 1;
    OK(own, an_dataset_create_arrays(data, own, &source));
    OK(own, an_model_mlp(graph, own, &model));
    return an_trainer_create(trainer, *graph, *data, NULL, &options);
}

static void test_a_run_that_cannot_fit_is_refused(void **state) {
    an_context *own = NULL;
    an_graph *graph = NULL;
    an_dataset *data = NULL;
    an_trainer *trainer = NULL;
    an_limits before;
    struct rlimit old, low;
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(ANNEAL_EMULATED)
    print_message("not tested: a sanitizer needs more memory than the limit, and an emulator does not obey it\n");
    skip();
#endif
    OK(NULL, an_context_create(&own, NULL));
    an_limits_read("", &before);
    assert_int_equal(getrlimit(RLIMIT_DATA, &old), 0);
    if (old.rlim_cur != RLIM_INFINITY) skip();
    low = (struct rlimit){(rlim_t)100 << 20, old.rlim_max}; /* bytes */
    assert_int_equal(setrlimit(RLIMIT_DATA, &low), 0);
    const an_status status = make(&trainer, &graph, &data, own);
    assert_int_equal(setrlimit(RLIMIT_DATA, &old), 0);
    assert_int_equal(status, AN_ERR_UNSUPPORTED);
    assert_null(trainer);
    const char *report = an_last_error(own);
    if (!strstr(report, "ulimit -d leaves") ||
        !strstr(report, "even batch.micro 1 with train.recompute full would need"))
        fail_msg("the message is: %s", report);
    assert_true(an_context_bytes(own) < (size_t)16 << 20); /* nothing was allocated for it */
    an_graph_destroy(&graph);
    an_dataset_destroy(&data);
    OK(own, make(&trainer, &graph, &data, own)); /* without the limit it is made */
    an_trainer_destroy(&trainer);
    an_graph_destroy(&graph);
    an_dataset_destroy(&data);
    an_context_destroy(&own);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_run_that_cannot_fit_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
