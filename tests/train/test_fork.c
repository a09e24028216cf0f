/* A process that forks after it has trained: threads do not survive fork, so the child gets errors where it would wait
 * for ever, can free everything, and can compute with a context of its own. The parent does not notice. */
#include <sys/wait.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/run.h"
#include "open/support.h"

enum { STEPS = 6, CHILD_SECONDS = 60 };

#define CONFIG                                                                                   \
    "run: {dir: run, steps: 6}\nmodel: {type: mlp, inputs: 2, outputs: 1, hidden: [512, 512]}\n" \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 2,\n"   \
    "       eval: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}}\n"                \
    "batch: {global: 16}\nsave: {every: off}\n"

static an_trainer *open_fresh(void) {
    assert_int_equal(system("rm -rf run"), 0);
    write_sums();
    return open_run(CONFIG);
}

/* In the child: exits with the number of the first call that is not refused as it should be. */
#define REFUSED(call)                                                                   \
    do {                                                                                \
        tried++;                                                                        \
        if ((call) != AN_ERR_STATE || !strstr(an_last_error(asked), "fork")) {          \
            fprintf(stderr, "%s in a forked child: %s\n", #call, an_last_error(asked)); \
            _exit(tried);                                                               \
        }                                                                               \
    } while (0)

static void use_in_child(an_trainer *trainer, an_predictor *predictor) {
    an_context *const asked = ctx;
    an_context *own = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    float in[2] = {0}, out[1];
    int tried = 0;
    alarm(CHILD_SECONDS); /* what hangs is killed */
    REFUSED(an_trainer_step(trainer, NULL));
    REFUSED(an_trainer_step_on_f32(trainer, 1, in, out, NULL));
    REFUSED(an_trainer_run(trainer, NULL, NULL));
    REFUSED(an_trainer_evaluate(trainer, &evaluation));
    REFUSED(an_trainer_save(trainer, 7));
    REFUSED(an_trainer_load(trainer, "run"));
    REFUSED(an_program_run(an_trainer_program(trainer), AN_FORM_EVALUATE));
    REFUSED(an_params_reset(an_trainer_params(trainer), 7));
    if (an_predictor_run_f32(predictor, 1, in, out) != AN_OK)
        _exit(99); /* a small model: on the calling thread alone */
    an_predictor_destroy(&predictor);
    an_trainer_destroy(&trainer);
    an_context_destroy(&ctx);
    options.threads = 2;
    if (an_context_create(&own, &options) != AN_OK) _exit(100);
    if (an_trainer_open(&trainer, own, "child.yaml", NULL) != AN_OK) _exit(101);
    if (an_trainer_run(trainer, NULL, NULL) != AN_OK) _exit(102);
    an_trainer_destroy(&trainer);
    an_context_destroy(&own);
    _exit(0);
}

static void test_forked_child_gets_errors(void **state) {
    char hashes[2][AN_HASH_TEXT];
    int status = -1;
    (void)state;
    for (int forks = 0; forks < 2; forks++) {
        an_trainer *trainer = open_fresh();
        an_predictor *predictor = NULL;
        for (int i = 0; i < STEPS; i++) {
            OK(ctx, an_trainer_step(trainer, NULL));
            if (i != 2 || !forks) continue;
            OK(ctx, an_predictor_create(&predictor, trainer, NULL));
            write_text("child.yaml",
                       "model: {type: mlp, inputs: 2, outputs: 1, hidden: [4]}\nrun: {dir: child, steps: 2}\n"
                       "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}}\n"
                       "save: {every: off}\n");
            assert_int_equal(system("rm -rf child"), 0);
            fflush(NULL);
            const pid_t child = fork();
            if (child == 0) use_in_child(trainer, predictor);
            assert_true(child > 0);
            assert_int_equal(waitpid(child, &status, 0), child);
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("the child ended with %#x", (unsigned)status);
            an_predictor_destroy(&predictor);
        }
        OK(ctx, an_trainer_state_hash(trainer, hashes[forks]));
        an_trainer_destroy(&trainer);
    }
    assert_string_equal(hashes[0], hashes[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forked_child_gets_errors)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
