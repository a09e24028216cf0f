/* The completion script for zsh, based on its _arguments. */
#include <string.h>

#include "cli/shell/completion.h"

static void print_key(void *user, const completion_key *key) {
    (void)user;
    printf(" %s", key->path);
}

static void print_key_values(void *user, const completion_key *key) {
    (void)user;
    if (*key->values) printf("    (%s) compadd -- %s ;;\n", key->path, key->values);
    if (key->is_path) printf("    (%s) _files ;;\n", key->path);
}

/* What _arguments calls an action. */
static void print_action(const completion_values *values) {
    if (values->keys)
        printf("_anneal_set");
    else if (values->files && *values->words)
        printf("{compadd -- %s; _files}", values->words);
    else if (values->files)
        printf("_files");
    else if (*values->words)
        printf("(%s)", values->words);
    else
        printf(" "); /* anything */
}

static void print_option(const cli_option *options, const cli_option *option) {
    printf("      '");
    if (option->group) {
        printf("(");
        for (const cli_option *o = options; o->name; o++)
            if (o->group == option->group && o != option) printf("--%s ", o->name);
        printf(")");
    }
    printf("%s--%s%s[", option->repeats || option->lists ? "*" : "", option->name, option->argument ? "=" : "");
    completion_quote(option->help, "[]:");
    printf("]");
    if (option->argument) {
        const completion_values values = completion_of(option->argument);
        printf(":");
        completion_quote(option->argument, "[]:");
        printf(":");
        print_action(&values);
    }
    printf("' \\\n");
}

static void print_command(const cli_command *command) {
    printf("  ('%s') _arguments \\\n", command->name);
    for (const cli_option *o = command->options; o && o->name; o++) print_option(command->options, o);
    if (command->argument) {
        const completion_values values = completion_of(command->argument);
        const bool several = strstr(command->argument, "...") || strchr(command->argument, ' ');
        printf("      '%s:", several ? "*" : "1");
        completion_quote(command->argument, "[]:");
        printf(":");
        print_action(&values);
        printf("' \\\n");
    }
    printf("      '--verbose[show where an error came from]' \\\n      '--help[show help]' ;;\n");
}

/* The second words of the commands that have the first word of this one. */
static void print_second_words(int index) {
    const char *second, *other;
    const int length = completion_first_word(cli_commands[index], &second);
    if (!second || !completion_is_new(index)) return;
    printf("  if [[ $words[2] == %.*s ]]; then\n    if (( CURRENT == 3 )); then\n      commands=(", length,
           cli_commands[index]->name);
    for (int i = 0; cli_commands[i]; i++) {
        if (completion_first_word(cli_commands[i], &other) != length || !other ||
            strncmp(cli_commands[i]->name, cli_commands[index]->name, (size_t)length) != 0)
            continue;
        printf("\n        '%s:", other);
        completion_quote(cli_commands[i]->summary, ":");
        printf("'");
    }
    printf(")\n      _describe command commands\n      return\n    fi\n"
           "    command+=\" $words[3]\"\n    shift words\n    (( CURRENT-- ))\n  fi\n");
}

void completion_zsh(void) {
    const char *second;
    printf("#compdef anneal\n# Completes anneal in zsh; made by 'anneal completion zsh'.\n\n_anneal_set() {\n"
           "  if ! compset -P '*='; then\n    compadd -q -S = --");
    completion_each_key(print_key, NULL);
    printf("\n    return\n  fi\n  local key=${IPREFIX%%=}\n  case ${key##*=} in\n");
    completion_each_key(print_key_values, NULL);
    printf("  esac\n}\n\n_anneal() {\n  local -a commands\n  local command=$words[2]\n"
           "  if (( CURRENT == 2 )); then\n    commands=(");
    for (int i = 0; cli_commands[i]; i++) {
        if (!completion_is_new(i)) continue;
        printf("\n      '%.*s:", completion_first_word(cli_commands[i], &second), cli_commands[i]->name);
        if (second)
            completion_second_words(i, ", ");
        else
            completion_quote(cli_commands[i]->summary, ":");
        printf("'");
    }
    printf(")\n    _describe command commands\n    return\n  fi\n");
    for (int i = 0; cli_commands[i]; i++) print_second_words(i);
    printf("  shift words\n  (( CURRENT-- ))\n  case $command in\n");
    for (int i = 0; cli_commands[i]; i++) print_command(cli_commands[i]);
    printf("  esac\n}\n\nif [[ $funcstack[1] == _anneal ]]; then _anneal \"$@\"; else compdef _anneal anneal; fi\n");
}
