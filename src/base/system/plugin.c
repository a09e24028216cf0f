#define _GNU_SOURCE /* dladdr; NOLINT(bugprone-reserved-identifier) */
#include "base/system/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system/plugins.h"

enum { REASON = 512 };

/* The folder of the file that this code is in: the shared library, or a program that the static one is linked into. */
static void folder_of_this(char folder[PATH_MAX]) {
    static const char here;
    Dl_info info;
    char *slash = NULL;
    folder[0] = 0;
    if (dladdr(&here, &info) && info.dli_fname) snprintf(folder, PATH_MAX, "%s", info.dli_fname);
    slash = strrchr(folder, '/');
    snprintf(slash ? slash : folder, slash ? 2 : PATH_MAX, "%s", slash ? "" : ".");
}

an_status an_plugin_open(const char *name, const char *symbol, an_plugin_head expected, const void **record,
                         an_note note) {
    static const char *const folders[] = {"", "/../lib", NULL}; /* of this file; NULL: where plugins are installed */
    char here[PATH_MAX], file[2 * PATH_MAX], reason[REASON] = "";
    void *opened = NULL;
    bool is_there = false; /* the reason is about a file that is there, which says more than that others are not */
    folder_of_this(here);
    for (size_t i = 0; !opened && i < sizeof folders / sizeof *folders; i++) {
        snprintf(file, sizeof file, "%s%s/libanneal-%s.so", folders[i] ? here : AN_PLUGIN_FOLDER,
                 folders[i] ? folders[i] : "", name);
        opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        const char *why = opened ? NULL : dlerror();
        const bool exists = !opened && access(file, F_OK) == 0;
        if (why && (!*reason || (exists && !is_there))) snprintf(reason, sizeof reason, "%s", why);
        is_there = is_there || exists;
    }
    if (!opened && is_there) return AN_NOTE(note, AN_ERR_FILE, "libanneal-%s.so cannot be loaded (%s)", name, reason);
    if (!opened)
        return AN_NOTE(note, AN_ERR_FILE, "libanneal-%s.so was not found beside anneal's library nor in %s (%s)", name,
                       AN_PLUGIN_FOLDER, reason);
    const an_plugin_head *found = dlsym(opened, symbol);
    if (!found || found->version != expected.version || found->size != expected.size)
        return AN_NOTE(note, AN_ERR_UNSUPPORTED, "%s is not of this version of anneal", file);
    *record = found;
    return AN_OK;
}
