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

/* The smallest multiple that is not smaller than the value; neither is negative. */
static inline int64_t an_next_multiple(int64_t value, int64_t multiple) {
    return an_divide_up(value, multiple) * multiple;
}

/* The size of equal parts, none larger than `most`: the last is then not much smaller than the others. */
static inline int64_t an_even_part(int64_t whole, int64_t maximum) {
    return an_divide_up(whole, an_divide_up(whole, maximum));
}

#endif
