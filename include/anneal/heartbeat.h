/* The heartbeat of a run: a record in memory where the threads of a context report their progress.
 *
 * A host gives it to a context (an_context_options.heartbeat) and may share it with another process. That process can
 * then tell a run that hangs from a slow one, and see what a run was doing when it died. `anneal train --supervise` is
 * such a process. None of these functions is collective.
 *
 * Its layout is fixed and has no pointers: this struct never grows. There are no locks: writers never wait, and a text
 * that is read while it is written may be part old and part new. Read it only with an_heartbeat_read.
 */
#ifndef ANNEAL_HEARTBEAT_H
#define ANNEAL_HEARTBEAT_H

#include "anneal/core.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AN_HEARTBEAT_SLOTS = 32, AN_HEARTBEAT_TEXT = 112 };

typedef enum an_heartbeat_phase {
    AN_HEARTBEAT_START = 0,
    AN_HEARTBEAT_LOAD = 1, /* reading the samples of a step */
    AN_HEARTBEAT_FORWARD = 2,
    AN_HEARTBEAT_BACKWARD = 3,
    AN_HEARTBEAT_STEP = 4, /* the rest of a step */
    AN_HEARTBEAT_EVALUATE = 5,
    AN_HEARTBEAT_PREDICT = 6,
    AN_HEARTBEAT_SAVE = 7,
    AN_HEARTBEAT_LIMIT = 0x7fffffff
} an_heartbeat_phase;

typedef struct an_heartbeat_slot {
    int64_t thread; /* thread id of the operating system; 0: the slot is free */
    int64_t beats;  /* rises as the thread progresses; stays when another thread takes the slot */
    char text[AN_HEARTBEAT_TEXT];
} an_heartbeat_slot;

struct an_heartbeat {
    uint64_t size;                               /* set by an_heartbeat_init */
    int64_t beats;                               /* of all threads together; set by an_heartbeat_read */
    int64_t step;                                /* in progress; counts from 1; 0: none yet */
    uint64_t phase;                              /* an an_heartbeat_phase, of the thread that owns the context */
    an_heartbeat_slot slots[AN_HEARTBEAT_SLOTS]; /* the first is that thread's; threads beyond the last have none */
};

AN_API void an_heartbeat_init(an_heartbeat *heartbeat, size_t size);

/* Copies a heartbeat. Whatever the other process wrote, the copy has terminated texts without control characters, and a
 * known phase. Other numbers are copied unchanged. */
AN_API void an_heartbeat_read(const an_heartbeat *heartbeat, an_heartbeat *copy);

#ifdef __cplusplus
}
#endif
#endif
