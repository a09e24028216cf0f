/* anneal predict: computes the predictions of a checkpoint for samples in a file. */
#include "cli/predict/predict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/options/settings.h"
#include "base/word.h"

enum { INPUT, OUTPUT, KEEP, WEIGHTS, CHECKPOINT, SET };
static const cli_option options[] = {
    [INPUT] =
        {.name = "input",
         .argument = "FILE",
         .help =
             "samples in the format of the run's training data (a table with or without the targets), or a .npy array"},
    [OUTPUT] =
        {.name = "output",
         .letter = 'o',
         .argument = "FILE",
         .help = "NAME.csv, with one line per sample (language models: per token), or NAME.npy, with the raw outputs; "
                 "- is CSV on standard output (default)"},
    [KEEP] = {.name = "keep",
              .argument = "COLUMN,...",
              .lists = true,
              .help = "copy columns of the input, such as an id, to the CSV output: columns of a table by name or by "
                      "number starting at 1, members of JSON lines by name; can be repeated"},
    [WEIGHTS] = {.name = "weights", .argument = "raw|ema", .help = CLI_WEIGHTS_HELP},
    [CHECKPOINT] = {.name = "checkpoint", .argument = CLI_CHECKPOINT_ARGUMENT, .help = CLI_CHECKPOINT_HELP},
    [SET] = {.name = "set",
             .argument = "KEY=VALUE",
             .repeats = true,
             .help = "override a key of the run's config, as in data.train.header=off; can be repeated"},
    {0},
};

/* ---- the model ---- A run is opened with its data; prediction needs none of it. So the graph of the checkpoint is
 * opened on a stream, which has the fields that the model reads, and starts with the checkpoint's weights. */

enum { MOST_SETTINGS = 16, SETTING = 2 * CLI_PATH };

typedef struct {
    char texts[MOST_SETTINGS][SETTING];
    const char *list[MOST_SETTINGS];
    int count;
} settings;

static char *next(settings *s) {
    s->list[s->count] = s->texts[s->count];
    return s->texts[s->count++];
}

/* A path in quotes, as YAML has them. */
static void quote(const char *path, char quoted[SETTING / 2]) {
    size_t at = 0;
    quoted[at++] = '"';
    for (; *path && at < SETTING / 2 - 3; path++) {
        if (*path == '"' || *path == '\\') quoted[at++] = '\\';
        quoted[at++] = *path;
    }
    quoted[at++] = '"';
    quoted[at] = 0;
}

/* The type that the weights have, and how many tokens an embedding knows; 0: there is none of this name. */
static int64_t learn(const cli_checkpoint *from, bool *wide) {
    static const char *const tables[] = {"wte.weight", "model.embed_tokens.weight"};
    int64_t vocabulary = 0;
    an_checkpoint_tensor t;
    an_checkpoint_tensor_init(&t, sizeof t);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const int64_t index = an_checkpoint_find(from->checkpoint, tables[i]);
        if (index >= 0 && an_checkpoint_tensor_get(from->checkpoint, index, &t) == AN_OK && t.ndims == 2)
            vocabulary = t.dims[0];
    }
    *wide = an_checkpoint_tensor_get(from->checkpoint, 0, &t) == AN_OK && t.dtype == AN_DTYPE_F64;
    return vocabulary;
}

/* What `auto` was is asked of the checkpoint. */
static void choose(settings *s, const cli_checkpoint *from, an_config *config, bool with_data, const char *weights) {
    static const char *const plain[] = {"run={steps: 1}",
                                        "batch={global: 1}",
                                        "optimizer={type: sgd}",
                                        AN_SETTING_TO(schedule, ""),
                                        AN_SETTING_TO(eval, ""),
                                        AN_SETTING_TO(save, ""),
                                        AN_SETTING_TO(log, ""),
                                        AN_SETTING_TO(data.split, ""),
                                        AN_SETTING_TO(train.ema, "")};
    char folder[SETTING / 2];
    bool wide;
    const int64_t vocabulary = learn(from, &wide);
    const bool tokens =
        an_config_is(config, AN_SETTING(model.type), "gpt2") || an_config_is(config, AN_SETTING(model.type), "llama");
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) snprintf(next(s), SETTING, "%s", plain[i]);
    quote(from->info.path, folder);
    if (with_data) {
        snprintf(next(s), SETTING, AN_SETTING_TO(data.eval, ""));
    } else {
        snprintf(next(s), SETTING, "data={train: {type: stream, dtype: %s}}", wide ? "f64" : "f32");
        if (tokens)
            snprintf(next(s), SETTING, "%s=%lld", AN_SETTING(model.vocabulary), (long long)vocabulary);
        else
            snprintf(next(s), SETTING, "model={graph: %.*s/graph.ang\"}", (int)strlen(folder) - 1, folder);
    }
    snprintf(next(s), SETTING, "model.init={from: %s, weights: %s}", folder, weights);
    if (an_config_is(config, AN_SETTING(train.precision), "auto") &&
        !an_config_is(config, AN_SETTING(train.matmul_precision), "medium"))
        snprintf(next(s), SETTING, "%s=%s", AN_SETTING(train.precision),
                 strcmp(from->info.precision, "none") != 0 ? from->info.precision
                 : wide                                    ? "f64"
                                                           : "f32");
}

static an_status try_model(const cli_checkpoint *from, an_config *config, bool with_data, cli_training *t) {
    an_open_options open;
    an_open_options_init(&open, sizeof open);
    settings *s = calloc(1, sizeof *s);
    if (!s) return AN_ERR_MEMORY;
    const char *weights = t->call->values[WEIGHTS];
    choose(s, from, config, with_data, weights ? weights : "auto");
    open.fresh = true;
    an_status status = cli_checkpoint_config(from, t->ctx, s->count, s->list, &t->config);
    if (status == AN_OK) status = an_trainer_open_config(&t->trainer, t->ctx, t->config, &open);
    free(s);
    return status;
}

/* A graph whose samples have no fixed size gets it from the data. */
static int open_model(const cli_checkpoint *from, an_config *config, cli_training *t) {
    int code = cli_checkpoint_context(from, config, AN_ISA_AUTO, &t->ctx);
    if (code != CLI_DONE) return code;
    an_status status = try_model(from, config, false, t);
    if (status == AN_ERR_SHAPE) {
        an_config_destroy(&t->config);
        status = try_model(from, config, true, t);
    }
    if (status == AN_OK) return CLI_DONE;
    static const char prefix[] = ": model.init: "; /* that the weights come from there is our own doing */
    const char *inside = strstr(an_last_error(t->ctx), prefix);
    if (status == AN_ERR_MEMORY || !inside) return cli_refuse(t->call, t->ctx, NULL, status);
    return cli_fail(t->call, "%s", inside + sizeof prefix - 1);
}

/* ---- all samples ---- */

typedef struct {
    an_predictor *predictor;
    cli_samples samples;
    cli_predictions out;
    void *inputs, *outputs;
    const char *output; /* NULL: standard output */
} predicting;

/* What the columns and classes of the run's table mean; checkpoints of 0.1 do not say, nor do those of other data. */
static int read_encoding(const cli_checkpoint *from, cli_samples *samples) {
    char *text = NULL;
    if (an_checkpoint_text(from->checkpoint, "encoding.json", &text) != AN_OK) return CLI_DONE;
    const an_status status = an_encoding_parse(&samples->encoding, samples->ctx, text, strlen(text));
    an_string_release(from->ctx, &text);
    return status == AN_OK ? CLI_DONE : cli_refuse(samples->call, samples->ctx, NULL, status);
}

static bool has_classes(const cli_checkpoint *from) {
    char *graph = NULL;
    const bool found =
        an_checkpoint_text(from->checkpoint, "graph.ang", &graph) == AN_OK && strstr(graph, "= cross_entropy(") != NULL;
    an_string_release(from->ctx, &graph);
    return found;
}

/* The output is the one that a binary cross entropy reads: "output(%8, …" and "= binary_cross_entropy(%8, …". */
static bool has_labels(const cli_checkpoint *from) {
    static const char op[] = "= binary_cross_entropy(", output[] = "\noutput(";
    char *graph = NULL;
    bool found = false;
    const bool read = an_checkpoint_text(from->checkpoint, "graph.ang", &graph) == AN_OK;
    const char *loss = read ? strstr(graph, op) : NULL, *first = read ? strstr(graph, output) : NULL;
    if (loss && first) {
        loss += sizeof op - 1;
        found = !strncmp(first + sizeof output - 1, loss, strcspn(loss, ",") + 1);
    }
    an_string_release(from->ctx, &graph);
    return found;
}

/* Sentences need no trainer: the checkpoint says how long they are. */
static an_status make_predictor(predicting *p, const cli_checkpoint *from, cli_training *t, an_predictor_options *o) {
    if (t->trainer) return an_predictor_create(&p->predictor, t->trainer, o);
    cli_weights_choose(t->call, t->call->values[WEIGHTS], &o->weights);
    return an_predictor_open(&p->predictor, t->ctx, from->info.path, o);
}

static int prepare(predicting *p, const cli_checkpoint *from, cli_training *t) {
    enum { MOST = 1024, ELEMENTS = 8 << 20 }; /* of a call: samples, and numbers that it may give */
    an_predictor_options with;
    an_predictor_options_init(&with, sizeof with);
    an_status status = make_predictor(p, from, t, &with);
    if (status != AN_OK) return cli_refuse(t->call, t->ctx, NULL, status);
    const int64_t in = an_predictor_input_elements(p->predictor), out = an_predictor_output_elements(p->predictor);
    an_predictor_destroy(&p->predictor);
    with.max_samples = an_smaller(MOST, ELEMENTS / an_smaller(out, ELEMENTS));
    status = make_predictor(p, from, t, &with);
    if (status != AN_OK) return cli_refuse(t->call, t->ctx, NULL, status);
    p->samples.dtype = an_predictor_dtype(p->predictor);
    p->samples.elements = in;
    p->samples.maximum = with.max_samples;
    p->samples.sentences = !t->trainer;
    p->out.elements = p->out.classes = out;
    p->out.dtype = p->samples.dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
    p->out.kind = has_classes(from) ? CLI_CLASSES : has_labels(from) ? CLI_LABELS : CLI_NUMBERS;
    if (t->trainer && p->samples.dtype == AN_DTYPE_I32 && out % in == 0 && p->out.kind == CLI_CLASSES) {
        p->out.kind = CLI_TOKENS;
        p->out.classes = out / in;
    }
    p->inputs = malloc((size_t)(with.max_samples * in) * an_dtype_size(p->samples.dtype));
    p->outputs = malloc((size_t)(with.max_samples * out) * an_dtype_size(p->out.dtype));
    return p->inputs && p->outputs
               ? CLI_DONE
               : cli_fail(t->call, "not enough memory for %lld samples", (long long)with.max_samples);
}

static an_status predict_some(predicting *p, int64_t n) {
    void *const *fields = p->samples.fields;
    if (p->samples.sentences)
        return an_predictor_run_sentences(p->predictor, n, fields[0], fields[1], fields[2], p->outputs);
    if (p->samples.dtype == AN_DTYPE_I32) return an_predictor_run_tokens(p->predictor, n, p->inputs, p->outputs);
    if (p->samples.dtype == AN_DTYPE_F64) return an_predictor_run_f64(p->predictor, n, p->inputs, p->outputs);
    return an_predictor_run_f32(p->predictor, n, p->inputs, p->outputs);
}

static int predict_all(predicting *p, const cli_call *call) {
    cli_predictions_begin(&p->out, &p->samples);
    for (int64_t begin = 0; begin < p->samples.count; begin += p->samples.maximum) {
        const int64_t n = an_smaller(p->samples.count - begin, p->samples.maximum);
        an_status status = cli_samples_read(&p->samples, begin, n, p->inputs);
        if (status != AN_OK) return cli_refuse(call, p->samples.ctx, NULL, status);
        status = predict_some(p, n);
        if (status != AN_OK) return cli_fail(call, "%s", an_last_error(NULL));
        cli_predictions_write(&p->out, &p->samples, begin, n, p->inputs, p->outputs);
        cli_predictions_compare(&p->out, &p->samples, n, p->outputs);
        if (ferror(p->out.file)) break;
    }
    if (!p->output) return cli_finish(call);
    FILE *file = p->out.file;
    p->out.file = NULL;
    return cli_file_close(call, p->output, file);
}

/* Whether a terminal would show it as it is. */
static bool is_plain(const char *text) {
    bool plain = *text != 0;
    for (; *text; text++) plain = plain && (unsigned char)*text >= ' ' && *text != 0x7f;
    return plain;
}

/* Predictions beyond what training has seen are guesses: once, and not among the results. */
static void tell_ranges(const predicting *p) {
    an_range_info info;
    an_range_info_init(&info, sizeof info);
    char name[80];
    if (an_predictor_range(p->predictor, &info) != AN_OK || info.outside == 0) return;
    const bool whole = p->samples.dataset && info.features == p->samples.elements; /* a feature is an element */
    const char *column = whole ? an_dataset_column(p->samples.dataset, 0, info.feature) : NULL;
    if (column && is_plain(column))
        snprintf(name, sizeof name, "column %.64s", column);
    else
        snprintf(name, sizeof name, "input %lld", (long long)info.feature + 1);
    fprintf(stderr,
            "%s of %s samples have inputs outside the range seen in training: %s most often, in %s of them; it was "
            "from %.6g to %.6g\n",
            cli_count(info.outside).text, cli_count(info.samples).text, name, cli_count(info.feature_outside).text,
            info.minimum, info.maximum);
}

/* Where the results are not. */
static void tell_end(const predicting *p, const char *checkpoint) {
    FILE *to = p->output ? stdout : stderr;
    fprintf(to, "%s%s%s samples, by %s\n", p->output ? p->output : "", p->output ? ": " : "",
            cli_count(p->samples.count).text, checkpoint);
    if (p->out.known > 0)
        fprintf(to, "accuracy %.4g: the class of %s of %s images is that of their folder\n",
                (double)p->out.right / (double)p->out.known, cli_count(p->out.right).text,
                cli_count(p->out.known).text);
    if (p->out.unknown > 0)
        fprintf(to, "%s images are in folders whose names are no classes of the model\n",
                cli_count(p->out.unknown).text);
}

static int open_output(predicting *p, const cli_call *call) {
    p->out.file = p->output ? cli_file_open(call, p->output, "wb") : stdout;
    return p->out.file ? CLI_DONE : CLI_FAILED;
}

static int predict(const cli_checkpoint *from, an_config *config, cli_training *t, const cli_kept *kept) {
    const cli_call *call = t->call;
    const char *output = call->values[OUTPUT];
    predicting p = {.samples = {.call = call, .ctx = t->ctx, .columns = kept->names, .column_count = kept->count}};
    int code = prepare(&p, from, t);
    p.output = output && strcmp(output, "-") != 0 ? output : NULL;
    p.out.numpy = p.output && an_ends_in(p.output, ".npy");
    p.out.config = config;
    if (code == CLI_DONE) code = read_encoding(from, &p.samples);
    p.out.encoding = p.samples.encoding;
    if (code == CLI_DONE) code = cli_samples_open(&p.samples, config, call->values[INPUT]);
    if (code == CLI_DONE && !p.out.numpy) code = cli_samples_keep(&p.samples);
    if (code == CLI_DONE) code = open_output(&p, call);
    if (code == CLI_DONE) code = predict_all(&p, call);
    if (code == CLI_DONE) tell_ranges(&p);
    if (code == CLI_DONE) tell_end(&p, from->info.path);
    if (p.out.file && p.output) {
        fclose(p.out.file);
        remove(p.output); /* half of it would look like all */
    }
    cli_samples_close(&p.samples);
    free(p.inputs);
    free(p.outputs);
    an_predictor_destroy(&p.predictor);
    return code;
}

static int check_call(const cli_call *call) {
    const char *output = call->values[OUTPUT];
    const bool to_stdout = !output || !strcmp(output, "-"), numpy = !to_stdout && an_ends_in(output, ".npy");
    an_model_weights weights;
    if (!call->values[INPUT]) return cli_misuse(call, "--input FILE is missing");
    if (!to_stdout && !numpy && !an_ends_in(output, ".csv"))
        return cli_misuse(
            call, "--output takes a file name that ends in .csv or .npy, or - for standard output, not '%s'", output);
    if (numpy && call->listed_count > 0)
        return cli_misuse(call, "--keep is for CSV output; a .npy file has numbers only");
    return cli_weights_choose(call, call->values[WEIGHTS], &weights);
}

static int run_with(const cli_call *call, const cli_kept *kept) {
    cli_checkpoint from;
    cli_training t = {.call = call, .info = {.size = sizeof t.info}};
    an_config *config = NULL;
    int code = cli_checkpoint_open_model(call, call->argument, call->values[CHECKPOINT], &from);
    if (code == CLI_DONE && !from.info.is_run)
        code = cli_fail(call, "%s: has only tensors, without a model; give a run or one of its checkpoints",
                        call->argument);
    if (code == CLI_DONE) {
        const an_status status = cli_checkpoint_config(&from, from.ctx, call->set_count, call->sets, &config);
        if (status != AN_OK)
            code = cli_refuse(call, from.ctx, NULL, status);
        else if (!config)
            code = cli_fail(call, "%s: has no config, so nothing says how to read samples; a program created this run",
                            from.info.path);
    }
    if (code == CLI_DONE)
        code = an_config_is(config, AN_SETTING(data.train.type), "sentences")
                   ? cli_checkpoint_context(&from, config, AN_ISA_AUTO, &t.ctx)
                   : open_model(&from, config, &t);
    if (code == CLI_DONE) code = predict(&from, config, &t, kept);
    an_config_destroy(&config);
    cli_training_close(&t);
    cli_checkpoint_close(&from);
    return code == CLI_DONE ? cli_finish(call) : code;
}

static int run(const cli_call *call) {
    cli_kept kept = {.count = 0};
    int code = check_call(call);
    if (code == CLI_DONE) code = cli_kept_list(call, &kept);
    if (code == CLI_DONE) code = run_with(call, &kept);
    cli_kept_free(&kept);
    return code;
}

const cli_command cli_predict = {
    .name = "predict",
    .argument = "RUN|CHECKPOINT",
    .summary = "predict with a checkpoint",
    .text =
        "Reads samples and writes the predictions of a checkpoint. For a run, its best checkpoint is used if it has "
        "one, otherwise the newest. CSV has "
        "one column per output; for classes, the most likely class and the probability of each, by name if "
        "the training data has names; for labels (binary_cross_entropy), the probability of each; for language "
        "models, one line per token with the probability of the next token and the most likely one. A .npy file has "
        "the raw outputs: numbers, or logits. Columns of a table are found by name, in any order, if it has a header. "
        "Sentences are JSON lines with 'text', with 'text_pair' for pairs, and need the run's tokenizer. "
        "Images are a file, a folder of files, or a folder of classes; CSV then has a column with the file, and with "
        "the "
        "name of its class folder (target), and the accuracy is shown at the end. "
        "The run's data is not needed, except for the characters of a text.",
    .options = options,
    .run = run,
};
