/* Optimizers that a program adds: what is refused, that all that a run has works with them, and that a
 * checkpoint knows its own. */
#include <stdlib.h>

#include "anneal/checkpoint.h"
#include "anneal/experimental.h"
#include "anneal/open.h"
#include "open/support.h"

enum { STEPS = 12, MIDDLE = 6 };

/* ---- a twin of adamw, by its formulas ---- The built-in one has a kernel of its own, so equal bits
 * are no matter of course. */

#define DEFINE_TWIN(name, real, root)                                                                           \
    static void name(void *user, const an_optimizer_numbers *n, int64_t count, const real *g, real *w, real *m, \
                     real *v) {                                                                                 \
        const real kept = (real)(1 - n->rate * n->weight_decay), rate = (real)n->rate;                          \
        const real beta_1 = (real)n->beta_1, rest_1 = (real)(1 - n->beta_1), beta_2 = (real)n->beta_2;          \
        const real rest_2 = (real)(1 - n->beta_2), inverse_1 = (real)(1 / n->correction_1);                     \
        const real inverse_2 = (real)(1 / n->correction_2), epsilon = (real)n->epsilon;                         \
        (void)user;                                                                                             \
        for (int64_t i = 0; i < count; i++) {                                                                   \
            w[i] = w[i] * kept;                                                                                 \
            m[i] = beta_1 * m[i] + rest_1 * g[i];                                                               \
            v[i] = beta_2 * v[i] + rest_2 * (g[i] * g[i]);                                                      \
            w[i] = w[i] - rate * (m[i] * inverse_1) / (root(v[i] * inverse_2) + epsilon);                       \
        }                                                                                                       \
    }
DEFINE_TWIN(twin_f32, float, sqrtf)
DEFINE_TWIN(twin_f64, double, sqrt)

static const an_optimizer_record twin = {.name = "twin",
                                         .version = 1,
                                         .moments = 2,
                                         .beta_1 = 0.9,
                                         .beta_2 = 0.999,
                                         .weight_decay = 0.01,
                                         .update_f32 = twin_f32,
                                         .update_f64 = twin_f64};

/* One without moments, which sees each update in turn. So small a model is updated by one thread. */
typedef struct {
    int64_t calls, update;
} seen;

static void see(seen *s, const an_optimizer_numbers *n) {
    assert_true(n->update == s->update || n->update == s->update + 1);
    s->update = n->update;
    s->calls++;
}

static void step_f32(void *user, const an_optimizer_numbers *n, int64_t count, const float *g, float *w, float *m,
                     float *v) {
    assert_true(m == NULL && v == NULL);
    see(user, n);
    for (int64_t i = 0; i < count; i++) w[i] -= (float)n->rate * g[i];
}
static void step_f64(void *user, const an_optimizer_numbers *n, int64_t count, const double *g, double *w, double *m,
                     double *v) {
    assert_true(m == NULL && v == NULL);
    see(user, n);
    for (int64_t i = 0; i < count; i++) w[i] -= n->rate * g[i];
}

/* ---- records ---- */

static void refuses_record(an_optimizer_record record, const char *words) {
    const size_t before = an_context_bytes(ctx);
    assert_int_equal(an_context_add_optimizer(ctx, &record), AN_ERR_ARGUMENT);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
    assert_int_equal(an_context_bytes(ctx), before);
}

#define WITH(...)                 \
    an_optimizer_record r = twin; \
    __VA_ARGS__;                  \
    refuses_record
static void test_records_that_are_refused(void **state) {
    static const char *const names[] = {NULL,  "",    "Twin", "9lives", "_x",       "a-b",
                                        "a b", "a.b", "a/b",  "a\n",    "\xc3\xa4", "a23456789012345678901234567890bc"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        WITH(r.name = names[i])(r, "an optimizer cannot be called '");
    }
    static const char *const builtin[] = {"adamw", "adam", "sgd", "lion"};
    for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++) {
        WITH(r.name = builtin[i])(r, "there already is an optimizer '");
    }
    { WITH(r.version = 0)(r, "has version 0; versions are counted from 1"); }
    { WITH(r.version = -3)(r, "has version -3"); }
    { WITH(r.moments = -1)(r, "has -1 moments; it can have 0 to 2"); }
    { WITH(r.moments = 3)(r, "has 3 moments"); }
    { WITH(r.update_f32 = NULL)(r, "needs both functions"); }
    { WITH(r.update_f64 = NULL)(r, "needs both functions"); }
    { WITH(r.beta_1 = 1)(r, "has betas 1 and 0.999"); }
    { WITH(r.beta_2 = NAN)(r, "has betas 0.9 and "); }
    { WITH(r.beta_2 = -0.1)(r, "has betas 0.9 and -0.1"); }
    { WITH(r.weight_decay = INFINITY)(r, "has weight_decay inf"); }
    { WITH(r.weight_decay = -1)(r, "has weight_decay -1"); }
    OK(ctx, an_context_add_optimizer(ctx, &twin));
    refuses_record(twin, "there already is an optimizer 'twin'; give this one another name");
    { /* 31 letters are not too many */
        an_optimizer_record r = twin;
        r.name = "a23456789012345678901234567890b";
        OK(ctx, an_context_add_optimizer(ctx, &r));
    }
}

/* The context keeps a copy, and memory that runs out leaves nothing behind. */
static void test_a_record_is_copied(void **state) {
    (void)state;
    char name[] = "fleeting";
    an_optimizer_record r = twin;
    an_optimizer_options options = {DEFAULTS(an_optimizer_options), .name = "fleeting"};
    int moments = 0;
    r.name = name;
    r.moments = 1;
    const size_t before = an_context_bytes(ctx);
    counted.fail_at = counted.calls + 1;
    assert_int_equal(an_context_add_optimizer(ctx, &r), AN_ERR_MEMORY);
    counted.fail_at = 0;
    assert_int_equal(an_context_bytes(ctx), before);
    OK(ctx, an_context_add_optimizer(ctx, &r));
    memset(name, 'x', sizeof name - 1);
    memset(&r, 0, sizeof r);
    OK(ctx, an_optimizer_moments_in(ctx, &options, &moments));
    assert_int_equal(moments, 1);
    assert_int_equal(an_optimizer_moments(&options), 2); /* no context to ask */
    options.name = "sgd";
    OK(ctx, an_optimizer_moments_in(ctx, &options, &moments));
    assert_int_equal(moments, 0);
    options.name = "fleting";
    assert_int_equal(an_optimizer_moments_in(ctx, &options, &moments), AN_ERR_UNKNOWN);
    assert_non_null(strstr(an_last_error(ctx), "this program has adamw, adam, sgd, lion, rmsprop, fleeting"));
    assert_non_null(strstr(an_last_error(ctx), "did you mean 'fleeting'?"));
}

/* ---- configs ---- */

#define DATA "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n"
#define MLP "model: {type: mlp, hidden: [40, 40]}\n" DATA

static void refuses_config(const char *text, const char *words) {
    an_config_options options = {.size = sizeof options, .file = "run.yaml", .text = text, .length = strlen(text)};
    an_config *config = NULL;
    assert_int_not_equal(an_config_create(&config, ctx, &options), AN_OK);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
}

static void test_names_in_a_config(void **state) {
    (void)state;
    refuses_config("optimizer: {type: twin}\n" MLP,
                   "run.yaml:1:19: optimizer.type is 'twin'; it takes adamw, adam, sgd, lion or rmsprop");
    OK(ctx, an_context_add_optimizer(ctx, &twin));
    refuses_config("optimizer: {type: twins}\n" MLP,
                   "it takes adamw, adam, sgd, lion or rmsprop, or of this program twin; did you mean 'twin'?");
    refuses_config("optimizer: {type: twin, momentum: 0.9}\n" MLP,
                   "optimizer of type 'twin' has no key 'momentum', which is for type sgd or rmsprop; its keys are "
                   "type, lr, betas, eps, weight_decay");
    refuses_config("optimizer: {type: twin, betas: [0.9]}\n" MLP, "it takes two, such as");
    refuses_config("optimizer: {type: twin, betas: [0.9, 1]}\n" MLP, "optimizer.betas[1] is '1'");
    refuses_config("optimizer: {type: twin, weight_decay: -1}\n" MLP, "optimizer.weight_decay is '-1'");
    refuses_config("optimizer: {type: lion, eps: 1e-8}\n" MLP, "of type 'lion' has no key 'eps'");
    char *schema = NULL;
    OK(ctx, an_config_schema(ctx, &schema));
    assert_non_null(strstr(schema, "\"rmsprop\", \"twin\"]"));
    an_string_release(ctx, &schema);
}

/* A word that is answered otherwise, as other tools have an optimizer of this name. */
static void test_a_name_of_other_tools(void **state) {
    (void)state;
    an_optimizer_record r = twin;
    r.name = "adafactor";
    refuses_config("optimizer: {type: adafactor}\n" MLP, "use lion if memory is scarce");
    OK(ctx, an_context_add_optimizer(ctx, &r));
    write_sums();
    an_trainer *trainer = open_run("run: {dir: named, steps: 1}\noptimizer: {type: adafactor}\n" MLP);
    an_trainer_destroy(&trainer);
}

/* Its record's decay is the default of its groups, and what the config says goes before. */
static void test_defaults(void **state) {
    (void)state;
    an_optimizer_record r = twin;
    an_group_info info;
    an_group_info_init(&info, sizeof info);
    an_trainer *trainer;
    r.weight_decay = 0.125;
    OK(ctx, an_context_add_optimizer(ctx, &r));
    write_sums();
    trainer = open_run("run: {dir: defaults, steps: 1}\noptimizer: {type: twin}\n" MLP);
    OK(ctx, an_groups_get(an_trainer_groups(trainer), 0, &info));
    assert_true(info.weight_decay == 0.125);
    an_trainer_destroy(&trainer);
    trainer = open_run("run: {dir: defaults, steps: 1}\noptimizer: {type: twin, weight_decay: 0}\n" MLP);
    OK(ctx, an_groups_get(an_trainer_groups(trainer), 0, &info));
    assert_true(info.weight_decay == 0);
    an_trainer_destroy(&trainer);
    trainer = open_run("run: {dir: defaults, steps: 1}\noptimizer: {type: lion}\n" MLP);
    OK(ctx, an_groups_get(an_trainer_groups(trainer), 0, &info));
    assert_true(info.weight_decay == 0);
    an_trainer_destroy(&trainer);
}

/* ---- all that a run has ---- */

typedef struct {
    char text[AN_HASH_TEXT];
} hash;

static void remove_folder(const char *name) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", name);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

static hash state_of(const an_trainer *trainer) {
    hash h;
    OK(ctx, an_trainer_state_hash(trainer, h.text));
    return h;
}

static hash run_of(const char *type, const char *rest) {
    char text[2048];
    snprintf(text, sizeof text, "run: {dir: twins, steps: 12, seed: 5}\noptimizer: {type: %s, lr: 1e-2%s", type, rest);
    remove_folder("twins");
    an_trainer *trainer = open_run(text);
    train(trainer);
    const hash h = state_of(trainer);
    an_trainer_destroy(&trainer);
    return h;
}

#define GPT                                                             \
    "model: {type: gpt2, layers: 2, heads: 2, width: 16, context: 8}\n" \
    "data: {train: {type: text, path: letters.txt, tokens: chars}, threads: 0}\n"

static void test_a_twin_has_the_bits_of_adamw(void **state) {
    static const char *const rests[] = {
        "}\nbatch: {global: 16}\n" MLP,
        ", weight_decay: 0.3, betas: [0.8, 0.95], eps: 1e-3}\nbatch: {global: 16}\n" MLP,
        ", groups: [{match: bias, lr_scale: 0.5, weight_decay: 0.2}, {match: hidden.0, freeze: on}]}\n" MLP,
        "}\ntrain: {clip_norm: 0.05, clip_value: 0.001}\n" MLP,
        "}\nbatch: {micro: 2, accumulate: 6, leaves: 2}\n" MLP,
        "}\ntrain: {precision: bf16}\n" MLP,
        "}\ntrain: {precision: f16}\n" MLP,
        "}\nschedule: {type: one_cycle}\ntrain: {precision: f64}\nmodel: {type: mlp, hidden: [40]}\n"
        "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum], dtype: f64}}\n",
        ", layer_decay: 0.8}\nbatch: {global: 4}\ntrain: {precision: f32}\n" GPT,
    };
    (void)state;
    OK(ctx, an_context_add_optimizer(ctx, &twin));
    write_sums();
    write_text("letters.txt",
               "the quick brown fox jumps over the lazy dog and runs away from the bear that sleeps in the sun\n");
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        const hash built_in = run_of("adamw", rests[i]), added = run_of("twin", rests[i]);
        if (strcmp(built_in.text, added.text) != 0) fail_msg("other bits with %s", rests[i]);
    }
}

/* The same on 1 to 4 threads, which a context has for good. */
static void test_threads(void **state) {
    static const char *const types[] = {"twin", "lion"};
    hash first[2] = {{""}};
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        an_context_destroy(&ctx);
        assert_int_equal(context_with_ledger(&ctx, &counted, threads), AN_OK);
        OK(ctx, an_context_add_optimizer(ctx, &twin));
        write_sums();
        for (int i = 0; i < 2; i++) {
            const hash h = run_of(types[i], "}\nmodel: {type: mlp, hidden: [300, 300]}\n" DATA);
            if (threads == 1) first[i] = h;
            assert_string_equal(h.text, first[i].text);
        }
    }
}

/* ---- moments ---- */

static int64_t optimizer_bytes(const char *text) {
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    an_trainer *trainer = open_run(text);
    OK(ctx, an_plan_memory_get(an_trainer_plan(trainer), &memory));
    an_trainer_destroy(&trainer);
    return memory.optimizer;
}

static void test_the_plan_counts_its_moments(void **state) {
    seen s = {0, 0};
    an_optimizer_record none = {
        .name = "none", .version = 1, .update_f32 = step_f32, .update_f64 = step_f64, .user = &s};
    (void)state;
    OK(ctx, an_context_add_optimizer(ctx, &twin));
    OK(ctx, an_context_add_optimizer(ctx, &none));
    write_sums();
    const int64_t two = optimizer_bytes("run: {dir: moments}\noptimizer: {type: twin}\n" MLP);
    const int64_t one = optimizer_bytes("run: {dir: moments}\noptimizer: {type: lion}\n" MLP);
    assert_true(one > 0 && two == 2 * one);
    assert_int_equal(optimizer_bytes("run: {dir: moments}\noptimizer: {type: none}\n" MLP), 0);
    an_trainer *trainer = open_run("run: {dir: moments, steps: 3}\noptimizer: {type: none}\nranks: {threads: 2}\n" MLP);
    train(trainer);
    assert_true(s.calls > 0 && s.update == 3);
    an_trainer_destroy(&trainer);
}

/* ---- checkpoints ---- */

static void begin(const char *folder, const char *text) {
    remove_folder(folder);
    write_sums();
    an_trainer *trainer = open_run(text);
    assert_null(an_trainer_resumed(trainer));
    for (int i = 0; i < MIDDLE; i++) OK(ctx, an_trainer_step(trainer, NULL));
    OK(ctx, an_trainer_save(trainer, MIDDLE));
    an_trainer_destroy(&trainer);
}

static void renew_context(void) {
    an_context_destroy(&ctx);
    assert_int_equal(context_with_ledger(&ctx, &counted, 2), AN_OK);
}

#define RUN(type) "run: {dir: saved, steps: 12}\noptimizer: {type: " type ", lr: 1e-2}\n" MLP

static void check_resume(const char *text) {
    remove_folder("saved");
    write_sums();
    an_trainer *trainer = open_run(text);
    train(trainer);
    const hash whole = state_of(trainer);
    an_trainer_destroy(&trainer);
    begin("saved", text);
    trainer = open_run(text);
    assert_non_null(an_trainer_resumed(trainer));
    assert_int_equal(an_trainer_next_step(trainer), MIDDLE);
    train(trainer);
    assert_string_equal(state_of(trainer).text, whole.text);
    an_trainer_destroy(&trainer);
}

static void test_a_run_resumes(void **state) {
    (void)state;
    OK(ctx, an_context_add_optimizer(ctx, &twin));
    check_resume(RUN("twin"));
    check_resume(RUN("lion"));
}

/* Another program, another version, another optimizer: each is refused by name. */
static void test_a_resume_is_refused(void **state) {
    an_optimizer_record second = twin;
    (void)state;
    OK(ctx, an_context_add_optimizer(ctx, &twin));
    begin("saved", RUN("twin"));
    refused(RUN("lion"), AN_ERR_ARGUMENT, "optimizer.type");
    renew_context();
    refused(RUN("lion"), AN_ERR_UNSUPPORTED,
            "the run was trained with the optimizer 'twin' of another program; this one has adamw, adam, sgd, lion");
    refused(RUN("twin"), AN_ERR_PARSE, "optimizer.type is 'twin'; it takes adamw");
    second.version = 2;
    OK(ctx, an_context_add_optimizer(ctx, &second));
    refused(RUN("twin"), AN_ERR_UNSUPPORTED,
            "the run was trained with version 1 of the optimizer 'twin', and this program has version 2");
    renew_context(); /* the weights can be used by any program */
    OK(ctx, an_context_add_optimizer(ctx, &twin));
    an_trainer *trainer = open_run(RUN("twin"));
    assert_non_null(an_trainer_resumed(trainer));
    an_trainer_destroy(&trainer);
}

/* Without a config there is no option to compare: the manifest is. A trainer that refuses can still train. */
static void test_a_load_is_refused(void **state) {
    (void)state;
    OK(ctx, an_context_add_optimizer(ctx, &twin));
    begin("saved", RUN("twin"));
    an_trainer *trainer = open_run("run: {dir: loaded, steps: 12}\noptimizer: {type: adamw}\n" MLP);
    assert_int_equal(an_trainer_load(trainer, "saved/checkpoints/step-00000006-1-at-6"), AN_ERR_UNSUPPORTED);
    assert_non_null(strstr(an_last_error(ctx), "was trained with the optimizer 'twin', and this trainer has 'adamw'"));
    OK(ctx, an_trainer_step(trainer, NULL));
    an_trainer_destroy(&trainer);
    trainer = open_run("run: {dir: loaded, steps: 12}\noptimizer: {type: twin}\n" MLP);
    OK(ctx, an_trainer_load(trainer, "saved/checkpoints/step-00000006-1-at-6"));
    an_trainer_destroy(&trainer);
}

/* A config is looked at before its context exists: the program adds its optimizer afterwards. */
static void test_a_context_from_the_config(void **state) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_config_options config = {.size = sizeof config, .file = "run.yaml"};
    (void)state;
    write_text("run.yaml", "run: {dir: ahead, steps: 1}\noptimizer: {type: twin}\nranks: {threads: 3}\n" MLP);
    assert_int_equal(an_context_options_from_config(&options, &config, NULL), AN_OK);
    assert_int_equal(options.threads, 3);
    write_text("run.yaml", "run: {dir: ahead, steps: 1}\noptimizer: {type: Twin}\n" MLP);
    assert_int_not_equal(an_context_options_from_config(&options, &config, NULL), AN_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_records_that_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_record_is_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_in_a_config, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_name_of_other_tools, setup, teardown),
        cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_twin_has_the_bits_of_adamw, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_plan_counts_its_moments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_run_resumes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_resume_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_load_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_context_from_the_config, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
