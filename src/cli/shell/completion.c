/* anneal completion: writes a script that completes commands, options and config keys in a shell. */
#include "cli/shell/completion.h"

#include <string.h>

static const struct shell {
    const char *name;
    void (*print)(void);
} shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
enum { SHELLS = sizeof shells / sizeof *shells };

static int run(const cli_call *call) {
    const char *names[SHELLS + 1] = {NULL};
    for (int i = 0; i < SHELLS; i++) {
        names[i] = shells[i].name;
        if (strcmp(shells[i].name, call->argument) != 0) continue;
        shells[i].print();
        return cli_finish(call);
    }
    return cli_misuse(call, "unknown shell '%s'; there are scripts for bash, zsh and fish%s", call->argument,
                      cli_did_you_mean("", call->argument, names).text);
}

const cli_command cli_completion = {
    .name = "completion",
    .argument = "bash|zsh|fish",
    .summary = "write a shell completion script",
    .text = "Writes a script to standard output that completes commands, options, option values and config keys. It is "
            "installed with anneal. Without an installation, add 'source <(anneal completion bash)' to ~/.bashrc; for "
            "zsh, 'source <(anneal completion zsh)' after compinit; for fish, 'anneal completion fish | source'.",
    .run = run,
};
