/* The names of all public functions, read from the headers, so that no list in a test can be out of date. */
#ifndef TESTS_PUBLIC_CALLS_H
#define TESTS_PUBLIC_CALLS_H

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PUBLIC_CALLS = 1024, PUBLIC_NAME = 64 };

typedef struct {
    int count;
    char names[MOST_PUBLIC_CALLS][PUBLIC_NAME];
} public_calls;

/* The word before the first parenthesis after each AN_API. */
static inline void add_public_calls(public_calls *calls, const char *text) {
    for (const char *at = strstr(text, "\nAN_API "); at; at = strstr(at + 1, "\nAN_API ")) {
        const char *end = strchr(at, '('), *begin = end;
        while (begin && begin > at && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_')) begin--;
        if (!begin || calls->count == MOST_PUBLIC_CALLS) continue;
        snprintf(calls->names[calls->count++], PUBLIC_NAME, "%.*s", (int)(end - begin), begin);
    }
}

static inline void read_public_calls(public_calls *calls) {
    enum { MOST_BYTES = 1 << 20 };
    static char text[MOST_BYTES];
    DIR *folder = opendir(ANNEAL_SOURCE_DIR "/include/anneal");
    calls->count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[4096];
        const size_t length = strlen(entry->d_name);
        if (length < 2 || strcmp(entry->d_name + length - 2, ".h") != 0) continue;
        snprintf(path, sizeof path, "%s/include/anneal/%s", ANNEAL_SOURCE_DIR, entry->d_name);
        FILE *file = fopen(path, "rb");
        if (!file) continue;
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
        add_public_calls(calls, text);
    }
    if (folder) closedir(folder);
}

/* Whether a name is in a list that ends with NULL. */
static inline bool is_listed(const char *const *list, const char *name) {
    for (; *list; list++)
        if (!strcmp(*list, name)) return true;
    return false;
}

#endif
