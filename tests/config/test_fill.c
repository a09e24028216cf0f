/* Values of a config in the members of structs that the table of options names. */
#include "anneal/data.h"
#include "anneal/models.h"
#include "anneal/optimizer.h"
#include "anneal/run.h"
#include "anneal/train.h"
#include "config/config.h"
#include "support.h"

/* ---- the table ---- */

static int count_words(const char *words) {
    int count = *words != 0;
    for (; *words; words++) count += *words == '|';
    return count;
}

/* Whether a member can hold the values of an option. */
static bool can_hold(const an_option *o, const an_option_member *m) {
    const bool number = m->kind == AN_MEMBER_INT || m->kind == AN_MEMBER_INT64;
    const bool named = m->kind == AN_MEMBER_INT || m->kind == AN_MEMBER_BOOL;
    switch (o->kind) {
    case AN_OPTION_CHOICE: return named || m->kind == AN_MEMBER_TEXT;
    case AN_OPTION_BOOL: return named;
    case AN_OPTION_COUNT:
    case AN_OPTION_BYTES:
    case AN_OPTION_FIRST_SAMPLES: return number;
    case AN_OPTION_REAL:
    case AN_OPTION_SHARE:
    case AN_OPTION_DURATION: return m->kind == AN_MEMBER_REAL;
    case AN_OPTION_LENGTH: return m->kind == AN_MEMBER_LENGTH;
    case AN_OPTION_REALS:
    case AN_OPTION_RANGE: return m->kind == AN_MEMBER_REAL && m->second_kind == AN_MEMBER_REAL;
    case AN_OPTION_COUNTS: return m->kind == AN_MEMBER_COUNTS && m->second_kind != AN_MEMBER_BOOL;
    case AN_OPTION_STRINGS: return m->kind == AN_MEMBER_TEXTS && m->second_kind != AN_MEMBER_BOOL;
    case AN_OPTION_STRING: return m->kind == AN_MEMBER_TEXT || m->kind == AN_MEMBER_CHARACTER;
    case AN_OPTION_INPUT:
    case AN_OPTION_INPUTS:
    case AN_OPTION_OUTPUT: return m->kind == AN_MEMBER_TEXT;
    default: return false;
    }
}

static void test_members_hold_their_options(void **state) {
    (void)state;
    an_context *ctx = make_context();
    const an_option_list *all;
    int members = 0;
    OK(ctx, an_option_list_get(ctx, &all));
    for (int i = 0; i < all->count; i++) {
        const an_option *o = &all->items[i];
        for (const an_option_member *m = o->members; m && m->in; m++, members++) {
            if (!can_hold(o, m)) fail_msg("%s does not fit into its member of %s", o->path, m->in);
            if (o->kind == AN_OPTION_CHOICE && m->kind == AN_MEMBER_BOOL && !m->values && count_words(o->words) != 2)
                fail_msg("%s has %d words for a bool of %s", o->path, count_words(o->words), m->in);
            for (const an_option_member *other = o->members; other < m; other++)
                if (!strcmp(other->in, m->in)) fail_msg("%s goes to two members of %s", o->path, m->in);
        }
    }
    assert_true(members > 150);
    an_context_destroy(&ctx);
}

/* A word becomes the number of its kind, so words stand in the order of the enum. Programs choose custom by calls. */
static void test_words_are_those_of_the_enum(void **state) {
    an_context *ctx = make_context();
    const an_option_list *all;
    (void)state;
    OK(ctx, an_option_list_get(ctx, &all));
    const an_option *o = an_option_find(all, "schedule", "type", NULL);
    const char *at = o->words;
    for (int i = 0; *at; i++) {
        if (i == AN_SCHEDULE_CUSTOM) continue;
        const char *name = an_schedule_type_name((an_schedule_type)i);
        const size_t length = strlen(name);
        if (length == 0 || strncmp(at, name, length) != 0 || (at[length] && at[length] != '|'))
            fail_msg("schedule.type: '%s' is not at the place of %s", at, name);
        at += length + (at[length] == '|');
    }
    an_context_destroy(&ctx);
}

/* … and the number is that of the enum, also behind a kind without a word, and where one word begins another. */
static void test_types_are_those_of_their_words(void **state) {
    static const struct {
        an_schedule_type type;
        const char *needs;
    } needs[] = {{AN_SCHEDULE_STEP, ", period: 2"},
                 {AN_SCHEDULE_COSINE_RESTARTS, ", T_0: 2"},
                 {AN_SCHEDULE_EXPONENTIAL, ", gamma: 0.5"},
                 {AN_SCHEDULE_POINTS, ", points: {0: 1}"},
                 {AN_SCHEDULE_SEQUENCE, ", milestones: [1], parts: [linear, constant]"}};
    an_context *ctx = make_context();
    (void)state;
    for (int i = 0; *an_schedule_type_name((an_schedule_type)i); i++) {
        char words[256];
        const char *more = "";
        an_schedule_options s;
        an_schedule_options_init(&s, sizeof s);
        for (size_t k = 0; k < sizeof needs / sizeof *needs; k++)
            if ((int)needs[k].type == i) more = needs[k].needs;
        if (i == AN_SCHEDULE_CUSTOM) continue;
        snprintf(words, sizeof words,
                 "model: {type: mlp}\ndata: {train: {type: csv, path: a}}\nschedule: {type: %s%s}\n",
                 an_schedule_type_name((an_schedule_type)i), more);
        an_config *c = config_of(ctx, words);
        OK(ctx, an_config_fill(c, "schedule", an_schedule_options, &s));
        if ((int)s.type != i) fail_msg("schedule.type: %s is %d", an_schedule_type_name((an_schedule_type)i), s.type);
        an_config_destroy(&c);
    }
    an_context_destroy(&ctx);
}

/* ---- filling ---- */

static const char text[] = "run: {dir: out, seed: 7}\n"
                           "model: {type: mlp, inputs: 3, hidden: [8, 16, 4], activation: tanh, batch_norm: on}\n"
                           "data: {train: {type: csv, path: a.csv, inputs: [x, y], header: off, delimiter: ';',\n"
                           "               part: 10%..60%, dates: month_first, dtype: f64},\n"
                           "       eval: {type: csv, path: b.csv}, threads: 3}\n"
                           "optimizer: {type: sgd, lr: 0.5, momentum: 0.25, decay: names,\n"
                           "            groups: [{match: a, lr_scale: 2}, {match: b, weight_decay: 0.125}]}\n"
                           "train: {clip_norm: off, recompute: {budget: 1KiB}, on_nonfinite: skip}\n"
                           "ranks: {shard: full, accumulate: off}\n"
                           "save: {keep_last: 4, stage: fast}\n"
                           "eval: {best: {mode: max}, early_stop: {min_delta: 0.5}}\n";

static void test_structs_are_filled(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config *c = config_of(ctx, text);
    an_mlp_options mlp;
    an_mlp_options_init(&mlp, sizeof mlp);
    mlp.outputs = 11;
    OK(ctx, an_config_fill(c, "model", an_mlp_options, &mlp));
    assert_int_equal(mlp.inputs, 3);
    assert_int_equal(mlp.outputs, 11); /* auto */
    assert_int_equal(mlp.hidden_count, 3);
    assert_int_equal(mlp.hidden[2], 4);
    assert_int_equal(mlp.activation, AN_ACTIVATION_TANH);
    assert_true(mlp.batch_norm);

    an_csv_source csv;
    an_csv_source_init(&csv, sizeof csv);
    OK(ctx, an_config_fill(c, "data.train", an_csv_source, &csv));
    assert_string_equal(csv.path, "folder/a.csv");
    assert_int_equal(csv.input_count, 2);
    assert_string_equal(csv.inputs[1], "y");
    assert_int_equal(csv.target_count, 0); /* auto */
    assert_int_equal(csv.header, AN_CSV_HEADER_NO);
    assert_int_equal(csv.delimiter, ';');
    assert_int_equal(csv.dates, AN_CSV_DATES_MONTH_FIRST);
    assert_int_equal(csv.dtype, AN_DTYPE_F64);
    assert_true(csv.begin == 0.1 && csv.end == 0.6);
    OK(ctx, an_config_fill(c, "data.eval", an_csv_source, &csv));
    assert_string_equal(csv.path, "folder/b.csv");
    assert_true(csv.begin == 0 && csv.end == 1);

    an_group_rule rule;
    an_group_rule_init(&rule, sizeof rule);
    OK(ctx, an_config_fill(c, "optimizer.groups[1]", an_group_rule, &rule));
    assert_string_equal(rule.match, "b");
    assert_true(rule.lr_scale == 1 && rule.weight_decay == 0.125);

    an_optimizer_options optimizer;
    an_optimizer_options_init(&optimizer, sizeof optimizer);
    OK(ctx, an_config_fill(c, "optimizer", an_optimizer_options, &optimizer));
    assert_string_equal(optimizer.name, "sgd");
    assert_true(optimizer.momentum == 0.25);

    an_trainer_options trainer;
    an_trainer_options_init(&trainer, sizeof trainer);
    trainer.clip_norm = 3;
    OK(ctx, an_config_fill(c, "", an_trainer_options, &trainer));
    assert_int_equal(trainer.seed, 7);
    assert_int_equal(trainer.loader_threads, 3);
    assert_true(trainer.rate == 0.5 && trainer.clip_norm == 3); /* off is a word, and leaves the member alone */
    assert_int_equal(trainer.budget, 1024);
    assert_true(trainer.skips);
    assert_int_equal(trainer.shard, AN_SHARD_FULL);
    assert_int_equal(trainer.accumulate, AN_ACCUMULATE_OFF);

    an_save_options save;
    an_save_options_init(&save, sizeof save);
    OK(ctx, an_config_fill(c, "", an_save_options, &save));
    assert_string_equal(save.folder, "out");
    assert_string_equal(save.stage, "fast");
    assert_int_equal(save.keep_last, 4);

    an_run_options run;
    an_run_options_init(&run, sizeof run);
    OK(ctx, an_config_fill(c, "", an_run_options, &run));
    assert_int_equal(run.best_mode, AN_METRIC_BETTER_HIGHER);
    assert_true(run.min_delta == 0.5);
    an_config_destroy(&c);
    an_context_destroy(&ctx);
}

/* Two numbers go to two members, which an optimizer without them leaves alone. */
static void test_two_numbers(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config *c = config_of(ctx, "model: {type: mlp}\ndata: {train: {type: csv, path: a.csv}}\n"
                                  "optimizer: {type: adamw, betas: [0.8, 0.95]}\n");
    an_optimizer_options optimizer;
    an_optimizer_options_init(&optimizer, sizeof optimizer);
    OK(ctx, an_config_fill(c, "optimizer", an_optimizer_options, &optimizer));
    assert_true(optimizer.beta_1 == 0.8 && optimizer.beta_2 == 0.95);
    an_config_destroy(&c);
    c = config_of(ctx, text);
    OK(ctx, an_config_fill(c, "optimizer", an_optimizer_options, &optimizer));
    assert_true(optimizer.beta_1 == 0.8 && optimizer.beta_2 == 0.95); /* sgd has none */
    an_config_destroy(&c);
    an_context_destroy(&ctx);
}

/* A path that is no table, and a struct that no option of it fills, stay as they are. */
static void test_nothing_to_fill(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config *c = config_of(ctx, text);
    an_cnn_options cnn, before;
    an_cnn_options_init(&cnn, sizeof cnn);
    before = cnn;
    OK(ctx, an_config_fill(c, "data", an_cnn_options, &cnn));
    OK(ctx, an_config_fill(c, "no.such.path", an_cnn_options, &cnn));
    OK(ctx, an_config_fill(c, "run.dir", an_cnn_options, &cnn));
    assert_memory_equal(&cnn, &before, sizeof cnn);
    an_config_destroy(&c);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_hold_their_options),
        cmocka_unit_test(test_words_are_those_of_the_enum),
        cmocka_unit_test(test_types_are_those_of_their_words),
        cmocka_unit_test(test_structs_are_filled),
        cmocka_unit_test(test_two_numbers),
        cmocka_unit_test(test_nothing_to_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
