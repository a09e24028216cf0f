#include "data/summary.h"

#include <stddef.h>

an_summary an_summary_in(double *numbers, int64_t features) {
    return (an_summary){.mean = numbers,
                        .squares = numbers + features,
                        .minimum = numbers + 2 * features,
                        .maximum = numbers + 3 * features};
}

static double number_at(an_dtype dtype, const void *values, int64_t i) {
    return dtype == AN_DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* The numbers of a sample, in order: `i` goes on with each. */
#define FOR_NUMBERS(n, features, each, i)                   \
    for (int64_t sample = 0, i = 0; sample < (n); sample++) \
        for (int64_t f = 0; f < (features); f++)            \
            for (int64_t k = 0; k < (each); k++, i++)

int64_t an_summary_make(an_summary *s, int64_t features, int64_t each, an_dtype dtype, const void *values, int64_t n) {
    s->count = n * each;
    for (int64_t f = 0; f < features; f++) {
        s->mean[f] = s->squares[f] = 0;
        s->minimum[f] = s->maximum[f] = number_at(dtype, values, f * each);
    }
    FOR_NUMBERS(n, features, each, i) {
        const double x = number_at(dtype, values, i);
        if (!__builtin_isfinite(x)) return i;
        s->mean[f] += x;
        if (x < s->minimum[f]) s->minimum[f] = x;
        if (x > s->maximum[f]) s->maximum[f] = x;
    }
    for (int64_t f = 0; f < features; f++) s->mean[f] /= (double)s->count;
    FOR_NUMBERS(n, features, each, i) {
        const double distance = number_at(dtype, values, i) - s->mean[f];
        s->squares[f] += distance * distance;
    }
    return -1;
}

void an_summary_combine(an_summary *to, const an_summary *with, int64_t features) {
    const double a = (double)to->count, b = (double)with->count, all = a + b;
    for (int64_t f = 0; f < features; f++) {
        const double distance = with->mean[f] - to->mean[f];
        to->mean[f] += distance * (b / all);
        to->squares[f] += with->squares[f] + distance * distance * (a * b / all);
        if (with->minimum[f] < to->minimum[f]) to->minimum[f] = with->minimum[f];
        if (with->maximum[f] > to->maximum[f]) to->maximum[f] = with->maximum[f];
    }
    to->count += with->count;
}
