/* Wrong options of models and layers are refused with a sentence. */
#include "models/small_models.h"

#define REFUSES(model, options, member, wrong, words)             \
    do {                                                          \
        an_graph *g_ = NULL;                                      \
        an_##model##_options o_ = (options);                      \
        o_.member = (wrong);                                      \
        FAILS(ctx, an_model_##model(&g_, ctx, &o_), code, words); \
        assert_null(g_);                                          \
    } while (0)

static void wrong_options(void **state) {
    an_status code = AN_ERR_ARGUMENT;
    an_graph *g = NULL;
    (void)state;
    REFUSES(gpt2, small_gpt2(), size, 8, "_init first");
    REFUSES(gpt2, small_gpt2(), layers, 0, "gpt2: layers is 0; it must be from 1");
    REFUSES(gpt2, small_gpt2(), vocabulary, INT64_MAX, "vocabulary is 9223372036854775807");
    REFUSES(gpt2, small_gpt2(), heads, 3,
            "3 heads cannot share a width of 8: the width must be a multiple of the number of heads, such as 9");
    REFUSES(gpt2, small_gpt2(), dropout, 1.0,
            ": dropout is 1; the share of values to drop must be at least 0 and less than 1");
    REFUSES(gpt2, small_gpt2(), dropout, (double)NAN, "dropout is");
    REFUSES(llama, small_llama(), kv_heads, 3, "4 heads cannot share 3 key and value heads");
    REFUSES(llama, small_llama(), width, 12, "heads an odd size of 3, but rotary positions need an even size");
    REFUSES(llama, small_llama(), epsilon, -1.0, "epsilon -1");
    REFUSES(bert, small_bert(), hidden, 0, "bert: hidden is 0; it must be from 1");
    REFUSES(bert, small_bert(), token_types, -1, "token_types is -1");
    REFUSES(bert, small_bert(), classes, 0, "classes is 0; it must be from 1");
    REFUSES(bert, small_bert(), heads, 3, "3 heads cannot share a width of 8");
    REFUSES(bert, small_bert(), dropout, 1.0, "dropout is 1");
    REFUSES(bert, small_bert(), epsilon, 0.0, "bert: epsilon is 0; it must be above 0");
    REFUSES(bert, small_bert(), head, AN_BERT_HEAD_EMBEDDING,
            "classes is 3, but a model without a classifier has none");
    REFUSES(bert, small_bert(), head, (an_bert_head)3, "head is 3, which is not a value of an_bert_head");
    REFUSES(bert, small_bert(), pooling, (an_bert_pooling)-1, "pooling is -1, which is not a value of an_bert_pooling");
    REFUSES(mlp, small_mlp_options(), hidden, NULL, "hidden is NULL; it must point to the widths of 2 hidden layers");
    REFUSES(mlp, small_mlp_options(), hidden_count, -1, "hidden_count is -1");
    REFUSES(mlp, small_mlp_options(), outputs, 0, "mlp: outputs is 0");
    REFUSES(mlp, small_mlp_options(), activation, (an_activation)9, "activation is 9");
    REFUSES(mlp, small_mlp_options(), loss, (an_loss_kind)9, "loss is 9");
    REFUSES(cnn, small_cnn(), filters, NULL, "filters is NULL");
    REFUSES(cnn, small_cnn(), filter_count, 0, "at least one convolution");
    REFUSES(
        cnn, small_cnn(), height, 3,
        ": an image of 3 × 8 is too small for 2 convolutions, because each of them halves it; at most 1 are possible");
    FAILS(ctx, an_model_gpt2(&g, ctx, NULL), AN_ERR_ARGUMENT, "options is NULL");
    code = AN_ERR_DTYPE;
    REFUSES(gpt2, small_gpt2(), dtype, AN_DTYPE_BF16, ": parameters must be f32 or f64, not bf16");
    FAILS(ctx, an_model_preset(&g, ctx, "gpt2-124", AN_DTYPE_NONE), AN_ERR_UNKNOWN, "; did you mean 'gpt2-124m'?");
    FAILS(ctx, an_model_preset(&g, ctx, NULL, AN_DTYPE_NONE), AN_ERR_ARGUMENT, "NULL");
}

/* Layers that cannot be sized say so, with the line of the call. */
static void wrong_layers(void **state) {
    an_graph *g = NULL;
    (void)state;
    OK(ctx, an_graph_create(&g, ctx, "wrong"));
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(4, an_symbol_dim(g, "batch")));
    an_linear(g, x, "fc", 8);
    FAILS(ctx, an_graph_verify(g), AN_ERR_SHAPE, "f32[4,batch] contains a symbol");
    assert_non_null(strstr(an_last_error(ctx), "test_options.c:"));
    an_graph_destroy(&g);
    OK(ctx, an_graph_create(&g, ctx, "wrong"));
    x = an_input(g, "x", AN_DTYPE_I32, AN_DIMS(4, 4));
    an_linear(g, x, "fc", 8);
    FAILS(ctx, an_graph_verify(g), AN_ERR_DTYPE, "cast it, or use an_embedding_layer for indices");
    an_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(wrong_layers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
