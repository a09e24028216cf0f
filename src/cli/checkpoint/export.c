/* anneal export: the weights of a checkpoint for other programs. */
#include <stdio.h>
#include <string.h>

#include "base/word.h"
#include "cli/checkpoint/source.h"
#include "cli/train/open.h"

enum { TO, WEIGHTS };
static const cli_option options[] = {
    [TO] = {.name = "to",
            .argument = "FILE|torch",
            .help = "NAME.safetensors writes that file; 'torch' writes model.safetensors and model.py to FOLDER"},
    [WEIGHTS] = {.name = "weights", .argument = "raw|ema", .help = CLI_WEIGHTS_HELP},
    {0},
};

static int run(const cli_call *call) {
    const char *to = call->values[TO], *folder = call->argument_count > 1 ? call->arguments[1] : NULL;
    an_model_weights weights;
    cli_checkpoint c;
    if (!to) return cli_misuse(call, "--to is required: write --to model.safetensors, or --to torch FOLDER");
    const bool torch = !strcmp(to, "torch");
    if (torch && !folder) return cli_misuse(call, "the folder is missing: write --to torch FOLDER");
    if (!torch && folder) return cli_misuse(call, "unexpected argument '%s': only --to torch takes a folder", folder);
    if (!torch && !(*to && an_ends_in(to + 1, ".safetensors"))) /* with a name before it */
        return cli_misuse(call, "--to takes a file name that ends in .safetensors, or 'torch', not '%s'", to);
    if (cli_weights_choose(call, call->values[WEIGHTS], &weights) != CLI_DONE) return CLI_MISUSED;
    int code = cli_checkpoint_open(call, call->argument, &c);
    if (code == CLI_DONE) {
        an_status status = an_checkpoint_choose_weights(c.checkpoint, weights);
        if (status == AN_OK)
            status = torch ? an_checkpoint_export_torch(c.checkpoint, folder) : an_checkpoint_export(c.checkpoint, to);
        if (status != AN_OK)
            code = cli_refuse(call, c.ctx, NULL, status);
        else if (torch)
            printf("%s/model.py and %s/model.safetensors, from %s\n", folder, folder, c.info.path);
        else
            printf("%s, from %s\n", to, c.info.path);
    }
    cli_checkpoint_close(&c);
    return code == CLI_DONE ? cli_finish(call) : code;
}

const cli_command cli_export = {
    .name = "export",
    .argument = "PATH [FOLDER]",
    .summary = "write the weights of a checkpoint for other programs",
    .text = "Writes the weights and running statistics of a checkpoint to one safetensors file (--to "
            "model.safetensors), after checking every byte against its hash. For a run, its newest checkpoint is used. "
            "If the run keeps a moving average of its weights (train.ema), the average is written. "
            "--to torch FOLDER also writes model.py: the same model for PyTorch, one line for each node of its graph, "
            "with a function load(). It computes in the type of the weights, whatever train.precision was. Names of "
            "columns, categories and classes go along: as JSON under 'encoding' in the metadata of the safetensors "
            "file, and for PyTorch in encoding.json.",
    .options = options,
    .run = run,
};
