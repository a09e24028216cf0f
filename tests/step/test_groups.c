/* Parameter groups: who decays, and by how much; which rule a parameter follows, and what is refused. */
#include "ir/graph.h"
#include "step/groups_support.h"

/* The parameters that decay (or do not), in order, one a line. */
static const char *listed(const an_graph *g, const an_groups *groups, bool decaying) {
    static char text[4096];
    size_t length = 0;
    for (size_t i = 0; i < g->parameter_count; i++) {
        const an_group_info info = info_of(groups, g->parameters[i].name);
        if ((info.weight_decay > 0) != decaying) continue;
        length += (size_t)snprintf(text + length, sizeof text - length, "%s\n", g->parameters[i].name);
    }
    text[length] = 0;
    return text;
}

/* ---- who decays ---- */

#define GPT2_BLOCK(i)                                                                                  \
    "h." i ".ln_1.weight\nh." i ".ln_1.bias\nh." i ".attn.c_attn.bias\nh." i ".attn.c_proj.bias\nh." i \
    ".ln_2.weight\nh." i ".ln_2.bias\nh." i ".mlp.c_fc.bias\nh." i ".mlp.c_proj.bias\n"

static void test_decay_of_gpt2(void **state) {
    (void)state;
    for (int decay = AN_DECAY_DIM; decay <= AN_DECAY_NAMES; decay++) {
        const an_group_options o = {DEFAULTS(an_group_options), .decay = (an_decay)decay, .weight_decay = 0.1};
        an_graph *g = gpt2();
        an_groups *groups = NULL;
        OK(ctx, an_groups_create(&groups, g, &o));
        assert_string_equal(listed(g, groups, false), GPT2_BLOCK("0") GPT2_BLOCK("1") "ln_f.weight\nln_f.bias\n");
        assert_true(info_of(groups, "wte.weight").weight_decay == 0.1);
        assert_true(info_of(groups, "wpe.weight").weight_decay == 0.1);
        assert_int_equal(an_groups_count(groups), 2);
        an_groups_destroy(&groups);
        an_graph_destroy(&g);
    }
}

#define LLAMA_BLOCK(i) "model.layers." i ".input_layernorm.weight\nmodel.layers." i ".post_attention_layernorm.weight\n"

static void test_decay_of_llama(void **state) {
    (void)state;
    for (int decay = AN_DECAY_DIM; decay <= AN_DECAY_NAMES; decay++) {
        const an_group_options o = {DEFAULTS(an_group_options), .decay = (an_decay)decay};
        an_graph *g = llama(false);
        an_groups *groups = NULL;
        OK(ctx, an_groups_create(&groups, g, &o));
        assert_string_equal(listed(g, groups, false),
                            LLAMA_BLOCK("0") LLAMA_BLOCK("1") LLAMA_BLOCK("2") "model.norm.weight\n");
        assert_true(info_of(groups, "lm_head.weight").weight_decay == 0.01); /* the default */
        an_groups_destroy(&groups);
        an_graph_destroy(&g);
    }
}

/* Parameters by name, each read as its kind says; x is (batch, 8) all the way. */
typedef enum { VECTOR, MATRIX, NORM, NORM_VIEW, TABLE } kind;

typedef struct {
    const char *name;
    kind kind;
    bool by_dim, by_name; /* whether it decays */
} named;

static const named bert[] = {
    {"embeddings.word_embeddings.weight", TABLE, true, true},
    {"embeddings.LayerNorm.weight", VECTOR, false, false}, /* written out: no op says that it is a norm */
    {"embeddings.LayerNorm.bias", VECTOR, false, false},
    {"encoder.layer.0.attention.self.query.weight", MATRIX, true, true},
    {"encoder.layer.0.attention.self.query.bias", VECTOR, false, false},
    {"encoder.layer.0.attention.output.LayerNorm.weight", NORM, false, false},
    {"encoder.layer.0.attention.output.LayerNorm.bias", VECTOR, false, false},
    {"encoder.layer.0.relative_attention_bias.weight", MATRIX, true, false},
    {"encoder.layer.0.scale", VECTOR, false, true},    /* one dimension, but nothing says norm or bias */
    {"encoder.layer.0.odd.g", NORM, false, false},     /* known from the op */
    {"encoder.layer.0.odd.h", NORM_VIEW, true, false}, /* two dimensions; the op reads a view of it */
    {"encoder.layer.0.T5RMSNorm.g", VECTOR, false, false},
    {"encoder.layer.0.norm.g", VECTOR, false, false},
    {"encoder.layer.0.Norm", VECTOR, false, false},
    {"norm.weight", VECTOR, false, false},
    {"encoder.layer.0.q_norm.g", VECTOR, false, false},
    {"encoder.layer.0.ln_post.g", VECTOR, false, false},
    {"ln_", VECTOR, false, false},
    {"encoder.layer.0.norms.g", VECTOR, false, true},
    {"encoder.layer.0.norm1.g", VECTOR, false, true}, /* as semantics are written: only norm as a whole word */
    {"encoder.layer.0.abnorm.g", VECTOR, false, true},
    {"encoder.layer.0.q_norms.g", VECTOR, false, true},
    {"encoder.layer.0.kiln_1.g", VECTOR, false, true},
    {"encoder.layer.0.ln.g", VECTOR, false, true},
    {"pooler.dense.weight", MATRIX, true, true},
};
enum { BERT = sizeof bert / sizeof *bert };

static an_graph *named_graph(const named *names, int count) {
    an_graph *g = NULL;
    OK(ctx, an_graph_create(&g, ctx, "names"));
    an_dim batch = an_symbol_dim(g, "batch");
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, 8)),
             y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch, 8));
    an_value indices = an_input(g, "indices", AN_DTYPE_I32, AN_DIMS(batch));
    for (int i = 0; i < count; i++) {
        const kind k = names[i].kind;
        const int64_t rows = k == TABLE ? 11 : k == NORM_VIEW ? 2 : 8;
        const bool flat = k == VECTOR || k == NORM;
        an_value w = flat ? an_param(g, names[i].name, AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 1, AN_DIMS(8))
                          : an_param(g, names[i].name, AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 1,
                                     AN_DIMS(rows, k == NORM_VIEW ? 4 : 8));
        if (k == VECTOR) x = an_bias(g, x, w, -1);
        if (k == MATRIX) x = an_matmul(g, x, w, false, true);
        if (k == NORM) x = an_rms_norm(g, x, w, 1e-5);
        if (k == NORM_VIEW) x = an_rms_norm(g, x, an_reshape(g, w, AN_DIMS(8)), 1e-5);
        if (k == TABLE) x = an_add(g, x, an_embedding(g, indices, w));
    }
    an_graph_set_loss(g, an_squared_error(g, x, y), y);
    OK(ctx, an_graph_verify(g));
    return g;
}

static void test_decay_of_bert_names(void **state) {
    (void)state;
    for (int decay = AN_DECAY_DIM; decay <= AN_DECAY_NAMES; decay++) {
        const an_group_options o = {DEFAULTS(an_group_options), .decay = (an_decay)decay};
        an_graph *g = named_graph(bert, BERT);
        an_groups *groups = NULL;
        OK(ctx, an_groups_create(&groups, g, &o));
        for (int i = 0; i < BERT; i++) {
            const bool expected = decay == AN_DECAY_DIM ? bert[i].by_dim : bert[i].by_name;
            if ((info_of(groups, bert[i].name).weight_decay > 0) != expected)
                fail_msg("%s: '%s' should%s decay", decay ? "names" : "dim", bert[i].name, expected ? "" : " not");
        }
        an_groups_destroy(&groups);
        an_graph_destroy(&g);
    }
}

/* Tables by what reads them, whatever their names, and also where a head reads them too. */
static void test_embeddings_stay(void **state) {
    (void)state;
    const named odd[] = {
        {"positions", MATRIX, true, true}, {"lookup", TABLE, true, true}, {"after", MATRIX, true, true}};
    const an_group_options o = {DEFAULTS(an_group_options), .decay_embeddings = false};
    an_graph *g = gpt2();
    an_groups *groups = NULL;
    OK(ctx, an_groups_create(&groups, g, &o));
    assert_true(info_of(groups, "wte.weight").weight_decay == 0);
    assert_int_equal(info_of(groups, "wte.weight").tied, 1);
    assert_true(info_of(groups, "wpe.weight").weight_decay == 0); /* added to the tokens, as a slice */
    an_groups_destroy(&groups);
    an_graph_destroy(&g);

    g = llama(false);
    OK(ctx, an_groups_create(&groups, g, &o));
    assert_true(info_of(groups, "model.embed_tokens.weight").weight_decay == 0);
    assert_int_equal(info_of(groups, "model.embed_tokens.weight").tied, 0);
    assert_true(info_of(groups, "lm_head.weight").weight_decay == 0.01);
    an_groups_destroy(&groups);
    an_graph_destroy(&g);

    g = named_graph(odd, 3);
    OK(ctx, an_groups_create(&groups, g, &o));
    assert_true(info_of(groups, "positions").weight_decay == 0.01);
    assert_true(info_of(groups, "lookup").weight_decay == 0);
    assert_true(info_of(groups, "after").weight_decay == 0.01);
    an_groups_destroy(&groups);
    an_graph_destroy(&g);
}

/* The same of tables that are added whole, to scaled tokens or to another table; a table that is added
 * to anything else decays. */
static void test_tables_of_positions_stay(void **state) {
    static const char *const tables[] = {"tokens", "places", "segments"};
    const an_group_options o = {DEFAULTS(an_group_options), .decay_embeddings = false};
    an_graph *g = NULL;
    an_groups *groups = NULL;
    an_value w[3];
    (void)state;
    OK(ctx, an_graph_create(&g, ctx, "tables"));
    an_dim batch = an_symbol_dim(g, "batch");
    an_value indices = an_input(g, "indices", AN_DTYPE_I32, AN_DIMS(batch, 4));
    an_value y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch, 4, 8));
    for (int i = 0; i < 3; i++)
        w[i] = an_param(g, tables[i], AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 1, AN_DIMS(i == 0 ? 11 : 4, 8));
    an_value x = an_add(g, w[1], an_scale(g, an_embedding(g, indices, w[0]), 8));
    x = an_add(g, an_dropout(g, x, an_input(g, "samples", AN_DTYPE_I64, AN_DIMS(batch)), 0.5), w[2]);
    x = an_linear(g, x, "fc", 8);
    an_value late = an_param(g, "late", AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 1, AN_DIMS(4, 8));
    an_graph_set_loss(g, an_squared_error(g, an_add(g, x, late), y), y);
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_groups_create(&groups, g, &o));
    for (int i = 0; i < 3; i++) assert_true(info_of(groups, tables[i]).weight_decay == 0);
    assert_true(info_of(groups, "late").weight_decay == 0.01);
    assert_true(info_of(groups, "fc.weight").weight_decay == 0.01);
    an_groups_destroy(&groups);
    an_graph_destroy(&g);
}

/* L2 is asked for, not given. */
static void test_default_decay_is_the_optimizers(void **state) {
    static const double expected[] = {[AN_OPTIMIZER_ADAMW] = 0.01, [AN_OPTIMIZER_ADAM] = 0, [AN_OPTIMIZER_SGD] = 0};
    (void)state;
    for (int type = AN_OPTIMIZER_ADAMW; type <= AN_OPTIMIZER_SGD; type++)
        for (int given = 0; given < 2; given++) {
            const an_group_options o = {DEFAULTS(an_group_options), .optimizer = (an_optimizer_type)type,
                                        .weight_decay = given ? 0.3 : AN_AUTO};
            an_graph *g = gpt2();
            an_groups *groups = NULL;
            OK(ctx, an_groups_create(&groups, g, &o));
            assert_true(info_of(groups, "wte.weight").weight_decay == (given ? 0.3 : expected[type]));
            an_groups_destroy(&groups);
            an_graph_destroy(&g);
        }
    const an_group_options o = {DEFAULTS(an_group_options), .optimizer = (an_optimizer_type)7};
    an_graph *g = gpt2();
    an_groups *groups = NULL;
    FAILS(ctx, an_groups_create(&groups, g, &o), AN_ERR_ARGUMENT, "optimizer is 7");
    const an_group_options unknown = {DEFAULTS(an_group_options), .decay = (an_decay)2};
    FAILS(ctx, an_groups_create(&groups, g, &unknown), AN_ERR_ARGUMENT, "decay is 2, which is not a value of an_decay");
    an_graph_destroy(&g);
}

static void test_no_decay(void **state) {
    (void)state;
    const an_group_options o = {DEFAULTS(an_group_options), .weight_decay = 0};
    an_graph *g = gpt2();
    an_groups *groups = NULL;
    OK(ctx, an_groups_create(&groups, g, &o));
    assert_string_equal(listed(g, groups, true), "");
    assert_int_equal(an_groups_count(groups), 1);
    an_groups_destroy(&groups);
    an_graph_destroy(&g);
}

/* ---- rules ---- */

static void test_first_rule_wins(void **state) {
    (void)state;
    const an_group_rule rules[] = {
        {DEFAULTS(an_group_rule), .match = "^h\\.0\\..*weight$", .lr_scale = 0.5},
        {DEFAULTS(an_group_rule), .match = "^h\\.", .lr_scale = 0.25, .weight_decay = 0},
        {DEFAULTS(an_group_rule), .match = "ln_f", .weight_decay = 0.3},
    };
    const an_group_options o = {DEFAULTS(an_group_options), .layer_decay = 0.5, .weight_decay = 0.1, .rule_count = 3,
                                .rules = rules};
    an_graph *g = gpt2();
    an_groups *groups = NULL;
    OK(ctx, an_groups_create(&groups, g, &o));
    an_group_info info = info_of(groups, "h.0.mlp.c_fc.weight");
    assert_string_equal(info.match, rules[0].match);
    assert_true(info.lr_scale == 0.5 * 0.25 && info.weight_decay == 0.1); /* on the depth's factor, of 1 of 3 */
    info = info_of(groups, "h.0.mlp.c_fc.bias");
    assert_string_equal(info.match, rules[1].match);
    assert_true(info.lr_scale == 0.25 * 0.25 && info.weight_decay == 0);
    info = info_of(groups, "h.1.mlp.c_fc.weight");
    assert_string_equal(info.match, rules[1].match);
    assert_true(info.lr_scale == 0.25 * 0.5 && info.weight_decay == 0);
    info = info_of(groups, "ln_f.bias"); /* what the rule says goes over what its dimensions say */
    assert_true(info.lr_scale == 1 && info.weight_decay == 0.3);
    info = info_of(groups, "wte.weight");
    assert_string_equal(info.match, "");
    assert_string_equal(info.first, "wte.weight");
    assert_int_equal(info.tensors, 2); /* wte and wpe */
    assert_int_equal(info.elements, 11 * 8 + 16 * 8);
    int64_t tensors = 0;
    for (int i = 0; i < an_groups_count(groups); i++) {
        OK(ctx, an_groups_get(groups, i, &info));
        tensors += info.tensors;
    }
    assert_int_equal(tensors, g->parameter_count); /* everyone in one group */
    an_groups_destroy(&groups);
    an_graph_destroy(&g);
}

static void refuse_rules(int count, const an_group_rule *rules, const char *words) {
    const an_group_options o = {DEFAULTS(an_group_options), .rule_count = count, .rules = rules};
    an_graph *g = gpt2();
    an_groups *groups = NULL;
    FAILS(ctx, an_groups_create(&groups, g, &o), AN_ERR_ARGUMENT, words);
    assert_null(groups);
    for (size_t i = 0; i < g->parameter_count; i++) /* nothing was frozen on the way */
        assert_int_equal(g->parameters[i].node->outputs[0].storage, AN_STORAGE_MASTER);
    an_graph_destroy(&g);
}

static void test_refused_rules(void **state) {
    (void)state;
    const size_t size = sizeof(an_group_rule);
    refuse_rules(1, &(an_group_rule){.size = size, .match = "nothing"},
                 "the pattern 'nothing' of a group matches no parameter; 'anneal graph' lists their names");
    refuse_rules(2,
                 (an_group_rule[]){{.size = size, .match = "^h\\.", .freeze = true}, {.size = size, .match = "attn"}},
                 "the pattern 'attn' of a group matches no parameter that earlier groups have not already matched; "
                 "'anneal graph' lists their names");
    refuse_rules(1, &(an_group_rule){.size = size, .match = "h\\.(0"},
                 "the pattern 'h\\.(0' of a group is not a valid regular expression: missing closing parenthesis, at "
                 "character 6");
    refuse_rules(1, &(an_group_rule){.size = size, .match = "wte[z-a]"}, "range out of order in character class, at");
    refuse_rules(1, &(an_group_rule){.size = size, .match = "^(?:[a-z0-9_.]+)+[^a-z0-9_.]$"},
                 "' of a group fails on parameter '");
    refuse_rules(1, &(an_group_rule){.match = "wte"},
                 "an_group_rule has size 0, expected at least 40: call an_group_rule_init first");
    refuse_rules(1, &(an_group_rule){.size = size}, "group rule 0 has no pattern");
    refuse_rules(1, &(an_group_rule){.size = size, .match = "wte", .lr_scale = -1}, "it must be 0 or more");
    refuse_rules(1, &(an_group_rule){.size = size, .match = "wte", .lr_scale = NAN}, "it must be 0 or more");
    refuse_rules(1, &(an_group_rule){.size = size, .match = "wte", .lr_scale = 1, .weight_decay = -1},
                 "the weight_decay of group rule 0 is");
}

static void test_refused_options(void **state) {
    (void)state;
    an_graph *g = gpt2(), *bad = NULL;
    an_groups *groups = NULL;
    an_group_options o = {0};
    an_group_info info = {0};
    int index;
    FAILS(ctx, an_groups_create(&groups, g, &o), AN_ERR_ARGUMENT, "an_group_options has size 0");
    o.size = sizeof o;
    o.weight_decay = INFINITY;
    FAILS(ctx, an_groups_create(&groups, g, &o), AN_ERR_ARGUMENT, "weight_decay is inf");
    OK(ctx, an_groups_create(&groups, g, NULL));
    FAILS(ctx, an_groups_find(groups, "h.7", &index), AN_ERR_UNKNOWN, "there is no parameter 'h.7' in the groups");
    FAILS(ctx, an_groups_get(groups, 0, &info), AN_ERR_ARGUMENT, "an_group_info has size 0");
    info.size = sizeof info;
    FAILS(ctx, an_groups_get(groups, 2, &info), AN_ERR_ARGUMENT, "group 2 does not exist; there are 2");
    FAILS(ctx, an_groups_get(groups, -1, &info), AN_ERR_ARGUMENT, "group -1 does not exist");
    an_groups_destroy(&groups);
    an_graph_destroy(&g);

    OK(ctx, an_graph_create(&bad, ctx, "bad"));
    an_relu(bad, 0);
    FAILS(ctx, an_groups_create(&groups, bad, NULL), AN_ERR_STATE, "graph 'bad' has a mistake");
    an_graph_destroy(&bad);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decay_of_gpt2),
        cmocka_unit_test(test_decay_of_llama),
        cmocka_unit_test(test_decay_of_bert_names),
        cmocka_unit_test(test_embeddings_stay),
        cmocka_unit_test(test_tables_of_positions_stay),
        cmocka_unit_test(test_default_decay_is_the_optimizers),
        cmocka_unit_test(test_no_decay),
        cmocka_unit_test(test_first_rule_wins),
        cmocka_unit_test(test_refused_rules),
        cmocka_unit_test(test_refused_options),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
