/* anneal export: the weights of a checkpoint for other programs. */
#include <stdio.h>
#include <string.h>

#include "base/word.h"
#include "cli/checkpoint/source.h"
#include "cli/train/open.h"

enum { TO, WEIGHTS, MERGE };
static const cli_option options[] = {
    [TO] = {.name = "to",
            .argument = "NAME.safetensors|torch|onnx|peft",
            .help = "NAME.safetensors writes that file; 'torch' writes model.safetensors and model.py to the folder "
                    "PLACE, 'onnx' the model to the "
                    "file PLACE, and 'peft' an adapter to the folder PLACE"},
    [WEIGHTS] = {.name = "weights", .argument = "raw|ema", .help = CLI_WEIGHTS_HELP},
    [MERGE] = {.name = "merge",
               .help = "write the model that an adapter was trained on, with its changes, to NAME.safetensors"},
    {0},
};

/* What --to names, and is written to a place of its own. */
typedef struct {
    const char *name, *place;
    an_status (*write)(const an_checkpoint *checkpoint, const char *path);
    const char *files; /* a format for what is there afterwards: %s is the place */
} format;
static const format formats[] = {
    {"torch", "FOLDER", an_checkpoint_export_torch, "%1$s/model.py and %1$s/model.safetensors"},
    {"onnx", "NAME.onnx", an_checkpoint_export_onnx, "%1$s"},
    {"peft", "FOLDER", an_checkpoint_export_adapter, "%1$s/adapter_config.json and %1$s/adapter_model.safetensors"},
};
static const format safetensors = {"", "", an_checkpoint_export, "%1$s"};
static const format merged = {"", "", an_checkpoint_export_merged, "%1$s"};

static const format *find_format(const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].name, name)) return &formats[i];
    return *name && an_ends_in(name + 1, ".safetensors") ? &safetensors : NULL; /* with a name before it */
}

static int run(const cli_call *call) {
    const char *to = call->values[TO], *place = call->argument_count > 1 ? call->arguments[1] : NULL;
    an_model_weights weights;
    cli_checkpoint c;
    if (!to)
        return cli_misuse(call,
                          "--to is required: write --to model.safetensors, --to torch FOLDER or --to onnx NAME.onnx");
    const format *f = find_format(to);
    if (f && f != &safetensors && call->values[MERGE])
        return cli_misuse(call, "--merge writes a file: write --to model.safetensors --merge");
    if (!f)
        return cli_misuse(call, "--to takes a file name that ends in .safetensors, 'torch', 'onnx' or 'peft', not '%s'",
                          to);
    if (f == &safetensors && place)
        return cli_misuse(call, "unexpected argument '%s': the file's name is the one behind --to", place);
    if (f != &safetensors && !place)
        return cli_misuse(call, "the place is missing: write --to %s %s", f->name, f->place);
    if (f == &safetensors) {
        place = to;
        if (call->values[MERGE]) f = &merged;
    }
    if (cli_weights_choose(call, call->values[WEIGHTS], &weights) != CLI_DONE) return CLI_MISUSED;
    int code = cli_checkpoint_open(call, call->argument, &c);
    if (code == CLI_DONE) {
        an_status status = an_checkpoint_choose_weights(c.checkpoint, weights);
        if (status == AN_OK) status = f->write(c.checkpoint, place);
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
        "Writes the weights and running statistics of a checkpoint to one safetensors file (--to "
        "model.safetensors), after checking every byte against its hash. For a run, its newest checkpoint is used. "
        "If the run keeps a moving average of its weights (train.ema), the average is written. "
        "--to torch FOLDER also writes model.py: the same model for PyTorch, one line for each node of its graph, "
        "with a function load(). --to onnx NAME.onnx writes the model for ONNX Runtime and other programs that read "
        "ONNX (opset 17); weights of more than 1 GiB go to NAME.onnx.data beside it. Both compute in the type of "
        "the weights, whatever train.precision was. Names of columns, categories and classes go along: as JSON "
        "under 'encoding' in the metadata of the safetensors or ONNX file, and for PyTorch in encoding.json. The "
        "checkpoint of an adapter (lora) does not hold the model that it changes: --to peft FOLDER writes the adapter "
        "for PEFT, and --to model.safetensors --merge the model with its changes, with the names, types and layout of "
        "the file that the run read it from.",
    .options = options,
    .run = run,
};
