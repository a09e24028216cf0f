/* anneal completion: a script that teaches a shell the commands, their options and the keys of configs. */
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
    const char *nearest = cli_nearest(call->argument, names);
    return cli_misuse(call, "there is a script for bash, zsh and fish, not for '%s'%s%s%s", call->argument,
                      nearest ? "; the nearest is '" : "", nearest ? nearest : "", nearest ? "'" : "");
}

const cli_command cli_completion = {
    .name = "completion",
    .argument = "bash|zsh|fish",
    .summary = "write a script that completes commands in a shell",
    .text =
        "Writes a script to standard output that completes commands, options, their values and keys of configs. It is "
        "installed with anneal; where it is not, 'source <(anneal completion bash)' in ~/.bashrc does the same, for "
        "zsh 'source "
        "<(anneal completion zsh)' after compinit, for fish 'anneal completion fish | source'.",
    .run = run,
};
