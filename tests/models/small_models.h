/* Small models and the context that the tests of models share. */
#ifndef TESTS_SMALL_MODELS_H
#define TESTS_SMALL_MODELS_H

#include "anneal/models.h"
#include "ir/graph.h"
#include "support/support.h"

static an_context *ctx;

static inline int setup(void **state) {
    (void)state;
    return an_context_create(&ctx, NULL) != AN_OK;
}

static inline int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return 0;
}

static inline an_gpt2_options small_gpt2(void) {
    an_gpt2_options o;
    an_gpt2_options_init(&o, sizeof o);
    o.layers = 2;
    o.heads = 2;
    o.width = 8;
    o.context = 16;
    o.vocabulary = 11;
    return o;
}

static inline an_llama_options small_llama(void) {
    an_llama_options o;
    an_llama_options_init(&o, sizeof o);
    o.layers = 2;
    o.heads = 4;
    o.kv_heads = 2;
    o.width = 16;
    o.hidden = 24;
    o.context = 16;
    o.vocabulary = 11;
    return o;
}

static inline an_bert_options small_bert(void) {
    an_bert_options o;
    an_bert_options_init(&o, sizeof o);
    o.layers = 2;
    o.heads = 2;
    o.width = 8;
    o.hidden = 12;
    o.context = 16;
    o.vocabulary = 11;
    o.classes = 3;
    return o;
}

static const int64_t widths[] = {6, 5};

static inline an_mlp_options small_mlp_options(void) {
    an_mlp_options o;
    an_mlp_options_init(&o, sizeof o);
    o.inputs = 4;
    o.outputs = 3;
    o.hidden_count = 2;
    o.hidden = widths;
    return o;
}

static inline an_cnn_options small_cnn(void) {
    an_cnn_options o;
    an_cnn_options_init(&o, sizeof o);
    o.channels = 3;
    o.height = 9;
    o.width = 8;
    o.classes = 4;
    o.filter_count = 2;
    o.filters = widths;
    o.hidden = 7;
    return o;
}

#endif
