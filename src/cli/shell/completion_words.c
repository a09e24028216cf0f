/* The words that the completion scripts offer. */
#include "cli/shell/completion.h"

#include <string.h>

#include "anneal/config.h"
#include "anneal/models.h"

static void append(char *list, size_t capacity, const char *word, size_t length) {
    const size_t used = strlen(list);
    snprintf(list + used, capacity - used, "%s%.*s", used > 0 ? " " : "", (int)length, word);
}

static void append_presets(completion_values *values) {
    for (int i = 0; an_model_preset_name(i); i++)
        append(values->words, sizeof values->words, an_model_preset_name(i), strlen(an_model_preset_name(i)));
}

static void append_commands(completion_values *values) {
    const char *second;
    for (int i = 0; cli_commands[i]; i++)
        if (completion_is_new(i))
            append(values->words, sizeof values->words, cli_commands[i]->name,
                   (size_t)completion_first_word(cli_commands[i], &second));
}

static void take_files(completion_values *values) {
    values->files = true;
}

static void take_keys(completion_values *values) {
    values->keys = true;
}

/* How the tables name what they take. */
static const struct kind {
    const char *name;
    void (*take)(completion_values *values);
} kinds[] = {
    {"PRESET", append_presets}, {"COMMAND", append_commands}, {"KEY=VALUE", take_keys}, {"FILE", take_files},
    {"FILE.ang", take_files},   {"CONFIG", take_files},       {"RUN", take_files},      {"PATH", take_files},
    {"FOLDER", take_files},     {"CHECKPOINT", take_files},
};

static const struct kind *find_kind(const char *word, size_t length) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == length && !strncmp(kinds[i].name, word, length)) return &kinds[i];
    return NULL;
}

completion_values completion_of(const char *argument) {
    static const char between[] = "|[] ";
    completion_values values = {.words = ""};
    while (argument && *(argument += strspn(argument, between))) {
        const size_t whole = strcspn(argument, between);
        const size_t length = whole > 3 && !strncmp(argument + whole - 3, "...", 3) ? whole - 3 : whole;
        const struct kind *kind = find_kind(argument, length);
        if (kind)
            kind->take(&values);
        else if (argument[0] >= 'a' && argument[0] <= 'z') /* small letters stand for themselves */
            append(values.words, sizeof values.words, argument, length);
        argument += whole;
    }
    return values;
}

/* ---- keys ---- */

/* The words of "auto, on or off"; none, if something in it is described and not named. */
static void parse_values(const char *type, char *values, size_t capacity) {
    *values = 0;
    while (*type) {
        const size_t length = strcspn(type, ", ");
        append(values, capacity, type, length);
        type += length;
        type += *type == ',';
        type += *type == ' ';
        if (!strncmp(type, "or ", 3))
            type += 3;
        else if (*type && type[-2] != ',') {
            *values = 0;
            return;
        }
    }
}

/* Keys that several types have, each with another meaning, are in the table more than once. */
static bool is_repeated(int index, const char *path) {
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    for (int i = 0; i < index && cli_key_at(i, &key); i++)
        if (!strcmp(key.path, path)) return true;
    return false;
}

void completion_each_key(void (*visit)(void *user, const completion_key *key), void *user) {
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    completion_key out = {.path = ""};
    for (int i = 0; cli_key_at(i, &key); i++) {
        const bool is_element = strchr(key.path, '[') != NULL, is_table = !strcmp(key.type, "a table");
        if (is_element || is_table || is_repeated(i, key.path)) continue;
        snprintf(out.path, sizeof out.path, "%s", key.path);
        parse_values(key.type, out.values, sizeof out.values);
        out.is_path =
            !strcmp(key.type, "a path") || !strncmp(key.type, "the path of a file", strlen("the path of a file"));
        visit(user, &out);
    }
}

/* ---- names of commands ---- */

int completion_first_word(const cli_command *command, const char **second) {
    const char *space = strchr(command->name, ' ');
    *second = space ? space + 1 : NULL;
    return space ? (int)(space - command->name) : (int)strlen(command->name);
}

bool completion_is_new(int index) {
    const char *second, *name = cli_commands[index]->name;
    const int length = completion_first_word(cli_commands[index], &second);
    for (int i = 0; i < index; i++)
        if (completion_first_word(cli_commands[i], &second) == length &&
            !strncmp(cli_commands[i]->name, name, (size_t)length))
            return false;
    return true;
}

void completion_second_words(int index, const char *separator) {
    const char *second, *name = cli_commands[index]->name, *before = "";
    const int length = completion_first_word(cli_commands[index], &second);
    for (int i = 0; cli_commands[i]; i++) {
        if (completion_first_word(cli_commands[i], &second) != length || !second ||
            strncmp(cli_commands[i]->name, name, (size_t)length) != 0)
            continue;
        printf("%s%s", before, second);
        before = separator;
    }
}

void completion_quote(const char *text, const char *special) {
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            printf("%s%c", strchr(special, *text) ? "\\" : "", *text);
    }
}

/* ---- the command ---- */
