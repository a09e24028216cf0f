/* anneal export: the weights of a checkpoint for other programs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/options/settings.h"
#include "base/word.h"
#include "cli/checkpoint/source.h"
#include "cli/train/open.h"

enum { TO, OUTPUT, TYPE, WEIGHTS, CHECKPOINT, MERGE };
static const cli_option options[] = {
    [TO] = {.name = "to",
            .argument = "NAME.safetensors|hf|gguf|torch|onnx|peft",
            .help = "NAME.safetensors writes that file; 'hf' writes a language model to the folder PLACE as Hugging "
                    "Face has them, 'gguf' to the file PLACE for llama.cpp, 'torch' writes model.safetensors and "
                    "model.py to the folder PLACE, 'onnx' the model to the file PLACE, and 'peft' an adapter to the "
                    "folder PLACE (default: what the ending of --output says)"},
    [OUTPUT] = {.name = "output",
                .letter = 'o',
                .argument = "PLACE",
                .help = "the file or folder to write, instead of PLACE; NAME.safetensors, NAME.gguf and NAME.onnx need "
                        "no --to"},
    [TYPE] = {.name = "type",
              .argument = "f32|f16|bf16|q8_0",
              .help = "type of the weights that hf and gguf write (default: f32); q8_0 has 8 bits, and is for gguf"},
    [WEIGHTS] = {.name = "weights", .argument = "raw|ema", .help = CLI_WEIGHTS_HELP},
    [CHECKPOINT] = {.name = "checkpoint", .argument = CLI_CHECKPOINT_ARGUMENT, .help = CLI_CHECKPOINT_HELP},
    [MERGE] = {.name = "merge",
               .help = "write the model that an adapter was trained on, with its changes, to NAME.safetensors"},
    {0},
};

/* What --to names, and is written to a place of its own. */
typedef struct {
    const char *name; /* NULL: --to has the place itself */
    const char *place, *ending;
    an_export_format format;
    bool merges;       /* --merge writes AN_EXPORT_MERGED instead */
    bool has_types;    /* --type chooses one */
    bool has_blocks;   /* … also q8_0 */
    const char *files; /* a format for what is there afterwards: %s is the place */
} format;
static const format formats[] = {
    {.place = "NAME.safetensors",
     .ending = ".safetensors",
     .format = AN_EXPORT_SAFETENSORS,
     .merges = true,
     .files = "%1$s"},
    {.name = "hf",
     .place = "FOLDER",
     .format = AN_EXPORT_HUGGINGFACE,
     .has_types = true,
     .files = "%1$s/config.json and weights beside it"},
    {.name = "gguf",
     .place = "NAME.gguf",
     .ending = ".gguf",
     .format = AN_EXPORT_GGUF,
     .has_types = true,
     .has_blocks = true,
     .files = "%1$s"},
    {.name = "torch",
     .place = "FOLDER",
     .format = AN_EXPORT_TORCH,
     .files = "%1$s/model.py and %1$s/model.safetensors"},
    {.name = "onnx", .place = "NAME.onnx", .ending = ".onnx", .format = AN_EXPORT_ONNX, .files = "%1$s"},
    {.name = "peft",
     .place = "FOLDER",
     .format = AN_EXPORT_ADAPTER,
     .files = "%1$s/adapter_config.json and %1$s/adapter_model.safetensors"},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Of a name with something before its ending. */
static bool is_named(const char *name, const char *ending) {
    return *name && an_ends_in(name + 1, ending);
}

/* What --to says. */
static const format *find_format(const char *to) {
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].name ? !strcmp(formats[i].name, to) : is_named(to, formats[i].ending)) return &formats[i];
    return NULL;
}

static const format *format_of_place(const char *place) {
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].ending && is_named(place, formats[i].ending)) return &formats[i];
    return NULL;
}

/* ---- language models ---- */

static int choose_type(const cli_call *call, const format *f, an_dtype *dtype) {
    static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F16, AN_DTYPE_BF16, AN_DTYPE_Q8_0};
    const char *word = call->values[TYPE];
    *dtype = AN_DTYPE_NONE;
    if (!word) return CLI_DONE;
    if (!f->has_types)
        return cli_misuse(call, "--type is for --to hf and --to gguf; other files have the type of the weights");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(an_dtype_name(dtypes[i]), word)) {
            *dtype = dtypes[i];
            if (*dtype != AN_DTYPE_Q8_0 || f->has_blocks) return CLI_DONE;
            return cli_misuse(call, "--type q8_0 is for --to gguf: write --type f32, f16 or bf16");
        }
    return cli_misuse(call, "--type takes f32, f16, bf16 or q8_0, not '%s'", word);
}

/* A path of the run's config; NULL: it has none, or nothing is there any more. */
static an_status find_path(an_config *config, const char *key, const char **path) {
    if (an_config_origin_of(config, key) == AN_ORIGIN_NONE || an_config_is(config, key, "auto")) return AN_OK;
    const char *found = NULL;
    const an_status status = an_config_path(config, key, &found);
    if (status != AN_OK || !found) return status;
    if (access(found, F_OK) == 0)
        *path = found;
    else
        fprintf(stderr, "warning: %s is not there any more (%s), so nothing of it goes along\n", found, key);
    return AN_OK;
}

/* The model and the tokenizer that go along. */
static an_status find_parts(const cli_checkpoint *c, an_config *config, char beside[CLI_PATH], an_export_options *o) {
    an_status status = config ? find_path(config, AN_SETTING(data.train.tokenizer), &o->tokenizer) : AN_OK;
    if (status == AN_OK && config) status = find_path(config, AN_SETTING(model.from), &o->from);
    if (!o->tokenizer && !o->from && cli_checkpoint_tokenizer(c, config, beside)) o->tokenizer = beside;
    return status;
}

static an_status write_export(const cli_checkpoint *c, const format *f, const char *place,
                              const an_export_options *given) {
    an_config *config = NULL;
    an_export_options o = *given;
    char beside[CLI_PATH];
    an_status status = AN_OK;
    if (f->has_types) status = cli_checkpoint_config(c, c->ctx, 0, NULL, &config);
    if (status == AN_OK && f->has_types) status = find_parts(c, config, beside, &o);
    if (status == AN_OK) status = an_checkpoint_export(c->checkpoint, place, &o);
    if (status == AN_OK && f->has_types && c->info.is_run && !o.tokenizer && !o.from)
        cli_tell(
            "warning: %s has no tokenizer, because none is known for this run, so programs that read it cannot take "
            "text",
            place);
    an_config_destroy(&config);
    return status;
}

/* ---- the command ---- */

/* What to write, and where. */
static int choose(const cli_call *call, const format **chosen, const char **place) {
    const char *to = call->values[TO], *output = call->values[OUTPUT];
    *place = call->argument_count > 1 ? call->arguments[1] : output;
    if (output && call->argument_count > 1)
        return cli_misuse(call, "unexpected argument '%s': --output names the place", *place);
    if (!to && !*place)
        return cli_misuse(call, "--to is required: write --to model.safetensors, --to hf FOLDER, --to gguf NAME.gguf, "
                                "--to torch FOLDER or --to onnx NAME.onnx");
    const format *f = to ? find_format(to) : format_of_place(*place);
    if (!f && !to)
        return cli_misuse(
            call, "'%s' does not end in .safetensors, .gguf or .onnx; add --to hf, torch or peft for a folder", *place);
    if (!f)
        return cli_misuse(
            call, "--to takes a file name that ends in .safetensors, 'hf', 'gguf', 'torch', 'onnx' or 'peft', not '%s'",
            to);
    if (!f->merges && call->values[MERGE])
        return cli_misuse(call, "--merge writes a file: write --to model.safetensors --merge");
    if (!f->name && to && *place)
        return cli_misuse(call, "unexpected argument '%s': the file's name is the one behind --to", *place);
    if (f->name && !*place) return cli_misuse(call, "the place is missing: write --to %s %s", f->name, f->place);
    if (!f->name && to) *place = to;
    *chosen = f;
    return CLI_DONE;
}

static int run(const cli_call *call) {
    const char *place = NULL;
    const format *f = NULL;
    an_export_options o;
    an_export_options_init(&o, sizeof o);
    cli_checkpoint c;
    if (choose(call, &f, &place) != CLI_DONE || !f) return CLI_MISUSED;
    o.format = call->values[MERGE] ? AN_EXPORT_MERGED : f->format;
    if (choose_type(call, f, &o.dtype) != CLI_DONE) return CLI_MISUSED;
    if (cli_weights_choose(call, call->values[WEIGHTS], &o.weights) != CLI_DONE) return CLI_MISUSED;
    int code = cli_checkpoint_open_model(call, call->argument, call->values[CHECKPOINT], &c);
    if (code == CLI_DONE) {
        const an_status status = write_export(&c, f, place, &o);
        if (status != AN_OK) {
            code = cli_refuse(call, c.ctx, NULL, status);
        } else {
            printf(f->files, place);
            printf(", from %s\n", c.info.path);
        }
    }
    cli_checkpoint_close(&c);
    return code == CLI_DONE ? cli_finish(call) : code;
}

const cli_command cli_export = {
    .name = "export",
    .argument = "PATH [PLACE]",
    .summary = "write the weights of a checkpoint for other programs",
    .text =
        "Writes the weights and running statistics of a checkpoint to one safetensors file (-o "
        "model.safetensors, or --to model.safetensors), after checking every byte against its hash. For a run, its "
        "best checkpoint is used if it has one, otherwise the newest. "
        "If the run keeps a moving average of its weights (train.ema), the average is written. "
        "--to torch FOLDER also writes model.py: the same model for PyTorch, one line for each node of its graph, "
        "with a function load(). --to onnx NAME.onnx writes the model for ONNX Runtime and other programs that read "
        "ONNX (opset 17); weights of more than 1 GiB go to NAME.onnx.data beside it. Both compute in the type of "
        "the weights, whatever train.precision was. Names of columns, categories and classes go along: as JSON "
        "under 'encoding' in the metadata of the safetensors or ONNX file, and for PyTorch in encoding.json. The "
        "checkpoint of an adapter (lora) does not hold the model that it changes: --to peft FOLDER writes the adapter "
        "for PEFT, and --to model.safetensors --merge the model with its changes, with the names, types and layout of "
        "the file that the run read it from. "
        "--to hf FOLDER writes a language model of a family that model.from takes, or a BERT, as a folder that "
        "transformers loads, and --to gguf NAME.gguf as a file that llama.cpp loads. PATH may then also be a "
        "published model: a Hugging Face folder or a GGUF file. An adapter is merged into its model. The tokenizer and "
        "the settings of the model that training began with (model.from) go along. Weights are read and written piece "
        "by piece.",
    .options = options,
    .run = run,
};
