/* Words of other tools: every row of config/other_names.def is answered as it says, and what it names exists and can
 * be set. */
#include "anneal/config.h"
#include "config/config.h"
#include "support/support.h"

#define DATA "data: {train: {type: csv, path: a.csv}}\n"
#define MLP "model: {type: mlp}\n" DATA

typedef struct {
    const char *key, *path, *why;
} other_key;

static const other_key keys[] = {
#define OTHER_KEY(key, path, why) {key, path, why},
#define OTHER_VALUE(path, text, status, why)
#include "config/other_names.def"
#undef OTHER_KEY
#undef OTHER_VALUE
};

typedef struct {
    const char *path, *text;
    an_status status;
    const char *why;
} other_value;

static const other_value values[] = {
#define OTHER_KEY(key, path, why)
#define OTHER_VALUE(path, text, status, why) {path, text, status, why},
#include "config/other_names.def"
#undef OTHER_KEY
#undef OTHER_VALUE
};
enum { KEYS = sizeof keys / sizeof *keys, VALUES = sizeof values / sizeof *values };

static an_status create(an_context *ctx, const char *text, const char *set) {
    an_config *config = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    options.file = "run.yaml";
    options.text = text;
    options.length = strlen(text);
    options.sets = &set;
    options.set_count = set ? 1 : 0;
    const an_status status = an_config_create(&config, ctx, &options);
    an_config_destroy(&config);
    return status;
}

static void expect_words(an_context *ctx, const char *words) {
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
}

static bool is_option(an_context *ctx, const char *path) {
    const an_option_list *all;
    OK(ctx, an_option_list_get(ctx, &all));
    for (int i = 0; i < all->count; i++)
        if (!strcmp(all->items[i].path, path)) return true;
    return false;
}

/* A key with a dot has its own place. */
static void try_key(an_context *ctx, const char *format, const other_key *k) {
    char text[512], line[128], answer[512], set[128];
    const bool placed = strchr(k->key, '.') != NULL;
    snprintf(line, sizeof line, format, k->key); /* NOLINT(clang-diagnostic-format-nonliteral): of a list below */
    snprintf(text, sizeof text, MLP "%s", placed ? "" : line);
    snprintf(set, sizeof set, "%s=1", k->key);
    snprintf(answer, sizeof answer, k->path ? "; the key is called %s" : "; %s", k->path ? k->path : k->why);
    assert_int_equal(create(ctx, text, placed ? set : NULL), AN_ERR_UNKNOWN);
    expect_words(ctx, answer);
}

/* At the top of a config and in a table: people write them in both places. */
static void every_key_is_answered(void **state) {
    static const char *const places[] = {"%s: 1\n", "train: {%s: 1}\n"};
    an_context *ctx = NULL;
    (void)state;
    OK(NULL, an_context_create(&ctx, NULL));
    for (int i = 0; i < KEYS; i++) {
        const other_key *k = &keys[i];
        if (k->path && !is_option(ctx, k->path)) fail_msg("%s: there is no option %s", k->key, k->path);
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) try_key(ctx, places[p], k);
    }
    an_context_destroy(&ctx);
}

/* The type of a layer is in a list; other values are set over the config of an MLP. */
static an_status try_value(an_context *ctx, const char *path, const char *value) {
    char text[256];
    if (!strcmp(path, "model.layers.type")) {
        snprintf(text, sizeof text, "model: {type: sequential, layers: [{type: %s}]}\n" DATA, value);
        return create(ctx, text, NULL);
    }
    snprintf(text, sizeof text, "%s=%s", path, value);
    return create(ctx, MLP, text);
}

/* "use X": X is a value that the option takes. */
static void every_value_is_answered(void **state) {
    an_context *ctx = NULL;
    (void)state;
    OK(NULL, an_context_create(&ctx, NULL));
    for (int i = 0; i < VALUES; i++) {
        const other_value *v = &values[i];
        char word[64] = "";
        assert_int_equal(try_value(ctx, v->path, v->text), v->status);
        expect_words(ctx, v->why);
        if (sscanf(v->why, "use %63[a-z0-9_]", word) != 1) continue;
        const an_status status = try_value(ctx, v->path, word);
        /* Some need more than the word, and say so by their own name. */
        if (status != AN_OK && !strstr(an_last_error(ctx), "needs '") && !strstr(an_last_error(ctx), "data.eval"))
            fail_msg("%s: %s, which is advised: %s", v->path, word, an_last_error(ctx));
    }
    an_context_destroy(&ctx);
}

/* Said once more, for those that are met first. */
static void the_first_ones_people_write(void **state) {
    static const char *const expected[][2] = {
        {"learning_rate", "optimizer.lr"},
        {"batch_size", "batch.global"},
        {"eta_min", "schedule.min_lr"},
        {"max_epochs", "run.epochs"},
        {"num_train_epochs", "run.epochs"},
        {"accumulate_grad_batches", "batch.accumulate"},
        {"gradient_clip_val", "train.clip_norm"},
        {"per_device_train_batch_size", "batch.micro"},
        {"per_device_eval_batch_size", "eval.micro"},
        {"warmup_ratio", "schedule.warmup"},
        {"lr_scheduler_type", "schedule.type"},
        {"T_max", "a schedule spans the whole run"},
        {"fp16", "train.precision: f16"},
        {"pin_memory", "models run on the processor"},
        {"gradient_checkpointing", "train.recompute"},
        {"num_workers", "data.threads"},
        {"MAX_EPOCHS", "run.epochs"}, /* in any case */
        {"backward_prefetch", "the next unit is gathered while one is computed"},
        {"use_orig_params", "parameters keep their names and shapes with every sharding"},
        {"channels_last", "kernels choose the memory layout of images"},
        {"swa", "train.ema: 0.999, a moving average of the weights, comes nearest"},
        {"backend", "ranks exchange data through MPI"},
        {"non_blocking", "no samples are copied to a device"},
        {"compile", "a model is compiled before its first step"},
        {"autocast", "train.precision: bf16"},
        {"inference_mode", "compute no gradients anyway"},
        {"rmsprop", "set optimizer.type to rmsprop"},
        {"adafactor", "lion if memory is scarce"},
        {"reduce_on_plateau", "a rate that depends on evaluations is not offered"},
        {"cutmix", "data.augment.mixup blends whole samples"},
        {"huber", "model.loss: squared"},
        {"leaky_relu", "model.activation takes relu, gelu, tanh or silu"},
        {"group_norm", "batch_norm after convolutions"},
        {"residual", "layers of a sequential model have no branches"},
    };
    an_context *ctx = NULL;
    (void)state;
    OK(NULL, an_context_create(&ctx, NULL));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char text[256];
        snprintf(text, sizeof text, MLP "%s: 3\n", expected[i][0]);
        assert_int_equal(create(ctx, text, NULL), AN_ERR_UNKNOWN);
        expect_words(ctx, expected[i][1]);
    }
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_answered),
        cmocka_unit_test(every_value_is_answered),
        cmocka_unit_test(the_first_ones_people_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
