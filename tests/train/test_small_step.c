/* A small step wakes no thread: its kernels take less time than waking one, and on a busy machine far less. */
#include <dirent.h>

#include "anneal/models.h"
#include "anneal/train.h"
#include "support/support.h"

enum { INPUTS = 16, OUTPUTS = 4, SAMPLES = 64, THREADS = 2, STEPS = 8 };

static int threads_now(void) {
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(folder);
    for (const struct dirent *d; (d = readdir(folder));) count += d->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* Takes steps of a network with `width` hidden units; says how many threads the process had then, and the weights'
 * hash. */
static int threads_after_steps(int threads, int64_t width, an_dtype precision, char hash[AN_HASH_TEXT]) {
    static float inputs[SAMPLES][INPUTS], targets[SAMPLES][OUTPUTS];
    const int64_t input_dims[] = {SAMPLES, INPUTS}, target_dims[] = {SAMPLES, OUTPUTS}, hidden[] = {width};
    const an_array arrays[] = {array_of(inputs, AN_DTYPE_F32, 2, input_dims),
                               array_of(targets, AN_DTYPE_F32, 2, target_dims)};
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    an_mlp_options model;
    an_mlp_options_init(&model, sizeof model);
    an_trainer_options o;
    an_trainer_options_init(&o, sizeof o);
    an_context *own = NULL;
    an_dataset *dataset = NULL;
    an_graph *graph = NULL;
    an_trainer *trainer = NULL;
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < INPUTS; k++) inputs[i][k] = (float)((i * 7 + k * 3) % 13 - 6) / 6;
        for (int k = 0; k < OUTPUTS; k++) targets[i][k] = inputs[i][k] * inputs[i][k + 1];
    }
    options.threads = threads;
    OK(own, an_context_create(&own, &options));
    source.array_count = 2;
    source.arrays = arrays;
    model.inputs = INPUTS;
    model.outputs = OUTPUTS;
    model.hidden = hidden;
    model.hidden_count = 1;
    model.dropout = 0.2;
    model.loss = AN_LOSS_SQUARED;
    an_batch_options batch;
    an_batch_options_init(&batch, sizeof batch);
    batch.global = SAMPLES;
    o.batch = &batch;
    o.steps = STEPS;
    o.rate = 1e-2;
    o.precision = precision;
    OK(own, an_dataset_create_arrays(&dataset, own, &source));
    OK(own, an_model_mlp(&graph, own, &model));
    OK(own, an_trainer_create(&trainer, graph, dataset, NULL, &o));
    for (int i = 0; i < STEPS; i++) OK(own, an_trainer_step(trainer, NULL));
    const int count = threads_now();
    OK(own, an_trainer_weights_hash(trainer, hash));
    an_trainer_destroy(&trainer);
    an_graph_destroy(&graph);
    an_dataset_destroy(&dataset);
    an_context_destroy(&own);
    return count;
}

static void test_a_small_step_wakes_no_thread(void **state) {
    static const an_dtype precisions[] = {AN_DTYPE_NONE, AN_DTYPE_BF16};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char one[AN_HASH_TEXT], both[AN_HASH_TEXT];
        const int alone = threads_after_steps(1, 64, precisions[i], one); /* 1, and what an emulator has */
        assert_int_equal(threads_after_steps(THREADS, 64, precisions[i], both), alone);
        assert_string_equal(one, both);
    }
}

static void test_a_larger_step_uses_all(void **state) {
    char one[AN_HASH_TEXT], both[AN_HASH_TEXT];
    (void)state;
    const int alone = threads_after_steps(1, 2048, AN_DTYPE_NONE, one);
    assert_int_equal(threads_after_steps(THREADS, 2048, AN_DTYPE_NONE, both), alone + THREADS - 1);
    assert_string_equal(one, both);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_small_step_wakes_no_thread),
        cmocka_unit_test(test_a_larger_step_uses_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
