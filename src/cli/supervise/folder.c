#include "cli/supervise/folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/regular.h"
#include "base/text/json.h"

enum { BASE = 10 };

/* ---- checkpoints ---- */

static const char prefix[] = "step-";

/* Of two names of checkpoints, by their numbers: step, then launch. */
static bool is_newer(const char *name, const char *other) {
    char *rest, *other_rest;
    if (!*other) return true;
    const long long step = strtoll(name + sizeof prefix - 1, &rest, BASE);
    const long long other_step = strtoll(other + sizeof prefix - 1, &other_rest, BASE);
    if (step != other_step || *rest != '-' || *other_rest != '-') return step > other_step;
    return strtoll(rest + 1, NULL, BASE) > strtoll(other_rest + 1, NULL, BASE);
}

void cli_run_checkpoint(const char *folder, char name[NAME_MAX + 1]) {
    char path[CLI_RUN_PATH];
    snprintf(path, sizeof path, "%s/checkpoints", folder);
    name[0] = 0;
    DIR *all = opendir(path);
    for (const struct dirent *entry; all && (entry = readdir(all));)
        if (!strncmp(entry->d_name, prefix, sizeof prefix - 1) && is_newer(entry->d_name, name))
            snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
    if (all) closedir(all);
}

/* ---- launches ---- */

void cli_run_launch_path(const char *folder, int64_t launch, char path[CLI_RUN_PATH]) {
    snprintf(path, CLI_RUN_PATH, "%s/launches/%lld", folder, (long long)launch);
}

int64_t cli_run_launch(const char *folder, long *process) {
    char path[CLI_RUN_PATH];
    int64_t last = 0;
    snprintf(path, sizeof path, "%s/launches", folder);
    DIR *all = opendir(path);
    for (const struct dirent *entry; all && (entry = readdir(all));) {
        const long long number = strtoll(entry->d_name, NULL, BASE);
        if (number > last) last = number;
    }
    if (all) closedir(all);
    *process = 0;
    cli_run_launch_path(folder, last, path);
    FILE *file = last > 0 ? an_regular_read(path) : NULL;
    char line[64];
    if (file && fgets(line, sizeof line, file)) *process = strtol(line, NULL, BASE);
    if (file) fclose(file);
    return last;
}

/* ---- how it ended ---- */

bool cli_run_outcome(const char *folder, cli_run_end *end) {
    enum { MOST = 8192 };
    char path[CLI_RUN_PATH], text[MOST];
    an_json json;
    an_json_string key, value;
    *end = (cli_run_end){.launch = 0};
    snprintf(path, sizeof path, "%s/outcome.json", folder);
    FILE *file = an_regular_read(path);
    if (!file) return false;
    const size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    an_json_init(&json, text, length);
    if (an_json_object(&json))
        while (an_json_member(&json, &key)) {
            if (!strcmp(key.bytes, "end") && an_json_string_value(&json, &value))
                snprintf(end->name, sizeof end->name, "%s", value.bytes);
            else if (!strcmp(key.bytes, "generation"))
                an_json_count(&json, &end->launch);
            else if (!strcmp(key.bytes, "step"))
                an_json_count(&json, &end->step);
            else
                an_json_skip(&json);
        }
    return !json.problem;
}
