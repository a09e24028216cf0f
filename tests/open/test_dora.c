/* DoRA from configs: where it starts, one hash however steps are computed, what is made of it afterwards.
 * test_lora.c compares it with peft. */
#include <math.h>
#include <stdlib.h>

#include "anneal/checkpoint.h"
#include "anneal/generate.h"
#include "anneal/predict.h"
#include "exec/params.h"
#include "exec/plan.h"
#include "ranks/threads.h"
#include "train/trainer.h"

#include "open/init_support.h" /* last, as its ctx would be shadowed */
#include "support/export_as.h"

enum { STEPS = 20, WIDTH = 64, HIDDEN = 96, CONTEXT = 24, VOCABULARY = 70, GENERATED = 16 };

#define SIZES \
    "type: llama, layers: 2, heads: 4, kv_heads: 2, width: 64, hidden: 96, context: 24, vocabulary: 70, tied: on"
#define LLAMA "model: {" SIZES "}\n"
#define FROM(path) "model: {" SIZES ", init: {from: " path "}}\n"
#define DATA_IN(batch)                                                      \
    "data: {train: {type: tokens, path: tokens.bin}}\nsave: {every: off}\n" \
    "batch: {global: 4, leaves: 4" batch "}\noptimizer: {lr: 1e-2, weight_decay: 0.1}\n"
#define DATA DATA_IN("")
#define REST DATA "run: {dir: run, steps: 20}\n"
#define ADAPTER(more) "lora: {targets: [q_proj, gate_proj, down_proj], rank: 5, alpha: 10, " more "}\n"
#define DORA(more) ADAPTER("dora: on" more)
#define PRECISION(name) "train: {precision: " name "}\n"

static void forget(const char *folders) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folders);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folders */
}

static void begin(void) {
    unsigned short tokens[512];
    for (int i = 0; i < 512; i++) tokens[i] = (unsigned short)(i * i / 3 % VOCABULARY);
    write_file("tokens.bin", tokens, sizeof tokens);
    forget("run");
}

/* A model in a file. */
static void save_base(void) {
    begin();
    forget("base");
    an_trainer *t = open_run(LLAMA DATA "run: {dir: base, steps: 1}\n" PRECISION("f32"));
    OK(ctx, an_trainer_save(t, 0));
    an_trainer_destroy(&t);
}

static void take_steps(an_trainer *trainer, int64_t end) {
    while (an_trainer_next_step(trainer) < end) OK(ctx, an_trainer_step(trainer, NULL));
}

static void ask(an_predictor *p, float *logits) {
    int32_t tokens[CONTEXT];
    for (int i = 0; i < CONTEXT; i++) tokens[i] = i * 5 % VOCABULARY;
    OK(ctx, an_predictor_run_tokens(p, 1, tokens, logits));
}

static void predict(an_trainer *t, float *logits) {
    an_predictor *p = NULL;
    OK(ctx, an_predictor_create(&p, t, NULL));
    ask(p, logits);
    an_predictor_destroy(&p);
}

/* ---- where it starts ---- */

static const an_stored *find(const an_trainer *t, const char *name) {
    for (int64_t i = 0; i < an_params_count(t->params); i++)
        if (!strcmp(t->params->entries[i].name, name)) return &t->params->entries[i];
    fail_msg("there is no %s", name);
    return NULL;
}

static float *get(const an_trainer *t, const char *name, float *numbers) {
    const an_stored *e = find(t, name);
    an_array array = {.data = numbers, .dtype = AN_DTYPE_F32, .ndims = e->ndims};
    memcpy(array.dims, e->dims, sizeof array.dims);
    assert_int_not_equal(e->dtype, AN_DTYPE_BF16);
    OK(ctx, an_params_get(t->params, name, AN_PART_WEIGHT, &array));
    return numbers;
}

/* Magnitudes are the norms of rows, and a new adapter changes no bit: loaded weights and random ones,
 * in every type of the base. */
static void test_start(void **state) {
    (void)state;
    static const char *const ways[][2] = {
        {LLAMA REST ADAPTER("base: full") PRECISION("f32"), LLAMA REST DORA(", base: full") PRECISION("f32")},
        {FROM("base") REST ADAPTER("base: full") PRECISION("f32"),
         FROM("base") REST DORA(", base: full") PRECISION("f32")},
        {FROM("base") REST ADAPTER("base: q8_0") PRECISION("f32"),
         FROM("base") REST DORA(", base: q8_0") PRECISION("f32")},
        {FROM("base") REST ADAPTER("base: q8_0") PRECISION("bf16"),
         FROM("base") REST DORA(", base: q8_0") PRECISION("bf16")},
        {FROM("base") REST ADAPTER("base: auto") PRECISION("bf16"),
         FROM("base") REST DORA(", base: auto") PRECISION("bf16")},
        {FROM("base") REST ADAPTER("base: full") PRECISION("bf16"),
         FROM("base") REST DORA(", base: full") PRECISION("bf16")},
        {FROM("base") REST ADAPTER("base: auto") PRECISION("f16"),
         FROM("base") REST DORA(", base: auto") PRECISION("f16")},
    };
    static float logits[2][CONTEXT * VOCABULARY], weight[HIDDEN * WIDTH], magnitude[HIDDEN];
    save_base();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        for (int k = 0; k < 2; k++) {
            begin();
            an_trainer *t = open_run(ways[i][k]);
            predict(t, logits[k]);
            for (int layer = 0; k && i < 4 && layer < 2; layer++) {
                const char *from =
                    layer ? "model.layers.0.mlp.down_proj.weight" : "model.layers.0.mlp.gate_proj.weight";
                const int64_t rows = layer ? WIDTH : HIDDEN, columns = layer ? HIDDEN : WIDTH;
                get(t, from, weight);
                get(t,
                    layer ? "model.layers.0.mlp.down_proj.lora_magnitude_vector"
                          : "model.layers.0.mlp.gate_proj.lora_magnitude_vector",
                    magnitude);
                for (int64_t row = 0; row < rows; row++) {
                    double squares = 0;
                    for (int64_t c = 0; c < columns; c++)
                        squares += (double)weight[row * columns + c] * (double)weight[row * columns + c];
                    if (!(fabs((double)magnitude[row] - sqrt(squares)) <= 1e-6 * sqrt(squares)))
                        fail_msg("way %zu, %s, row %d: %g, not %g", i, from, (int)row, magnitude[row], sqrt(squares));
                }
            }
            an_trainer_destroy(&t);
        }
        print_message("way %zu\n", i);
        assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    }
}

/* A row of zeros has the magnitude 0 and does not make anything infinite; it learns. */
static void test_zeros(void **state) {
    (void)state;
    static float weight[HIDDEN * WIDTH], magnitude[HIDDEN];
    static const char name[] = "model.layers.0.mlp.gate_proj.weight";
    const an_array array = {.data = weight, .dtype = AN_DTYPE_F32, .ndims = 2, .dims = {HIDDEN, WIDTH}};
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    begin();
    an_trainer *t = open_run(LLAMA REST DORA(", base: full") PRECISION("f32"));
    get(t, name, weight);
    memset(weight, 0, WIDTH * sizeof *weight);
    OK(ctx, an_params_set(t->params, name, AN_PART_WEIGHT, &array));
    OK(ctx, an_params_start_magnitudes(t->params));
    get(t, "model.layers.0.mlp.gate_proj.lora_magnitude_vector", magnitude);
    assert_true(magnitude[0] == 0 && magnitude[1] > 0);
    for (int i = 0; i < 4; i++) {
        OK(ctx, an_trainer_step(t, &metrics));
        assert_true(isfinite(metrics.loss) && isfinite(metrics.norm));
    }
    get(t, "model.layers.0.mlp.gate_proj.lora_magnitude_vector", magnitude);
    assert_true(magnitude[0] != 0);
    an_trainer_destroy(&t);
}

/* ---- the same bits ---- */

static const char run_bf16[] = FROM("base") REST DORA("") PRECISION("bf16");

static void hash_whole(const char *config, char *hash) {
    begin();
    an_trainer *t = open_run(config);
    take_steps(t, STEPS);
    OK(ctx, an_trainer_state_hash(t, hash));
    an_trainer_destroy(&t);
}

/* Threads, recompute and a stop after some step. */
static void test_one_hash(void **state) {
    (void)state;
    static const char *const ways[][3] = {
        {run_bf16, run_bf16, FROM("base") REST DORA("") "train: {precision: bf16, recompute: block}\n"},
        {FROM("base") REST DORA(", base: q8_0") PRECISION("bf16"),
         FROM("base") REST DORA(", base: q8_0") PRECISION("bf16"),
         FROM("base") REST DORA(", base: q8_0") "train: {precision: bf16, recompute: full}\n"},
        {FROM("base") REST DORA("") PRECISION("f32"), FROM("base") REST DORA("") PRECISION("f32"),
         FROM("base") REST DORA("") "train: {precision: f32, recompute: block}\n"},
    };
    char first[AN_HASH_TEXT] = "", other[AN_HASH_TEXT];
    save_base();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (int k = 0; k < 3; k++) {
            an_context_destroy(&ctx);
            assert_int_equal(context_with_ledger(&ctx, &counted, k == 1 ? 1 : 2), AN_OK);
            hash_whole(ways[i][k], k == 0 ? first : other);
            if (k > 0) assert_string_equal(first, other);
            begin();
            an_trainer *t = open_run(ways[i][k]);
            take_steps(t, 3 + 5 * k);
            OK(ctx, an_trainer_save(t, 1));
            an_trainer_destroy(&t);
            t = open_run(ways[i][k]);
            assert_int_equal(an_trainer_next_step(t), 3 + 5 * k);
            take_steps(t, STEPS);
            OK(ctx, an_trainer_state_hash(t, other));
            assert_string_equal(first, other);
            an_trainer_destroy(&t);
        }
}

/* Quotients of a magnitude's gradient are added, so a pass may have all leaves. */
static void test_leaves_together(void **state) {
    (void)state;
    static const char *const ways[][2] = {
        {run_bf16, FROM("base") DATA_IN(", micro: 1") "run: {dir: run, steps: 20}\n" DORA("") PRECISION("bf16")},
        {FROM("base") REST DORA("") PRECISION("f32"),
         FROM("base") DATA_IN(", micro: 2") "run: {dir: run, steps: 20}\n" DORA("") PRECISION("f32")},
    };
    char first[AN_HASH_TEXT] = "", other[AN_HASH_TEXT];
    save_base();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        begin();
        an_trainer *t = open_run(ways[i][0]);
        assert_null(an_plan_one_leaf(t->plan));
        an_trainer_destroy(&t);
        hash_whole(ways[i][0], first);
        hash_whole(ways[i][1], other);
        assert_string_equal(first, other);
    }
}

static void train_rank(one_rank *r) {
    an_trainer *t = NULL;
    an_status status = an_trainer_open(&t, r->ctx, "run.yaml", NULL);
    while (status == AN_OK && an_trainer_next_step(t) < STEPS) status = an_trainer_step(t, NULL);
    if (status == AN_OK) status = an_trainer_state_hash(t, r->hash);
    rank_failed(r, "training", status);
    an_trainer_destroy(&t);
}

static void test_ranks(void **state) {
    (void)state;
    static const char *const shards[] = {"none", "optimizer", "full"};
    one_rank ranks[4];
    char whole[AN_HASH_TEXT];
    save_base();
    hash_whole(run_bf16, whole);
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++)
        for (int count = 2; count <= 4; count++) {
            char text[2048];
            snprintf(text, sizeof text, "%sranks: {shard: %s}\n", run_bf16, shards[i]);
            begin();
            write_text("run.yaml", text);
            run_ranks(ranks, count, train_rank, NULL, NULL);
            for (int k = 0; k < count; k++) {
                if (*ranks[k].error) fail_msg("%s", ranks[k].error);
                assert_string_equal(ranks[k].hash, whole);
            }
        }
}

/* ---- memory ---- */

/* No step converts a weight of the base, and the plan knows what is allocated. */
static void test_memory(void **state) {
    (void)state;
    static const char *const ways[] = {run_bf16, FROM("base") REST DORA(", base: q8_0") PRECISION("bf16")};
    save_base();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        begin();
        an_trainer *t = open_run(ways[i]);
        const an_graph *form = t->plan->forms[AN_FORM_TRAIN_FIRST];
        int factors = 0, norms = 0;
        for (const an_node *n = form->first; n; n = n->next) {
            const an_result *src = n->op->flags & AN_OP_CONVERTS ? an_node_input(n, 0) : NULL;
            if (src && src->root->storage == AN_STORAGE_FROZEN) fail_msg("%s converts a weight", n->path);
            if (strcmp(n->op->name, "row_factors") != 0) continue;
            factors++;
            assert_int_equal(an_node_input(n, 0)->dtype, i ? AN_DTYPE_Q8_0 : AN_DTYPE_BF16);
            assert_int_equal(n->outputs[0].dtype, AN_DTYPE_F32); /* a change of a factor is smaller than bf16 shows */
        }
        for (int64_t k = 0; k < an_params_count(t->params); k++)
            norms += strstr(t->params->entries[k].name, ".lora_magnitude_vector") != NULL;
        assert_int_equal(factors, 6); /* three layers of two blocks */
        assert_int_equal(norms, 6);
        an_trainer_destroy(&t);
    }
}

/* ---- afterwards ---- */

/* Tokens at random: they follow from the bits of the logits. */
static void generate(an_generator *g, int32_t *tokens) {
    an_sampling_options o;
    an_generated one;
    int64_t count = 1;
    an_sampling_options_init(&o, sizeof o);
    o.temperature = 1;
    o.seed = 3;
    o.max_tokens = GENERATED;
    OK(ctx, an_generator_add(g, (int32_t[]){1, 2, 3}, 3, &o));
    for (int i = 0; i < GENERATED; i++) {
        OK(ctx, an_generator_step(g, &one, &count));
        assert_int_equal(count, 1);
        tokens[i] = one.token;
    }
}

/* A generator computes factors when it gets weights, and again when it gets others; so does a
 * predictor on one thread. */
static void test_generation(void **state) {
    (void)state;
    int32_t tokens[3][GENERATED];
    static float logits[2][CONTEXT * VOCABULARY];
    an_generator *first = NULL, *second = NULL;
    an_predictor *p = NULL;
    an_generator_options options;
    an_predictor_options single;
    an_generator_options_init(&options, sizeof options);
    an_predictor_options_init(&single, sizeof single);
    single.threads = 1;
    save_base();
    an_trainer *t = open_run(FROM("base") REST DORA("") PRECISION("f32"));
    take_steps(t, 2);
    OK(ctx, an_generator_create(&first, t, &options));
    OK(ctx, an_predictor_create(&p, t, &single));
    generate(first, tokens[0]);
    take_steps(t, STEPS);
    OK(ctx, an_generator_refresh(first, t));
    OK(ctx, an_generator_create(&second, t, &options));
    generate(first, tokens[1]);
    generate(second, tokens[2]);
    assert_memory_equal(tokens[1], tokens[2], sizeof tokens[1]);
    assert_memory_not_equal(tokens[0], tokens[1], sizeof tokens[0]);
    an_generator_destroy(&second);
    an_generator_destroy(&first);
    OK(ctx, an_predictor_refresh(p, t));
    ask(p, logits[0]);
    an_predictor_destroy(&p);
    predict(t, logits[1]);
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    OK(ctx, an_trainer_save(t, STEPS));
    an_trainer_destroy(&t);
    OK(ctx, an_generator_open(&first, ctx, "run", &options));
    generate(first, tokens[0]);
    assert_memory_equal(tokens[0], tokens[1], sizeof tokens[0]);
    an_generator_destroy(&first);
}

/* The merged model computes what the run did; an adapter that is exported and loaded is the same. */
static void test_exports(void **state) {
    (void)state;
    static const char *const ways[] = {FROM("base") REST DORA("") PRECISION("f32"),
                                       FROM("base") REST DORA(", base: q8_0") PRECISION("f32")};
    static const char *const written[] = {FROM("merged.safetensors") REST PRECISION("f32"),
                                          FROM("published/model.safetensors") REST PRECISION("f32")};
    static float trained[CONTEXT * VOCABULARY], other[CONTEXT * VOCABULARY];
    char weights[AN_HASH_TEXT], again[AN_HASH_TEXT];
    save_base();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        an_checkpoint *c = NULL;
        an_predictor *p = NULL;
        begin();
        forget("published adapter");
        an_trainer *t = open_run(ways[i]);
        take_steps(t, STEPS);
        OK(ctx, an_trainer_save(t, STEPS));
        OK(ctx, an_trainer_weights_hash(t, weights));
        predict(t, trained);
        an_trainer_destroy(&t);
        OK(ctx, an_predictor_open(&p, ctx, "run", NULL));
        ask(p, other);
        assert_memory_equal(trained, other, sizeof trained);
        an_predictor_destroy(&p);
        OK(ctx, an_checkpoint_open(&c, ctx, "run"));
        OK(ctx, export_as(c, "merged.safetensors", AN_EXPORT_MERGED));
        OK(ctx, export_as(c, "published", AN_EXPORT_HUGGINGFACE));
        OK(ctx, export_as(c, "adapter", AN_EXPORT_ADAPTER));
        an_checkpoint_close(&c);
        for (int k = 0; k < 2; k++) {
            begin();
            t = open_run(written[k]);
            predict(t, other);
            an_trainer_destroy(&t);
            for (int l = 0; l < CONTEXT * VOCABULARY; l++)
                if (!(fabsf(trained[l] - other[l]) <= 1e-5F))
                    fail_msg("way %zu, file %d, logit %d: %g, not %g", i, k, l, other[l], trained[l]);
        }
        begin();
        t = open_run(i ? FROM("base") REST "lora: {from: adapter, base: q8_0}\n" PRECISION("f32")
                       : FROM("base") REST "lora: {from: adapter}\n" PRECISION("f32"));
        OK(ctx, an_trainer_weights_hash(t, again));
        assert_string_equal(weights, again);
        an_trainer_destroy(&t);
    }
    refused(FROM("base") REST ADAPTER("from: adapter"), AN_ERR_ARGUMENT, "use_dora is true");
}

/* A checkpoint of DoRA is not one of plain LoRA. */
static void test_other_adapter(void **state) {
    (void)state;
    save_base();
    an_trainer *t = open_run(FROM("base") REST DORA("") PRECISION("f32"));
    take_steps(t, 1);
    OK(ctx, an_trainer_save(t, 1));
    an_trainer_destroy(&t);
    refused(FROM("base") REST ADAPTER("dora: off") PRECISION("f32"), AN_ERR_ARGUMENT, "lora.dora");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_zeros, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_hash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_leaves_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_generation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_exports, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_adapter, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
