/* Which rank the others wait for: a pure function of what the ranks say about themselves. */
#ifndef AN_COMM_WATCH_BLAME_H
#define AN_COMM_WATCH_BLAME_H

#include "launch/rank_state.h"

typedef enum an_blame_kind {
    AN_BLAME_NONE,
    AN_BLAME_SILENT,    /* ranks do not answer: stopped processes, a cut link, a host that is down */
    AN_BLAME_STILL,     /* ranks answer, make no progress, and wait for no other rank */
    AN_BLAME_LEFT,      /* ranks have ended their run */
    AN_BLAME_DIFFERENT, /* all wait, in different collective calls */
    AN_BLAME_MESSAGES   /* all wait in the same one: messages do not arrive */
} an_blame_kind;

typedef struct an_blame {
    an_blame_kind kind;
    int32_t rank; /* the first of those that are blamed */
    int count;
    double seconds;          /* that the others have waited; where none waits, that none has made progress */
    char text[AN_RANK_TEXT]; /* who, where, since when, and who waits for it */
} an_blame;

/* States of different ranks, in the order of ranks, each with `silent` as of now. O(count).
 *
 * Ranks are blamed if they are silent, still or gone for `report_after` seconds while another waits, or if no rank at
 * all makes progress. A rank that is slow makes progress, and as long as one does, the others are not compared. */
void an_blame_find(const an_rank_state *const *states, int count, double report_after, an_blame *blame);

#endif
