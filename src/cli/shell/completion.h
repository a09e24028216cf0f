/* What the completion scripts are made from: the tables of the commands, and the keys of configs. */
#ifndef AN_CLI_SHELL_COMPLETION_H
#define AN_CLI_SHELL_COMPLETION_H

#include <stdio.h>

#include "cli/main/cli.h"

/* What an argument can be, by how the tables name it. */
typedef struct completion_values {
    char words[512]; /* with a space between two */
    bool files, keys;
} completion_values;

completion_values completion_of(const char *argument);

/* A key that --set takes. */
typedef struct completion_key {
    char path[64];
    char values[384]; /* with a space between two; "": not just words */
    bool is_path;
} completion_key;

/* Calls back once for each, in the order of the table. */
void completion_each_key(void (*visit)(void *user, const completion_key *key), void *user);

/* Some commands have names of two words. The first word's length, and the second word; NULL if there is one. */
int completion_first_word(const cli_command *command, const char **second);
/* Whether no command before this one has its first word. */
bool completion_is_new(int index);

/* Writes the second words of all commands with the first word of this one. */
void completion_second_words(int index, const char *separator);
/* Text inside single quotes, with a backslash before what is special in it. */
void completion_quote(const char *text, const char *special);

void completion_bash(void);
void completion_zsh(void);
void completion_fish(void);

#endif
