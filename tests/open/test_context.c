/* Threads and instructions: a config's are those of the context that it is opened in, and a program can ask
 * for them before it has one. */
#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "open/support.h"

#define RUN                                                                                                         \
    "model: {type: mlp, hidden: [4]}\ndata: {train: {type: csv, path: sums.csv, targets: [sum]}}\nbatch: {global: " \
    "8}\n"

static an_status ask(an_context_options *options, const char *text, const an_open_options *open) {
    an_config_options config = {.size = sizeof config, .file = "run.yaml", .text = text, .length = strlen(text)};
    return an_context_options_from_config(options, &config, open);
}

static void test_other_threads_are_refused(void **state) {
    (void)state;
    write_sums();
    refused(RUN "ranks: {threads: 3}\n", AN_ERR_ARGUMENT,
            "run.yaml:4:18: ranks.threads is 3, but the context has 2; create it with the options from "
            "an_context_options_from_config, or set ranks.threads to auto");
    for (int i = 0; i < 2; i++) {
        an_trainer *trainer = open_run(i ? RUN "ranks: {threads: 2}\n" : RUN "ranks: {threads: auto}\n");
        an_trainer_destroy(&trainer);
    }
}

static void test_other_instructions_are_refused(void **state) {
    an_trainer *trainer = NULL;
    an_config *config = NULL;
    an_open_options open;
    an_open_options_init(&open, sizeof open);
    char text[512], words[256];
    (void)state;
    write_sums();
    const an_isa own = an_context_isa(ctx);
    const char *other = own == AN_ISA_BASE ? "avx2" : "base";
    snprintf(text, sizeof text, RUN "run: {isa: %s}\n", other);
    snprintf(words, sizeof words, "run.yaml:4:12: run.isa is %s, but the context has %s; ", other, an_isa_name(own));
    refused(text, AN_ERR_ARGUMENT, words);
    an_config_options options = {.size = sizeof options, .file = "run.yaml"};
    OK(ctx, an_config_create(&config, ctx, &options));
    open.fresh = true;
    open.purpose = AN_OPEN_PLAN;
    assert_int_equal(an_trainer_open_config(&trainer, ctx, config, &open), AN_ERR_ARGUMENT);
    open.purpose = AN_OPEN_PLAIN; /* others are compared with it, in a context of its own */
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, &open));
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
    snprintf(text, sizeof text, RUN "run: {isa: %s}\n", an_isa_name(own));
    trainer = open_run(text);
    an_trainer_destroy(&trainer);
}

static void test_options_have_what_the_config_asks_for(void **state) {
    static const char both[] = RUN "ranks: {threads: 3}\nrun: {dir: none, isa: base}\n";
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_context *made = NULL;
    an_trainer *trainer = NULL;
    (void)state;
    write_sums();
    write_text("run.yaml", both);
    assert_int_equal(ask(&options, both, NULL), AN_OK);
    assert_int_equal(options.threads, 3);
    assert_int_equal(options.isa, AN_ISA_BASE);
    assert_int_equal(an_context_create(&made, &options), AN_OK);
    OK(made, an_trainer_open(&trainer, made, "run.yaml", NULL));
    an_trainer_destroy(&trainer);
    an_context_destroy(&made);

    options = (an_context_options){.size = sizeof options, .threads = 1, .isa = AN_ISA_AVX2}; /* what is chosen stays */
    assert_int_equal(ask(&options, both, NULL), AN_OK);
    assert_int_equal(options.threads, 1);
    assert_int_equal(options.isa, AN_ISA_AVX2);

    options = (an_context_options){.size = sizeof options};
    assert_int_equal(ask(&options, RUN "run: {dir: none}\n", NULL), AN_OK);
    assert_int_equal(options.threads, 0);
    assert_int_equal(options.isa, AN_ISA_AUTO);
}

/* A run that began with fewer instructions than the machine has goes on with them. */
static void test_a_run_keeps_its_instructions(void **state) {
    static const char text[] = RUN "run: {dir: kept, steps: 2}\n";
    an_context_options options = {.size = sizeof options, .threads = 1, .isa = AN_ISA_BASE};
    an_open_options open;
    an_open_options_init(&open, sizeof open);
    an_context *made = NULL;
    an_trainer *trainer = NULL;
    (void)state;
    assert_int_equal(system("rm -rf kept"), 0);
    write_sums();
    write_text("run.yaml", text);
    assert_int_equal(an_context_create(&made, &options), AN_OK);
    OK(made, an_trainer_open(&trainer, made, "run.yaml", NULL));
    OK(made, an_trainer_save(trainer, 1));
    an_trainer_destroy(&trainer);
    an_context_destroy(&made);

    options = (an_context_options){.size = sizeof options};
    assert_int_equal(ask(&options, text, NULL), AN_OK);
    assert_int_equal(options.isa, AN_ISA_BASE);
    for (int i = 0; i < 3; i++) {
        options = (an_context_options){.size = sizeof options};
        open.fresh = i == 0;
        open.purpose = i == 1 ? AN_OPEN_PLAN : AN_OPEN_RUN;
        open.resume = i == 2 ? "kept" : NULL;
        assert_int_equal(ask(&options, i == 2 ? RUN "run: {dir: none}\n" : text, &open), AN_OK);
        assert_int_equal(options.isa, i == 2 ? AN_ISA_BASE : AN_ISA_AUTO);
    }
}

static void test_mistakes_are_told_without_a_context(void **state) {
    an_context_options options = {.size = sizeof options, .threads = 7};
    (void)state;
    assert_int_equal(ask(&options, "model: {type: mpl}\n", NULL), AN_ERR_PARSE);
    if (!strstr(an_last_error(NULL), "run.yaml:1:15: model.type is 'mpl'")) fail_msg("%s", an_last_error(NULL));
    assert_int_equal(options.threads, 7);
    options.size = 1;
    assert_int_equal(ask(&options, RUN, NULL), AN_ERR_ARGUMENT);
    if (!strstr(an_last_error(NULL), "an_context_options_init")) fail_msg("%s", an_last_error(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_other_threads_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_instructions_are_refused, setup, teardown),
        cmocka_unit_test(test_options_have_what_the_config_asks_for),
        cmocka_unit_test(test_a_run_keeps_its_instructions),
        cmocka_unit_test(test_mistakes_are_told_without_a_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
