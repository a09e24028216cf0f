/* Paths in a config are relative to its folder. */
#define _GNU_SOURCE /* realpath; NOLINT(bugprone-reserved-identifier) */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/init/init.h"

/* As a person in the working directory would type it. */
static void find_name(init_found *f, const char *path) {
    char here[INIT_PATH];
    const size_t length = getcwd(here, sizeof here) ? strlen(here) : 0;
    const bool inside = length > 1 && !strncmp(path, here, length) && path[length] == '/';
    snprintf(f->config, sizeof f->config, "%s", inside ? path + length + 1 : path);
}

bool init_find_folder(init_found *f, const char *output) {
    char path[INIT_PATH] = "";
    struct stat about;
    if (output) {
        snprintf(path, sizeof path, "%s", output);
    } else if (fstat(STDOUT_FILENO, &about) == 0 && S_ISREG(about.st_mode)) {
        const ssize_t length = readlink("/proc/self/fd/1", path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
    }
    find_name(f, path);
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = 0;
    return realpath(slash ? path : ".", f->folder) != NULL;
}

/* The real path of a file or a pattern, by its folder, which must be there. */
static bool find_real(const char *path, char *real, size_t capacity) {
    char folder[INIT_PATH], resolved[INIT_PATH];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof folder) return false;
    memcpy(folder, path, length);
    folder[length] = 0;
    if (!realpath(!slash ? "." : length == 0 ? "/" : folder, resolved)) return false;
    return snprintf(real, capacity, "%s/%s", strcmp(resolved, "/") != 0 ? resolved : "", name) < (int)capacity;
}

void init_put_path(const init_found *f, const char *path) {
    char trimmed[INIT_PATH], real[INIT_PATH + 256];
    const size_t folder = strcmp(f->folder, "/") != 0 ? strlen(f->folder) : 0;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    snprintf(trimmed, sizeof trimmed, "%.*s", (int)length, path);
    const bool is_place = !strcmp(trimmed, ".") || !strcmp(trimmed, "..");
    if (is_place ? !realpath(trimmed, real) : !find_real(trimmed, real, sizeof real))
        snprintf(real, sizeof real, "%s", path);
    const bool inside = !strncmp(real, f->folder, folder) && real[folder] == '/' && real[folder + 1];
    init_put_text(f->source_stream, inside ? real + folder + 1 : real);
}
