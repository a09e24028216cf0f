/* A clock that never goes backwards, and the time of day, in seconds. */
#ifndef AN_BASE_SYSTEM_CLOCK_H
#define AN_BASE_SYSTEM_CLOCK_H

#include <time.h>

static inline double an_clock_read(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double an_clock_seconds(void) {
    return an_clock_read(CLOCK_MONOTONIC);
}

static inline double an_clock_of_day(void) {
    return an_clock_read(CLOCK_REALTIME);
}

#endif
