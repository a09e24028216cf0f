/* How many threads each rank of a host gets. Pure functions of what the ranks know about themselves. */
#ifndef AN_LAUNCH_RANK_THREADS_H
#define AN_LAUNCH_RANK_THREADS_H

#include <stdbool.h>
#include <stdint.h>

enum { AN_MOST_PROCESSORS = 1024, AN_PROCESSOR_WORDS = AN_MOST_PROCESSORS / 64 };

/* What a rank says about its place on the host; ranks of one host exchange these at the start. */
typedef struct an_rank_place {
    /* of its affinity mask, a bit each; those above the most are not counted */
    uint64_t processors[AN_PROCESSOR_WORDS];
    uint64_t group;          /* hash of its cgroup's name: ranks with the same one share its limit */
    double group_processors; /* that limit; 0: none */
    int64_t given;           /* threads that were asked for; 0: none were */
} an_rank_place;

/* This process's own, without `given`. `root` is "" but for tests. */
void an_rank_place_read(an_rank_place *place, const char *root);

/* Threads of rank `rank` of the `ranks` of a host: those that were given, or else its share of the processors. A
 * processor that several ranks may use counts for each of them by its part, and so does the limit of a cgroup: the
 * automatic numbers of all ranks together are never more than there are processors, unless there are more ranks than
 * processors. O(ranks of the host × processors). */
int an_rank_threads(const an_rank_place *places, int ranks, int rank);

/* Processors that the ranks of a host may use together, which is what given threads are compared with. */
int an_rank_processors(const an_rank_place *places, int ranks);

#endif
