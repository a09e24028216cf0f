/* anneal eval: computes the metrics of a checkpoint, on the data of its run or on other data. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options/settings.h"
#include "cli/checkpoint/source.h"
#include "cli/predict/report.h"
#include "cli/train/open.h"

enum { DATA, LABELS, ADAPTER, JSON, SVG, WEIGHTS, CHECKPOINT, SET };
static const cli_option options[] = {
    [DATA] = {.name = "data",
              .argument = "FILE",
              .help = "evaluate on this file, read with the settings of the run's data.eval, or of data.train if it "
                      "has none (default: data.eval, or what data.split keeps)"},
    [LABELS] = {.name = "labels", .argument = "FILE", .help = "labels of the images given by --data, for IDX files"},
    [ADAPTER] = {.name = "adapter",
                 .argument = "FOLDER,...",
                 .help = "evaluate these adapters of PEFT, one after another, in the place of the run's own; the model "
                         "is read once"},
    [JSON] = {.name = "json", .help = "write JSON"},
    [SVG] = {.name = "svg",
             .argument = "FILE",
             .help = "draw the confusion matrix, and for two classes the ROC curve, as an SVG picture"},
    [WEIGHTS] = {.name = "weights", .argument = "raw|ema", .help = CLI_WEIGHTS_HELP},
    [CHECKPOINT] = {.name = "checkpoint", .argument = CLI_CHECKPOINT_ARGUMENT, .help = CLI_CHECKPOINT_HELP},
    [SET] =
        {.name = "set",
         .argument = "KEY=VALUE",
         .repeats = true,
         .help =
             "override a key of the run's config, as in data.train.path=FILE if the file has moved; can be repeated"},
    {0},
};

/* ---- settings ---- */

enum { MOST_SETTINGS = CLI_MOST_SETS + 64, SETTING_BYTES = 1 << 17 };

typedef struct {
    const char *list[MOST_SETTINGS];
    int count;
    char bytes[SETTING_BYTES];
    size_t used;
    bool failed; /* there are too many */
} settings;

static void add(settings *s, const char *key, const char *value) {
    const size_t bytes = strlen(key) + strlen(value) + 2;
    s->failed = s->failed || s->count == MOST_SETTINGS || bytes > SETTING_BYTES - s->used;
    if (s->failed) return;
    s->list[s->count++] = s->bytes + s->used;
    snprintf(s->bytes + s->used, bytes, "%s=%s", key, value);
    s->used += bytes;
}

/* A value as --set takes it: a list in brackets, texts in quotes. False: there is none. */
static bool value_of(an_config *config, const char *path, char *value, size_t capacity) {
    const int size = an_config_size(config, path);
    const char *text;
    if (an_config_origin_of(config, path) == AN_ORIGIN_NONE) return false;
    if (size == 0) {
        if (an_config_string(config, path, &text) != AN_OK) return false;
        snprintf(value, capacity, strcmp(text, ",") == 0 ? "\"%s\"" : "%s", text);
        return true;
    }
    size_t used = (size_t)snprintf(value, capacity, "[");
    for (int i = 0; i < size && used < capacity; i++) {
        char element[128];
        snprintf(element, sizeof element, "%s[%d]", path, i);
        if (an_config_string(config, element, &text) != AN_OK) return false;
        used += (size_t)snprintf(value + used, capacity - used, "%s\"%s\"", i ? ", " : "", text);
    }
    if (used >= capacity) return false;
    used += (size_t)snprintf(value + used, capacity - used, "]");
    return used < capacity;
}

/* What data.train says of how its file is read, for data.eval. */
static void copy_training(settings *s, an_config *config) {
    static const char *const own[] = {"path", "labels", "part", "weight", "parts", "count"};
    static const char *const training = AN_SETTING(data.train);
    const size_t length = strlen(training);
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    for (int i = 0; cli_key_at(i, &key); i++) {
        char value[4096], path[80];
        bool wanted = !strncmp(key.path, training, length) && key.path[length] == '.';
        for (size_t k = 0; wanted && k < sizeof own / sizeof *own; k++)
            wanted = strcmp(key.path + length + 1, own[k]) != 0;
        if (!wanted || !value_of(config, key.path, value, sizeof value)) continue;
        snprintf(path, sizeof path, "%s.%.64s", AN_SETTING(data.eval), key.path + length + 1);
        add(s, path, value);
    }
}

/* A file in the place of what data.split keeps for evaluation. The column of groups is no input only
 * because the split names it. */
static int leave_split(const cli_call *call, an_config *config, settings *s) {
    const char *by = "";
    an_config_string(config, AN_SETTING(data.split.by), &by);
    if (!strncmp(by, "group", 5) && an_config_is(config, AN_SETTING(data.train.inputs), "auto"))
        return cli_misuse(call, "the run was split by group, so list its input columns: add "
                                "--set data.train.inputs='[…]'");
    add(s, AN_SETTING(data.split), "");
    return CLI_DONE;
}

/* Which file is evaluated on. */
static int choose_data(const cli_call *call, an_config *config, settings *s) {
    const char *file = call->values[DATA], *labels = call->values[LABELS];
    const bool given = an_config_origin_of(config, AN_SETTING(data.eval.type)) != AN_ORIGIN_NONE;
    const bool split = !an_config_is(config, AN_SETTING(data.split.eval), "off");
    const char *type = given ? AN_SETTING(data.eval.type) : AN_SETTING(data.train.type);
    if (labels && !file) return cli_misuse(call, "--labels needs --data, which was not given");
    if (!file && !given && !split && call->set_count == 0)
        return cli_fail(call, "this run has no data.eval; give the data to evaluate on with --data FILE");
    if (!file) return CLI_DONE;
    if (an_config_is(config, type, "mixture") || an_config_is(config, type, "stream"))
        return cli_misuse(call, "the run's data is a mixture or a stream, so nothing says how to read a single file; "
                                "describe the file with --set data.eval='{type: …, path: …}'");
    if (an_config_is(config, type, "idx") && !labels)
        return cli_misuse(call, "the images of --data need labels: add --labels FILE");
    if (!an_config_is(config, type, "idx") && labels)
        return cli_misuse(call, "--labels is for IDX files; here the targets are in the file given by --data");
    if (split && leave_split(call, config, s) != CLI_DONE) return CLI_MISUSED;
    if (!given) copy_training(s, config);
    add(s, AN_SETTING(data.eval.path), file);
    if (labels) add(s, AN_SETTING(data.eval.labels), labels);
    add(s, AN_SETTING(data.eval.part), "0%..100%");
    return CLI_DONE;
}

/* ---- the trainer ---- */

/* The characters of a text are numbered by the file that they are in: another file must number them in the same way. */
static int check_characters(const cli_training *t) {
    an_dataset *dataset = NULL;
    an_text_source source;
    an_text_source_init(&source, sizeof source);
    int64_t count = 0, known = 0;
    bool same = true;
    const an_dataset *training = an_trainer_data(t->trainer);
    if (!t->call->values[DATA] || !an_config_is(t->config, AN_SETTING(data.eval.tokens), "chars")) return CLI_DONE;
    source.tokens = AN_TEXT_CHARACTERS;
    source.context = t->info.tokens;
    an_status status = an_config_path(t->config, AN_SETTING(data.eval.path), &source.path);
    if (status == AN_OK) status = an_dataset_create_text(&dataset, t->ctx, &source);
    if (status == AN_OK) status = an_dataset_vocabulary(dataset, &count);
    if (status == AN_OK) status = an_dataset_vocabulary(training, &known);
    for (int64_t i = 0; status == AN_OK && same && i < count && i < known; i++) {
        char a[AN_TOKEN_BYTES], b[AN_TOKEN_BYTES];
        int lengths[2] = {0};
        status = an_dataset_token_text(dataset, (int32_t)i, a, &lengths[0]);
        if (status == AN_OK) status = an_dataset_token_text(training, (int32_t)i, b, &lengths[1]);
        same = lengths[0] == lengths[1] && !memcmp(a, b, (size_t)lengths[0]);
    }
    const int code = status == AN_OK ? CLI_DONE : cli_refuse(t->call, t->ctx, NULL, status);
    an_dataset_destroy(&dataset);
    if (code == CLI_DONE && !same)
        return cli_fail(t->call,
                        "%s: does not have the same characters as the training data, so its tokens would be numbered "
                        "differently; append it to that file, and evaluate on that part of it (data.eval.part)",
                        t->call->values[DATA]);
    return code;
}

/* The numbers of categories and classes come from the training data, which may have changed since. */
static int check_encoding(const cli_checkpoint *from, const cli_training *t) {
    an_encoding *saved = NULL;
    const an_encoding *now = an_dataset_encoding(an_trainer_data(t->trainer));
    char *text = NULL;
    if (!now || an_checkpoint_text(from->checkpoint, "encoding.json", &text) != AN_OK) return CLI_DONE;
    const an_status status = an_encoding_parse(&saved, t->ctx, text, strlen(text));
    an_string_release(from->ctx, &text);
    if (status != AN_OK) return cli_refuse(t->call, t->ctx, NULL, status);
    const bool same = an_encoding_agrees(saved, now);
    an_encoding_destroy(&saved);
    if (same) return CLI_DONE;
    return cli_fail(t->call,
                    "the columns, categories or classes of data.train are not those that %s was trained with, so its "
                    "numbers would mean something else; give the training data as it was, with "
                    "--set data.train.path=FILE",
                    from->info.path);
}

/* As the run was opened, with the state of this checkpoint; the run's folder is not touched. */
static int open_trainer(const cli_checkpoint *from, const settings *s, cli_training *t) {
    an_open_options open;
    an_open_options_init(&open, sizeof open);
    an_status status = cli_checkpoint_config(from, t->ctx, s->count, s->list, &t->config);
    open.fresh = true;
    open.new_bits = true;
    if (status == AN_OK && cli_weights_choose(t->call, t->call->values[WEIGHTS], &open.weights) != CLI_DONE)
        return CLI_MISUSED;
    open.details = AN_DETAIL_CLASSES | AN_DETAIL_SCORES | AN_DETAIL_OUTPUTS;
    if (status == AN_OK) status = an_trainer_open_config(&t->trainer, t->ctx, t->config, &open);
    if (status == AN_OK) status = an_trainer_info_get(t->trainer, &t->info);
    if (status == AN_OK) return CLI_DONE;
    cli_refuse(t->call, t->ctx, NULL, status);
    if (status == AN_ERR_FILE)
        fprintf(stderr, "Opening a run needs its data. If the data has moved, add --set data.train.path=FILE\n");
    return CLI_FAILED;
}

static void print_metrics(const cli_training *t, const an_evaluation *e) {
    const char *name;
    double value;
    for (int i = 0; (name = an_trainer_metric(t->trainer, i)); i++)
        if (an_evaluation_metric(e, name, &value)) printf("%-14s %.6g\n", name, value == value ? value : (double)NAN);
}

static void write_metrics(const cli_training *t, const an_evaluation *e, an_json_writer *j) {
    const char *name;
    double value;
    an_json_write_integer(j, "samples", e->samples);
    an_json_write_integer(j, "targets", e->targets);
    an_json_write_object(j, "metrics");
    for (int i = 0; (name = an_trainer_metric(t->trainer, i)); i++)
        if (an_evaluation_metric(e, name, &value)) an_json_write_exact(j, name, value);
    an_json_write_end(j);
}

/* The trainer has the model, and no state of the checkpoint: adapters can be put into it as long as
 * it has not taken a step. */
static int evaluate_adapter(const cli_training *t, const char *folder, an_json_writer *j) {
    an_evaluation e;
    an_load_options o;
    an_evaluation_init(&e, sizeof e);
    an_load_options_init(&o, sizeof o);
    o.path = folder;
    o.adapter = true;
    an_status status = an_trainer_load_weights(t->trainer, &o);
    if (status == AN_OK) status = an_trainer_evaluate(t->trainer, &e);
    if (status != AN_OK) return cli_refuse(t->call, t->ctx, NULL, status);
    if (j) {
        an_json_write_object(j, NULL);
        an_json_write_string(j, "adapter", folder);
        write_metrics(t, &e, j);
        an_json_write_end(j);
        return CLI_DONE;
    }
    printf("%s: %s sample%s in %s\n", folder, cli_count(e.samples).text, e.samples == 1 ? "" : "s",
           cli_duration(e.seconds).text);
    print_metrics(t, &e);
    return CLI_DONE;
}

static int evaluate_adapters(const cli_checkpoint *from, const cli_training *t) {
    const bool as_json = t->call->values[JSON] != NULL;
    an_json_writer j = an_json_to_file(stdout, AN_JSON_LINES);
    int code = CLI_DONE;
    if (as_json) {
        an_json_write_object(&j, NULL);
        an_json_write_string(&j, "path", from->info.path);
        an_json_write_string(&j, "checkpoint", from->choice);
        an_json_write_array(&j, "adapters");
    }
    for (const char *at = t->call->values[ADAPTER]; at && code == CLI_DONE;) {
        const char *comma = strchr(at, ',');
        char folder[4096];
        snprintf(folder, sizeof folder, "%.*s", (int)(comma ? comma - at : (long)strlen(at)), at);
        code = evaluate_adapter(t, folder, as_json ? &j : NULL);
        at = comma ? comma + 1 : NULL;
    }
    if (code != CLI_DONE) return code;
    if (as_json) {
        an_json_write_end(&j);
        an_json_write_finish(&j);
    }
    return cli_finish(t->call);
}

static int evaluate(const cli_checkpoint *from, cli_training *t) {
    an_evaluation e;
    an_evaluation_init(&e, sizeof e);
    const an_dataset *data = an_trainer_data(t->trainer);
    const char *name, *weights = t->call->values[WEIGHTS];
    const bool average =
        !an_config_is(t->config, AN_SETTING(train.ema.decay), "off") && !(weights && !strcmp(weights, "raw"));
    if (t->info.evaluation_samples == 0)
        return cli_fail(t->call, "this run has no data.eval; give the data to evaluate on with --data FILE");
    if (t->call->values[ADAPTER]) return evaluate_adapters(from, t);
    an_status status = an_trainer_load(t->trainer, from->info.path);
    if (status == AN_OK) status = an_trainer_evaluate(t->trainer, &e);
    if (status != AN_OK) return cli_refuse(t->call, t->ctx, NULL, status);
    if (t->call->values[SVG] && !cli_shows_classes(t))
        return cli_misuse(t->call, "--svg draws a confusion matrix, but this model does not predict a class for each "
                                   "sample, or it has more than 1,000 classes");
    if (t->call->values[SVG] && cli_report_draw(t, t->call->values[SVG]) != CLI_DONE) return CLI_FAILED;
    if (!t->call->values[JSON]) {
        printf("%s, step %s%s: %s sample%s in %s\n", from->info.path, cli_count(from->info.step).text,
               average ? ", average of the weights" : "", cli_count(e.samples).text, e.samples == 1 ? "" : "s",
               cli_duration(e.seconds).text);
        print_metrics(t, &e);
        cli_report_print(t);
        return cli_finish(t->call);
    }
    an_json_writer j = an_json_to_file(stdout, AN_JSON_LINES);
    an_json_write_object(&j, NULL);
    an_json_write_string(&j, "path", from->info.path);
    an_json_write_string(&j, "checkpoint", from->choice);
    an_json_write_integer(&j, "step", from->info.step);
    an_json_write_string(&j, "weights", average ? "ema" : "raw");
    write_metrics(t, &e, &j);
    if (an_dataset_class_name(data, 0)) an_json_write_array(&j, "classes");
    for (int64_t i = 0; (name = an_dataset_class_name(data, i)); i++) an_json_write_string(&j, NULL, name);
    if (an_dataset_class_name(data, 0)) an_json_write_end(&j);
    cli_report_write(t, &j);
    an_json_write_finish(&j);
    return cli_finish(t->call);
}

/* Threads and instructions that the settings ask for go before those of the run. */
static int make_context(const cli_call *call, const cli_checkpoint *from, const settings *s, an_context **ctx) {
    an_config *config = NULL;
    an_isa chosen = AN_ISA_AUTO;
    const an_status status = cli_checkpoint_config(from, from->ctx, s->count, s->list, &config);
    if (status != AN_OK) {
        cli_refuse(call, from->ctx, NULL, status);
        return CLI_FAILED;
    }
    for (int isa = AN_ISA_BASE; isa <= AN_ISA_AMX; isa++)
        if (an_config_is(config, AN_SETTING(run.isa), an_isa_name((an_isa)isa))) chosen = (an_isa)isa;
    const int code = cli_checkpoint_context(from, config, chosen, ctx);
    an_config_destroy(&config);
    return code;
}

static int prepare(const cli_call *call, const cli_checkpoint *from, settings *s, an_context **ctx) {
    an_config *config = NULL;
    const an_status status = cli_checkpoint_config(from, from->ctx, 0, NULL, &config);
    if (status != AN_OK) return cli_refuse(call, from->ctx, NULL, status);
    if (!config)
        return cli_fail(call, "%s: has no config, so nothing describes its data; a program created this run",
                        from->info.path);
    int code = choose_data(call, config, s);
    const bool adapts = an_config_origin_of(config, AN_SETTING(lora.targets)) != AN_ORIGIN_NONE ||
                        an_config_origin_of(config, AN_SETTING(lora.from)) != AN_ORIGIN_NONE;
    if (code == CLI_DONE && call->values[ADAPTER] && !adapts)
        code = cli_misuse(call, "--adapter is for runs that train an adapter (lora), and this one does not");
    if (code == CLI_DONE && call->values[ADAPTER] && (call->values[SVG] || call->values[WEIGHTS]))
        code = cli_misuse(call, "--adapter cannot be used with --svg or --weights");
    add(s, AN_SETTING(run.isa), "auto"); /* the context has those that it was trained with */
    /* Metrics may be those of the program that trained it, and choose nothing here. */
    add(s, AN_SETTING(eval.best), "");
    add(s, AN_SETTING(eval.early_stop), "");
    if (an_config_origin_of(config, AN_SETTING(model.init.from)) != AN_ORIGIN_NONE && !call->values[ADAPTER])
        add(s, AN_SETTING(model.init.from), "");
    for (int i = 0; i < call->set_count; i++) {
        const char *value = strchr(call->sets[i], '=');
        char key[256];
        snprintf(key, sizeof key, "%.*s", value ? (int)(value - call->sets[i]) : 0, call->sets[i]);
        if (!value && code == CLI_DONE) code = cli_misuse(call, "--set takes KEY=VALUE, not '%s'", call->sets[i]);
        if (value) add(s, key, value + 1);
    }
    if (code == CLI_DONE && s->failed) code = cli_misuse(call, "--set was given too many times");
    an_config_destroy(&config);
    return code == CLI_DONE ? make_context(call, from, s, ctx) : code;
}

static int run(const cli_call *call) {
    cli_checkpoint from;
    cli_training t = {.call = call, .info = {.size = sizeof t.info}};
    settings *s = calloc(1, sizeof *s);
    if (!s) return cli_fail(call, "out of memory");
    int code = cli_checkpoint_open_model(call, call->argument, call->values[CHECKPOINT], &from);
    if (code == CLI_DONE && !from.info.is_run)
        code = cli_fail(call, "%s: has only tensors, without a model; give a run or one of its checkpoints",
                        call->argument);
    if (code == CLI_DONE) code = prepare(call, &from, s, &t.ctx);
    if (code == CLI_DONE) code = open_trainer(&from, s, &t);
    if (code == CLI_DONE) code = check_characters(&t);
    if (code == CLI_DONE) code = check_encoding(&from, &t);
    if (code == CLI_DONE) code = evaluate(&from, &t);
    free(s);
    cli_training_close(&t);
    cli_checkpoint_close(&from);
    return code;
}

const cli_command cli_eval = {
    .name = "eval",
    .argument = "RUN|CHECKPOINT",
    .summary = "evaluate a checkpoint",
    .text = "Evaluates a checkpoint in the same way as its run does, and shows the same metrics. For a run, its best "
            "checkpoint is used if it has one, otherwise the newest. On the same data and instruction set, the numbers "
            "are bit-identical. Nothing in the "
            "run folder changes, and the run may still be going.",
    .options = options,
    .run = run,
};
