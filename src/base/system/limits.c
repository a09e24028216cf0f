#include "base/system/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { PATH_BYTES = 1024, BASE = 10, KILOBYTE = 1024 };
static const int64_t none =
    (int64_t)1 << 60; /* a number that no machine has; cgroups of version 1 mean "no limit" by such a one */

/* ---- files ---- */

typedef struct reader {
    const char *root;
    char text[1 << 13]; /* of the file read last; what is wanted stands in the beginning of each */
} reader;

bool an_limits_file(const char *root, const char *path, char *text, size_t capacity) {
    char whole[PATH_BYTES];
    text[0] = 0;
    if (snprintf(whole, sizeof whole, "%s%s", root, path) >= (int)sizeof whole) return false;
    FILE *file = fopen(whole, "re");
    if (!file) return false;
    const size_t length = fread(text, 1, capacity - 1, file);
    text[length] = 0;
    fclose(file);
    return length > 0;
}

static bool read_file(reader *r, const char *path) {
    return an_limits_file(r->root, path, r->text, sizeof r->text);
}

const char *an_limits_line(const char *text, const char *name, int *length) {
    const size_t name_length = strlen(name);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line ? 1 : 0) {
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
    const char *value = an_limits_line(r->text, name, &length);
    const int64_t kilobytes = value ? strtoll(value, NULL, BASE) : 0;
    return kilobytes > 0 && kilobytes < none / KILOBYTE ? kilobytes * KILOBYTE : 0;
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

typedef void (*take_limit)(reader *r, const char *folder, an_limits *l);

/* A group has the limits of all around it; which of them are seen depends on what is mounted. */
static void walk_up(reader *r, const char *mount, char *group, take_limit take, an_limits *l) {
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

static void take_quota(an_limits *l, double quota, double period) {
    if (quota <= 0 || period <= 0) return; /* "max" or -1: none */
    if (l->group_processors <= 0 || quota / period < l->group_processors) l->group_processors = quota / period;
}

static void take_cpu(reader *r, const char *folder, an_limits *l) {
    char *end;
    if (!read_in(r, folder, "cpu.max")) return;
    const double quota = strtod(r->text, &end);
    take_quota(l, quota, strtod(end, NULL));
}

static void take_cpu_1(reader *r, const char *folder, an_limits *l) {
    if (!read_in(r, folder, "cpu.cfs_quota_us")) return;
    const double quota = strtod(r->text, NULL);
    if (read_in(r, folder, "cpu.cfs_period_us")) take_quota(l, quota, strtod(r->text, NULL));
}

/* FNV-1a. */
static uint64_t hash_text(const char *text) {
    uint64_t hash = 0xcbf29ce484222325;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash;
}

static void take_memory(reader *r, const char *folder, an_limits *l) {
    if (!read_in(r, folder, "memory.max") && !read_in(r, folder, "memory.limit_in_bytes")) return;
    const int64_t limit = strtoll(r->text, NULL, BASE);
    if (limit <= 0 || limit >= none || (l->group_memory > 0 && limit >= l->group_memory)) return;
    l->group_memory = limit;
    l->group = hash_text(folder);
}

static void read_groups(reader *r, an_limits *l) {
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

/* ---- ulimit ---- */

/* What a limit leaves beside what the process has; -1: it is none. */
static int64_t left_of(int resource, int64_t used) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur >= (rlim_t)none) return -1;
    return (int64_t)limit.rlim_cur > used ? (int64_t)limit.rlim_cur - used : 0;
}

void an_limits_read(const char *root, an_limits *limits) {
    reader r = {.root = root};
    *limits = (an_limits){0};
    if (read_file(&r, "/proc/meminfo")) {
        limits->memory = read_kilobytes(&r, "MemTotal");
        limits->memory_available = read_kilobytes(&r, "MemAvailable");
        limits->swap = read_kilobytes(&r, "SwapTotal");
    }
    read_groups(&r, limits);
    if (!read_file(&r, "/proc/self/status")) r.text[0] = 0;
    limits->address_space = left_of(RLIMIT_AS, read_kilobytes(&r, "VmSize"));
    limits->data = left_of(RLIMIT_DATA, read_kilobytes(&r, "VmData"));
}

/* ---- whether bytes fit ---- */

an_bytes_text an_bytes_in_words(int64_t bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    const double step = 1024;
    an_bytes_text out;
    double number = (double)bytes;
    int unit = 0;
    for (; number >= step && unit < 6; unit++) number /= step;
    snprintf(out.text, sizeof out.text, "%.*f %s", unit ? 2 : 0, number, units[unit]);
    return out;
}

/* Bytes that something allows. */
typedef struct offer {
    int64_t bytes;  /* -1: not known, or no limit */
    int64_t others; /* of them are for other ranks */
    const char *words;
} offer;

/* What limits this process most. Swap is slow, but what fits with it does fit. `held` is in what
 * ulimit no longer leaves. */
static offer find_least(const an_limits *l, int64_t held) {
    const offer offers[] = {
        {l->memory ? l->memory + l->swap : -1, l->others,
         l->swap ? "the memory and swap of this machine are" : "this machine has"},
        {l->group_memory ? l->group_memory + l->swap : -1, l->group_others, "the cgroup of this process allows"},
        {l->address_space < 0 ? -1 : l->address_space + held, 0, "ulimit -v leaves"},
        {l->data < 0 ? -1 : l->data + held, 0, "ulimit -d leaves"},
    };
    offer minimum = {-1, 0, ""};
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++) {
        const offer *o = &offers[i];
        if (o->bytes >= 0 && (minimum.bytes < 0 || o->bytes - o->others < minimum.bytes - minimum.others)) minimum = *o;
    }
    return minimum;
}

an_limits_fit an_limits_compare(const an_limits *limits, int64_t planned, int64_t held, char text[AN_LIMITS_TEXT]) {
    enum { SPARE = 16 }; /* of a limit: threads and buffers need some too */
    const an_limits *l = limits;
    const offer offered = find_least(l, held);
    const int64_t minimum = offered.bytes - offered.others; /* below 0: the others do not fit either */
    const an_bytes_text need = an_bytes_in_words(planned), maximum = an_bytes_in_words(offered.bytes);
    if (offered.bytes < 0) {
        snprintf(text, AN_LIMITS_TEXT, "it needs %s of memory, and no limit is known", need.text);
        return AN_LIMITS_FITS;
    }
    char of_others[64] = "";
    if (offered.others > 0)
        snprintf(of_others, sizeof of_others, ", of which the other ranks need %s",
                 an_bytes_in_words(offered.others).text);
    if (l->memory_available && planned > l->memory_available - l->others && planned <= minimum) {
        const char *also = l->others > 0 ? " for all ranks of this host" : "";
        snprintf(text, AN_LIMITS_TEXT,
                 "it needs %s of memory%s, but only %s are available now because other processes use the rest",
                 an_bytes_in_words(planned + l->others).text, also, an_bytes_in_words(l->memory_available).text);
        return AN_LIMITS_TIGHT;
    }
    const bool tight =
        planned > minimum - offered.bytes / SPARE || (l->group_memory && planned > l->group_memory - l->group_others);
    snprintf(text, AN_LIMITS_TEXT, "it needs %s of memory, and %s %s%s%s", need.text, offered.words, maximum.text,
             of_others, tight && planned <= minimum ? ", which leaves little for threads and buffers" : "");
    return planned > minimum ? AN_LIMITS_EXCEEDED : tight ? AN_LIMITS_TIGHT : AN_LIMITS_FITS;
}
