/* Arithmetic of whole numbers that C has no function for. */
#ifndef AN_BASE_INTEGER_H
#define AN_BASE_INTEGER_H

#include <stdint.h>

static inline int64_t an_smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t an_larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* a / b, rounded up; b > 0, and a may be negative. */
static inline int64_t an_divide_up(int64_t a, int64_t b) {
    return a / b + (a % b > 0);
}

#endif
