/* The completion script for fish: one line for everything that can be completed. */
#include <string.h>

#include "cli/shell/completion.h"

/* When it is offered: after the words of a command. */
static void print_condition(const cli_command *command) {
    const char *second;
    const int length = completion_first_word(command, &second);
    printf("complete -c anneal -n '__fish_seen_subcommand_from %.*s", length, command->name);
    if (second) printf("; and __fish_seen_subcommand_from %s", second);
    printf("'");
}

static void print_text(const char *text) {
    printf(" -d '");
    for (; *text; text++) printf("%s%c", strchr("'\\", *text) ? "\\" : "", *text);
    printf("'");
}

static void print_values(const completion_values *values) {
    if (*values->words) printf(" -a '%s'", values->words);
    if (values->keys) printf(" -a '(__anneal_settings)'");
    if (values->files) printf(" -F");
}

static void print_command(const cli_command *command) {
    for (const cli_option *o = command->options; o && o->name; o++) {
        const completion_values values = completion_of(o->argument);
        print_condition(command);
        printf(" -l %s%s", o->name, !o->argument ? "" : values.files ? " -r" : " -x");
        print_values(&values);
        print_text(o->help);
        printf("\n");
    }
    const completion_values values = completion_of(command->argument);
    print_condition(command);
    printf(" -l verbose -d 'show where an error came from'\n");
    print_condition(command);
    printf(" -l help -d 'show help'\n");
    if (!*values.words && !values.files) return;
    print_condition(command);
    print_values(&values);
    printf("\n");
}

static void print_names(int index) {
    const char *second;
    const int length = completion_first_word(cli_commands[index], &second);
    if (completion_is_new(index)) {
        printf("complete -c anneal -n __fish_use_subcommand -a %.*s", length, cli_commands[index]->name);
        if (second) {
            printf(" -d '");
            completion_second_words(index, ", ");
            printf("'");
        } else {
            print_text(cli_commands[index]->summary);
        }
        printf("\n");
    }
    if (!second) return;
    printf("complete -c anneal -n '__fish_seen_subcommand_from %.*s; and not __fish_seen_subcommand_from ", length,
           cli_commands[index]->name);
    completion_second_words(index, " ");
    printf("' -a %s", second);
    print_text(cli_commands[index]->summary);
    printf("\n");
}

static void print_key(void *user, const completion_key *key) {
    (void)user;
    printf("        %s= \\\n", key->path);
    for (const char *value = key->values; *value;) {
        const int length = (int)strcspn(value, " ");
        printf("        %s=%.*s \\\n", key->path, length, value);
        value += length + (value[length] == ' ');
    }
}

void completion_fish(void) {
    printf("# Completes anneal in fish; made by 'anneal completion fish'.\nfunction __anneal_settings\n"
           "    printf '%%s\\n' \\\n");
    completion_each_key(print_key, NULL);
    printf("\nend\n\ncomplete -c anneal -f\n");
    for (int i = 0; cli_commands[i]; i++) print_names(i);
    for (int i = 0; cli_commands[i]; i++) print_command(cli_commands[i]);
}
