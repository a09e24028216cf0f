/* Lets a model of characters or bytes write some text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/train/open.h"

/* Numbers from 0 to below 1, the same in every run. */
static double random_number(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

/* One of `count`, by the softmax of their logits at a temperature. */
static int32_t draw(const float *logits, int64_t count, double temperature, uint64_t *state) {
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) top = logits[i] > top ? logits[i] : top;
    for (int64_t i = 0; i < count; i++) sum += exp((logits[i] - top) / temperature);
    double rest = random_number(state) * sum;
    for (int64_t i = 0; i < count; i++) {
        rest -= exp((logits[i] - top) / temperature);
        if (rest < 0) return (int32_t)i;
    }
    return (int32_t)count - 1;
}

typedef struct {
    an_predictor *predictor;
    int32_t *window; /* what the model sees: its context */
    float *logits;
    int64_t context, vocabulary, seen;
} writing;

/* The token after those of the window. */
static an_status next_token(writing *w, double temperature, uint64_t *state, int32_t *token) {
    const an_status status = an_predictor_run_tokens(w->predictor, 1, w->window, w->logits);
    if (status != AN_OK) return status;
    *token = draw(w->logits + (w->seen - 1) * w->vocabulary, w->vocabulary, temperature, state);
    if (w->seen == w->context)
        memmove(w->window, w->window + 1, (size_t)(w->context - 1) * sizeof *w->window);
    else
        w->seen++;
    w->window[w->seen - 1] = *token;
    return AN_OK;
}

int cli_sample(cli_training *training, const cli_sampling *sampling) {
    cli_training *t = training;
    const an_dataset *data = an_trainer_data(t->trainer);
    writing w = {.context = t->info.tokens};
    uint64_t state = (uint64_t)sampling->seed;
    an_status status = an_dataset_vocabulary(data, &w.vocabulary);
    if (status == AN_OK) status = an_predictor_create(&w.predictor, t->trainer, NULL);
    if (status != AN_OK) return cli_failure(t->call, t->ctx, status);
    w.window = calloc((size_t)w.context, sizeof *w.window);
    w.logits = calloc((size_t)(w.context * w.vocabulary), sizeof *w.logits);
    if (w.window && w.logits)
        status = an_dataset_encode(data, sampling->prompt, strlen(sampling->prompt), w.window, w.context, &w.seen);
    else
        status = AN_ERR_MEMORY;
    for (int64_t i = 0; status == AN_OK && i < sampling->tokens; i++) {
        char text[AN_TOKEN_BYTES];
        int32_t token;
        int length;
        status = next_token(&w, sampling->temperature, &state, &token);
        if (status == AN_OK) status = an_dataset_token_text(data, token, text, &length);
        if (status == AN_OK) fwrite(text, 1, (size_t)length, stdout);
    }
    putchar('\n');
    const int code = status == AN_OK ? CLI_DONE : cli_fail(t->call, "no sample: %s", an_last_error(NULL));
    free(w.window);
    free(w.logits);
    an_predictor_destroy(&w.predictor);
    return code;
}
