/* `documents: apart` in a config reaches attention. (That attention then stays inside of them: test_traps_model.c.) */
#include "open/support.h"

enum { END = 9, CONTEXT = 8 };

/* Two samples of two documents each. */
static void write_tokens(void) {
    uint16_t tokens[2 * CONTEXT + 1];
    for (int i = 0; i <= 2 * CONTEXT; i++)
        tokens[i] = (uint16_t)(i % CONTEXT < 3 ? 6 : i % CONTEXT == 3 ? END : 1 + i % 5);
    write_file("tokens.bin", tokens, sizeof tokens);
}

/* Over everything, before the first step. */
static double loss_of(const char *type, const char *documents) {
    char config[1024];
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    write_tokens();
    snprintf(config, sizeof config,
             "run: {steps: 1, seed: 3}\nmodel: {type: %s, layers: 2, heads: 2, width: 16, context: 8, vocabulary: 10}\n"
             "data: {train: {type: tokens, path: tokens.bin, format: u16, documents: %s, end_token: 9}, eval: "
             "{type: tokens, path: tokens.bin, format: u16, documents: %s, end_token: 9}}\n"
             "batch: {global: 2}\ntrain: {precision: f32}\n",
             type, documents, documents);
    an_trainer *trainer = open_run(config);
    OK(ctx, an_trainer_evaluate(trainer, &evaluation));
    an_trainer_destroy(&trainer);
    return evaluation.loss;
}

static void check(const char *type) {
    /* Joined, the borders are no borders: apart gives another loss on the same tokens. */
    assert_true(loss_of(type, "join") != loss_of(type, "apart"));
}

static void test_documents_apart_reach_gpt2(void **state) {
    (void)state;
    check("gpt2");
}

static void test_documents_apart_reach_llama(void **state) {
    (void)state;
    check("llama");
}

/* Where both sides of attention are looked at: a sample of one document has the same loss joined and apart. */
static void test_one_document_is_the_same_joined_and_apart(void **state) {
    uint16_t tokens[2 * CONTEXT + 1];
    double losses[2];
    (void)state;
    for (int i = 0; i <= 2 * CONTEXT; i++) tokens[i] = (uint16_t)(1 + i % 7);
    for (int apart = 0; apart < 2; apart++) {
        char config[1024];
        an_evaluation evaluation;
        an_evaluation_init(&evaluation, sizeof evaluation);
        write_file("tokens.bin", tokens, sizeof tokens);
        snprintf(
            config, sizeof config,
            "run: {steps: 1, seed: 3}\nmodel: {type: gpt2, layers: 2, heads: 2, width: 16, context: 8, vocabulary: "
            "10}\n"
            "data: {train: {type: tokens, path: tokens.bin, format: u16, documents: %s, end_token: 9}, eval: "
            "{type: tokens, path: tokens.bin, format: u16, documents: %s, end_token: 9}}\n"
            "batch: {global: 2}\ntrain: {precision: f32}\n",
            apart ? "apart" : "join", apart ? "apart" : "join");
        an_trainer *trainer = open_run(config);
        OK(ctx, an_trainer_evaluate(trainer, &evaluation));
        losses[apart] = evaluation.loss;
        an_trainer_destroy(&trainer);
    }
    assert_true(losses[0] == losses[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_documents_apart_reach_gpt2, setup, teardown),
        cmocka_unit_test_setup_teardown(test_documents_apart_reach_llama, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_document_is_the_same_joined_and_apart, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
