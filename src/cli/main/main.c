/* The command `anneal`: finds the subcommand and runs it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/main/cli.h"
#include "launch/launcher.h"

static const cli_command *const commands[] = {
    &cli_train,       &cli_stop,   &cli_init,       &cli_tokenize, &cli_find_lr, &cli_demo,        &cli_plan,
    &cli_summary,     &cli_bench,  &cli_graph,      &cli_eval,     &cli_predict, &cli_generate,    &cli_inspect,
    &cli_verify,      &cli_export, &cli_diff,       &cli_compare,  &cli_plot,    &cli_config_show, &cli_config_schema,
    &cli_config_keys, &cli_doctor, &cli_completion, &cli_manual,   &cli_version, &cli_help,        NULL};

static const cli_command *find_command(const char *name) {
    for (int i = 0; cli_commands[i]; i++)
        if (!strcmp(cli_commands[i]->name, name)) return cli_commands[i];
    return NULL;
}

/* Some commands have names of two words, as "config show": whether this one's first word is `word`. */
static bool begins_with(const cli_command *command, const char *word) {
    const size_t length = strlen(word);
    return !strncmp(command->name, word, length) && command->name[length] == ' ';
}

static bool is_first_word(const char *word) {
    for (int i = 0; cli_commands[i]; i++)
        if (begins_with(cli_commands[i], word)) return true;
    return false;
}

/* "anneal config": the help of each, or the question which of them is meant. */
static int first_word_alone(const char *word, bool help) {
    const cli_call none = {0};
    const char *separator = "anneal: which one, ";
    for (int i = 0; cli_commands[i]; i++) {
        if (!begins_with(cli_commands[i], word)) continue;
        if (help)
            cli_print_help(cli_commands[i]);
        else
            fprintf(stderr, "%s'%s'", separator, cli_commands[i]->name);
        separator = ", ";
    }
    if (help) return cli_finish(&none);
    fprintf(stderr, "?\n");
    return CLI_MISUSED;
}

static int unknown_command(const cli_call *call, const char *name) {
    enum { MOST = 32 };
    const char *names[MOST + 1] = {NULL};
    for (int i = 0; i < MOST && cli_commands[i]; i++) names[i] = cli_commands[i]->name;
    return cli_misuse(call, "there is no command '%s'%s", name, cli_did_you_mean("", name, names).text);
}

static int help(const cli_call *call) {
    if (call->argument && is_first_word(call->argument)) return first_word_alone(call->argument, true);
    const cli_command *command = call->argument ? find_command(call->argument) : NULL;
    if (call->argument && !command) return unknown_command(call, call->argument);
    cli_print_help(command);
    return cli_finish(call);
}

const cli_command cli_help = {
    .name = "help",
    .argument = "[COMMAND]",
    .summary = "show how to use a command",
    .text = "Shows the list of commands, or the options of one command.",
    .run = help,
};

/* The number of a closed stream would go to the next file that is opened, such as a run's metrics, and all that is
 * printed would be written there. So each of these numbers is taken, by something that cannot be written. */
static void hold_streams(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/", O_RDONLY) < 0) return; /* open takes the lowest number */
}

/* Only training uses several processes. Of any other command that a launcher has started, the first does the work,
 * once. */
static bool is_other_rank(void) {
    an_launcher launcher;
    return an_launcher_find(&launcher) && launcher.rank > 0;
}

int main(int argc, char **argv) {
    const cli_call none = {0};
    cli_commands = commands;
    hold_streams();
    unsetenv("POSIXLY_CORRECT"); /* options may follow arguments, as everywhere in the documentation */
    signal(SIGXFSZ, SIG_IGN);    /* past ulimit -f a write fails with a message, instead of ending the process */
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) return cli_misuse(&none, "the command is missing");
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
    if (!strcmp(name, "--version")) name = "version";
    char both[64];
    const int words = is_first_word(name) && argc > 2 && argv[2][0] != '-' ? 2 : 1;
    if (words == 2) {
        snprintf(both, sizeof both, "%s %s", name, argv[2]);
        name = both;
    }
    const cli_command *command = find_command(name);
    if (command && command != &cli_train && is_other_rank()) return CLI_DONE;
    if (command) return cli_run(command, argc - words, argv + words);
    if (words == 1 && is_first_word(name))
        return first_word_alone(name, argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h")));
    if (name[0] == '-') return cli_misuse(&none, "the command must come before the option '%s'", name);
    return unknown_command(&none, name);
}
