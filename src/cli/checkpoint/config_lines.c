/* Compares the values of two saved configs. They are texts of an_config_write: one key per line, two spaces per
 * level. */
#include <stdio.h>
#include <string.h>

#include "cli/checkpoint/config_lines.h"

enum { MOST_LEVELS = 16, INDENT = 2 };

/* Where a walk through a text is. */
typedef struct {
    const char *at;
    char names[MOST_LEVELS][64];
    int items[MOST_LEVELS]; /* of a list: the number of the one it is in */
} walk;

/* The next key that has a value; false at the end. */
static bool next(walk *w, char path[CLI_CONFIG_TEXT], char value[CLI_CONFIG_TEXT]) {
    while (*w->at) {
        const char *line = w->at;
        const size_t length = strcspn(line, "\n");
        int level = 0;
        w->at += length + (line[length] == '\n');
        for (; !strncmp(line, "  ", INDENT); line += INDENT) level++;
        if (!strncmp(line, "- ", INDENT)) { /* of a list: its keys are one level further in */
            if (level >= MOST_LEVELS - 1) continue;
            snprintf(w->names[level], sizeof w->names[level], "[%d]", w->items[level]++);
            line += INDENT;
            level++;
        }
        const char *colon = strstr(line, ":");
        if (!colon || colon >= w->at || level >= MOST_LEVELS - 1) continue;
        snprintf(w->names[level], sizeof w->names[level], "%.*s", (int)(colon - line), line);
        w->items[level + 1] = 0;
        const char *end = w->at > line && w->at[-1] == '\n' ? w->at - 1 : w->at;
        if (colon + 1 >= end) continue; /* a table or a list */
        size_t used = 0;
        *path = 0;
        for (int i = 0; i <= level && used < CLI_CONFIG_TEXT; i++)
            used += (size_t)snprintf(path + used, CLI_CONFIG_TEXT - used, "%s%s", i && w->names[i][0] != '[' ? "." : "",
                                     w->names[i]);
        snprintf(value, CLI_CONFIG_TEXT, "%.*s", (int)(end - colon - 2), colon + 2);
        return true;
    }
    return false;
}

bool cli_config_find(const char *text, const char *wanted, char value[CLI_CONFIG_TEXT]) {
    walk w = {.at = text};
    char path[CLI_CONFIG_TEXT];
    while (next(&w, path, value))
        if (!strcmp(path, wanted)) return true;
    return false;
}

void cli_config_differences(const char *a, const char *b,
                            void (*visit)(void *user, const char *path, const char *a, const char *b), void *user) {
    char path[CLI_CONFIG_TEXT], of_a[CLI_CONFIG_TEXT], of_b[CLI_CONFIG_TEXT];
    walk w = {.at = a};
    while (next(&w, path, of_a)) {
        const bool there = cli_config_find(b, path, of_b);
        if (!there || strcmp(of_a, of_b) != 0) visit(user, path, of_a, there ? of_b : NULL);
    }
    w = (walk){.at = b};
    while (next(&w, path, of_b))
        if (!cli_config_find(a, path, of_a)) visit(user, path, NULL, of_b);
}
