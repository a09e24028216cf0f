/* A config as an object: defaults, settings, short forms, where values are from, and the way out and in again. */
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/config.h"
#include "config/config.h"
#include "config/support.h"

#define MODEL "model: {type: gpt2, layers: 2, heads: 2, width: 32, context: 16}\n"
#define DATA "data: {train: {type: text, path: a.txt}}\n"
#define BOTH MODEL DATA

/* As docs and users have it. */
static const char example[] =
    "version: 1\n"
    "run:       {dir: runs/char, seed: 1337, steps: 2000}      # or epochs, tokens; max_time\n"
    "model:     {type: gpt2, layers: 4, heads: 4, width: 128, context: 64, dropout: 0.0}\n"
    "data:\n"
    "  train:   {type: text, path: tinyshakespeare.txt, tokens: chars, part: 0%..90%}\n"
    "  eval:    {type: text, path: tinyshakespeare.txt, tokens: chars, part: 90%..100%}\n"
    "  threads: 2\n"
    "batch:     {global: 12}                                     # micro: auto, leaves: auto\n"
    "optimizer: {type: adamw, lr: 1e-3, betas: [0.9, 0.99], weight_decay: 0.1, decay: dim}\n"
    "schedule:  {type: cosine, warmup: 100 steps, min_ratio: 0.1}\n"
    "train:     {clip_norm: 1.0, precision: auto, recompute: none, on_nonfinite: stop}\n"
    "eval:      {every: 250 steps, samples: all, best: val_loss}\n"
    "save:      {every: 250 steps, keep_last: 2}\n"
    "log:       {every: 10 steps, tensorboard: on}\n"
    "ranks:     {shard: auto, threads: auto, report_after: 10s, timeout: 15m}\n";

/* ---- the example ---- */

static void test_the_example_is_read_word_for_word(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config *c = config_of(ctx, example);
    int64_t count;
    double real, begin, end, betas[4];
    bool flag;
    int many;
    an_length length = {0};
    const char *file;
    ASSERT_STRING(ctx, c, "run.dir", "runs/char");
    OK(ctx, an_config_path(c, "run.dir", &file));
    assert_string_equal(file, "runs/char"); /* the working directory's */
    OK(ctx, an_config_count(c, "run.seed", &count));
    assert_int_equal(count, 1337);
    OK(ctx, an_config_length(c, "run.steps", &length));
    assert_true(length.unit == AN_LENGTH_STEPS && length.amount == 2000);
    assert_int_equal(an_config_origin_of(c, "run.epochs"), AN_ORIGIN_NONE);
    OK(ctx, an_config_count(c, "model.width", &count));
    assert_int_equal(count, 128);
    OK(ctx, an_config_path(c, "data.train.path", &file));
    assert_string_equal(file, "folder/tinyshakespeare.txt"); /* the config's folder */
    OK(ctx, an_config_range(c, "data.eval.part", &begin, &end));
    assert_true(begin == 0.9 && end == 1);
    OK(ctx, an_config_real(c, "optimizer.lr", &real));
    assert_true(real == 1e-3);
    OK(ctx, an_config_reals(c, "optimizer.betas", 4, betas, &many));
    assert_true(many == 2 && betas[0] == 0.9 && betas[1] == 0.99);
    assert_true(an_config_is(c, "optimizer.decay", "dim"));
    OK(ctx, an_config_length(c, "schedule.warmup.steps", &length));
    assert_true(length.unit == AN_LENGTH_STEPS && length.amount == 100);
    assert_true(an_config_is(c, "train.recompute.mode", "none"));
    assert_true(an_config_is(c, "eval.samples", "all"));
    FAILS(ctx, an_config_count(c, "eval.samples", &count), AN_ERR_STATE,
          "eval.samples is 'all', which is not a number; check an_config_is first");
    ASSERT_STRING(ctx, c, "eval.best.metric", "val_loss");
    OK(ctx, an_config_bool(c, "log.tensorboard", &flag));
    assert_true(flag);
    OK(ctx, an_config_seconds(c, "ranks.timeout", &real));
    assert_true(real == 900);
    assert_int_equal(an_config_warning_count(c), 0);
    /* defaults */
    OK(ctx, an_config_real(c, "optimizer.eps", &real));
    assert_true(real == 1e-8);
    assert_int_equal(an_config_origin_of(c, "optimizer.eps"), AN_ORIGIN_DEFAULT);
    assert_int_equal(an_config_origin_of(c, "optimizer.lr"), AN_ORIGIN_FILE);
    assert_string_equal(an_config_place(c, "optimizer.lr"), "folder/run.yaml:9:30");
    assert_int_equal(an_config_origin_of(c, "optimizer.momentum"), AN_ORIGIN_NONE); /* sgd's */
    /* wrong questions */
    FAILS(ctx, an_config_real(c, "optimizer.lrr", &real), AN_ERR_UNKNOWN, "'optimizer.lrr' has no value");
    FAILS(ctx, an_config_real(c, "run.dir", &real), AN_ERR_ARGUMENT, "'run.dir' is not a number");
    FAILS(ctx, an_config_string(c, "run", &file), AN_ERR_ARGUMENT, "'run' is not a single value");
    an_config_destroy(&c);
    assert_null(c);
    an_context_destroy(&ctx);
}

static void test_two_keys_are_enough(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config *c = config_of(ctx, "model: gpt2\ndata: {train: {type: text, path: /a.txt}}\n");
    const char *file;
    double real;
    an_length length = {0};
    ASSERT_STRING(ctx, c, "run.dir", "runs/run");
    OK(ctx, an_config_length(c, "run.epochs", &length));
    assert_true(length.unit == AN_LENGTH_EPOCHS && length.amount == 1);
    OK(ctx, an_config_path(c, "data.train.path", &file));
    assert_string_equal(file, "/a.txt");
    ASSERT_STRING(ctx, c, "optimizer.type", "adamw");
    OK(ctx, an_config_real(c, "optimizer.lr", &real));
    assert_true(real == 1e-4);
    ASSERT_STRING(ctx, c, "model.width", "768");
    ASSERT_STRING(ctx, c, "schedule.type", "constant");
    OK(ctx, an_config_real(c, "train.clip_norm", &real));
    assert_true(real == 1);
    ASSERT_STRING(ctx, c, "train.precision", "auto");
    assert_int_equal(an_config_size(c, "optimizer.groups"), 0);
    an_config_destroy(&c);
    an_context_destroy(&ctx);
}

/* ---- forms ---- */

static void test_short_forms_mean_the_long_ones(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {BOTH "schedule: {warmup: 100 steps}\n", BOTH "schedule: {warmup: {steps: 100 steps}}\n"},
        {BOTH "schedule: cosine\n", BOTH "schedule: {type: cosine}\n"},
        {BOTH "train: {recompute: block}\n", BOTH "train: {recompute: {mode: block}}\n"},
        {BOTH "batch: {micro: 4, accumulate: 8}\n", BOTH "batch: {micro: 4, accumulate: {0: 8}}\n"},
        {BOTH "run:\n", BOTH},
        {MODEL "data: {mixtures: [{type: text, path: a, weight: 2}, {type: text, path: b}]}\n",
         MODEL "data: {train: {type: mixture, parts: [{type: text, path: a, weight: 2}, {type: text, path: b}]}}\n"},
        {"model: mlp\ndata: {source: stream}\n", "model: mlp\ndata: {train: stream}\n"},
        {"model: {graph: a.ang}\n" DATA, "model: {type: graph, graph: a.ang}\n" DATA},
        {"model: {from: a}\n" DATA, "model: {type: pretrained, from: a}\n" DATA},
        {"model: {type: sequential, layers: [{type: linear, size: 4}, relu]}\ndata: {train: stream}\n",
         "model: {type: sequential, layers: [{type: linear, size: 4}, {type: relu}]}\ndata: {train: {type: stream}}\n"},
        {"model: {type: mlp, hidden: 8}\ndata: {train: stream}\n",
         "model: {type: mlp, hidden: [8]}\ndata: {train: stream}\n"},
        {BOTH "schedule: {type: points, points: {500: 1, 0: 0}}\n",
         BOTH "schedule: {type: points, points: {0: 0, 500: 1}}\n"},
    };
    an_context *ctx = make_context();
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        an_config *a = config_of(ctx, pairs[i][0]), *b = config_of(ctx, pairs[i][1]);
        char *first = NULL, *second = NULL;
        OK(ctx, an_config_write(a, &first));
        OK(ctx, an_config_write(b, &second));
        assert_string_equal(first, second);
        an_string_release(ctx, &first);
        an_string_release(ctx, &second);
        an_config_destroy(&a);
        an_config_destroy(&b);
    }
    an_context_destroy(&ctx);
}

static void test_lists_and_maps_are_read_by_index(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config *c = config_of(ctx, BOTH "optimizer:\n  groups:\n  - {match: '^h\\.0\\.', lr_scale: 0.5}\n"
                                       "  - match: wpe\n    freeze: on\n"
                                       "schedule: {type: points, points: {500: 1, 0: 0, 20k: 0.1}}\n"
                                       "batch: {micro: 4, leaves: 2, accumulate: 6}\n");
    double real;
    bool flag;
    int64_t key, count;
    const char *place;
    assert_int_equal(an_config_size(c, "optimizer.groups"), 2);
    ASSERT_STRING(ctx, c, "optimizer.groups[0].match", "^h\\.0\\.");
    OK(ctx, an_config_real(c, "optimizer.groups[0].lr_scale", &real));
    assert_true(real == 0.5);
    OK(ctx, an_config_bool(c, "optimizer.groups[1].freeze", &flag));
    assert_true(flag);
    assert_int_equal(an_config_origin_of(c, "optimizer.groups[1].weight_decay"), AN_ORIGIN_NONE);
    assert_int_equal(an_config_origin_of(c, "optimizer.groups[2].match"), AN_ORIGIN_NONE);
    place = an_config_place(c, "optimizer.groups[1].match");
    assert_string_equal(place, "folder/run.yaml:6:12");
    assert_int_equal(an_config_size(c, "schedule.points"), 3);
    OK(ctx, an_config_pair(c, "schedule.points", 2, &key, &real));
    assert_true(key == 20000 && real == 0.1);
    OK(ctx, an_config_pair(c, "batch.accumulate", 0, &key, &real));
    assert_true(key == 0 && real == 6);
    OK(ctx, an_config_count(c, "batch.global", &count)); /* by the arithmetic */
    assert_int_equal(count, 24);
    FAILS(ctx, an_config_pair(c, "schedule.points", 3, &key, &real), AN_ERR_ARGUMENT, "has no entry 3");
    an_config_destroy(&c);
    c = config_of(ctx, "model: {type: gpt2, init: {from: w.safetensors, rename: {'^a\\.': b., c: ''}}}\n" DATA);
    const char *from, *to;
    OK(ctx, an_config_entry(c, "model.init.rename", 0, &from, &to));
    assert_string_equal(from, "^a\\.");
    assert_string_equal(to, "b.");
    OK(ctx, an_config_entry(c, "model.init.rename", 1, &from, &to));
    assert_string_equal(to, "");
    an_config_destroy(&c);
    an_context_destroy(&ctx);
}

/* ---- settings ---- */

static void test_settings_go_over_the_file(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config *c = NULL;
    double real, betas[2];
    int64_t count, key;
    int many;
    const char *text;
    static const char *const sets[] = {"optimizer.lr=3e-4",
                                       "optimizer.betas=[0.8, 0.95]",
                                       "schedule.warmup.start_factor=0",
                                       "data.train.path=b.txt",
                                       "run.steps=",
                                       "run.epochs=3",
                                       "train.recompute={segments: 4}",
                                       "model.init.rename.a.b=c=d",
                                       "schedule.warmup=3%",
                                       "batch.accumulate="};
    OK(ctx, open_text(&c, ctx, example, 10, sets));
    OK(ctx, an_config_real(c, "optimizer.lr", &real));
    assert_true(real == 3e-4);
    assert_int_equal(an_config_origin_of(c, "optimizer.lr"), AN_ORIGIN_SET);
    OK(ctx, an_config_reals(c, "optimizer.betas", 2, betas, &many));
    assert_true(betas[0] == 0.8 && many == 2);
    OK(ctx, an_config_path(c, "data.train.path", &text));
    assert_string_equal(text, "b.txt"); /* of the working directory */
    assert_int_equal(an_config_origin_of(c, "run.steps"), AN_ORIGIN_NONE);
    OK(ctx, an_config_count(c, "train.recompute.segments", &count));
    assert_int_equal(count, 4);
    OK(ctx, an_config_entry(c, "model.init.rename", 0, &text, &text));
    assert_string_equal(text, "c=d");
    /* one more; then one that is refused and changes nothing */
    OK(ctx, an_config_set(c, "optimizer.type=sgd") == AN_OK ? AN_ERR_STATE : AN_OK); /* betas are not sgd's */
    OK(ctx, an_config_set(c, "optimizer.eps=1e-6"));
    FAILS(ctx, an_config_set(c, "optimizer.eps=tiny"), AN_ERR_PARSE, "optimizer.eps is 'tiny'");
    OK(ctx, an_config_real(c, "optimizer.eps", &real));
    assert_true(real == 1e-6);
    ASSERT_STRING(ctx, c, "optimizer.type", "adamw");
    OK(ctx, an_config_set(c, "schedule={type: points, points: {0: 1}}"));
    OK(ctx, an_config_set(c, "schedule.points.10=0.5"));
    OK(ctx, an_config_pair(c, "schedule.points", 1, &key, &real));
    assert_true(key == 10 && real == 0.5);
    an_config_destroy(&c);
    an_context_destroy(&ctx);
}

static void test_settings_reach_into_lists(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config *c = config_of(ctx, BOTH "optimizer: {groups: [{match: a}, {match: b}]}\n");
    OK(ctx, an_config_set(c, "optimizer.groups[1].lr_scale=2"));
    ASSERT_STRING(ctx, c, "optimizer.groups[1].lr_scale", "2");
    OK(ctx, an_config_set(c, "optimizer.groups[0]={match: c}"));
    ASSERT_STRING(ctx, c, "optimizer.groups[0].match", "c");
    ASSERT_STRING(ctx, c, "optimizer.groups[1].match", "b");
    FAILS(ctx, an_config_set(c, "optimizer.groups[2].match=x"), AN_ERR_PARSE, "has 2 elements");
    FAILS(ctx, an_config_set(c, "optimizer.groups[0]="), AN_ERR_PARSE,
          "has elements that cannot be removed one by one; set the whole list");
    an_config_destroy(&c);
    an_context_destroy(&ctx);
}

/* ---- out and in again ---- */

static const char *const wholes[] = {
    example,
    BOTH,
    "model: {type: mlp}\ndata: {source: stream, holdout: 0%, capacity: 1M}\nrun: {steps: 10}\nsave: {every: 5}\n",
    "model: {type: cnn, filters: [8]}\ndata: {train: {type: idx, path: 'a b', labels: \"c\\td\"}}\n"
    "run: {dir: \"\\u263a \\\"q\\\" \\\\ \\x85 \\u2028 \\ufeff # x: y\"}\n",
    "model: {type: llama, layers: 2, heads: 4, width: 64, kv_heads: 2}\n"
    "data: {train: {type: mixture, parts: [{type: tokens, path: a, documents: apart, end_token: 0}, {type: megatron, "
    "path: b}]}}\n"
    "schedule: {type: sequence, parts: [{type: wsd, decay: 20%}, {type: cosine_restarts, T_0: 10}, {type: one_cycle, "
    "max_lr: 1}], "
    "milestones: [10%, 50%]}\n"
    "optimizer: {type: sgd, momentum: 0.9, nesterov: on, groups: [{match: \"^a|: #\", freeze: on}, {match: '- x'}]}\n"
    "batch: {micro: 4, accumulate: {0: 8, 4: 4}}\ntrain: {recompute: {budget: 6GiB}}\n",
    "model: {type: sequential, layers: [{type: convolution, filters: 8}, relu, flatten, {type: linear}]}\n"
    "data: {train: {type: csv, path: /a, inputs: [x, \"auto\", 3], delimiter: \"\\t\"}, eval: {type: csv, path: b}}\n"
    "eval: {metrics: [loss, mae], best: {metric: val_mae}, early_stop: {patience: 3}}\n",
    "model: {graph: a.ang, init: {from: w, rename: {'a: b': 'null', x: ~, y: ''}}}\n" DATA,
};

static void test_what_is_written_reads_back_the_same(void **state) {
    (void)state;
    an_context *ctx = make_context();
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        an_config *c = config_of(ctx, wholes[i]), *again = NULL;
        char *first = NULL, *second = NULL, *shown = NULL;
        OK(ctx, an_config_write(c, &first));
        again = config_of(ctx, first);
        OK(ctx, an_config_write(again, &second));
        assert_string_equal(first, second);
        an_string_release(ctx, &second);
        an_config_destroy(&again);
        OK(ctx, an_config_show(c, &shown)); /* with remarks it is a config too */
        again = config_of(ctx, shown);
        OK(ctx, an_config_write(again, &second));
        assert_string_equal(first, second);
        an_string_release(ctx, &first);
        an_string_release(ctx, &second);
        an_string_release(ctx, &shown);
        an_config_destroy(&again);
        an_config_destroy(&c);
    }
    an_context_destroy(&ctx);
}

/* A word in place of a path stays a word; in quotes it is a path. */
static void test_a_word_is_no_path(void **state) {
    (void)state;
    an_context *ctx = make_context();
    static const char *const texts[] = {"", ", tokenizer: auto", ", tokenizer: 'auto'"};
    for (int i = 0; i < 3; i++) {
        char text[256], *written = NULL;
        snprintf(text, sizeof text, "model: {from: m.gguf}\ndata: {train: {type: chat, path: a.jsonl%s}}\n", texts[i]);
        an_config *c = config_of(ctx, text);
        OK(ctx, an_config_write(c, &written));
        assert_non_null(strstr(written, "/folder/a.jsonl\""));
        assert_true(!strstr(written, "tokenizer: auto\n") == (i == 2));
        assert_true(!strstr(written, "/folder/auto\"") == (i != 2));
        an_string_release(ctx, &written);
        an_config_destroy(&c);
    }
    an_context_destroy(&ctx);
}

static void test_show_says_where_values_are_from(void **state) {
    (void)state;
    static const char *const sets[] = {"optimizer.lr=2e-3"};
    static const char *const lines[] = {"  lr: 2e-3                                  # --set\n",
                                        "  seed: 1337                                # file\n",
                                        "  eps: 1e-8                                 # default\n",
                                        "  # max_time:                               # not set\n",
                                        "    steps: 100 steps                        # file\n"};
    an_context *ctx = make_context();
    an_config *c = NULL;
    char *text = NULL;
    OK(ctx, open_text(&c, ctx, example, 1, sets));
    OK(ctx, an_config_show(c, &text));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(text, lines[i])) fail_msg("no line '%s' in\n%s", lines[i], text);
    an_string_release(ctx, &text);
    OK(ctx, an_config_schema(ctx, &text));
    assert_non_null(strstr(text, "\"$ref\": \"#/$defs/optimizer.groups\""));
    an_string_release(ctx, &text);
    an_config_destroy(&c);
    an_context_destroy(&ctx);
}

static void test_the_table_is_whole(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    const an_option_list *all;
    int count = 0, required = 0;
    OK(ctx, an_option_list_get(ctx, &all));
    for (; an_config_key_get(ctx, count, &key) == AN_OK; count++) {
        assert_true(key.path[0] && key.type[0] && key.help[0]);
        assert_false(key.required && key.default_value);
        required += key.required;
    }
    assert_int_equal(count, all->count);
    assert_true(required >= 2);
    FAILS(ctx, an_config_key_get(ctx, -1, &key), AN_ERR_UNKNOWN, "options, and none has number -1");
    /* a default is right for its option, and the first key of a table is not inside another type */
    for (int i = 0; i < all->count; i++) {
        const an_option *o = &all->items[i];
        if (o->kind == AN_OPTION_TABLE || o->kind == AN_OPTION_TABLES)
            assert_true(an_option_next(all, an_option_table(o), NULL) &&
                        !*an_option_next(all, an_option_table(o), NULL)->of);
    }
    /* what is in a table stands together */
    for (int i = 0; i < all->count; i++) {
        const char *dot = strrchr(all->items[i].path, '.');
        char table[64];
        int found = 0, expected = 0;
        snprintf(table, sizeof table, "%.*s", dot ? (int)(dot - all->items[i].path) : 0, all->items[i].path);
        for (const an_option *o = an_option_next(all, table, NULL); o; o = an_option_next(all, table, o)) found++;
        for (int j = 0; j < all->count; j++) {
            const char *other = strrchr(all->items[j].path, '.');
            const size_t length = other ? (size_t)(other - all->items[j].path) : 0;
            expected += length == strlen(table) && !strncmp(all->items[j].path, table, length);
        }
        assert_int_equal(found, expected);
    }
    an_context_destroy(&ctx);
}

/* ---- files ---- */

static void test_a_file_is_read(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_config *c = NULL;
    const char *file;
    char folder[] = "config-XXXXXX", name[64];
    assert_non_null(mkdtemp(folder));
    snprintf(name, sizeof name, "%s/small.yaml", folder);
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    fputs(BOTH, f);
    fclose(f);
    options.file = name;
    OK(ctx, an_config_create(&c, ctx, &options));
    ASSERT_STRING(ctx, c, "run.dir", "runs/small");
    OK(ctx, an_config_path(c, "data.train.path", &file));
    assert_true(!strncmp(file, folder, strlen(folder)) && !strcmp(file + strlen(folder), "/a.txt"));
    an_config_destroy(&c);
    options.file = "nowhere.yaml";
    FAILS(ctx, an_config_create(&c, ctx, &options), AN_ERR_FILE,
          "nowhere.yaml: the config cannot be read: No such file or directory; check its name and permissions");
    options.file = folder; /* a folder is no file */
    FAILS(ctx, an_config_create(&c, ctx, &options), AN_ERR_FILE, "cannot be read");
    f = fopen(name, "wb"); /* too large to be one */
    for (int i = 0; i < 9000; i++) fprintf(f, "# %0125d\n", i);
    fclose(f);
    options.file = name;
    FAILS(ctx, an_config_create(&c, ctx, &options), AN_ERR_PARSE, "a config has at most 1048576 bytes");
    unlink(name);
    rmdir(folder);
    an_context_destroy(&ctx);
}

static void test_wrong_calls_are_refused(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_config *c = NULL;
    FAILS(ctx, an_config_create(&c, ctx, &options), AN_ERR_ARGUMENT, "an_config_options has neither a file nor a text");
    options.size = 0;
    FAILS(ctx, an_config_create(&c, ctx, &options), AN_ERR_ARGUMENT, "call an_config_options_init first");
    options.size = sizeof options;
    options.file = "\xff.yaml";
    FAILS(ctx, an_config_create(&c, ctx, &options), AN_ERR_ARGUMENT, "the path of a config must be UTF-8; rename it");
    c = config_of(ctx, "\xef\xbb\xbf" BOTH); /* a byte order mark */
    an_config_destroy(&c);
    an_config_destroy(NULL);
    an_context_destroy(&ctx);
}

/* Every allocation fails once: nothing is lost, and a config that was there is as before. */
static void test_memory_may_run_out_anywhere(void **state) {
    (void)state;
    for (long at = 1;; at++) {
        ledger l = {0};
        an_context *ctx = NULL;
        an_config *c = NULL;
        char *text = NULL;
        const an_option_list *all;
        assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
        OK(ctx, an_option_list_get(ctx, &all)); /* which the context keeps */
        const size_t held = l.held;
        l.fail_at = l.calls + at;
        l.once = true;
        an_status status = open_text(&c, ctx, wholes[4], 0, NULL);
        if (status == AN_OK) status = an_config_set(c, "optimizer.layer_decay=0.2");
        if (status == AN_OK) status = an_config_show(c, &text);
        assert_true(status == AN_OK || status == AN_ERR_MEMORY);
        an_string_release(ctx, &text);
        an_config_destroy(&c);
        assert_int_equal(l.held, held);
        an_context_destroy(&ctx);
        assert_false(l.mismatch);
        if (status == AN_OK) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_example_is_read_word_for_word),
        cmocka_unit_test(test_two_keys_are_enough),
        cmocka_unit_test(test_short_forms_mean_the_long_ones),
        cmocka_unit_test(test_lists_and_maps_are_read_by_index),
        cmocka_unit_test(test_settings_go_over_the_file),
        cmocka_unit_test(test_settings_reach_into_lists),
        cmocka_unit_test(test_what_is_written_reads_back_the_same),
        cmocka_unit_test(test_a_word_is_no_path),
        cmocka_unit_test(test_show_says_where_values_are_from),
        cmocka_unit_test(test_the_table_is_whole),
        cmocka_unit_test(test_a_file_is_read),
        cmocka_unit_test(test_wrong_calls_are_refused),
        cmocka_unit_test(test_memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
