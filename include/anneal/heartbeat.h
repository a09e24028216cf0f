/* The heartbeat of a run: a record in memory in which the threads of a context write that they get on, and with what.
 *
 * A host gives it to a context (an_context_options.heartbeat) and may share it with another process, which then knows a run that
 * hangs from one that is slow, and what a run that died was doing. `anneal train --supervise` is such a process.
 *
 * Its layout is fixed and holds no pointers. Nothing in it is locked: writers never wait, and a text that is read while it is written
 * may be part old and part new. Read it with an_heartbeat_read only.
 */
#ifndef ANNEAL_HEARTBEAT_H
#define ANNEAL_HEARTBEAT_H

#include "anneal/anneal.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AN_HEARTBEAT_SLOTS = 32, AN_HEARTBEAT_TEXT = 112 };

typedef enum an_heartbeat_phase {
    AN_HEARTBEAT_START = 0,
    AN_HEARTBEAT_LOAD = 1, /* of the samples of a step */
    AN_HEARTBEAT_FORWARD = 2,
    AN_HEARTBEAT_BACKWARD = 3,
    AN_HEARTBEAT_STEP = 4, /* what follows them in a step */
    AN_HEARTBEAT_EVALUATE = 5,
    AN_HEARTBEAT_PREDICT = 6,
    AN_HEARTBEAT_SAVE = 7
} an_heartbeat_phase;

typedef struct an_heartbeat_slot {
    int64_t thread; /* the kernel's number of the thread that has it; 0: nobody */
    int64_t beats;  /* rises when the thread gets on; stays when another one takes the slot */
    char text[AN_HEARTBEAT_TEXT];
} an_heartbeat_slot;

struct an_heartbeat {
    uint64_t size;                               /* AN_INIT */
    int64_t beats;                               /* in what an_heartbeat_read gives: of all threads together */
    int64_t step;                                /* that is under way, from 1; 0: none was */
    uint64_t phase;                              /* an an_heartbeat_phase, of the thread that owns the context */
    an_heartbeat_slot slots[AN_HEARTBEAT_SLOTS]; /* the first is that thread's; threads beyond the last have none */
};

/* A copy to look at. Whatever the other process wrote, it has texts that end and have no control characters, and a phase that
 * exists; the rest of the numbers are as they were found. */
AN_API void an_heartbeat_read(const an_heartbeat *heartbeat, an_heartbeat *copy);

#ifdef __cplusplus
}
#endif
#endif
