/* Processors, memory and their limits, as Linux says them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor.h"

enum { PATH_BYTES = 1024, MOST_PROCESSORS = 4096 };

typedef struct reader {
    const char *root;
    char text[1 << 14]; /* of the file read last; what is wanted stands in the beginning of each */
} reader;

static bool read_file(reader *r, const char *path) {
    char whole[PATH_BYTES];
    r->text[0] = 0;
    if (snprintf(whole, sizeof whole, "%s%s", r->root, path) >= (int)sizeof whole) return false;
    FILE *file = fopen(whole, "r");
    if (!file) return false;
    const size_t length = fread(r->text, 1, sizeof r->text - 1, file);
    r->text[length] = 0;
    fclose(file);
    return length > 0;
}

/* What follows "name :" in a file of such lines, up to the line's end; NULL: there is no such line. */
static const char *find_line(const reader *r, const char *name, int *length) {
    const size_t name_length = strlen(name);
    for (const char *line = r->text; *line; line += strcspn(line, "\n"), line += *line ? 1 : 0) {
        if (strncmp(line, name, name_length) != 0) continue;
        const char *value = line + name_length + strspn(line + name_length, " \t");
        if (*value != ':') continue;
        value++;
        value += strspn(value, " \t");
        *length = (int)strcspn(value, "\n");
        return value;
    }
    return NULL;
}

static int64_t read_kilobytes(const reader *r, const char *name) {
    int length;
    const char *value = find_line(r, name, &length);
    return value ? strtoll(value, NULL, 10) * 1024 : 0;
}

/* ---- processors ---- */

/* "0-3,8": sets the numbers in it, and says how many they are. */
static int parse_list(const char *text, bool set[MOST_PROCESSORS]) {
    int count = 0;
    memset(set, 0, MOST_PROCESSORS * sizeof *set);
    while (*text >= '0' && *text <= '9') {
        char *end;
        const long first = strtol(text, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long i = first; i <= last && i < MOST_PROCESSORS; i++) {
            count += !set[i];
            set[i] = true;
        }
        text = *end == ',' ? end + 1 : "";
    }
    return count;
}

/* Whether an allowed processor is the first of those that share its core. */
static bool is_first_of_core(reader *r, int processor, const bool *allowed, bool *known) {
    static bool siblings[MOST_PROCESSORS];
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", processor);
    *known = read_file(r, path) && parse_list(r->text, siblings) > 0;
    for (int i = 0; *known && i < processor; i++)
        if (allowed[i] && siblings[i]) return false;
    return true;
}

static void read_processors(reader *r, doctor_limits *l) {
    static bool allowed[MOST_PROCESSORS];
    static bool online[MOST_PROCESSORS];
    int length;
    bool known = true;
    if (read_file(r, "/sys/devices/system/cpu/online")) l->online = parse_list(r->text, online);
    if (l->online == 0) l->online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const char *list = read_file(r, "/proc/self/status") ? find_line(r, "Cpus_allowed_list", &length) : NULL;
    l->allowed = list ? parse_list(list, allowed) : 0;
    if (l->allowed == 0) l->allowed = l->online;
    for (int i = 0; list && known && i < MOST_PROCESSORS; i++)
        if (allowed[i]) l->cores += is_first_of_core(r, i, allowed, &known);
    if (!list || !known) l->cores = 0;
    if (read_file(r, "/sys/devices/system/node/online")) l->nodes = parse_list(r->text, online);
    if (read_file(r, "/proc/loadavg")) l->load = strtod(r->text, NULL);
    if (read_file(r, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
        snprintf(l->governor, sizeof l->governor, "%.*s", (int)strcspn(r->text, "\n"), r->text);
}

static void read_instructions(reader *r, doctor_limits *l) {
    static const char *const names[] = {"flags", "Features"}; /* of x86 and of ARM */
    int length;
    if (!read_file(r, "/proc/cpuinfo")) return;
    const char *value = find_line(r, "model name", &length);
    if (value) snprintf(l->processor, sizeof l->processor, "%.*s", length, value);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((value = find_line(r, names[i], &length)))
            snprintf(l->instructions, sizeof l->instructions, " %.*s ", length, value);
}

bool doctor_has(const doctor_limits *limits, const char *instruction) {
    char word[48];
    snprintf(word, sizeof word, " %s ", instruction);
    return strstr(limits->instructions, word) != NULL;
}

/* ---- cgroups ---- */

/* The path of this process's group: of a controller in version 1, or ("") in version 2. */
static bool find_group(reader *r, const char *controller, char *path, size_t capacity) {
    if (!read_file(r, "/proc/self/cgroup")) return false;
    for (char *line = r->text; *line; line += strcspn(line, "\n"), line += *line ? 1 : 0) {
        const char *names = strchr(line, ':'), *at = names ? strchr(names + 1, ':') : NULL;
        if (!at) break;
        names++;
        for (bool is_found = false; names <= at && !is_found; names += strcspn(names, ",:") + 1) {
            const size_t length = strcspn(names, ",:");
            is_found = length == strlen(controller) && !strncmp(names, controller, length);
            if (is_found) return snprintf(path, capacity, "%.*s", (int)strcspn(at + 1, "\n"), at + 1) < (int)capacity;
        }
    }
    return false;
}

typedef void (*take_limit)(reader *r, const char *folder, doctor_limits *l);

/* A group has the limits of all around it; which of them are seen depends on what is mounted. */
static void walk_up(reader *r, const char *mount, char *group, take_limit take, doctor_limits *l) {
    char folder[PATH_BYTES];
    for (;;) {
        size_t length = strlen(group);
        while (length > 0 && group[length - 1] == '/') group[--length] = 0;
        if (snprintf(folder, sizeof folder, "%s%s", mount, group) < (int)sizeof folder - 32) take(r, folder, l);
        if (length == 0) return;
        while (length > 0 && group[length - 1] != '/') group[--length] = 0;
    }
}

static bool read_in(reader *r, const char *folder, const char *name) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return read_file(r, path);
}

static void take_quota(doctor_limits *l, double quota, double period) {
    if (quota <= 0 || period <= 0) return; /* "max" or -1: none */
    if (l->quota <= 0 || quota / period < l->quota) l->quota = quota / period;
}

static void take_cpu(reader *r, const char *folder, doctor_limits *l) {
    char *end;
    if (!read_in(r, folder, "cpu.max")) return;
    const double quota = strtod(r->text, &end);
    take_quota(l, quota, strtod(end, NULL));
}

static void take_cpu_1(reader *r, const char *folder, doctor_limits *l) {
    if (!read_in(r, folder, "cpu.cfs_quota_us")) return;
    const double quota = strtod(r->text, NULL);
    if (read_in(r, folder, "cpu.cfs_period_us")) take_quota(l, quota, strtod(r->text, NULL));
}

static void take_memory(reader *r, const char *folder, doctor_limits *l) {
    const int64_t none = (int64_t)1 << 60; /* version 1 says "no limit" by a number that no machine has */
    if (!read_in(r, folder, "memory.max") && !read_in(r, folder, "memory.limit_in_bytes")) return;
    const int64_t limit = strtoll(r->text, NULL, 10);
    if (limit > 0 && limit < none && (l->memory_limit == 0 || limit < l->memory_limit)) l->memory_limit = limit;
}

static void read_groups(reader *r, doctor_limits *l) {
    static const struct {
        const char *controller, *mount;
        take_limit take;
    } groups[] = {
        {"", "/sys/fs/cgroup", take_cpu},
        {"", "/sys/fs/cgroup", take_memory},
        {"cpu", "/sys/fs/cgroup/cpu", take_cpu_1},
        {"memory", "/sys/fs/cgroup/memory", take_memory},
    };
    char group[PATH_BYTES];
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (find_group(r, groups[i].controller, group, sizeof group))
            walk_up(r, groups[i].mount, group, groups[i].take, l);
}

void doctor_limits_read(const char *root, doctor_limits *limits) {
    static reader r;
    r.root = root;
    *limits = (doctor_limits){0};
    read_instructions(&r, limits);
    read_processors(&r, limits);
    if (read_file(&r, "/proc/meminfo")) {
        limits->memory = read_kilobytes(&r, "MemTotal");
        limits->memory_available = read_kilobytes(&r, "MemAvailable");
    }
    read_groups(&r, limits);
}
