/* What the system allows this process: memory, and processors of its cgroup. Uses nothing else of the library. */
#ifndef AN_BASE_SYSTEM_LIMITS_H
#define AN_BASE_SYSTEM_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct an_limits {
    int64_t memory, memory_available, swap; /* of the machine; 0: not known */
    int64_t group_memory;                   /* the smallest limit of the cgroups around this process; 0: none */
    double group_processors;                /* the same of processors; 0: none */
    int64_t address_space, data;            /* what ulimit -v and ulimit -d still leave; -1: no limit */
    /* a hash of the cgroup that has this limit of memory: processes of one host with the same share it */
    uint64_t group;
    /* Not read, but said by who compares: bytes that other ranks of a run need on this machine, and in this cgroup.
     * ulimit is of a process, and they need none of it. */
    int64_t others, group_others;
} an_limits;

/* Reads proc and sys below `root`, which is "" but for tests. What cannot be read stays as if there were no limit. */
void an_limits_read(const char *root, an_limits *limits);

/* ---- whether bytes fit ---- */

typedef enum an_limits_fit { AN_LIMITS_FITS, AN_LIMITS_TIGHT, AN_LIMITS_EXCEEDED } an_limits_fit;
enum { AN_LIMITS_TEXT = 256 };

/* Compares bytes that are planned, of which `held` may be allocated already, with the limits. EXCEEDED is
 * certain: the machine, with its swap, or a limit has less. TIGHT depends on what else runs. The text is a
 * sentence without its full stop. */
an_limits_fit an_limits_compare(const an_limits *limits, int64_t planned, int64_t held, char text[AN_LIMITS_TEXT]);

/* "1.50 GiB" */
typedef struct an_bytes_text {
    char text[32];
} an_bytes_text;
an_bytes_text an_bytes_in_words(int64_t bytes);

/* ---- files of proc and sys ---- */

/* The beginning of a file below `root`; false: there is none, or it is empty. */
bool an_limits_file(const char *root, const char *path, char *text, size_t capacity);
/* What follows "name :" in a text of such lines, up to the line's end; NULL: there is no such line. */
const char *an_limits_line(const char *text, const char *name, int *length);

#endif
