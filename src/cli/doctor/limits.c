/* Processors, memory and their limits, as Linux reports them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/limits.h"
#include "cli/doctor/doctor.h"

enum { PATH_BYTES = 1024, MOST_PROCESSORS = 4096 };

typedef struct reader {
    const char *root;
    char text[1 << 14]; /* of the file read last; what is wanted stands in the beginning of each */
} reader;

static bool read_file(reader *r, const char *path) {
    return an_limits_file(r->root, path, r->text, sizeof r->text);
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
    const char *list = read_file(r, "/proc/self/status") ? an_limits_line(r->text, "Cpus_allowed_list", &length) : NULL;
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
    const char *value = an_limits_line(r->text, "model name", &length);
    if (value) snprintf(l->processor, sizeof l->processor, "%.*s", length, value);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((value = an_limits_line(r->text, names[i], &length)))
            snprintf(l->instructions, sizeof l->instructions, " %.*s ", length, value);
}

bool doctor_has(const doctor_limits *limits, const char *instruction) {
    char word[48];
    snprintf(word, sizeof word, " %s ", instruction);
    return strstr(limits->instructions, word) != NULL;
}

void doctor_limits_read(const char *root, doctor_limits *limits) {
    static reader r;
    an_limits of_process;
    r.root = root;
    *limits = (doctor_limits){0};
    read_instructions(&r, limits);
    read_processors(&r, limits);
    an_limits_read(root, &of_process);
    limits->memory = of_process.memory;
    limits->memory_available = of_process.memory_available;
    limits->memory_limit = of_process.group_memory;
    limits->quota = of_process.group_processors;
}
