/* The floating-point environment of a public call.
 *
 * Every public function that touches a floating-point number begins with AN_GUARD: until it returns, its thread rounds
 * to nearest, flushes nothing to zero and traps nothing, and threads that it starts inherit that. The caller's
 * environment, with its flags, is put back at every return. Code of the caller (a hook, a callback, a log) is called in
 * AN_HOST, in the caller's environment.
 */
#ifndef AN_BASE_GUARD_H
#define AN_BASE_GUARD_H

#include "base/parallel.h"

typedef struct an_guard {
    an_float_environment before;
} an_guard;
an_guard an_guard_enter(void);
void an_guard_leave(const an_guard *guard);

/* gcc's and clang's cleanup: no return can be forgotten. */
#define AN_GUARD __attribute__((cleanup(an_guard_leave), unused)) const an_guard guard_ = an_guard_enter()

typedef struct an_guard_paused {
    int depth;
    an_float_environment callers;
} an_guard_paused;
an_guard_paused an_guard_pause(void);
void an_guard_resume(an_guard_paused paused);

#define AN_HOST(call)                                     \
    do {                                                  \
        const an_guard_paused paused_ = an_guard_pause(); \
        call;                                             \
        an_guard_resume(paused_);                         \
    } while (0)

#endif
