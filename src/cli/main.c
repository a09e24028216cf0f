/* The command `anneal`: finds the command that was named and runs it. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

const cli_command *const cli_commands[] = {&cli_plan, &cli_bench, &cli_graph, &cli_version, &cli_help, NULL};

static const cli_command *find_command(const char *name) {
    for (int i = 0; cli_commands[i]; i++)
        if (!strcmp(cli_commands[i]->name, name)) return cli_commands[i];
    return NULL;
}

static int unknown_command(const cli_call *call, const char *name) {
    enum { MOST = 32 };
    const char *names[MOST + 1] = {NULL};
    for (int i = 0; i < MOST && cli_commands[i]; i++) names[i] = cli_commands[i]->name;
    const char *nearest = cli_nearest(name, names);
    return cli_misuse(call, "there is no command '%s'%s%s%s", name, nearest ? "; the nearest is '" : "",
                      nearest ? nearest : "", nearest ? "'" : "");
}

static int help(const cli_call *call) {
    const cli_command *command = call->argument ? find_command(call->argument) : NULL;
    if (call->argument && !command) return unknown_command(call, call->argument);
    cli_print_help(command);
    return cli_finish(call);
}

const cli_command cli_help = {
    .name = "help",
    .argument = "[COMMAND]",
    .summary = "show how to use a command",
    .text = "Shows the commands, or the options of one.",
    .run = help,
};

int main(int argc, char **argv) {
    const cli_call none = {0};
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) return cli_misuse(&none, "which command?");
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
    if (!strcmp(name, "--version")) name = "version";
    const cli_command *command = find_command(name);
    if (command) return cli_run(command, argc - 1, argv + 1);
    if (name[0] == '-') return cli_misuse(&none, "a command comes first, not the option '%s'", name);
    return unknown_command(&none, name);
}
