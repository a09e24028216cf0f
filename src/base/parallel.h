/* Threads. Work is cut into tasks by shape and dtype, never by the number of threads, so bits do not depend on it. */
#ifndef AN_BASE_PARALLEL_H
#define AN_BASE_PARALLEL_H

#include "base/context.h"

/* A task's index decides what it computes; `thread` (below an_context_threads) only picks scratch. */
typedef void an_task(void *user, int64_t index, int thread);

/* Runs tasks 0 … count-1, each once, on the context's threads with the library's floating-point environment on each.
 * Inside a parallel region of the caller it runs on the calling thread. */
void an_parallel(an_context *ctx, int64_t count, an_task *task, void *user);

/* Whether this process was forked from a thread that had a team of threads: starting one here would wait for it for ever. */
bool an_parallel_is_lost(void);

/* The floating-point environment that kernels need: round to nearest, no flush to zero, no traps. Enter returns the
 * caller's, with its flags; leave puts it back. */
typedef struct an_float_environment {
    uint64_t control;
} an_float_environment;
an_float_environment an_float_enter(void);
void an_float_leave(an_float_environment environment);

#endif
