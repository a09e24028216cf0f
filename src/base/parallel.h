/* Threads. Work is cut into tasks by shape and dtype, never by the number of threads, so bits do not depend on it. */
#ifndef AN_BASE_PARALLEL_H
#define AN_BASE_PARALLEL_H

#include "base/context.h"
#include "base/pool.h"

/* Runs tasks 0 … count-1, each once, on the context's threads with the library's floating-point environment on each.
 * Inside a parallel region of the caller it runs on the calling thread. A single task wakes no thread, so
 * tasks of some ten microseconds or more keep small kernels on the calling thread. */
void an_parallel(an_context *ctx, int64_t count, an_task *task, void *user);

/* The floating-point environment that kernels need: round to nearest, no flush to zero, no traps. Enter returns the
 * caller's, with its flags; leave puts it back. */
typedef struct an_float_environment {
    uint64_t control;
} an_float_environment;
an_float_environment an_float_enter(void);
void an_float_leave(an_float_environment environment);

#endif
