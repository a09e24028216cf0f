/* Parses arguments by the tables of the commands. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/config.h"
#include "anneal/models.h"
#include "cli/main/cli.h"

const cli_command *const *cli_commands;

static const cli_option no_options[] = {{0}};

static const cli_option *options_of(const cli_command *command) {
    return command->options ? command->options : no_options;
}

/* ---- help ---- */

enum { WIDTH = 100, INDENT = 2 }; /* columns */

void cli_print_wrapped(const char *text, int column, int indent) {
    while (*text) {
        size_t length = strcspn(text, " \n");
        if (column > indent && column + 1 + (int)length > WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)length, text);
        column += (int)length;
        text += length;
        if (*text == '\n') {
            printf("\n%*s", indent, "");
            column = indent;
        }
        if (*text) text++;
    }
    putchar('\n');
}

static void print_row(const char *name, int name_width, const char *text) {
    printf("%*s%-*s  ", INDENT, "", name_width, name);
    cli_print_wrapped(text, INDENT + name_width + 2, INDENT + name_width + 2);
}

static void option_name(const cli_option *option, char *buffer, size_t capacity) {
    const char letter[] = {',', ' ', '-', option->letter, 0};
    snprintf(buffer, capacity, "--%s%s%s%s", option->name, option->letter ? letter : "", option->argument ? " " : "",
             option->argument ? option->argument : "");
}

static void print_program_help(void) {
    int width = 0;
    for (int i = 0; cli_commands[i]; i++)
        width = (int)strlen(cli_commands[i]->name) > width ? (int)strlen(cli_commands[i]->name) : width;
    printf("usage: anneal COMMAND [ARGUMENT] [OPTION...]\n\nTrains neural networks.\n\n");
    for (int i = 0; cli_commands[i]; i++) print_row(cli_commands[i]->name, width, cli_commands[i]->summary);
    printf("\n'anneal COMMAND --help' describes a command. Exit codes: 0 success, 1 failure, 2 wrong usage or "
           "config,\n75 stopped with a checkpoint (run the same command again), 128 + n ended by signal n.\n");
}

void cli_print_help(const cli_command *command) {
    static const cli_option always[] = {
        {.name = "verbose", .help = "when there is an error, also show where in the library it came from"},
        {.name = "help", .help = "show this help"}};
    char name[64];
    int width = (int)strlen("--verbose");
    if (!command) {
        print_program_help();
        return;
    }
    for (const cli_option *o = options_of(command); o->name; o++) {
        option_name(o, name, sizeof name);
        width = (int)strlen(name) > width ? (int)strlen(name) : width;
    }
    printf("usage: anneal %s%s%s%s\n\n", command->name, command->argument ? " " : "",
           command->argument ? command->argument : "", command->options ? " [OPTION...]" : "");
    cli_print_wrapped(command->text, 0, 0);
    if (command->argument && strstr(command->argument, "PRESET")) {
        printf("\nPresets:");
        for (int i = 0; an_model_preset_name(i); i++) printf(" %s", an_model_preset_name(i));
        printf(". A file holds the text form of a graph (.ang).\n");
    }
    putchar('\n');
    for (const cli_option *o = options_of(command); o->name; o++) {
        option_name(o, name, sizeof name);
        print_row(name, width, o->help);
    }
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        option_name(&always[i], name, sizeof name);
        print_row(name, width, always[i].help);
    }
}

/* ---- parsing ---- */

enum {
    HELP = 'h',
    VERBOSE = 'v',
    FIRST_OPTION = 256
}; /* getopt's answers: characters below, options of the table from here on */

/* What the launchers of other tools call it. */
static const struct {
    const char *name, *answer;
} other_options[] = {
    {"nproc_per_node", "-n N starts N ranks on this machine"},
    {"nproc-per-node", "-n N starts N ranks on this machine"},
    {"num_processes", "-n N starts N ranks on this machine"},
    {"np", "-n N starts N ranks on this machine"},
    {"nnodes", "mpirun and srun start ranks on several machines"},
    {"node_rank", "mpirun and srun number the ranks"},
    {"master_addr", "MPI finds the other ranks by itself"},
    {"master_port", "MPI finds the other ranks by itself"},
};

/* The key of the config that alone ends with this name; "": there is none, or several. */
static void find_key(const char *name, char *path, size_t size) {
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    path[0] = 0;
    for (int i = 0; cli_key_at(i, &key); i++) {
        const char *dot = strrchr(key.path, '.');
        if (!dot || strcmp(dot + 1, name) != 0 || !strcmp(key.path, path)) continue;
        const bool is_first = !*path;
        snprintf(path, size, "%s", is_first ? key.path : "");
        if (!is_first) return;
    }
}

static bool has_option(const cli_command *command, const char *name) {
    const cli_option *o = options_of(command);
    while (o->name && strcmp(o->name, name) != 0) o++;
    return o->name != NULL;
}

static int unknown_option(const cli_call *call, const char *given) {
    const char *names[CLI_MOST_OPTIONS + 3] = {NULL};
    char name[64];
    int count = 0;
    if (given[0] != '-' || given[1] != '-') return cli_misuse(call, "there is no option '%s'", given);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given + 2, "="), given + 2);
    for (size_t i = 0; i < sizeof other_options / sizeof *other_options; i++)
        if (!strcmp(call->command->name, "train") && !strcmp(name, other_options[i].name))
            return cli_misuse(call, "there is no option '--%s': %s", name, other_options[i].answer);
    for (const cli_option *o = options_of(call->command); o->name; o++) names[count++] = o->name;
    names[count++] = "verbose";
    names[count] = "help";
    char path[128] = "";
    if (has_option(call->command, "set")) find_key(name, path, sizeof path);
    if (*path)
        return cli_misuse(call, "there is no option '--%s'; it is a key of the config: write --set %s=VALUE", name,
                          path);
    return cli_misuse(call, "there is no option '--%s'%s", name, cli_did_you_mean("--", name, names).text);
}

static int take_option(cli_call *call, int index, const char *value) {
    const cli_option *options = options_of(call->command), *option = &options[index];
    if (option->repeats || option->lists) {
        int *count = option->repeats ? &call->set_count : &call->listed_count;
        if (*count == CLI_MOST_SETS) return cli_misuse(call, "--%s was given too many times", option->name);
        (option->repeats ? call->sets : call->listed)[(*count)++] = value;
        return CLI_DONE;
    }
    if (call->values[index]) return cli_misuse(call, "--%s was given twice", option->name);
    for (int i = 0; options[i].name; i++)
        if (call->values[i] && option->group && options[i].group == option->group)
            return cli_misuse(call, "--%s and --%s cannot be combined", options[i].name, option->name);
    call->values[index] = value ? value : "";
    return CLI_DONE;
}

/* Whether the first argument is a config, for which - is standard input. */
static bool takes_config(const char *wanted) {
    return !strncmp(wanted + (wanted[0] == '['), "CONFIG", strlen("CONFIG"));
}

/* Puts options and arguments in their places. *help is set if it was asked for. */
static int parse(cli_call *call, int argc, char **argv, bool *help) {
    static char standard_input[] = "/dev/stdin";
    struct option table[CLI_MOST_OPTIONS + 3] = {{"help", no_argument, NULL, HELP},
                                                 {"verbose", no_argument, NULL, VERBOSE}};
    const cli_option *options = options_of(call->command);
    char letters[2 * CLI_MOST_OPTIONS + 3] = ":h";
    size_t used = strlen(letters);
    int found;
    for (int i = 0; options[i].name; i++) {
        table[i + 2] = (struct option){options[i].name, options[i].argument ? required_argument : no_argument, NULL,
                                       FIRST_OPTION + i};
        if (!options[i].letter) continue;
        letters[used++] = options[i].letter;
        if (options[i].argument) letters[used++] = ':';
    }
    opterr = 0;
    optind = 0; /* glibc: start anew */
    while ((found = getopt_long(argc, argv, letters, table, NULL)) != -1) {
        const char *given = argv[optind - 1];
        if (found == HELP) {
            *help = true;
            return CLI_DONE;
        }
        if (found == VERBOSE) {
            call->verbose = true;
            continue;
        }
        if (found == ':') return cli_misuse(call, "%s needs an argument", given);
        if (found == '?' && optopt >= FIRST_OPTION)
            return cli_misuse(call, "--%s takes no argument", options[optopt - FIRST_OPTION].name);
        if (found == '?') return unknown_option(call, given);
        for (int i = 0; found < FIRST_OPTION && options[i].name; i++)
            if (options[i].letter == found) found = FIRST_OPTION + i;
        if (take_option(call, found - FIRST_OPTION, optarg) != CLI_DONE) return CLI_MISUSED;
    }
    const char *wanted = call->command->argument;
    const int count = argc - optind;
    if (count > 0 && !wanted)
        return cli_misuse(call, "unexpected argument '%s': this command takes none", argv[optind]);
    const bool repeats = wanted && strlen(wanted) > 3 && !strcmp(wanted + strlen(wanted) - 3, "...");
    int maximum = 0;
    for (const char *word = wanted; word && *word; maximum++) {
        const int length = (int)strcspn(word, " ");
        if (maximum >= count && word[0] != '[') return cli_misuse(call, "%.*s is missing", length, word);
        word += length + (word[length] == ' ');
    }
    if (count > maximum && !repeats)
        return cli_misuse(call, "unexpected argument '%s': %s", argv[optind + maximum],
                          maximum == 1 ? "give one argument" : "give two arguments");
    if (count > 0 && !strcmp(argv[optind], "-") && takes_config(wanted)) argv[optind] = standard_input;
    call->argument = count > 0 ? argv[optind] : NULL;
    call->arguments = argv + optind;
    call->argument_count = count;
    return CLI_DONE;
}

int cli_run(const cli_command *command, int argc, char **argv) {
    cli_call call = {.command = command};
    bool help = false;
    if (parse(&call, argc, argv, &help) != CLI_DONE) return CLI_MISUSED;
    if (!help) return command->run(&call);
    cli_print_help(command);
    return cli_finish(&call);
}

/* ---- values ---- */

int cli_number(const cli_call *call, int option, int64_t minimum, int64_t *number) {
    const char *value = call->values[option];
    char *end;
    if (!value) return CLI_DONE;
    const long long parsed = strtoll(value, &end, 10); /* the ends of its range are no sizes that anybody means */
    if (end == value || *end || parsed < minimum || parsed == INT64_MAX)
        return cli_misuse(call, "--%s takes a whole number of at least %lld, not '%s'",
                          call->command->options[option].name, (long long)minimum, value);
    *number = parsed;
    return CLI_DONE;
}

int cli_positive(const cli_call *call, int option, double *number) {
    const char *value = call->values[option];
    char *end;
    if (!value) return CLI_DONE;
    const double parsed = strtod(value, &end);
    if (end == value || *end || !(parsed > 0) || !isfinite(parsed))
        return cli_misuse(call, "--%s takes a number above 0, as in 1e-3, not '%s'",
                          call->command->options[option].name, value);
    *number = parsed;
    return CLI_DONE;
}

int cli_choice(const cli_call *call, int option, const char *const *names, int *choice) {
    const char *value = call->values[option];
    if (!value) return CLI_DONE;
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], value) != 0) continue;
        *choice = i;
        return CLI_DONE;
    }
    return cli_misuse(call, "--%s takes %s, not '%s'%s", call->command->options[option].name,
                      call->command->options[option].argument, value, cli_did_you_mean("", value, names).text);
}
