/* A tree of files as proc and sys have them, for tests of what reads these: a root of its own, removed at the end. */
#ifndef TESTS_SUPPORT_ROOT_H
#define TESTS_SUPPORT_ROOT_H

#include <stdlib.h>
#include <sys/stat.h>

#include "support/support.h"

static char root[64];

static inline int make_root(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/anneal-root-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static inline int remove_root(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command); /* NOLINT(cert-env33-c): a name of ours */
}

/* Writes a file and the folders above it. */
static inline void put(const char *path, const char *text) {
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(whole, 0700);
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

#endif
