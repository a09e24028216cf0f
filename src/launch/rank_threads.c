#define _GNU_SOURCE /* sched_getaffinity; NOLINT(bugprone-reserved-identifier) */
#include "launch/rank_threads.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/system/limits.h"

enum { WORD = 64 };

static bool has(const an_rank_place *place, int processor) {
    return place->processors[processor / WORD] >> processor % WORD & 1;
}

void an_rank_place_read(an_rank_place *place, const char *root) {
    char group[4096]; /* lines of /proc/self/cgroup; a longer file still differs in its beginning */
    cpu_set_t set;
    an_limits limits;
    *place = (an_rank_place){0};
    CPU_ZERO(&set);
    /* It fails where the machine has more processors than the set: then all of them, as far as they are counted. */
    const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < AN_MOST_PROCESSORS && i < CPU_SETSIZE; i++)
        if (known ? CPU_ISSET((size_t)i, &set) : i < online) place->processors[i / WORD] |= 1ULL << i % WORD;
    an_limits_read(root, &limits);
    place->group_processors = limits.group_processors;
    if (an_limits_file(root, "/proc/self/cgroup", group, sizeof group))
        place->group = XXH3_64bits(group, strlen(group));
}

/* A part of a cgroup's limit that does not come out even must not be lost to rounding. */
static int whole(double share) {
    static const double tolerance = 1e-6;
    return (int)(share + tolerance);
}

int an_rank_threads(const an_rank_place *places, int ranks, int rank) {
    const an_rank_place *own = &places[rank];
    double share = 0;
    int group = 0;
    if (own->given > 0) return (int)own->given;
    for (int i = 0; i < AN_MOST_PROCESSORS; i++) {
        int sharing = 0;
        if (!has(own, i)) continue;
        for (int r = 0; r < ranks; r++) sharing += has(&places[r], i);
        share += 1.0 / sharing;
    }
    for (int r = 0; r < ranks; r++) group += places[r].group == own->group;
    if (own->group_processors > 0 && own->group_processors / group < share) share = own->group_processors / group;
    return share < 1 ? 1 : whole(share);
}

int an_rank_processors(const an_rank_place *places, int ranks) {
    int count = 0;
    for (int word = 0; word < AN_PROCESSOR_WORDS; word++) {
        uint64_t any = 0;
        for (int r = 0; r < ranks; r++) any |= places[r].processors[word];
        count += __builtin_popcountll(any);
    }
    return count;
}
