#include "base/guard.h"

/* Public functions call each other. The caller's environment is the one that the outermost of them found. */
static _Thread_local struct {
    int depth;
    an_float_environment callers;
} outermost;

an_guard an_guard_enter(void) {
    const an_guard guard = {an_float_enter()};
    if (outermost.depth++ == 0) outermost.callers = guard.before;
    return guard;
}

void an_guard_leave(const an_guard *guard) {
    outermost.depth--;
    an_float_leave(guard->before);
}

an_guard_paused an_guard_pause(void) {
    const an_guard_paused paused = {outermost.depth, outermost.callers};
    if (paused.depth) an_float_leave(paused.callers);
    outermost.depth = 0;
    return paused;
}

void an_guard_resume(an_guard_paused paused) {
    if (paused.depth) an_float_enter();
    outermost.depth = paused.depth;
    outermost.callers = paused.callers;
}
