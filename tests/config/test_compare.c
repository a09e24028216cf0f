/* Two configs of one run: what differs, by meaning, and what a run that carries on may take. */
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/config.h"
#include "config/compare.h"
#include "config/support.h"

#define GPT "model: {type: gpt2, layers: 2, heads: 2, width: 32, context: 16}\n"
#define DATA "data: {train: {type: text, path: a.txt}}\n"
#define BOTH GPT DATA

static an_context *ctx;
static ledger counted;

static int setup(void **state) {
    (void)state;
    return context_with_ledger(&ctx, &counted, 1) != AN_OK;
}

static int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return counted.held != 0 || counted.mismatch;
}

static an_config *make_at(const char *file, const char *text, const char *set) {
    an_config *config = NULL;
    const an_config_options options = options_of(file, text, set != NULL, &set);
    OK(ctx, an_config_create(&config, ctx, &options));
    return config;
}

/* As a checkpoint has it: written whole, read from another folder. */
static an_config *make_old(const char *text) {
    an_config *given = make_at("folder/run.yaml", text, NULL);
    char *whole = NULL;
    OK(ctx, an_config_write(given, &whole));
    an_config *old = make_at("runs/x/checkpoints/step-00000250-3/config.yaml", whole, NULL);
    an_string_release(ctx, &whole);
    an_config_destroy(&given);
    return old;
}

static an_config *make_new(const char *text) {
    return make_at("folder/run.yaml", text, NULL);
}

typedef struct {
    an_config *before, *after;
    an_config_changes changes;
} pair;

static pair compare_configs(an_config *before, an_config *after, const an_config_auto *autos, size_t count) {
    pair p = {.before = before, .after = after};
    OK(ctx, an_config_compare(&p.changes, before, after, autos, count));
    return p;
}

static pair compare(const char *before, const char *after) {
    return compare_configs(make_old(before), make_new(after), NULL, 0);
}

static void release(pair *p) {
    an_config_changes_destroy(&p->changes);
    an_config_destroy(&p->before);
    an_config_destroy(&p->after);
}

static const an_config_change *find(const pair *p, const char *path) {
    for (size_t i = 0; i < p->changes.count; i++)
        if (!strcmp(p->changes.items[i].path, path)) return &p->changes.items[i];
    fail_msg("no change of %s", path);
    return NULL;
}

/* "path: before > after" of all changes, in their order. */
static void assert_changes(const char *before, const char *after, const char *expected) {
    char text[2048] = "";
    size_t used = 0;
    pair p = compare(before, after);
    for (size_t i = 0; i < p.changes.count; i++) {
        const an_config_change *c = &p.changes.items[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s: %s > %s\n", c->path, c->before, c->after);
        assert_true(used < sizeof text);
    }
    if (strcmp(text, expected) != 0) fail_msg("changes:\n%s\nexpected:\n%s\nof\n%s", text, expected, after);
    release(&p);
}

/* ---- every option has its row ---- */

static bool is_leaf(const an_option *o) {
    return o->kind != AN_OPTION_TABLE && o->kind != AN_OPTION_TABLES;
}

static void test_every_option_is_classified(void **state) {
    (void)state;
    const an_option_list *all;
    OK(ctx, an_option_list_get(ctx, &all));
    int missing = 0, of_sources = 0;
    an_config_change_kind kind;
    const char *reason;
    for (int i = 0; i < all->count; i++) {
        const an_option *o = &all->items[i];
        if (is_leaf(o) && !an_config_rule_find(all, o->path, &kind, &reason)) {
            print_error("%s : the table of options does not say whether it may change when a run carries on\n",
                        o->path);
            missing++;
        }
        if (!strncmp(o->path, "data.train.", 11)) { /* data.eval has the same options */
            char path[64];
            snprintf(path, sizeof path, "data.eval.%s", o->path + 11);
            of_sources++;
            missing += !an_config_rule_find(all, path, &kind, &reason);
        }
    }
    assert_int_equal(missing, 0);
    assert_true(of_sources > 10);
    assert_true(an_config_rule_find(all, "data.eval", &kind, &reason)); /* given or not, as a whole */
    assert_int_equal(kind, AN_CHANGE_FREE);
    /* a row is no prefix of other words, and there is none for all */
    assert_false(an_config_rule_find(all, "", &kind, &reason));
    assert_false(an_config_rule_find(all, "run.new_key", &kind, &reason));
    assert_false(an_config_rule_find(all, "train.new_key", &kind, &reason));
    assert_false(an_config_rule_find(all, "eval.new_key", &kind, &reason));
    assert_false(an_config_rule_find(all, "data.new_key", &kind, &reason));
    assert_false(an_config_rule_find(all, "ranks.threads2", &kind, &reason));
    assert_false(an_config_rule_find(all, "logs", &kind, &reason));
}

static const struct {
    const char *path;
    an_config_change_kind kind;
} expected_kinds[] = {
    {"run.dir", AN_CHANGE_FREE},
    {"run.max_time", AN_CHANGE_FREE},
    {"data.threads", AN_CHANGE_FREE},
    {"train.recompute.budget", AN_CHANGE_FREE},
    {"train.ema.decay", AN_CHANGE_FIXED},
    {"log.every", AN_CHANGE_FREE},
    {"log.grad_norms", AN_CHANGE_FREE},
    {"save.every", AN_CHANGE_FREE},
    {"save.writers", AN_CHANGE_FREE},
    {"ranks.timeout", AN_CHANGE_FREE},
    {"ranks.shard", AN_CHANGE_FREE},
    {"ranks.accumulate", AN_CHANGE_FREE},
    {"eval.every", AN_CHANGE_FREE},
    {"eval.early_stop.patience", AN_CHANGE_FREE},
    {"run.isa", AN_CHANGE_BITS},
    {"train.matmul_precision", AN_CHANGE_BITS},
    {"ranks.precision.reduce", AN_CHANGE_BITS},
    {"run.steps", AN_CHANGE_LENGTH},
    {"run.epochs", AN_CHANGE_LENGTH},
    {"run.tokens", AN_CHANGE_LENGTH},
    {"run.samples", AN_CHANGE_LENGTH},
    {"data.train.path", AN_CHANGE_DATA_PATH},
    {"data.train.labels", AN_CHANGE_DATA_PATH},
    {"data.eval.path", AN_CHANGE_DATA_PATH},
    {"model.from", AN_CHANGE_FREE},
    {"model.graph", AN_CHANGE_DATA_PATH},
    {"data.train.part", AN_CHANGE_FIXED},
    {"data.eval.part", AN_CHANGE_FIXED},
    {"data.drop_last", AN_CHANGE_FIXED},
    {"run.seed", AN_CHANGE_FIXED},
    {"model.width", AN_CHANGE_FIXED},
    {"model.init.from", AN_CHANGE_FIXED},
    {"lora.rank", AN_CHANGE_FIXED},
    {"train.loss.beta", AN_CHANGE_FIXED},
    {"lora.from", AN_CHANGE_FIXED},
    {"batch.leaves", AN_CHANGE_FIXED},
    {"batch.global", AN_CHANGE_FIXED},
    {"optimizer.groups.lr_scale", AN_CHANGE_FIXED},
    {"schedule.warmup.steps", AN_CHANGE_FIXED},
    {"train.precision", AN_CHANGE_FIXED},
    {"eval.best.metric", AN_CHANGE_FIXED},
    {"eval.micro", AN_CHANGE_FIXED},
};

static void test_kinds(void **state) {
    (void)state;
    const an_option_list *all;
    OK(ctx, an_option_list_get(ctx, &all));
    for (size_t i = 0; i < sizeof expected_kinds / sizeof *expected_kinds; i++) {
        an_config_change_kind kind;
        const char *reason = NULL;
        assert_true(an_config_rule_find(all, expected_kinds[i].path, &kind, &reason));
        if (kind != expected_kinds[i].kind) fail_msg("%s is of kind %d", expected_kinds[i].path, (int)kind);
        assert_true(reason && strlen(reason) > 10 && !strchr(reason, '\n'));
    }
}

/* ---- the same ---- */

static const struct {
    const char *before, *after;
} same[] = {
    {BOTH, BOTH},
    {BOTH, "version: 1\n" BOTH "optimizer: {type: adamw, lr: 0.0001}\nbatch: {global: 32}\n"},
    {BOTH "optimizer: {lr: 1e-3, betas: [0.9, 0.95]}\n", BOTH "optimizer: {lr: 0.001, betas: [9e-1, .95]}\n"},
    {BOTH "run: {steps: 2000}\n", BOTH "run: {steps: 2k steps}\n"},
    {BOTH "run: {epochs: 1}\n", BOTH "run: {epochs: 1 epoch}\n"},
    {BOTH "train: {recompute: {budget: 6GiB}}\n", BOTH "train: {recompute: {budget: 6144MiB}}\n"},
    {BOTH "save: {every: 30m}\nrun: {max_time: 1h30m}\n", BOTH "save: {every: 1800s}\nrun: {max_time: 90m}\n"},
    {BOTH "log: {tensorboard: on}\n", BOTH "log: {tensorboard: true}\n"},
    {BOTH "schedule: {type: cosine, warmup: 3%}\n", BOTH "schedule: {type: cosine, warmup: {steps: 3.0%}}\n"},
    {BOTH "schedule: {type: points, points: {0: 0, 500: 1}}\n",
     BOTH "schedule: {type: points, points: {500: 1.0, 00: 0}}\n"},
    {BOTH "batch: {micro: 4, accumulate: 8}\n", BOTH "batch: {micro: 4, accumulate: {0: 8}}\n"},
    {GPT "data: {train: {type: text, path: a.txt, part: 0%..90%}}\n",
     GPT "data: {train: {type: text, path: a.txt, part: 0 % .. 90.0%}}\n"},
    {GPT "data: {train: {type: text, path: ./b/../a.txt}}\n", GPT "data: {train: {type: text, path: b/..//./a.txt}}\n"},
    {GPT "data: {mixtures: [{type: text, path: a}, {type: text, path: b, weight: 2}]}\n",
     GPT "data: {train: {type: mixture, parts: [{type: text, path: a}, {type: text, path: b, weight: 2.0}]}}\n"},
};

static void test_same(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) assert_changes(same[i].before, same[i].after, "");
}

/* ---- not the same ---- */

static const struct {
    const char *before, *after, *changes;
} different[] = {
    {BOTH, BOTH "optimizer: {lr: 1e-3}\n", "optimizer.lr: 1e-4 > 1e-3\n"},
    {BOTH "run: {steps: 2000}\n", BOTH "run: {steps: 3000}\n", "run.steps: 2000 > 3000\n"},
    {BOTH "run: {steps: 2000}\n", BOTH "run: {epochs: 2}\n",
     "run.steps: 2000 > not given\nrun.epochs: not given > 2\n"},
    {BOTH, BOTH "batch: {micro: 8}\nlog: {every: off}\nsave: {every: 10 epochs}\n",
     "batch.micro: auto > 8\nsave.every: 30m > 10 epochs\nlog.every: 10 steps > off\n"},
    {BOTH, BOTH "optimizer: {betas: [0.9, 0.95]}\n", "optimizer.betas: [0.9, 0.999] > [0.9, 0.95]\n"},
    {BOTH "schedule: {type: points, points: {0: 1}}\n", BOTH "schedule: {type: points, points: {0: 1, 9: 0}}\n",
     "schedule.points: {0: 1} > {0: 1, 9: 0}\n"},
    {BOTH "schedule: {type: points, points: {0: 1}}\n", BOTH "schedule: {type: points, points: {1: 1}}\n",
     "schedule.points: {0: 1} > {1: 1}\n"},
    /* keys that only one of the types has are not said; the default of weight_decay depends on the type */
    {BOTH, BOTH "optimizer: {type: sgd, momentum: 0.9}\n",
     "optimizer.type: adamw > sgd\noptimizer.weight_decay: 0.01 > 0\n"},
    {BOTH "schedule: {type: cosine}\n", BOTH "schedule: {type: step, period: 5, warmup: 3}\n",
     "schedule.type: cosine > step\nschedule.warmup.steps: 0 steps > 3\n"},
    /* lists of tables, element by element */
    {BOTH "optimizer: {groups: [{match: a, lr_scale: 2}, {match: b, freeze: on}]}\n",
     BOTH "optimizer: {groups: [{match: a, lr_scale: 3}]}\n",
     "optimizer.groups[0].lr_scale: 2 > 3\noptimizer.groups[1]: {match: b, freeze: on} > not given\n"},
    {BOTH, BOTH "optimizer: {groups: [{match: a}]}\n", "optimizer.groups: not given > [{match: a}]\n"},
    {GPT "data: {mixtures: [{type: text, path: /a}, {type: text, path: b}]}\n",
     GPT "data: {mixtures: [{type: text, path: c}, {type: text, path: b, weight: 2}]}\n",
     "data.train.parts[0].path: /a > c\ndata.train.parts[1].weight: 1 > 2\n"},
    {BOTH, GPT "data: {train: {type: text, path: a.txt}, eval: {type: text, path: b.txt}}\n",
     "data.eval: not given > {type: text, path: b.txt}\n"},
    {GPT "data: {train: {type: text, path: a.txt}, eval: {type: text, path: a.txt, part: 90%..100%}}\n",
     GPT "data: {train: {type: text, path: a.txt}, eval: {type: text, path: a.txt, part: 80%..100%}}\n",
     "data.eval.part: 90%..100% > 80%..100%\n"},
    {GPT "data: {train: {type: text, path: a.txt, part: 0%..90%}}\n",
     GPT "data: {train: {type: text, path: a.txt, part: 0%..80%}}\n", "data.train.part: 0%..90% > 0%..80%\n"},
    {"model: {type: mlp, init: {from: /w, rename: {a: b, c: d}}}\ndata: {train: {type: csv, path: /a}}\n",
     "model: {type: mlp, init: {from: /w, rename: {c: d, a: b}}}\ndata: {train: {type: csv, path: /a}}\n",
     "model.init.rename: {a: b, c: d} > {c: d, a: b}\n"}, /* they are applied in their order */
    {"model: {type: mlp}\ndata: {train: {type: csv, path: /a}}\n",
     "model: {type: sequential, layers: [{type: linear}]}\ndata: {train: {type: csv, path: /a}}\n",
     "model.type: mlp > sequential\n"},
    {"model: {type: mlp}\ndata: {train: {type: csv, path: /a, inputs: [x, y]}}\n",
     "model: {type: mlp}\ndata: {train: {type: csv, path: /a, inputs: auto}}\n", "data.train.inputs: [x, y] > auto\n"},
};

static void test_different(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof different / sizeof *different; i++)
        assert_changes(different[i].before, different[i].after, different[i].changes);
}

static void test_parts_are_sources(void **state) {
    (void)state;
    pair p = compare(GPT "data: {mixtures: [{type: text, path: /a}, {type: text, path: /b}]}\n",
                     GPT "data: {mixtures: [{type: text, path: /c}, {type: text, path: /b, part: 0%..50%}]}\n");
    assert_int_equal(p.changes.count, 2);
    assert_int_equal(find(&p, "data.train.parts[0].path")->kind, AN_CHANGE_DATA_PATH);
    assert_int_equal(find(&p, "data.train.parts[1].part")->kind, AN_CHANGE_FIXED);
    release(&p);
    p = compare(GPT "data: {mixtures: [{type: text, path: /a}]}\n",
                GPT "data: {mixtures: [{type: text, path: /a}, {type: text, path: /b}]}\n");
    assert_int_equal(p.changes.count, 1);
    assert_int_equal(find(&p, "data.train.parts[1]")->kind, AN_CHANGE_FIXED);
    release(&p);
}

/* ---- files ---- */

/* A file is the same by any way that leads to it, and a setting's path is not relative to the config. */
static void test_files(void **state) {
    (void)state;
    static const char text[] = GPT "data: {train: {type: text, path: a.txt}}\n";
    mkdir("folder", 0777);
    FILE *file = fopen("folder/a.txt", "w");
    assert_non_null(file);
    fclose(file);
    unlink("other.txt");
    assert_int_equal(symlink("folder/a.txt", "other.txt"), 0);
    pair p = compare_configs(make_old(text), make_at("folder/../folder/run.yaml", text, NULL), NULL, 0);
    assert_int_equal(p.changes.count, 0);
    release(&p);
    p = compare_configs(make_old(text), make_at("folder/run.yaml", text, "data.train.path=other.txt"), NULL, 0);
    assert_int_equal(p.changes.count, 0);
    release(&p);
    p = compare_configs(make_old(text), make_at("folder/run.yaml", text, "data.train.path=a.txt"), NULL, 0);
    assert_int_equal(p.changes.count, 1);
    assert_int_equal(find(&p, "data.train.path")->kind, AN_CHANGE_DATA_PATH);
    release(&p);
    /* the end of a long path is shown */
    p = compare(
        GPT "data: {train: {type: text, path: /aaaaaaaaaaaaaaaaaaaa/aaaaaaaaaaaaaaaaaaaaaaaaa/aaaaaaaaaaa/é.txt}}\n",
        GPT "data: {train: {type: text, path: /b}}\n");
    assert_non_null(strstr(find(&p, "data.train.path")->before, "/é.txt"));
    assert_memory_equal(find(&p, "data.train.path")->before, "...", 3);
    release(&p);
}

/* ---- what auto stood for ---- */

static void test_autos(void **state) {
    (void)state;
    const an_config_auto autos[] = {{"train.precision", "bf16"}, {"run.isa", "avx2"}};
    pair p = compare_configs(make_old(BOTH), make_new(BOTH "train: {precision: bf16}\nrun: {isa: avx2}\n"), autos, 2);
    assert_int_equal(p.changes.count, 0);
    release(&p);
    p = compare_configs(make_old(BOTH "train: {precision: bf16}\n"), make_new(BOTH), autos, 2);
    assert_int_equal(p.changes.count, 0);
    release(&p);
    p = compare_configs(make_old(BOTH), make_new(BOTH "train: {precision: f32}\n"), autos, 2);
    assert_int_equal(p.changes.count, 1);
    release(&p);
    p = compare_configs(make_old(BOTH), make_new(BOTH "train: {precision: bf16}\n"), NULL, 0);
    assert_int_equal(p.changes.count, 1);
    release(&p);
}

/* ---- refusing ---- */

static void test_refusal(void **state) {
    (void)state;
    char *text = NULL;
    pair p = compare(BOTH "run: {steps: 10}\nbatch: {leaves: 4}\n",
                     BOTH "run: {steps: 20, isa: base}\nbatch: {global: 64}\nlog: {every: 5}\n");
    assert_int_equal(p.changes.count, 5);
    assert_int_equal(an_config_changes_check(&p.changes, p.after, 0), AN_ERR_ARGUMENT);
    const char *message = an_last_error(ctx);
    static const char *const lines[] = {
        "folder/run.yaml: this run cannot be resumed with these changes since its checkpoint:\n",
        "\n  folder/run.yaml:3:14: run.steps is 20, was 10: the end of the run would move",
        "\n  folder/run.yaml:3:23: run.isa is base, was auto: ",
        "\n  folder/run.yaml:4:17: batch.global is 64, was 32: the order of the data depends on it\n",
        "\n  folder/run.yaml: batch.leaves is auto, was 4: ",
        "\nundo the changes, or start a new run with --fresh",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(message, lines[i])) fail_msg("'%s' is not in: %s", lines[i], message);
    assert_null(strstr(message, "log.every"));
    OK(ctx, an_config_changes_refusal(&p.changes, p.after, 0, &text));
    assert_memory_equal(text, message, strlen(text));
    an_string_release(ctx, &text);
    /* what was asked for is not refused */
    const unsigned some = AN_CHANGES(AN_CHANGE_BITS) | AN_CHANGES(AN_CHANGE_LENGTH);
    assert_int_equal(an_config_changes_check(&p.changes, p.after, some), AN_ERR_ARGUMENT);
    assert_null(strstr(an_last_error(ctx), "run.steps"));
    assert_null(strstr(an_last_error(ctx), "run.isa"));
    OK(ctx, an_config_changes_check(&p.changes, p.after, some | AN_CHANGES(AN_CHANGE_FIXED)));
    OK(ctx, an_config_changes_refusal(&p.changes, p.after, some | AN_CHANGES(AN_CHANGE_FIXED), &text));
    assert_null(text);
    release(&p);
    p = compare(BOTH, BOTH "log: {every: 5}\nsave: {keep_last: all}\nranks: {threads: 3}\n");
    assert_int_equal(p.changes.count, 3);
    OK(ctx, an_config_changes_check(&p.changes, p.after, 0));
    release(&p);
}

/* The text has all lines; an error as many as it has room for, and their number. */
static void test_many(void **state) {
    (void)state;
    char before[8192] = BOTH "optimizer:\n  groups:\n", after[8192] = BOTH "optimizer:\n  groups:\n", *text = NULL;
    int lines = 0;
    size_t x = strlen(before), y = strlen(after);
    for (int i = 0; i < 40; i++) {
        x += (size_t)snprintf(before + x, sizeof before - x, "  - {match: name_%d, lr_scale: 2}\n", i);
        y += (size_t)snprintf(after + y, sizeof after - y, "  - {match: name_%d, lr_scale: 3}\n", i);
    }
    pair p = compare(before, after);
    assert_int_equal(p.changes.count, 40);
    OK(ctx, an_config_changes_refusal(&p.changes, p.after, 0, &text));
    for (const char *c = text; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, 41);
    an_string_release(ctx, &text);
    assert_int_equal(an_config_changes_check(&p.changes, p.after, 0), AN_ERR_ARGUMENT);
    const char *message = an_last_error(ctx), *more = strstr(message, "\n  and ");
    assert_non_null(strstr(message, "optimizer.groups[0].lr_scale is 3, was 2: "));
    assert_non_null(strstr(message, "undo the changes, or start a new run with --fresh or another run.dir"));
    if (more) {
        lines = 0;
        for (const char *c = message; c < more; c++) lines += *c == '\n';
        assert_int_equal(strtol(more + 7, NULL, 10), 40 - lines);
    }
    release(&p);
}

/* Every allocation may fail. */
static void test_memory(void **state) {
    (void)state;
    an_config *before = make_old(BOTH "run: {steps: 10}\n"),
              *after = make_new(BOTH "run: {steps: 20}\nbatch: {global: 8}\n");
    bool done = false;
    for (int n = 1; !done; n++) {
        an_config_changes changes = {0};
        counted.fail_at = counted.calls + n;
        an_status status = an_config_compare(&changes, before, after, NULL, 0);
        if (status == AN_OK) status = an_config_changes_check(&changes, after, 0);
        counted.fail_at = 0;
        done = status != AN_ERR_MEMORY;
        if (done) assert_int_equal(status, AN_ERR_ARGUMENT);
        an_config_changes_destroy(&changes);
        assert_true(n < 100);
    }
    an_config_destroy(&before);
    an_config_destroy(&after);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_option_is_classified, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same, setup, teardown),
        cmocka_unit_test_setup_teardown(test_different, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parts_are_sources, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_autos, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
